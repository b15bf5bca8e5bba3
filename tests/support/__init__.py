"""What several tests use: servers as processes, transcripts as snapshots, installed packages, files of the repository."""

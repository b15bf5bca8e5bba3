"""Event logs: .evtx files, the journal of systemd, text logs, and those of a running Windows."""

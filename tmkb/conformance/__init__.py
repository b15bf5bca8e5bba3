"""Transcripts: recorded conversations with a server, and their replay against any server."""

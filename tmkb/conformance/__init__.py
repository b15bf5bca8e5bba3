"""Transcripts: recorded conversations with what must come back, replayed against any server."""

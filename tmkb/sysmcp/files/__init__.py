"""Search and inspect files below configured folders."""

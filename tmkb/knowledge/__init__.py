"""Threat patterns: read, found and rendered. Knows nothing of the protocol they are served over."""

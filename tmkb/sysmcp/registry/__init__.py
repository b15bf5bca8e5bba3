"""Registry hives: read, changed, and put in place of what they were."""

"""Find the patterns that fit a question."""

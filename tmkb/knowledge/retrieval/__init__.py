"""Find the patterns for a question."""

"""The composition root: loads schemas and patterns, runs the engine and its operations, reloads."""

"""The composition root: load schemas and patterns, run the engine and its operations, reload."""

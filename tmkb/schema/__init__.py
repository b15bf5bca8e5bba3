"""The schemas folder as checked values: what the engine is told. No protocol logic."""

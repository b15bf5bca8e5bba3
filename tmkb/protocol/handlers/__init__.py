"""Handlers, one module for each capability. `begin` handles a request; `complete` and `refuse` end an operation."""

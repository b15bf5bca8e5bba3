"""Handlers, one module for each capability. `begin` serves a request; `complete` and `refuse` end an operation."""

"""Build what is published besides the wheel: bundles for MCP clients, the entry for the MCP registry, and an image."""

"""MCP clients on this machine: which there are, and the entries in their configuration files."""

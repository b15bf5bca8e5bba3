"""Sources of system data: event logs, files, registry hives. Knows nothing of MCP."""

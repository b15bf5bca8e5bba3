"""Sources of system data: event logs, files and registry hives. Knows nothing of MCP."""

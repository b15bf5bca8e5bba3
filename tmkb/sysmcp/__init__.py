"""Where system data comes from: event logs, files, registry hives. Knows nothing of MCP."""

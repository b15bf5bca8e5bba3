"""The operations of SysMCP: event logs, files and the registry of a system."""

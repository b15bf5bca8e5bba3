"""Read event logs: .evtx files, the systemd journal, text logs, and the logs of a running Windows."""

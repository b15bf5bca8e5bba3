"""Measures whole calls of SysMCP over its pipes, beside what they are to take: ``python -m tests.bench.sysmcp``.

The machine has 100 000 events, 200 000 files and a hive of 30 000 keys. A figure is the median of 20 calls, from the
line that is written to the line that is read; ping is the floor.
"""

import contextlib
import os
import statistics
import sys
import tempfile
import time

from tests.bench import sysmcp_files, sysmcp_hives
from tests.support.process import Server
from tests.sysmcp import evtxfile

TURNS = 20
EVENTS, FOLDERS, FILES = 100_000, 8_500, 200_000
CONFIG = r"""
kind: config
providers:
  eventlog: {sources: [{kind: evtx, folder: logs}]}
  files: {roots: {docs: docs}}
  hives: {mounts: {'HKLM\SYSTEM': SYSTEM.hive}}
"""


def call(tool, **arguments):
    return "tools/call", {"name": tool, "arguments": arguments}


CALLS = {  # what is measured → method and params, milliseconds that it is to take
    "floor: ping": (("ping", {}), None),
    "discovery: tools/list": (("tools/list", {}), 50),
    "parsing: an unknown method": (("no/such", {}), 10),
    "validation: limit is no number": (call("eventlog_query", logName="System", limit="x"), 10),
    "eventlog_list_logs": (call("eventlog_list_logs"), 100),
    "eventlog_query, newest 100": (call("eventlog_query", logName="System", limit=100), 100),
    "eventlog_query, newest 1000": (call("eventlog_query", logName="System", limit=1000), 100),
    "eventlog_query, ERROR, 100": (call("eventlog_query", logName="System", limit=100, minLevel="ERROR"), 100),
    "fs_search, first page of 100": (call("fs_search", pattern="*7.log", limit=100), 100),
    "fs_stat": (call("fs_stat", path="."), 100),
    "reg_read": (call("reg_read", path="HKLM\\SYSTEM\\Many\\Group0400\\Key0050"), 100),
}


def machine(folder):
    """The configuration of a server with all that."""
    os.mkdir(os.path.join(folder, "logs"))
    with open(os.path.join(folder, "logs", "System.evtx"), "wb") as file:
        file.write(evtxfile.file(evtxfile.chunks(evtxfile.events(EVENTS))))
    os.mkdir(os.path.join(folder, "docs"))
    sysmcp_files.plant(os.path.join(folder, "docs"), FOLDERS, FILES)
    sysmcp_hives.make(os.path.join(folder, "SYSTEM.hive"))
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    return config


def main():
    where = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=where) as folder, server(machine(folder)) as running:
        print("| call | first, ms | median, ms | to take, ms |\n|---|---|---|---|")
        for name, ((method, params), target) in CALLS.items():
            took = []
            for _ in range(TURNS + 1):
                begun = time.perf_counter()
                running.ask(method, **params)
                took.append((time.perf_counter() - begun) * 1000)
            print(f"| {name} | {took[0]:.2f} | {statistics.median(took[1:]):.2f} | {f'< {target}' if target else ''} |")
    return 0


@contextlib.contextmanager
def server(config):
    """A process that has shaken hands."""
    with Server("--server", "sysmcp", "--config", config) as running:
        running.ask("initialize", clientInfo={"name": "bench"})
        yield running


if __name__ == "__main__":
    sys.exit(main())

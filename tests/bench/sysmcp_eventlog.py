"""Measures queries of event logs of 100 000 entries beside their targets: ``python -m tests.bench.sysmcp_eventlog``.

A figure is the median of 20 calls; the operation is called as the runtime calls it, so the protocol is not in it.
"""

import lzma
import os
import statistics
import sys
import tempfile
import time

from tests.sysmcp import evtxfile, logs

COUNT = 100_000
TURNS = 20
TARGET = 100  # milliseconds
LIMITS = {"seconds": 5, "counting_seconds": 0.05}  # as the packaged server has them
JOURNAL = os.path.join(os.path.dirname(__file__), "..", "data", "sysmcp", "system.journal.xz")

QUERIES = {
    "newest 100": {},
    "newest 1000": {"limit": 1000},
    "newest 10 000, cut at 1 MiB": {"limit": 10000},
    "offset 50 000": {"offset": 50_000},
    "ERROR and worse": {"minLevel": "ERROR"},
    "one source": {"source": "eventlog"},
    "a time range": {"startTime": "2023-11-17T00:00:00Z", "endTime": "2023-11-18T00:00:00Z"},
    "a text that many have": {"text": "value 9"},
    "a text that none has (until time is up, or all is read)": {"text": "no such text"},
}


def make(folder, count):
    """A log of each kind that can be made here, with so many entries; the journal's has 300."""
    events = evtxfile.events(count)
    with open(os.path.join(folder, "Evtx.evtx"), "wb") as file:
        file.write(evtxfile.file(evtxfile.chunks(events)))
    text = os.path.join(folder, "text.log")
    with open(text, "w", encoding="utf-8") as file:
        for event in events:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(event.time // 1_000_000))
            file.write(f"<{event.level}>{stamp} host app[7]: {'; '.join(event.values)}\n")
    journal = os.path.join(folder, "system.journal")
    with lzma.open(JOURNAL) as packed, open(journal, "wb") as file:
        file.write(packed.read())
    os.utime(os.path.join(folder, "Evtx.evtx"), (1_700_000_000, 1_700_000_000))
    return [
        {"kind": "evtx", "folder": folder},
        {"kind": "textlog", "files": {"Text": text}},
        {"kind": "journal", "path": journal, "logs": {"Journal": {}}},
    ]


def timed(call, turns=None):
    """The median of so many calls in milliseconds, and what the last gave."""
    took, answer = [], None
    for _ in range(turns or TURNS):
        begun = time.perf_counter()
        answer = call()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took), answer


def longest_step(running):
    """The longest that anybody else would have to wait for a turn, in milliseconds."""
    longest, begun = 0.0, time.perf_counter()
    for _ in running:
        now = time.perf_counter()
        longest, begun = max(longest, now - begun), now
    return max(longest, time.perf_counter() - begun) * 1000


def main():
    with tempfile.TemporaryDirectory() as folder:
        sources = make(folder, COUNT)
        provider = logs.served(*sources, **LIMITS)
        print("| log | query | median ms | target ms | longest step ms | entries | total |")
        print("|---|---|---|---|---|---|---|")
        for log in ("Evtx", "Text", "Journal"):
            cold, _ = timed(lambda log=log: logs.ask(logs.served(*sources, **LIMITS), log), 5)
            print(f"| {log} | newest 100, nothing known yet | {cold:.1f} | {TARGET} | | | |")
            for name, query in QUERIES.items():
                took, answer = timed(lambda log=log, query=query: logs.ask(provider, log, **query))
                step = longest_step(provider.query(log, **query))
                total = f"{answer['totalCount']}{'' if answer['totalExact'] else ' and more'}"
                print(f"| {log} | {name} | {took:.1f} | {TARGET} | {step:.1f} | {len(answer['entries'])} | {total} |")
        took, _ = timed(lambda: logs.run(provider.list_logs()))
        print(f"| all | list_logs | {took:.1f} | {TARGET} | | | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

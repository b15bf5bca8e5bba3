"""Helpers: a provider of event logs with the settings of a test, and its results."""

from tests.sysmcp.operations import run
from tmkb.sysmcp.eventlog import provider as eventlog

LIMITS = {
    "page": 100,
    "seconds": 60,
    "counting_seconds": 60,  # so that totals are exact
    "result_bytes": 1 << 20,
    "event_text_bytes": 4096,
    "indexed_records": 1_000_000,
}
CAUSES = ("missing", "denied", "corrupt", "needs_evtx", "needs_libsystemd", "needs_pywin32")


def served(*sources, **limits):
    """Return a provider with these sources; each reason is its own cause."""
    settings = {
        "sources": list(sources),
        "limits": {**LIMITS, **limits},
        "reasons": dict(zip(CAUSES, CAUSES, strict=True)),
    }
    return eventlog.EventLog(settings, None)


def ask(provider, log="System", **arguments):
    return run(provider.query(log, **arguments))


def pages(provider, log="System", by="cursor", **arguments):
    """Return the entries of all pages."""
    entries, beside = [], {}
    while True:
        answer = ask(provider, log, **arguments, **beside)
        entries += answer["entries"]
        assert len(entries) <= 100_000
        if "nextCursor" not in answer:
            return entries
        beside = {"cursor": answer["nextCursor"]} if by == "cursor" else {"offset": answer["nextOffset"]}

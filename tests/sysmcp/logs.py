"""The provider of event logs with settings of a test's own, and its operations run to their end."""

from tests.sysmcp.operations import run
from tmkb.sysmcp.eventlog import provider as eventlog

LIMITS = {
    "page": 100,
    "seconds": 60,
    "counting_seconds": 60,  # so that totals are exact
    "result_bytes": 1 << 20,
    "message_bytes": 4096,
    "indexed_records": 1_000_000,
}
CAUSES = ("missing", "denied", "corrupt", "needs_evtx", "needs_libsystemd", "needs_pywin32")


def served(*sources, **limits):
    """The provider with these sources; its reasons are their causes."""
    settings = {
        "sources": list(sources),
        "limits": {**LIMITS, **limits},
        "reasons": dict(zip(CAUSES, CAUSES, strict=True)),
    }
    return eventlog.EventLog(settings, None)


def ask(provider, log="System", **arguments):
    return run(provider.query(log, **arguments))


def pages(provider, log="System", by="cursor", **arguments):
    """All entries, page after page."""
    entries, beside = [], {}
    while True:
        answer = ask(provider, log, **arguments, **beside)
        entries += answer["entries"]
        assert len(entries) <= 100_000
        if "nextCursor" not in answer:
            return entries
        beside = {"cursor": answer["nextCursor"]} if by == "cursor" else {"offset": answer["nextOffset"]}

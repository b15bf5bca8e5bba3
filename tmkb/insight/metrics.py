"""The metrics of a server, and which events change them. `tmkb.insight.page` and `tmkb.insight.telemetry` export them.

The values of labels are names in the server's own files: clients cannot add any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb import __version__
from tmkb.insight.observer import Completion, Observer, Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Add = Callable[[str, tuple[str, ...], float], None]  # name of the metric, values of its labels, amount

_RELOADS = {  # log line → result
    **dict.fromkeys(("reloaded", "reread"), "applied"),
    **dict.fromkeys(("not_reloaded", "not_reread", "pull_rejected"), "rejected"),
}
NO_STACK = "none"
DURATION = "tmkb_request_duration_seconds"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metric(NamedTuple):
    """A metric. ``kind``: counter, gauge or histogram. ``otel``, ``unit``: for OpenTelemetry; "" if it is not there."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str
    otel: str
    unit: str


METRICS = tuple(
    Metric(name, kind, tuple(labels.split()), about, otel, unit)
    for name, kind, labels, about, otel, unit in (
        ("tmkb_requests_total", "counter", "method tool revision outcome", "Requests that have ended", "", ""),
        (
            DURATION,
            "histogram",
            "method tool",
            "From the receipt of a request to its response, without network",
            "",
            "",
        ),
        ("tmkb_errors_total", "counter", "error", "Failed requests and refused messages", "tmkb.errors", "{error}"),
        ("tmkb_cache_hits_total", "counter", "tool", "Calls with a cached result", "tmkb.cache_hits", "{call}"),
        ("tmkb_queries_total", "counter", "stack answered", "Queries for patterns", "tmkb.queries", "{query}"),
        (
            "tmkb_patterns_answered_total",
            "counter",
            "pattern",
            "Answers with this pattern",
            "tmkb.patterns.answered",
            "{answer}",
        ),
        (
            "tmkb_answer_tokens_total",
            "counter",
            "",
            "Tokens of the answers to queries",
            "tmkb.answer.tokens",
            "{token}",
        ),
        ("tmkb_received_bytes_total", "counter", "", "Size of the messages from clients", "tmkb.received", "By"),
        ("tmkb_sent_bytes_total", "counter", "", "Size of the messages to clients", "tmkb.sent", "By"),
        ("tmkb_events_total", "counter", "event", "Log lines about the server, by id", "tmkb.events", "{event}"),
        ("tmkb_reloads_total", "counter", "result", "Changes of schemas or patterns", "tmkb.reloads", "{reload}"),
        ("tmkb_in_flight", "gauge", "", "Requests without a response yet", "tmkb.in_flight", "{request}"),
        ("tmkb_connections", "gauge", "", "Sessions, and requests that need none", "tmkb.connections", "{connection}"),
        ("tmkb_sessions", "gauge", "", "Sessions over HTTP, of clients with a handshake", "tmkb.sessions", "{session}"),
        ("tmkb_streams", "gauge", "", "Open event streams over HTTP", "tmkb.streams", "{stream}"),
        (
            "tmkb_subscriptions",
            "gauge",
            "",
            "Subscribed resources, and streams of notifications",
            "tmkb.subscriptions",
            "{subscription}",
        ),
        ("tmkb_tasks", "gauge", "", "Tasks that run, and ended ones that are kept", "tmkb.tasks", "{task}"),
    )
)


INFO: tuple[tuple[str, str, Callable[[Observer], Mapping[str, str]]], ...] = (
    ("tmkb_build_info", "Version of TMKB", lambda _: {"version": __version__}),
    ("tmkb_patterns_info", "What is served, with the commits of its patterns", lambda observer: observer.identity()),
)


class Counting(Receiver):
    """Turns events into amounts of metrics, which ``add`` adds up."""

    def __init__(self, add: Add) -> None:
        self.add = add

    def completed(self, completion: Completion) -> None:
        """Count a request, its error, and what it answered."""
        method, tool = completion.method, completion.tool
        self.add("tmkb_requests_total", (method, tool, completion.revision, completion.outcome), 1)
        self.add(DURATION, (method, tool), completion.seconds)
        exchange = completion.exchange
        if completion.error:
            self.add("tmkb_errors_total", (completion.error,), 1)
        if exchange.cached:
            self.add("tmkb_cache_hits_total", (tool,), 1)
        if "pattern_ids" in exchange.facts:
            self._count_query(exchange.facts)

    def _count_query(self, facts: Any) -> None:
        patterns = facts["pattern_ids"]
        self.add("tmkb_queries_total", (facts["stack"] or NO_STACK, "yes" if patterns else "no"), 1)
        self.add("tmkb_answer_tokens_total", (), facts["token_count"])
        for pattern in patterns:
            self.add("tmkb_patterns_answered_total", (pattern,), 1)

    def refused(self, error: str) -> None:
        """Count the error."""
        self.add("tmkb_errors_total", (error,), 1)

    def received(self, size: int) -> None:
        """Count the bytes."""
        self.add("tmkb_received_bytes_total", (), size)

    def sent(self, size: int) -> None:
        """Count the bytes."""
        self.add("tmkb_sent_bytes_total", (), size)

    def logged(self, line: str) -> None:
        """Count the line, and the reload if it reports one."""
        self.add("tmkb_events_total", (line,), 1)
        if line in _RELOADS:
            self.add("tmkb_reloads_total", (_RELOADS[line],), 1)

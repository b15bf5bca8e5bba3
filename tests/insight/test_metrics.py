"""The metrics: what changes them, that clients cannot add time series, and that the document has all of them."""

import os
import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.insight.test_observer import Observed
from tests.support.repository import ROOT, source
from tmkb.insight import metrics, page

pytestmark = pytest.mark.needs("prometheus_client")
DOCUMENT = os.path.join(ROOT, "docs", "insight.md")


class Scraped:
    """A server whose metrics are kept in this process."""

    def __init__(self, server, quiet):
        self.values = page._Values()
        self.observed = Observed(server, quiet, metrics.Counting(self.values.add))

    def samples(self):
        """Name and labels → value, of every sample on the page, which is parsed as Prometheus does."""
        self.values.set(self.observed.observer.figures())
        families = text_string_to_metric_families(generate_latest(self.values.registry).decode())
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
            if not sample.name.endswith("_created")
        }


def test_a_query_changes_these_metrics(quiet):
    scraped = Scraped("tmkb-full", quiet)
    before = scraped.samples()
    for _ in range(2):
        scraped.observed.call("tmkb_query", context="flask endpoint that exports invoices")
    scraped.observed.call("tmkb_query", context="paint the fence green")
    after = scraped.samples()
    changed = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
    patterns = [key for key in changed if key[0] == "tmkb_patterns_answered_total"]

    labels = ("method", "tools/call"), ("outcome", "ok"), ("revision", "2025-11-25"), ("tool", "tmkb_query")
    assert changed["tmkb_requests_total", *labels] == 3
    assert changed["tmkb_request_duration_seconds_count", labels[0], labels[3]] == 3
    assert changed["tmkb_cache_hits_total", ("tool", "tmkb_query")] == 1
    assert changed["tmkb_queries_total", ("answered", "yes"), ("stack", "flask")] == 2
    assert changed["tmkb_queries_total", ("answered", "no"), ("stack", "none")] == 1
    assert len(patterns) in (1, 2, 3, 4, 5) and {changed[key] for key in patterns} == {2}
    assert changed[("tmkb_answer_tokens_total",)] > 2 * 100
    assert changed[("tmkb_sent_bytes_total",)] > changed[("tmkb_received_bytes_total",)] > 0


def test_clients_cannot_add_time_series(quiet):
    scraped = Scraped("tmkb-full", quiet)
    hostile = [
        lambda name: {"method": "tools/call", "params": {"name": name}},
        lambda name: {"method": name},
        lambda name: {"method": "prompts/get", "params": {"name": name}},
        lambda name: {"method": "resources/read", "params": {"uri": f"x:{name}"}},
        lambda name: {
            "method": "tools/call",
            "params": {
                "name": "tmkb_query",
                "arguments": {"context": "paint the fence", "language": name, "framework": name},
            },
        },
    ]

    def attack(count):
        for number in range(count):
            for message in hostile[:4] if number % 50 else hostile:  # a query takes longer
                scraped.observed.send({"id": number, **message(f"name-{number}")})
        return len(scraped.samples())

    attack(51)
    before = attack(51)  # with hits of the cache

    assert attack(2500) == before  # 10,000 unknown names
    assert len(scraped.values.children) < 50


def test_reloads_are_counted_by_result(quiet):
    scraped = Scraped("tmkb", quiet)
    for line in ("reloaded", "not_reloaded", "watch_ended"):
        scraped.observed.log.write(line)
    samples = scraped.samples()

    assert samples["tmkb_reloads_total", ("result", "applied")] == 1
    assert samples["tmkb_reloads_total", ("result", "rejected")] == 1
    assert samples["tmkb_events_total", ("event", "watch_ended")] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has one process")
def test_a_process_that_has_ended_keeps_no_gauge(tmp_path, monkeypatch):
    monkeypatch.setenv(page.FOLDER, str(tmp_path))
    names = [f"gauge_livesum_{pid}.db" for pid in (os.getpid(), 4_000_000)] + ["counter_4000000.db"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    page._forget_ended_processes()

    assert sorted(os.listdir(tmp_path)) == sorted([names[0], names[2]])


def test_lines_of_reloads_exist(spec):
    assert {*metrics._RELOADS} - {"pull_rejected"} <= {*spec["server"]["log"]}


def table():
    """The table of the document."""
    lines = ["| metric | labels | content | OpenTelemetry |", "|---|---|---|---|"]
    for name, kind, labels, about, otel, _ in metrics.METRICS:
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` ({kind}) | {shown} | {about} | {f'`{otel}`' if otel else ''} |")
    lines += [f"| `{name}` (gauge) | | {about} | |" for name, about, _ in metrics.INFO]
    return "\n".join(lines)


def test_the_document_has_every_metric():
    text = re.search(r"<!-- generated: metrics -->\n(.*?)\n<!-- end -->", source(DOCUMENT), re.S)

    assert text and text[1] == table(), "Run python tests/insight/test_metrics.py"


if __name__ == "__main__":
    written = re.sub(
        r"(<!-- generated: metrics -->\n).*?<!-- end -->",
        lambda match: f"{match[1]}{table()}\n<!-- end -->",
        source(DOCUMENT),
        flags=re.S,
    )
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(written)

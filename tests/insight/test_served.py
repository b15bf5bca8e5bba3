"""Real servers: metrics of one and several processes, telemetry that a collector receives, and the log of queries."""

import contextlib
import json
import re
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support.process import HttpServer, Server
from tests.transport.test_http import META

pytestmark = pytest.mark.process

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LIMIT = 30.0  # seconds; bounds a failure


def post(server, method, id=1, *, headers=(), **params):
    """Send a stateless request; return the response."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({"mcp-name": params["name"]} if "name" in params else {}),
        **dict(headers),
    }
    request = urllib.request.Request(server.address, json.dumps(message).encode(), sent)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)


def page(server):
    """The address of the metrics."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if match := re.search(r"Metrics for Prometheus at (\S+)", "".join(server.log)):
            return match[1]
        time.sleep(0.01)
    raise AssertionError(server.log)


def scrape(address, **headers):
    """The samples: name and labels → value. Every scrape uses a new connection, so any process may answer."""
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=LIMIT) as response:
        families = [*text_string_to_metric_families(response.read().decode())]
    samples = [sample for family in families for sample in family.samples]
    found = {(each.name, *sorted(each.labels.items())): each.value for each in samples}
    assert len(found) == len(samples)
    return found


def eventually(check):
    """Wait until ``check`` returns something; return that."""
    deadline = time.monotonic() + LIMIT
    while not (value := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@pytest.mark.needs("uvicorn", "prometheus_client")
@pytest.mark.parametrize("workers", [1, 3])
def test_one_page_has_the_metrics_of_all_processes(workers, tmp_path):
    folder = tmp_path / "usage"
    options = ("--server", "tmkb-full", "--usage", folder, "--usage-context", "text")
    with HttpServer("--metrics", "127.0.0.1:0", "--workers", str(workers), *map(str, options)) as server:
        address = page(server)
        for number in range(12):
            post(server, "tools/call", number, name="tmkb_query", arguments={"context": f"export invoices {number}"})
        post(server, "tools/call", name="no-such-tool")
        refused = urllib.request.Request(server.address, b"{}", {"host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(refused, timeout=LIMIT)
        seen = [scrape(address) for _ in range(6)]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.removesuffix("metrics"), timeout=LIMIT)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            scrape(address, Host="evil.example")
        idle = eventually(lambda: (values := scrape(address))[("tmkb_connections",)] == 0 and values)
    requests = {key: value for key, value in seen[0].items() if key[0] == "tmkb_requests_total"}

    assert sum(requests.values()) == 13
    assert all({key: each[key] for key in requests} == requests for each in seen)
    assert seen[-1]["tmkb_errors_total", ("error", "unknown_tool")] == 1
    assert seen[-1]["tmkb_errors_total", ("error", "foreign_host")] == 1
    assert idle[("tmkb_in_flight",)] == 0
    assert idle["tmkb_patterns_info", ("server", "tmkb-full"), ("version", "0.1.0")] == 1
    assert ("process_open_fds",) in idle or workers > 1
    files = [*folder.iterdir()]
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert 1 <= len(files) <= workers
    assert sorted(each["context"] for each in lines) == sorted(f"export invoices {number}" for number in range(12))


@pytest.mark.needs("uvicorn", "prometheus_client")
def test_counts_survive_the_replacement_of_all_processes():
    def count(values):
        return sum(value for key, value in values.items() if key[0] == "tmkb_requests_total")

    with HttpServer("--metrics", "127.0.0.1:0", "--workers", "2") as server:
        address = page(server)
        for number in range(5):
            post(server, "tools/list", number)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: sum("Metrics for Prometheus" in line for line in server.log) == 2)
        eventually(lambda: sum("MCP server shutdown" in line for line in server.log) == 2)
        post(server, "tools/list")
        assert [count(scrape(address)) for _ in range(4)] == [6] * 4


class Collector:
    """An OTLP receiver that keeps every span and metric."""

    def __init__(self):
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                collector.received(self.path, self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.spans, self.metrics = [], {}
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def received(self, path, body):
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        if path == "/v1/traces":
            decoded = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            self.spans += [
                span for each in decoded.resource_spans for scope in each.scope_spans for span in scope.spans
            ]
        elif path == "/v1/metrics":
            decoded = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
            for each in decoded.resource_metrics:
                self.metrics |= {metric.name: metric for scope in each.scope_metrics for metric in scope.metrics}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def named(self, name):
        return [span for span in self.spans if span.name == name]


def attributes(part):
    return {each.key: each.value.string_value for each in part.attributes}


@pytest.mark.needs("opentelemetry")
def test_a_collector_receives_spans_and_metrics_over_stdio():
    with Collector() as collector, Server(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as server:
        server.handshake()
        server.ask("tools/call", 7, name="tmkb_query", arguments={"context": "secret"}, _meta={"traceparent": TRACE})
        server.ask("tools/call", 8, name="secret tool", arguments={})
        rest, status = server.end()
    (call,), (unknown,) = collector.named("tools/call tmkb_query"), collector.named("tools/call")

    assert (rest, status) == ([], 0)
    assert (call.kind, call.trace_id.hex(), call.parent_span_id.hex()) == (2, TRACE[3:35], TRACE[36:52])
    assert 0 < call.start_time_unix_nano < call.end_time_unix_nano < time.time_ns()
    assert attributes(call)["network.transport"] == "pipe"
    assert (unknown.status.code, attributes(unknown)["error.type"]) == (2, "-32602")
    assert "secret" not in str(collector.spans) + str(collector.metrics)
    assert {"mcp.server.operation.duration", "tmkb.queries", "tmkb.errors", "tmkb.connections"} <= {*collector.metrics}
    points = collector.metrics["mcp.server.operation.duration"].histogram.data_points
    assert sum(point.count for point in points) == 3


@pytest.mark.needs("uvicorn", "opentelemetry")
def test_trace_headers_of_http_are_linked_if_the_message_has_its_own():
    other = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    with contextlib.ExitStack() as stack:
        collector = stack.enter_context(Collector())
        server = stack.enter_context(
            HttpServer(env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces"})
        )
        post(server, "tools/list", headers={"traceparent": other})
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "tmkb_query", "arguments": {"context": "x"}},
        }
        message["params"]["_meta"] = {**META, "traceparent": TRACE}
        sent = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "traceparent": other,
        }
        sent |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "tmkb_query"}
        urllib.request.urlopen(
            urllib.request.Request(server.address, json.dumps(message).encode(), sent), timeout=LIMIT
        ).close()
    (listed,), (call,) = collector.named("tools/list"), collector.named("tools/call tmkb_query")

    assert (listed.trace_id.hex(), list(listed.links)) == ("1" * 32, [])
    assert call.trace_id.hex() == TRACE[3:35] and [each.trace_id.hex() for each in call.links] == ["1" * 32]
    assert collector.metrics == {}


@pytest.mark.needs("opentelemetry")
def test_a_collector_that_is_away_delays_neither_answers_nor_the_end():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed.getsockname()[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        with Server(env=env) as server:
            server.handshake()
            answers = [server.ask("ping", number)["result"] for number in range(50)]
            began = time.monotonic()
            rest, status = server.end()
            took = time.monotonic() - began

    assert (answers, rest, status) == ([{}] * 50, [], 0)
    assert took < LIMIT
    assert "Traceback" not in "".join(server.err)

"""Which variables ask for telemetry, and what is exported of a request. `test_served` has a receiver."""

import time

import pytest

from tests.insight.test_observer import Observed
from tests.insight.test_querylog import Lines
from tmkb.insight import telemetry

TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
URL = "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    ("environment", "signals", "logged"),
    [
        ({}, [], []),
        ({"OTEL_SERVICE_NAME": "x"}, [], []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, ["traces", "metrics"], []),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": URL}, ["metrics"], []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_METRICS_EXPORTER": "none"}, ["traces"], []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["traces"], []),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["traces"], ["telemetry_unsupported"]),
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, [], ["telemetry_unsupported"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_SDK_DISABLED": "TRUE"}, [], []),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            [],
            ["telemetry_unsupported", "telemetry_unsupported"],
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": URL,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            ["traces"],
            ["telemetry_unsupported"],
        ),
    ],
)
@pytest.mark.needs("opentelemetry")
def test_variables_choose_the_signals(environment, signals, logged):
    log = Lines()

    assert telemetry.signals(environment, log) == signals
    assert log == logged


def test_without_the_extra_there_is_a_line_in_the_log(monkeypatch):
    monkeypatch.setattr(telemetry.importlib.util, "find_spec", lambda name: None)
    log = Lines()

    assert telemetry.signals({"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, log) == []
    assert log == ["telemetry_missing"]


@pytest.fixture
def exported(quiet):
    """A server, and what it puts into the queue."""
    receiver = telemetry.Telemetry(["traces", "metrics"], Lines(), "stdio")
    receiver.thread = True  # none is started
    observed = Observed("tmkb-full", quiet, receiver)

    def items():
        return [receiver.queue.popleft() for _ in range(len(receiver.queue))]

    items()
    return observed, items, receiver


def test_a_span_has_no_argument(exported):
    observed, items, _ = exported
    observed.call("tmkb_query", id="my id", context="endpoint that exports the secret invoices", framework="flask")
    (request,) = items()

    assert request.name == "tools/call tmkb_query"
    assert request.attributes.pop("tmkb.patterns")[0].startswith("TMKB-AUTH-")
    assert len(request.attributes.pop("mcp.session.id")) == 32
    assert request.attributes == {
        "network.transport": "pipe",
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "jsonrpc.request.id": "my id",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "tmkb_query",
        "tmkb.stack": "flask",
    }
    assert time.time_ns() - request.ended < 60e9


@pytest.mark.parametrize(
    ("name", "span", "error"),
    [("tmkb_query", "tools/call tmkb_query", "tool_error"), ("made up by a client", "tools/call", "-32602")],
)
def test_errors_have_the_code_or_the_type_of_the_conventions(exported, name, span, error):
    observed, items, _ = exported
    observed.call(name)
    (request,) = items()

    assert (request.name, request.attributes["error.type"]) == (span, error)
    assert request.attributes.get("rpc.response.status_code") == (error if error.startswith("-") else None)
    assert "made up" not in str(request)


@pytest.mark.parametrize(
    ("meta", "headers", "parents"),
    [
        ({"traceparent": TRACE, "tracestate": "a=b"}, {}, [{"traceparent": TRACE, "tracestate": "a=b"}]),
        ({}, {"traceparent": TRACE, "host": "x"}, [{"traceparent": TRACE}]),
        ({"traceparent": TRACE}, {"traceparent": "2"}, [{"traceparent": TRACE}, {"traceparent": "2"}]),
        ({"traceparent": 5, "tracestate": "a=b"}, {}, []),
        ({"traceparent": "x" * 513}, {}, []),
        ({"traceparent": TRACE, "tracestate": "x" * 513}, {}, [{"traceparent": TRACE}]),
    ],
)
def test_the_message_comes_before_its_http_request(exported, meta, headers, parents):
    observed, items, _ = exported
    observed.connection.trace_headers = headers
    observed.send({"id": 1, "method": "ping", "params": {"_meta": meta}})

    assert items()[0].parents == parents


def test_a_queue_that_nobody_empties_is_bounded(exported):
    observed, _, receiver = exported
    for number in range(6000):
        observed.send({"id": number, "method": "ping"})

    assert len(receiver.queue) == telemetry._QUEUE


def test_failures_are_logged_once_a_minute(exported):
    observed, _, receiver = exported
    for number in range(3):
        receiver.failures.append("refused")
        observed.send({"id": number, "method": "ping"})

    assert receiver.log == ["telemetry_failed"]

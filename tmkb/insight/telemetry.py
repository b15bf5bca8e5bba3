"""Traces and metrics for OpenTelemetry, exported by OTLP over HTTP if the standard variables ``OTEL_*`` say so.

The SDK is imported by a thread, for which requests wait in a queue. After that, they are handed to the SDK, which sends
them from its own threads. What a queue cannot take is dropped. Arguments and results are not recorded.

Semantic conventions for MCP: https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/ (status: development). Trace
context in ``params._meta``: SEP-414, and the revision 2026-07-28.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tmkb import __version__
from tmkb.insight.metrics import METRICS, NO_STACK, Counting, Metric
from tmkb.insight.observer import OTHER, Completion, Observer
from tmkb.schema import template

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import SpanContext

    from tmkb.protocol.connection import Connection
    from tmkb.server.log import Log

SIGNALS = ("traces", "metrics")
DURATION = "mcp.server.operation.duration"
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # seconds; of the conventions
_SPAN_ONLY = ("jsonrpc.request.id", "mcp.session.id", "tmkb.patterns", "tmkb.stack")  # not attributes of metrics
_QUEUE = 4096  # items
_GRACE = 3.0  # seconds for the last export, when the server ends
_QUIET = 60.0  # seconds between log lines about failures
_MOST = 512  # characters of a trace header
_MOST_ID = 100  # characters of a request id
_MOST_TEXT = 300  # characters of a failure in the log


class _Request(NamedTuple):
    """What a span has of a request. ``parents``: trace headers, of the message first."""

    name: str
    attributes: dict[str, Any]
    parents: list[dict[str, str]]
    ended: int  # Unix time in nanoseconds
    seconds: float


def signals(environment: Mapping[str, str], log: Log) -> list[str]:
    """Return which of `SIGNALS` the variables ask to export. Others than OTLP over HTTP get a line in the log."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    wanted = [signal for signal in SIGNALS if _is_wanted(environment, signal, log)]
    if wanted and importlib.util.find_spec("opentelemetry") is None:
        from tmkb.schema import installation

        log.write("telemetry_missing", command=installation.command("otel"))
        return []
    return wanted


def _is_wanted(environment: Mapping[str, str], signal: str, log: Log) -> bool:
    def read(name: str) -> str:
        return environment.get(name, "").strip()

    names = f"OTEL_EXPORTER_OTLP_{signal.upper()}", "OTEL_EXPORTER_OTLP"
    exporter = f"OTEL_{signal.upper()}_EXPORTER"
    chosen = [each.strip() for each in read(exporter).split(",") if each.strip()]
    if not chosen:
        chosen = ["otlp"] if any(read(f"{name}_ENDPOINT") for name in names) else []
    for other in [each for each in chosen if each not in ("otlp", "none")]:
        log.write("telemetry_unsupported", name=exporter, value=other)
    if "otlp" not in chosen:
        return False
    protocol = next(filter(None, (read(f"{name}_PROTOCOL") for name in names)), "http/protobuf")
    if protocol != "http/protobuf":
        log.write("telemetry_unsupported", name="OTEL_EXPORTER_OTLP_PROTOCOL", value=protocol)
    return protocol == "http/protobuf"


class Telemetry(Counting):
    """Exports a span and metrics of each request. The SDK is imported after the first one."""

    def __init__(self, chosen: Iterable[str], log: Log, transport: str) -> None:
        """Prepare the export.

        Args:
            chosen: signals to export.
            log: gets a line, at most once a minute, if an export fails.
            transport: ``stdio`` or ``http``.
        """
        super().__init__(self._add)
        self.signals = [*chosen]
        self.log = log
        over = {"network.transport": "tcp", "network.protocol.name": "http"}
        self.attributes = {"network.transport": "pipe"} if transport == "stdio" else over
        # Counter → labels → total. The SDK reads them, because adding to a counter of its own takes 20 times longer.
        self.totals: dict[str, dict[tuple[str, ...], float]] = {
            metric.name: {} for metric in METRICS if metric.otel and metric.kind == "counter"
        }
        self.sessions: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self.queue: deque[_Request] = deque(maxlen=_QUEUE)
        self.exporter: _Exporter | None = None  # when the SDK is imported
        self.failures: deque[str] = deque(maxlen=1)  # of the SDK's threads
        self.reported = -_QUIET
        self.thread: threading.Thread | None = None
        self.observer: Observer | None = None

    def begin(self, observer: Observer) -> None:
        """Take the current numbers from ``observer``."""
        self.observer = observer

    def completed(self, completion: Completion) -> None:
        """Export a span, and count the request."""
        super().completed(completion)
        name = " ".join(filter(None, (completion.method, _target(completion))))
        attributes = {**self.attributes, **_attributes(completion), **self._session(completion.exchange.connection)}
        parents = _parents(completion)
        self.queue.append(_Request(name, attributes, parents, time.time_ns(), completion.seconds))
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
            self.thread.start()
        self._export()
        self._report()

    def close(self) -> None:
        """Export what is left, and wait for that only for a moment."""
        if self.thread is not None:
            self.thread.join(_GRACE)
            self._export()
            closing = threading.Thread(target=self._close, daemon=True)
            closing.start()
            closing.join(_GRACE)
        self._report()

    def _add(self, name: str, labels: tuple[str, ...], amount: float) -> None:
        if (totals := self.totals.get(name)) is not None:
            totals[labels] = totals.get(labels, 0) + amount

    def _export(self) -> None:
        while self.exporter is not None and self.queue:
            self.exporter.export(self.queue.popleft())

    def _close(self) -> None:
        if self.exporter is not None:
            self.exporter.close()

    def _report(self) -> None:
        """Log the last failure, from the thread that writes all other lines."""
        now = time.monotonic()
        if self.failures and now - self.reported >= _QUIET:
            self.reported = now
            self.log.write("telemetry_failed", text=template.cut(self.failures.pop(), _MOST_TEXT))

    def _session(self, connection: Connection) -> dict[str, str]:
        """Return an id of the session, which is not the one that the client shows to use it."""
        if connection.negotiated is None:
            return {}
        return {"mcp.session.id": self.sessions.setdefault(connection, uuid.uuid4().hex)}

    def _run(self) -> None:
        try:
            self.exporter = _Exporter(self)
        except Exception as error:  # for example because a variable is not valid
            self.failures.append(f"{type(error).__name__}: {error}")
            self.queue = deque(maxlen=0)


class _Exporter:
    """The SDK of OpenTelemetry."""

    def __init__(self, telemetry: Telemetry) -> None:
        handler = _Failures(telemetry.failures)
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [handler], False
        resource = _resource()
        self.tracer: Any = None
        self.duration: Any = None
        self.closed: list[Any] = []
        if "traces" in telemetry.signals:
            self._open_traces(resource)
        if "metrics" in telemetry.signals:
            self._open_metrics(resource, telemetry)

    def export(self, item: _Request) -> None:
        if self.duration is not None:
            bounded = {name: value for name, value in item.attributes.items() if name not in _SPAN_ONLY}
            self.duration.record(item.seconds, bounded)
        if self.tracer is not None:
            self._export_span(item)

    def close(self) -> None:
        for provider in self.closed:
            provider.shutdown()

    def _export_span(self, item: _Request) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        contexts = [TraceContextTextMapPropagator().extract(headers) for headers in item.parents]
        remote: list[SpanContext] = [trace.get_current_span(each).get_span_context() for each in contexts]
        span = self.tracer.start_span(
            item.name,
            context=contexts[0] if contexts else None,
            kind=trace.SpanKind.SERVER,
            attributes=item.attributes,
            links=[trace.Link(each) for each in remote[1:] if each.is_valid],
            start_time=item.ended - int(item.seconds * 1e9),
        )
        if "error.type" in item.attributes:
            span.set_status(trace.StatusCode.ERROR, item.attributes.get("tmkb.error"))
        span.end(item.ended)

    def _open_traces(self, resource: Resource) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = provider.get_tracer("tmkb", __version__)
        self.closed.append(provider)

    def _open_metrics(self, resource: Resource, telemetry: Telemetry) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        provider = MeterProvider([reader], resource, shutdown_on_exit=False)
        meter = provider.get_meter("tmkb", __version__)
        self.duration = meter.create_histogram(
            DURATION, "s", "Duration of requests", explicit_bucket_boundaries_advisory=BUCKETS
        )
        for metric in METRICS:
            if metric.name in telemetry.totals:
                totals = _totals(metric, telemetry.totals[metric.name])
                meter.create_observable_counter(metric.otel, [totals], metric.unit, metric.about)
            elif metric.otel and telemetry.observer is not None:
                figure = _figure(metric, telemetry.observer)
                meter.create_observable_gauge(metric.otel, [figure], metric.unit, metric.about)
        self.closed.append(provider)


class _Failures(logging.Handler):
    """Keeps the last warning of the SDK, whose threads must not write to the server's log."""

    def __init__(self, failures: deque[str]) -> None:
        super().__init__(logging.WARNING)
        self.failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        self.failures.append(record.getMessage())


def _totals(metric: Metric, totals: Mapping[tuple[str, ...], float]) -> Any:
    from opentelemetry.metrics import Observation

    def read(_: CallbackOptions) -> list[Observation]:
        names = [f"tmkb.{label}" for label in metric.labels]
        return [Observation(total, dict(zip(names, labels, strict=True))) for labels, total in [*totals.items()]]

    return read


def _figure(metric: Metric, observer: Observer) -> Any:
    from opentelemetry.metrics import Observation

    def read(_: CallbackOptions) -> list[Observation]:
        number = observer.figures().get(metric.name.removeprefix("tmkb_"))
        return [] if number is None else [Observation(number)]

    return read


def _resource() -> Resource:
    """Return who exports. The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES decide."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    ours = {"service.name": "tmkb", "service.version": __version__, "service.instance.id": str(uuid.uuid4())}
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _target(completion: Completion) -> str:
    """Return the tool or prompt, if it is one of the server's."""
    return next((name for name in (completion.tool, completion.prompt) if name not in ("", OTHER)), "")


def _attributes(completion: Completion) -> dict[str, Any]:
    exchange, target = completion.exchange, _target(completion)
    attributes: dict[str, Any] = {
        "mcp.method.name": completion.method,
        "mcp.protocol.version": completion.revision,
        "jsonrpc.request.id": str(exchange.id)[:_MOST_ID],
    }
    if completion.tool:
        attributes["gen_ai.operation.name"] = "execute_tool"
    if target:
        attributes["gen_ai.tool.name" if completion.tool else "gen_ai.prompt.name"] = target
    if completion.error:
        attributes["tmkb.error"] = completion.error
    if completion.outcome == "tool_error":
        attributes["error.type"] = "tool_error"
    elif completion.outcome == "error":
        code = str(exchange.revision["errors"][completion.error].get("code"))
        attributes["error.type"] = attributes["rpc.response.status_code"] = code
    if "pattern_ids" in exchange.facts:
        attributes["tmkb.patterns"] = exchange.facts["pattern_ids"]
        attributes["tmkb.stack"] = exchange.facts["stack"] or NO_STACK
    return attributes


def _parents(completion: Completion) -> list[dict[str, str]]:
    """Return the W3C Trace Context of the message and of its HTTP request, if they have one."""
    exchange = completion.exchange
    meta = exchange.params.get("_meta")
    sources: list[Mapping[str, Any]] = [meta if isinstance(meta, dict) else {}, exchange.trace_headers]
    found = [
        {name: each[name] for name in ("traceparent", "tracestate") if _is_header(each.get(name))} for each in sources
    ]
    return [each for each in found if "traceparent" in each]


def _is_header(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST

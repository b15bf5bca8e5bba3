"""The page of metrics for Prometheus, on a listener of its own, with one page for all worker processes.

Every worker serves the shared socket from a thread. prometheus_client keeps the values of several processes in files
that all of them read.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from http.server import HTTPServer
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import MetricsHandler
from prometheus_client.registry import Collector

from tmkb.insight import metrics
from tmkb.insight.observer import Observer
from tmkb.transport.guard import is_loopback

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the variable that prometheus_client reads when it is imported
PATH = "/metrics"
_PATIENCE = 5.0  # seconds for a client to send its request
_LIVE = re.compile(r"gauge_live\w+_(\d+)\.db")


class Metrics(metrics.Counting):
    """Keeps the metrics of this process, and serves them on the listening socket ``bound``."""

    def __init__(self, bound: socket.socket) -> None:
        """Create the metrics."""
        disable_created_metrics()  # type: ignore[no-untyped-call] # each would be another time series
        self.values = _Values()
        super().__init__(self.values.add)
        self.bound = bound

    def begin(self, observer: Observer) -> None:
        """Serve, with the current numbers of ``observer``."""
        registry = self.values.registry
        if folder := os.environ.get(FOLDER):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=registry)
        registry.register(_Info(observer))
        page = _Page(self.bound, registry, lambda: self.values.set(observer.figures()))
        threading.Thread(target=page.serve_forever, name="metrics", daemon=True).start()


class _Page(HTTPServer):
    """Serves ``registry``; ``update`` sets the gauges."""

    def __init__(self, bound: socket.socket, registry: CollectorRegistry, update: Callable[[], None]) -> None:
        super().__init__(bound.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        bound.setblocking(False)  # another worker may have accepted the connection
        self.is_local = is_loopback(bound.getsockname()[0])
        self.registry = registry
        self.update = update

    def service_actions(self) -> None:
        """Set the gauges, so that the pages of other processes have them. Called twice a second."""
        self.update()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that has disconnected."""


class _Handler(MetricsHandler):
    """Answers one request. A web page can not read the metrics of this machine by a name that it owns."""

    server: _Page
    timeout = _PATIENCE

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(404, explain=f"The metrics are at {PATH}.")
        elif self.server.is_local and not self._is_for_this_machine():
            self.send_error(403, explain="Use the address of this machine.")
        else:
            self.server.update()
            _forget_ended_processes()
            self.registry = self.server.registry
            super().do_GET()

    def _is_for_this_machine(self) -> bool:
        try:
            return is_loopback(urllib.parse.urlsplit(f"//{self.headers.get('Host', '')}").hostname or "")
        except ValueError:
            return False


class _Values:
    """The counters, histograms and gauges of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics: dict[str, Any] = {}
        self.children: dict[tuple[str, tuple[str, ...]], Callable[[float], None]] = {}
        for name, kind, labels, about, *_ in metrics.METRICS:
            if kind == "gauge":
                self.metrics[name] = Gauge(name, about, registry=self.registry, multiprocess_mode="livesum")
            elif kind == "counter":
                self.metrics[name] = Counter(name, about, labels, registry=self.registry)
            else:
                self.metrics[name] = Histogram(name, about, labels, registry=self.registry, buckets=metrics.BUCKETS)

    def add(self, name: str, labels: tuple[str, ...], amount: float) -> None:
        child = self.children.get((name, labels))
        if child is None:
            metric = self.metrics[name].labels(*labels) if labels else self.metrics[name]
            child = self.children[name, labels] = metric.inc if isinstance(metric, Counter) else metric.observe
        child(amount)

    def set(self, figures: Mapping[str, int]) -> None:
        for name, number in figures.items():
            self.metrics[f"tmkb_{name}"].set(number)


class _Info(Collector):
    """Metrics whose labels are the information, and whose value is always 1."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def collect(self) -> Iterator[Metric]:
        for name, about, facts in metrics.INFO:
            labels = facts(self.observer)
            family = GaugeMetricFamily(name, about, labels=[*labels])
            family.add_metric([*labels.values()], 1)
            yield family


def _forget_ended_processes() -> None:
    """Delete the gauges of workers that have ended; their counters stay, because counters never decrease."""
    if folder := os.environ.get(FOLDER):
        for file in glob.glob(os.path.join(glob.escape(folder), "gauge_live*.db")):
            match = _LIVE.fullmatch(os.path.basename(file))
            if match and not _is_alive(int(match[1])):
                with contextlib.suppress(FileNotFoundError):  # another scrape was faster
                    multiprocess.mark_process_dead(int(match[1]), folder)  # type: ignore[no-untyped-call]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

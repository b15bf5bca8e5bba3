"""The page of metrics of ``tmkb serve --metrics``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from tmkb.errors import SpecError
from tmkb.schema import installation
from tmkb.transport import sockets

if TYPE_CHECKING:
    from tmkb.insight.observer import Receiver
    from tmkb.server.log import Log

_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # read when prometheus_client is imported: a folder for several processes
_INHERITED = "TMKB_METRICS"  # from a supervisor: "SOCKET,URL"


class Pages:
    """The listening socket of the page of metrics, which all processes of a server serve."""

    def __init__(self, address: str | None, shared: bool = False) -> None:
        """Listen on ``address``, HOST:PORT, unless the supervisor of this process does so; None for no page.

        ``shared``: whether to supervise other processes, which serve the page and may replace each other.

        Raises:
            SpecError: if that is not possible.
        """
        self.address, self.folder = address, ""
        if address is None:
            return
        _require_modules()
        if _INHERITED in os.environ:
            descriptor, self.url = os.environ.pop(_INHERITED).split(",", 1)
            self.bound = sockets.adopt(int(descriptor))
            return
        self.bound, self.url = sockets.bind(address, remote=True, option="--metrics", path="/metrics")
        os.environ.pop(_SHARED, None)
        if shared:
            self.folder = os.environ[_SHARED] = tempfile.mkdtemp(prefix="tmkb-metrics-")
            os.environ[_INHERITED] = f"{self.bound.fileno()},{self.url}"

    @property
    def inherited(self) -> list[int]:
        """The descriptors that supervised processes need."""
        return [] if self.address is None else [self.bound.fileno()]

    def announce(self, log: Log) -> None:
        """Log where the page is, if there is one."""
        if self.address is not None:
            log.write("metrics_ready", url=self.url)

    def open(self) -> Receiver | None:
        """Return the page of this process; None if there is none."""
        if self.address is None:
            return None
        from tmkb.insight import page

        return page.Metrics(self.bound)

    def close(self) -> None:
        """Delete the files that the processes share."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def _require_modules() -> None:
    """Raise SpecError if the module of the extra ``metrics`` is not installed."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise SpecError([installation.missing("--metrics", "metrics", "prometheus_client")])

"""Count calls, errors and latencies of each tool. The runtime records each call.

A principal sees only its own figures.
"""

from __future__ import annotations

import json
import math
from collections import deque

from tmkb.providers.base import Provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

    from tmkb.schema.values import JsonObject

_SAMPLES = 1000  # latest latencies of a tool, for the percentile
_PERCENTILE = 0.95


class Usage(Provider):
    """Figures of each tool since the start of the process."""

    operations: ClassVar = {"report": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        """Start without figures."""
        super().__init__(settings, part)
        self.figures: dict[str, dict[str, _Figures]] = {}  # by principal and tool
        self.principal = ""  # of the current operation; set by the runtime

    def record(self, tool: str, failed: bool, seconds: float | None, principal: str = "") -> None:
        """Record a call of ``principal``. ``seconds``: its duration; None if its arguments were invalid."""
        self.figures.setdefault(principal, {}).setdefault(tool, _Figures()).record(failed, seconds)

    def report(self) -> str:
        """Return the current principal's figures of each tool, as JSON."""
        tools = self.figures.get(self.principal, {})
        return json.dumps({"tools": {tool: tools[tool].value() for tool in sorted(tools)}})


class _Figures:
    """The figures of one tool."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.ran = 0
        self.total = 0.0
        self.longest = 0.0
        self.last: deque[float] = deque(maxlen=_SAMPLES)

    def record(self, failed: bool, seconds: float | None) -> None:
        self.calls += 1
        self.errors += failed
        if seconds is not None:
            self.ran += 1
            self.total += seconds
            self.longest = max(self.longest, seconds)
            self.last.append(seconds)

    def value(self) -> JsonObject:
        """Return the figures. Latencies are in milliseconds, and present if an operation has run."""
        figures: JsonObject = {"calls": self.calls, "errors": self.errors}
        if self.ran:
            percentile = sorted(self.last)[math.ceil(_PERCENTILE * len(self.last)) - 1]
            times = {"mean": self.total / self.ran, "p95": percentile, "max": self.longest}
            figures["milliseconds"] = {name: round(1000 * seconds, 3) for name, seconds in times.items()}
        return figures

"""How often each tool was called, how often that failed, and how long it took. The runtime tells it of each call.

Each principal has figures of its own and sees no others.
"""

from __future__ import annotations

import json
import math
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tmkb.providers.operation import Operation
    from tmkb.schema.values import JsonObject

OPERATIONS: dict[str, tuple[str, ...]] = {"report": ()}
FACTS: tuple[str, ...] = ()
FOLDERS = False

_LAST = 1000  # calls of a tool that the percentile is taken of
_MOST = 0.95  # of these calls took no longer


class Usage:
    """The figures of one process, from its start on. Only tools that there are have any, so they stay few."""

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        """Needs neither."""
        self.figures: dict[str, dict[str, _Figures]] = {}  # by principal and tool
        self.principal = ""  # whose operations run now; set by the runtime

    def record(self, tool: str, failed: bool, seconds: float | None, principal: str = "") -> None:
        """Count a call that has ended; ``seconds`` is None where its arguments were refused, so that nothing ran."""
        self.figures.setdefault(principal, {}).setdefault(tool, _Figures()).record(failed, seconds)

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """The operation called ``name``; all definitions use it alike."""
        return {"report": self.report}[name]

    def report(self) -> str:
        """Return the figures of each tool that the principal has called, as JSON."""
        tools = self.figures.get(self.principal, {})
        return json.dumps({"tools": {tool: tools[tool].value() for tool in sorted(tools)}})


open = Usage


class _Figures:
    """Those of one tool."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.ran = 0
        self.total = 0.0
        self.longest = 0.0
        self.last: deque[float] = deque(maxlen=_LAST)

    def record(self, failed: bool, seconds: float | None) -> None:
        self.calls += 1
        self.errors += failed
        if seconds is not None:
            self.ran += 1
            self.total += seconds
            self.longest = max(self.longest, seconds)
            self.last.append(seconds)

    def value(self) -> JsonObject:
        """Latencies in milliseconds, where anything ran."""
        figures: JsonObject = {"calls": self.calls, "errors": self.errors}
        if self.ran:
            percentile = sorted(self.last)[math.ceil(_MOST * len(self.last)) - 1]
            times = {"mean": self.total / self.ran, "p95": percentile, "max": self.longest}
            figures["milliseconds"] = {name: round(1000 * seconds, 3) for name, seconds in times.items()}
        return figures

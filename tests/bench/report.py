"""The figures as tables, and whether they meet the expectations."""

import datetime
import json
import os
import platform
import re
import statistics
import sys
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENT = os.path.join(ROOT, "docs", "performance.md")

OURS = ("tmkb", "tmkb-no-cache")
REFERENCES = ("bare", "echo")
HEADINGS = {  # figure: heading, what its value is multiplied by
    "start": ("start, ms", 1e3),
    "first_call": ("first call, ms", 1e3),
    "p50": ("call p50, µs", 1e6),
    "p95": ("call p95, µs", 1e6),
    "calls": ("calls/s", 1),
    "new_calls": ("new calls/s", 1),
    "pings": ("pings/s", 1),
    "cpu": ("CPU per call, µs", 1e6),
    "memory": ("memory, MB", 1e-6),
    "one": ("1 MB, ms", 1e3),
    "large": ("9.9 MB, ms", 1e3),
    "exit": ("exit, ms", 1e3),
}
RATES = ("calls", "new_calls", "pings")  # more is better; of all others, less
STARTS = ("start", "first_call")


class Line(NamedTuple):
    """One thing that has to hold: a ratio that may be at most ``limit``."""

    text: str
    ratio: float
    limit: float

    @property
    def ok(self):
        """Whether it holds."""
        return self.ratio <= self.limit


def middle(samples, figure, name):
    """The median of a figure."""
    return statistics.median(samples[name][figure])


def worse(samples, figure, one, other, than=None):
    """How many times worse ``one`` is than ``other`` (in the figure ``than``, if it is not the same).

    It is the median of what it was in each round, because all have the same weather there.
    """
    return statistics.median(rounds(samples, figure, one, other, than))


def rounds(samples, figure, one, other, than=None):
    """How many times worse ``one`` is than ``other`` in each round."""
    pairs = zip(samples[one][figure], samples[other][than or figure], strict=True)
    return [b / a if figure in RATES else a / b for a, b in pairs]


def beside_floor(samples):
    """Our ratios in each round: to start, beside the bare interpreter; otherwise beside the echo. For compare.py."""
    return {
        f"{name}: {title(figure)}": rounds(
            samples, figure, name, *(("bare", "start") if figure in STARTS else ("echo",))
        )
        for name in OURS
        for figure in HEADINGS
    }


def judge(samples):
    """What has to hold, for the servers that were measured."""
    lines = [
        Line("initialize, beside the bare interpreter", worse(samples, "start", "tmkb", "bare"), 1.8),
        Line("first call, beside the bare interpreter", worse(samples, "first_call", "tmkb", "bare", "start"), 2.2),
        Line("1 MB argument, beside the echo floor", worse(samples, "one", "tmkb", "echo"), 3),
        Line("9.9 MB argument, beside the echo floor", worse(samples, "large", "tmkb", "echo"), 2),
    ]
    for figure in ("p95", "calls", "memory"):
        for peer in [name for name in samples if name not in (*OURS, *REFERENCES)]:
            lines.append(Line(f"{title(figure)}, beside {peer}", worse(samples, figure, "tmkb", peer), 1))
    for figure in [each for each in HEADINGS if each not in STARTS]:
        ratio = worse(samples, figure, "tmkb-no-cache", "tmkb")
        lines.append(Line(f"{title(figure)}, without cache beside with it", ratio, 1.1))
    return lines


def title(figure):
    """What a figure is called, without its unit."""
    return HEADINGS[figure][0].partition(",")[0]


def values(samples):
    """The table of what was measured."""
    rows = [["", *(heading for heading, _ in HEADINGS.values())]]
    for name, of in samples.items():
        cells = [number(middle(samples, key, name) * HEADINGS[key][1]) if key in of else "" for key in HEADINGS]
        rows.append([name, *cells])
    return rows


def ratios(samples):
    """The table of how many times worse each is: to start, than a bare interpreter; with long arguments, than the echo; else than ours."""
    than = {**dict.fromkeys(HEADINGS, "tmkb"), **dict.fromkeys(STARTS, "bare"), "one": "echo", "large": "echo"}
    rows = [["", *(f"{title(figure)} / {other}" for figure, other in than.items())]]
    for name in [each for each in samples if each not in REFERENCES]:
        cells = [worse(samples, key, name, than[key], "start" if key in STARTS else None) for key in HEADINGS]
        rows.append([name, *map(number, cells)])
    return rows


def number(value):
    """Three digits, or all before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(rows, markdown):
    """Rows, of which the first is the heading, as text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [
        [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]
    if not markdown:
        return "\n".join("  ".join(row) for row in cells)
    rule = "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths))
    return "\n".join([f"| {' | '.join(cells[0])} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in cells[1:])])


def machine():
    """When and on what the figures were measured."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{datetime.date.today()}, {sys.platform} {platform.machine()}, {os.cpu_count()} cores, {python}"


def document(name, text):
    """Replace the part ``name`` of docs/performance.md, which stands between two comments."""
    with open(DOCUMENT, encoding="utf-8") as file:
        whole = file.read()
    begin, end = f"<!-- bench: {name} -->", "<!-- end -->"
    form = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not form.search(whole):
        raise LookupError(f"{DOCUMENT} has no comment {begin}")
    part = f"{begin}\nMeasured: {machine()}.\n\n{text}\n{end}"
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(form.sub(lambda _: part, whole))


def write(path, rows):
    """Write ``rows`` (name → its ratio in each round, more is worse) as JSON, for compare.py."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"measured": machine(), "rows": rows}, file, indent=1)
        file.write("\n")

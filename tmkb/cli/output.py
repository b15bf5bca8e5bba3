"""Print text for people or JSON for programs. Terminals get colours and tables, unless NO_COLOR is set.

Hidden and control characters in the content are escaped, because a terminal would execute them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterable

from tmkb.cli import layout
from tmkb.cli.layout import Line
from tmkb.errors import Problem
from tmkb.schema import hidden, problems


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of text")


def write(args: argparse.Namespace, value: object, text: str | Iterable[Line]) -> None:
    """Print ``value`` as JSON with ``--json``, else ``text``."""
    if args.json:
        is_unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") in ("utf8", "utf16", "utf32")
        print(hidden.escape(json.dumps(value, ensure_ascii=not is_unicode, separators=(",", ":"))))
    else:
        print(layout.rendered(layout.text(text) if isinstance(text, str) else text))


def fail(message: str) -> None:
    """Print an error message to stderr."""
    print(f"tmkb: {hidden.escape(message)}", file=sys.stderr)


def use_any_encoding() -> None:
    """Make stdout escape characters that its encoding lacks, for example as ``\\u2713``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def problem_values(listed: Iterable[Problem]) -> list[dict[str, object]]:
    """Return problems as JSON values."""
    return [
        {
            "file": p.file,
            "line": p.line or None,
            "column": p.column or None,
            "rule": p.rule,
            "sentence": problems.sentence(p),
            "remedy": problems.remedy(p),
        }
        for p in listed
    ]


def problem_lines(listed: Iterable[Problem]) -> str:
    """Return problems as text, one per line."""
    return "\n".join(problems.line(problem) for problem in listed)

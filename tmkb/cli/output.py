"""Print text for users or JSON for programs. Terminals get colours and tables, unless NO_COLOR is set.

Hidden and control characters in the content are escaped, because a terminal would execute them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tmkb.cli import layout
from tmkb.cli.layout import Line
from tmkb.errors import Problem
from tmkb.schema import hidden, problems, template

if TYPE_CHECKING:
    from tmkb.server.server import Server


def configure(parser: argparse._ActionsContainer) -> None:
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


def warn(server: Server) -> None:
    """Print the warnings of a server that a command uses."""
    for line, fields in server.warnings:
        fail(template.fill(server.spec["server"]["log"][line]["message"], fields))


def lacks_extra(command: str, extra: str) -> int:
    """Print that ``command`` needs an extra that is not installed, and return the exit status."""
    fail(f"tmkb {command} needs the extra `{extra}`: if you installed tmkb from '.', install '.[{extra}]'.")
    return 2


def fail_each(problems_: Iterable[Problem]) -> None:
    """Print the sentence of each problem to stderr."""
    for problem in problems_:
        fail(problems.sentence(problem))


def did_you_mean(word: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a suggestion of the name in ``known`` nearest to ``word``; ``otherwise`` if none is similar."""
    from tmkb.schema import metaschema

    near = metaschema.nearest(word, known)
    return f"Did you mean {near}?" if near else otherwise


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

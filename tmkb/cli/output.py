"""Print text for users or JSON for programs. Terminals get colours and tables, unless NO_COLOR is set.

Hidden and control characters in the content are escaped, because a terminal would execute them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from tmkb.cli import layout
from tmkb.cli.layout import Line
from tmkb.errors import Problem
from tmkb.schema import hidden, problems, template

if TYPE_CHECKING:
    from tmkb.server.server import Server

_Item = TypeVar("_Item")
_PATIENCE = 1.0  # seconds without a status line


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


@contextlib.contextmanager
def progress(text: str = "") -> Iterator[Callable[[str], None]]:
    """Provide a function that shows a status line on a terminal, and does nothing elsewhere.

    The line appears after `_PATIENCE`. ``text``: what it shows at first.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    line = _StatusLine(text)
    _status_lines.append(line)
    timer = threading.Timer(_PATIENCE, line.begin)
    timer.daemon = True
    timer.start()
    try:
        yield line.show
    finally:
        timer.cancel()
        line.end()
        _status_lines.remove(line)


def counted(items: Iterable[_Item], total: int, activity: str) -> Iterator[_Item]:
    """Yield ``items``. While it waits for one, a terminal shows the ``activity`` and how many of ``total`` are done."""
    with progress(f"{activity}: 0 of {total}") as show:
        for number, item in enumerate(items, 1):
            show("")
            yield item
            show(f"{activity}: {number} of {total}")


class _StatusLine:
    """A line of stderr that each text replaces, from `begin` until `end`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_shown = False
        self._lock = threading.Lock()

    def show(self, text: str) -> None:
        with self._lock:
            self._text = text
            self._draw()

    def begin(self) -> None:
        with self._lock:
            self._is_shown = True
            self._draw()

    def end(self) -> None:
        self.show("")
        self._is_shown = False

    def print_above(self, text: str) -> None:
        with self._lock:
            self._draw("")
            print(text, file=sys.stderr)
            self._draw()

    def _draw(self, text: str | None = None) -> None:
        if self._is_shown:
            width = shutil.get_terminal_size().columns - 1
            shown = hidden.line(self._text if text is None else text)[:width]
            print(f"\r{shown:<{width}}\r{shown}", end="", file=sys.stderr, flush=True)


_status_lines: list[_StatusLine] = []  # the last one can be visible


def note(text: str) -> None:
    """Print ``text`` to stderr, above the status line if there is one."""
    if _status_lines:
        _status_lines[-1].print_above(text)
    else:
        print(text, file=sys.stderr)


def fail(message: str) -> None:
    """Print an error message to stderr."""
    note(layout.rendered(layout.text(f"tmkb: {message}"), sys.stderr))


def cannot_read(path: str, error: OSError | ValueError) -> int:
    """Print that the file at ``path`` cannot be read, and return the exit status."""
    fail(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.")
    return 2


def warn(server: Server) -> None:
    """Print the warnings of a server that a command uses."""
    for line, fields in server.warnings:
        fail(template.fill(server.spec["server"]["log"][line]["message"], fields))
    if server.pulled:
        from tmkb.server import pull

        for sentence in pull.sentences(server.pulled):
            fail(sentence)


def lacks_extra(command: str, extra: str) -> int:
    """Print that ``command`` needs an extra that is not installed, and return the exit status."""
    from tmkb.schema import installation

    fail(f"tmkb {command} needs the extra `{extra}`. Install it with: {installation.command(extra)}")
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


def save(files: Mapping[str, bytes]) -> bool:
    """Write reports, path → content; print a message and return False if one cannot be written."""
    for path, content in files.items():
        try:
            with open(path, "wb") as file:
                file.write(content)
        except OSError as error:
            fail(f"Cannot write {path}: {error.strerror}.")
            return False
    return True


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

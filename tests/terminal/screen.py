"""Run a command of TMKB in a pseudo-terminal, and read what it shows there."""

import codecs
import contextlib
import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
import threading
from typing import NamedTuple

import pyte

LONGEST = 120  # seconds
ROWS = 2000  # of the screen: more than any command prints, so that nothing is scrolled away


class Style(NamedTuple):
    """How characters look. `color`: a name of pyte, such as ``red``, ``brown`` (yellow) or ``default``."""

    color: str
    bold: bool
    dim: bool
    italic: bool


PLAIN = Style("default", False, False, False)


class Screen(NamedTuple):
    """What a command left on a terminal. `rows`: for each row its runs of text in one style."""

    rows: list[list[tuple[str, Style]]]
    status: int
    columns: int

    @property
    def lines(self):
        """The text of each row."""
        return ["".join(text for text, _ in row).rstrip() for row in self.rows]

    @property
    def styles(self):
        """The styles of all text."""
        return {style for row in self.rows for text, style in row if text.strip()}


class _Terminal(pyte.Screen):
    """A screen that also knows dim text: pyte ignores its code, so it is kept as text that blinks."""

    def select_graphic_rendition(self, *attributes, **kwargs):
        """Apply codes of SGR. ``kwargs`` marks private codes."""
        super().select_graphic_rendition(*(5 if each == 2 else each for each in attributes), **kwargs)


def run(line, columns, *, interrupt_at=None, **environment):
    """Run ``tmkb`` with the command line ``line`` in a terminal with ``columns``, and return its screen.

    Args:
        interrupt_at: Ctrl-C is typed when the screen shows this text.
        environment: variables to set.
    """
    variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _ATTACH, *shlex.split(line)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**variables, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    os.close(theirs)
    timer = threading.Timer(LONGEST, process.kill)
    timer.start()
    terminal = _Terminal(columns, ROWS)
    stream, decode = pyte.Stream(terminal), codecs.getincrementaldecoder("utf-8")("replace").decode
    with contextlib.suppress(OSError):  # the terminal is closed
        while chunk := os.read(ours, 65536):
            stream.feed(decode(chunk))
            if interrupt_at is not None and any(interrupt_at in line for line in terminal.display[:10]):
                interrupt_at = None
                os.write(ours, b"\x03")
    status = process.wait()
    timer.cancel()
    os.close(ours)
    return Screen(_rows(terminal), status, columns)


# The terminal becomes the controlling one of the new session, so that Ctrl-C reaches the command. A shell starts
# what runs in the background with interrupts ignored.
_ATTACH = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
from tmkb.cli.main import main
sys.exit(main())
"""


def _rows(terminal):
    """The runs of each row, without the empty rows at the end."""
    rows = []
    for number in range(max(terminal.buffer, default=-1) + 1):
        runs = []
        for column in range(terminal.columns):
            cell = terminal.buffer[number][column]
            style = Style(cell.fg, cell.bold, cell.blink, cell.italics)
            if runs and runs[-1][1] == style:
                runs[-1] = runs[-1][0] + cell.data, style
            else:
                runs.append((cell.data, style))
        rows.append(runs)
    while rows and not "".join(text for text, _ in rows[-1]).strip():
        rows.pop()
    return rows

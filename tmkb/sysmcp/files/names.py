r"""Names of files as text that JSON can hold, and back.

A name is bytes. It is shown as UTF-8; a byte that is not, a control character and a backslash are shown as ``\xHH``, so
that every name can be shown and every shown name says which bytes it stands for. A path joins shown names with ``/``.
"""

from __future__ import annotations

import os
import re

_UNSHOWN = re.compile(r"[\x00-\x1f\x7f\\\udc80-\udcff]")
_WRITTEN = re.compile(rb"\\x([0-9a-f]{2})")


class Outside(ValueError):
    """A path that could lead out of the folder it begins in."""


def shown(name: str) -> str:
    """The text for a name as Python's ``os`` gives it."""
    if name.isascii() and name.isprintable() and "\\" not in name:
        return name
    return _UNSHOWN.sub(lambda match: f"\\x{ord(match[0]) & 0xFF:02x}", _decoded(name, "utf-8"))


def order(name: str) -> str:
    """What names as Python's ``os`` gives them are sorted by: their bytes."""
    return name if name.isascii() else _decoded(name, "latin-1")


def components(path: str) -> list[str]:
    """The names, as Python's ``os`` takes them, that a relative path is made of; none for the path ``.``.

    Raises Outside for an absolute path and one with ``..``, whether anything is there or not; ValueError for what is no
    path as we show them.
    """
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        raise Outside(path)
    return [] if path == "." else [_name(part) for part in parts]


def _name(part: str) -> str:
    written = part.encode()  # a UnicodeEncodeError is a ValueError
    name = os.fsdecode(_WRITTEN.sub(lambda match: bytes([int(match[1], 16)]), written))
    if part in ("", ".") or "\0" in name or shown(name) != part:
        raise ValueError(part)
    return name


def _decoded(name: str, encoding: str) -> str:
    return os.fsencode(name).decode(encoding, "surrogateescape")

r"""Convert file names between bytes and text that JSON can hold.

A name is displayed as UTF-8. Other bytes, control characters and backslashes are displayed as ``\xHH``, so each text
stands for one name. A path joins displayed names with ``/``.
"""

from __future__ import annotations

import os
import re

_SPECIAL = re.compile(r"[\x00-\x1f\x7f\\\udc80-\udcff]")
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")


class OutsideRoot(ValueError):
    """The path could lead out of its root."""


def display(name: str) -> str:
    """Return the text for a name that Python's ``os`` returned."""
    if name.isascii() and name.isprintable() and "\\" not in name:
        return name
    return _SPECIAL.sub(lambda match: f"\\x{ord(match[0]) & 0xFF:02x}", _decode(name, "utf-8"))


def sort_key(name: str) -> str:
    """Return a key that sorts names of Python's ``os`` by their bytes."""
    return name if name.isascii() else _decode(name, "latin-1")


def split(path: str) -> list[str]:
    """Split a relative path into names for Python's ``os``; the path ``.`` has none.

    Raises OutsideRoot for an absolute path and one with ``..``, and ValueError for any other path that is not displayed
    so. Neither depends on which files exist.
    """
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        raise OutsideRoot(path)
    return [] if path == "." else [_parse(part) for part in parts]


def _parse(part: str) -> str:
    encoded = part.encode()  # a UnicodeEncodeError is a ValueError
    name = os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), encoded))
    if part in ("", ".") or "\0" in name or display(name) != part:
        raise ValueError(part)
    return name


def _decode(name: str, encoding: str) -> str:
    return os.fsencode(name).decode(encoding, "surrogateescape")

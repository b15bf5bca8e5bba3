"""Where the data is: beside this file in an installed package, at the top of a checkout. Knows no file's contents."""

from __future__ import annotations

import os.path

_HERE = os.path.dirname(os.path.abspath(__file__))
_DATA = os.path.join(_HERE, "_data")
ROOT = _DATA if os.path.isdir(_DATA) else os.path.dirname(_HERE)

SCHEMAS = os.path.join(ROOT, "schemas")
PATTERNS = os.path.join(ROOT, "patterns")
CONFORMANCE = os.path.join(ROOT, "conformance")


def shown(path: str) -> str:
    """``path`` as a person would write it: relative when it lies below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # Windows: another drive
        return path
    return path if relative.startswith("..") else relative

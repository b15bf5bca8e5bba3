"""Paths of registry keys: a root and key names, joined by backslashes, in any case.

Names are compared only by `folded`, here and in hives, so that another spelling cannot reach a denied key.
"""

from __future__ import annotations

from collections.abc import Sequence

ROOTS = {
    "HKEY_LOCAL_MACHINE": "HKLM",
    "HKEY_CURRENT_USER": "HKCU",
    "HKEY_CLASSES_ROOT": "HKCR",
    "HKEY_USERS": "HKU",
    "HKEY_CURRENT_CONFIG": "HKCC",
}
_MAX_NAME = 255  # UTF-16 code units, the limit of Windows


def parse(path: str) -> tuple[str, ...]:
    """Split ``path`` into names; the root gets its short name in capitals. Raises ValueError."""
    root, *names = path.split("\\")
    short = ROOTS.get(root.upper(), root.upper())
    if short not in ROOTS.values() or not all(_is_name(name) for name in names):
        raise ValueError(path)
    return short, *names


def is_text(text: str) -> bool:
    """Return whether a hive can store ``text`` as a name: no control characters, no surrogates."""
    return not any(char < " " or "\ud800" <= char <= "\udfff" for char in text)


def joined(names: Sequence[str]) -> str:
    """Join ``names`` to a path."""
    return "\\".join(names)


def folded(name: str) -> str:
    """Return ``name`` in capitals, to compare names without case.

    As in the table of Windows, a character stays one character, and a non-ASCII character stays non-ASCII.
    """
    return name.upper() if name.isascii() else "".join(map(_capital, name))


def is_below(names: Sequence[str], prefix: Sequence[str]) -> bool:
    """Return whether ``names`` is the key ``prefix`` or lies below it."""
    return len(names) >= len(prefix) and all(folded(a) == folded(b) for a, b in zip(names, prefix, strict=False))


def _is_name(name: str) -> bool:
    units = len(name.encode("utf-16-le", "surrogatepass")) // 2
    return 0 < units <= _MAX_NAME and "/" not in name and is_text(name)


def _capital(char: str) -> str:
    capital = char.upper()
    return capital if len(capital) == 1 and capital.isascii() == char.isascii() else char

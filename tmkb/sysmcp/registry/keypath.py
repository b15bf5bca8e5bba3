"""Paths of registry keys: a root and names, joined by backslashes. Case does not count.

Names are compared by `folded` alone, here and in hives, so that what is denied cannot be reached in another case.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ROOTS = {
    "HKEY_LOCAL_MACHINE": "HKLM",
    "HKEY_CURRENT_USER": "HKCU",
    "HKEY_CLASSES_ROOT": "HKCR",
    "HKEY_USERS": "HKU",
    "HKEY_CURRENT_CONFIG": "HKCC",
}
LONGEST_NAME = 255  # code units of a key's name that Windows takes


def parse(path: str) -> tuple[str, ...]:
    """The names of ``path``, the root's short and in capitals. Raises ValueError for what is no path."""
    root, *names = path.split("\\")
    short = ROOTS.get(root.upper(), root.upper())
    if short not in ROOTS.values() or not all(is_name(name) for name in names):
        raise ValueError(path)
    return short, *names


def is_name(name: str) -> bool:
    """Whether a key can be called so."""
    units = len(name.encode("utf-16-le", "surrogatepass")) // 2
    return 0 < units <= LONGEST_NAME and "/" not in name and is_text(name)


def is_text(text: str) -> bool:
    """Whether ``text`` is what a hive can hold as a name: no control characters, no halves of characters."""
    return not any(char < " " or "\ud800" <= char <= "\udfff" for char in text)


def joined(names: Sequence[str]) -> str:
    """``names`` as one path."""
    return "\\".join(names)


def folded(name: str) -> str:
    """What two names that differ only by case have in common.

    One character stays one, and none becomes ASCII that was not, as in the table of Windows.
    """
    if name.isascii():
        return name.upper()
    return "".join(_capital(char) for char in name)


def is_below(names: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether ``names`` is ``prefix`` or lies below it."""
    return len(names) >= len(prefix) and all(folded(a) == folded(b) for a, b in zip(names, prefix, strict=False))


def _capital(char: str) -> str:
    capital = char.upper()
    return capital if len(capital) == 1 and capital.isascii() == char.isascii() else char

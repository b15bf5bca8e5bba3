"""Hives are changed by libhivex, called in this process. It is trusted with bytes that `hive` has read as a hive.

Names go to it as NUL-terminated UTF-8. It does not spread large values over cells, as Windows does: so callers keep to
`value.ONE_CELL`.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache

from tmkb.sysmcp.faults import Corrupt, NoWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LIBRARY = "libhivex.so.0"
_WRITE = 4  # HIVEX_OPEN_WRITE


class _Value(ctypes.Structure):
    _fields_ = (
        ("key", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("size", ctypes.c_size_t),
        ("data", ctypes.c_char_p),
    )


def write(path: str, names: Sequence[str], new: Sequence[str], values: Sequence[tuple[str, int, bytes]] | None) -> None:
    """Change the hive file ``path`` in place: below the key at ``names`` make keys called ``new``, each in the one
    before; the last key has exactly ``values`` then, or what it had where they are None.

    Raises NoWriter; Corrupt, where the library finds the hive broken.
    """
    library = _library()
    with _opened(library, path) as hive:
        node = _done(library.hivex_root(hive))
        for name in names:
            node = _done(library.hivex_node_get_child(hive, node, name.encode()))
        for name in new:
            node = _done(library.hivex_node_add_child(hive, node, name.encode()))
        if values is not None:
            _set(library, hive, node, values)
        if library.hivex_commit(hive, path.encode(), 0):
            raise Corrupt


def require() -> None:
    """Raises NoWriter where `write` would."""
    _library()


def _set(library: ctypes.CDLL, hive: int, node: int, values: Sequence[tuple[str, int, bytes]]) -> None:
    rows = [
        _Value(name.encode(), ctypes.c_int(type_ & 0xFFFFFFFF).value, len(data), data) for name, type_, data in values
    ]
    if library.hivex_node_set_values(hive, node, len(rows), (_Value * len(rows))(*rows), 0):
        raise Corrupt


def _done(node: int) -> int:
    if not node:
        raise Corrupt
    return node


@contextmanager
def _opened(library: ctypes.CDLL, path: str) -> Iterator[int]:
    hive = library.hivex_open(path.encode(), _WRITE)
    if not hive:
        raise Corrupt
    try:
        yield hive
    finally:
        library.hivex_close(hive)


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise NoWriter from None
    handle, node, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    for name, result, arguments in (
        ("open", handle, [text, ctypes.c_int]),
        ("close", ctypes.c_int, [handle]),
        ("root", node, [handle]),
        ("node_get_child", node, [handle, node, text]),
        ("node_add_child", node, [handle, node, text]),
        ("node_set_values", ctypes.c_int, [handle, node, node, ctypes.POINTER(_Value), ctypes.c_int]),
        ("commit", ctypes.c_int, [handle, text, ctypes.c_int]),
    ):
        function = getattr(library, f"hivex_{name}")
        function.restype, function.argtypes = result, arguments
    return library

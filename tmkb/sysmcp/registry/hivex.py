"""Write hives with libhivex, in this process. The caller has checked the hive with `hive` and `soundness`.

Names are passed as NUL-terminated UTF-8. The library cannot spread a large value over cells, so values are limited to
`value.ONE_CELL`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from tmkb.sysmcp.faults import Corrupt, WriterMissing

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
    """Change the hive file ``path`` in place.

    Below the key at ``names``, create the keys ``new``, each inside the previous one. Then replace all values of the
    last key by ``values``, unless they are None. Raises WriterMissing, and Corrupt if the library rejects the hive.
    """
    library = _library()
    with _open(library, path) as hive:
        node = _checked(library.hivex_root(hive))
        for name in names:
            node = _checked(library.hivex_node_get_child(hive, node, name.encode()))
        for name in new:
            node = _checked(library.hivex_node_add_child(hive, node, name.encode()))
        if values is not None:
            _set(library, hive, node, values)
        if library.hivex_commit(hive, path.encode(), 0):
            raise Corrupt


def require() -> None:
    """Raise WriterMissing if the library is not installed."""
    _library()


def _set(library: ctypes.CDLL, hive: int, node: int, values: Sequence[tuple[str, int, bytes]]) -> None:
    rows = [
        _Value(name.encode(), ctypes.c_int(type_ & 0xFFFFFFFF).value, len(data), data) for name, type_, data in values
    ]
    if library.hivex_node_set_values(hive, node, len(rows), (_Value * len(rows))(*rows), 0):
        raise Corrupt


def _checked(result: int) -> int:
    if not result:
        raise Corrupt
    return result


@contextmanager
def _open(library: ctypes.CDLL, path: str) -> Iterator[int]:
    hive = _checked(library.hivex_open(path.encode(), _WRITE))
    try:
        yield hive
    finally:
        library.hivex_close(hive)


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise WriterMissing from None
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

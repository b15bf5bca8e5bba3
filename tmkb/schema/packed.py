"""Read packed files: in a wheel, one compressed file has the content of many small ones.

`hatch_build.py` packs the files of patterns and the transcripts. Their paths stay valid for the functions here and in
`tmkb.schema.textfile`. A file on disk overrides a packed file of the same path.
"""

from __future__ import annotations

import os
from functools import cache

from tmkb.schema import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "_packed.bin"  # in the folder whose files it has


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return ``files`` as the content of a packed file; they are named by their paths in its folder, with ``/``.

    Files of the same name are similar, so they are neighbors: the compression refers to the last 32 KB.
    """
    import json
    import zlib

    names = sorted(files, key=lambda name: (name.rpartition("/")[2], name))
    head = json.dumps([[name, len(files[name])] for name in names], separators=(",", ":"))
    return zlib.compress(b"\n".join([head.encode(), b"".join(files[name] for name in names)]), 9)


def read(path: str) -> bytes | None:
    """Return the content of the packed file at ``path``; None if there is none."""
    files, name = _place(path)
    return files.get(name)


def exists(path: str) -> bool:
    """Return whether there is a file or a folder at ``path``, on disk or packed."""
    return os.path.lexists(path) or read(path) is not None or bool(below(path))


def is_folder(path: str) -> bool:
    """Return whether there is a folder at ``path``, on disk or packed."""
    return os.path.isdir(path) or bool(below(path))


def names(folder: str) -> list[str]:
    """Return the names of what is directly in ``folder``, on disk or packed, sorted. Raises OSError."""
    packed = {name.partition("/")[0] for name in below(folder)}
    return sorted(packed.union(os.listdir(folder) if os.path.isdir(folder) or not packed else ()))


def below(folder: str) -> list[str]:
    """Return the paths of all packed files below ``folder``, relative to it and with ``/``, sorted."""
    files, name = _place(folder)
    start = f"{name}/" if name else ""
    return sorted(each.removeprefix(start) for each in files if each.startswith(start))


def _place(path: str) -> tuple[Mapping[str, bytes], str]:
    """Return the packed files that ``path`` can be one of, and its name among them."""
    path = paths.absolute(path)
    for folder in (paths.PATTERNS, paths.CONFORMANCE):
        if path == folder or path.startswith(folder + os.sep):
            return _files(folder), path[len(folder) + 1 :].replace(os.sep, "/")
    return {}, ""


@cache
def _files(folder: str) -> Mapping[str, bytes]:
    """Return the packed files of ``folder``; none in a checkout."""
    import json
    import zlib

    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            head, _, content = zlib.decompress(file.read()).partition(b"\n")
    except FileNotFoundError:
        return {}
    files, start = {}, 0
    for name, size in json.loads(head):
        files[name] = content[start : start + size]
        start += size
    return files

"""The cache: a file with everything that serving needs, for a fast start. It contains JSON and no code.

An entry is used only if its checksum is correct, and if it was made by this version, for this request, from files that
have not changed. Otherwise it is ignored.

Each write deletes the least recently used entries beyond `MAX_FILES` and `MAX_BYTES`, kept files that no entry names,
and temporary files of killed processes.

Format: a line with the checksum of the rest; a line of JSON with the request, the stamps of all sources, the length of
each section and the head; the sections, which are JSON that is parsed on first use.
"""

from __future__ import annotations

import os
import stat
import sys
from binascii import crc32

from tmkb import stdlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tmkb.schema.values import JsonObject

    Stamp = list[str | int]

MAX_FILES = 32  # entries in the folder, of all releases, servers and options
MAX_BYTES = 96 << 20  # of all entries; a packaged server and its patterns have two of about 4 MB
MAX_STAMPS = 50_000  # files and folders of all sources; the packaged ones and our code have about 1000

_KEPT = ".bin"
_SUFFIXES = (["json"], ["bin"])
_MAGIC = b"tmkb-cache 2 "
_DAY = 86_400  # seconds; the time of last use has a resolution of a day, so that few starts write
_ABANDONED = 60  # seconds after which no process writes a temporary file
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_SKIPPED = "__pycache__", "node_modules"  # folders that tools fill, in a checkout thousands of files
_RACE = 100_000_000  # nanoseconds in which a file can change again and keep its stamp
_ENCODE = stdlib.encoder()


class Entry:
    """A head, and sections that are parsed on first use.

    ``sections``: the place of each in ``packed``, of which nothing is copied, because a start uses few of them.
    """

    def __init__(self, head: JsonObject, sections: Mapping[str, slice], packed: bytes) -> None:
        self.head = head
        self.sections = sections
        self.packed = packed

    def section(self, name: str) -> JsonObject:
        """Parse and return the section ``name``."""
        value: JsonObject = stdlib.loads(self.packed[self.sections[name]])
        return value

    def pack(self, **fields: object) -> bytes:
        """Return the entry as bytes for `unpack`. ``fields``: further fields of its first line."""
        lengths = {name: place.stop - place.start for name, place in self.sections.items()}
        first = _encode({**fields, "sections": lengths, "head": self.head})
        return b"".join([first, b"\n", *(self.packed[place] for place in self.sections.values())])


def entry(head: JsonObject, sections: Mapping[str, JsonObject]) -> Entry:
    """Return a new entry."""
    encoded = [_encode(section) for section in sections.values()]
    return Entry(head, _places(dict(zip(sections, map(len, encoded), strict=True)), 0), b"".join(encoded))


def unpack(packed: bytes) -> Entry:
    """Return the entry of `Entry.pack`."""
    return _unpack(packed)[1]


def _unpack(packed: bytes, begin: int = 0) -> tuple[Any, Entry]:
    """Return the first line and the entry. Raises ValueError if they are not valid."""
    start = packed.index(b"\n", begin) + 1
    first = stdlib.loads(packed[begin:start])
    if start + sum(first["sections"].values()) != len(packed):
        raise ValueError("The sections have other lengths.")
    return first, Entry(first["head"], _places(first["sections"], start), packed)


def _places(lengths: Mapping[str, int], start: int) -> dict[str, slice]:
    """Return the place of each section; the first one begins at ``start``."""
    places = {}
    for name, length in lengths.items():
        places[name] = slice(start, start := start + length)
    return places


def folder() -> str:
    """Return the cache folder of TMKB in the platform's folder for caches."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA") or home, "tmkb", "cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "tmkb")
    configured = os.environ.get("XDG_CACHE_HOME", "")  # the XDG specification: a relative path is ignored
    return os.path.join(configured if os.path.isabs(configured) else os.path.join(home, ".cache"), "tmkb")


def path(request: JsonObject) -> str:
    """Return the file of the entry for ``request``. Requests may share a file, which contains the request."""
    return os.path.join(folder(), f"{crc32(_encode(request)):08x}.json")


def read(request: JsonObject, sources: Iterable[str] = ()) -> Entry | None:
    """Return the valid entry for ``request``, or None.

    Args:
        request: what the entry depends on besides its sources.
        sources: files and folders that must be among the sources of the entry.
    """
    import time

    file = path(request)
    try:
        with open(file, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _SAFE)) as source:
            status = os.fstat(source.fileno())
            if not is_folder_ours() or not _is_ours(status):
                return None
            content = source.read()
        start = len(_MAGIC) + 9
        if content[:start] != _MAGIC + b"%08x\n" % crc32(memoryview(content)[start:]):
            return None
        first, entry = _unpack(content, start)
        if first["request"] != request or not {*sources} <= {stamp[0] for stamp in first["stamps"]}:
            return None
        if any(_stamp(stamp[0]) != stamp for stamp in first["stamps"]):
            return None
        if abs(time.time() - status.st_mtime) > _DAY:
            _mark_used(file)
        return entry
    except (OSError, ValueError):
        return None


def write(request: JsonObject, stamps: list[Stamp], entry: Entry) -> None:
    """Write ``entry``, whose sources had ``stamps`` before they were read, and prune the folder.

    The file is replaced atomically. A write that fails is ignored and leaves no file.
    """
    import time

    newest = max((stamp[-2] for stamp in stamps if len(stamp) > 1 and not _is_kept(str(stamp[0]))), default=0)
    if stamps != [_stamp(str(stamp[0])) for stamp in stamps] or int(newest) > time.time_ns() - _RACE:
        return
    rest = entry.pack(request=request, stamps=stamps)
    if _replace(file := path(request), _MAGIC + b"%08x\n" % crc32(rest) + rest):
        _prune(file)


def keep(content: bytes) -> str | None:
    """Write ``content`` to a file of the cache folder, and return its path; None if it cannot be written.

    The file is named by the checksum of ``content``, so entries share it. An entry that refers to it has its stamp.
    """
    file = os.path.join(folder(), f"{crc32(content):08x}{_KEPT}")
    try:
        if is_folder_ours() and _is_ours(os.lstat(file)):
            with open(file, "rb") as existing:
                if existing.read() == content:
                    return file
    except OSError:
        pass
    return file if _replace(file, content) else None


def _is_kept(path: str) -> bool:
    return os.path.dirname(path) == folder() and path.endswith(_KEPT)


def _replace(file: str, content: bytes) -> bool:
    """Write ``content`` to ``file`` in the cache folder atomically. Return False if that fails."""
    import tempfile
    from contextlib import suppress

    try:
        if not os.path.isabs(folder()):
            return False
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        if not is_folder_ours():
            return False
        # A random name, opened with O_EXCL and O_NOFOLLOW, only for this user.
        descriptor, temporary = tempfile.mkstemp(prefix=f"{os.path.basename(file)}.", dir=folder())
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.write(content)
        os.replace(temporary, file)
    except OSError:  # a full disk; on Windows also a file that another process reads
        return False
    finally:
        with suppress(OSError):  # after a successful replace it no longer exists
            os.remove(temporary)
    return True


def _prune(newest: str) -> None:
    """Delete excess entries, kept files that no entry names, and abandoned temporary files.

    ``newest`` and files with other names stay.
    """
    import time
    from contextlib import suppress

    entries, others = [], []
    for file in files():
        name, *suffixes = os.path.basename(file).split(".")
        with suppress(OSError):  # another process deletes too
            status = os.lstat(file)
            if len(name) != 8 or suffixes[:1] not in _SUFFIXES or not stat.S_ISREG(status.st_mode):
                continue
            if suffixes == ["json"]:
                entries.append((file != newest, -status.st_mtime, status.st_size, file))
            elif abs(time.time() - status.st_mtime) > _ABANDONED:
                others.append(file)
    size, excess = 0, []
    for number, (_, _, each, file) in enumerate(sorted(entries), 1):
        size += each
        if file != newest and (number > MAX_FILES or size > MAX_BYTES):
            excess.append(file)
    named = b"".join(_stamps_of(file) for *_, file in entries if file not in excess) if others else b""
    for file in [*excess, *(file for file in others if os.path.basename(file).encode() not in named)]:
        with suppress(OSError):
            os.remove(file)


def _stamps_of(file: str) -> bytes:
    """Return the beginning of an entry, with the stamps of its sources."""
    from contextlib import suppress

    with suppress(OSError), open(file, "rb", opener=lambda name, flags: os.open(name, flags | _SAFE)) as source:
        return source.readline() + source.readline()
    return b""


def stamps(sources: Iterable[str]) -> list[Stamp]:
    """Return the stamps of ``sources``, existing or not, and of all files and folders below them.

    Compiled bytecode and packages of Node are skipped, and links to folders are followed. If there are more than
    `MAX_STAMPS`, the last stamp is one that no file has, so nothing is cached.
    """
    stamps: dict[str, Stamp] = {}
    visited: set[tuple[int, int]] = set()  # device and inode; links can form cycles
    pending = [*sources]
    for source in pending:
        stamps[source] = _stamp(source)
    while pending:
        for path, is_folder in _entries(pending.pop(), visited):
            if len(stamps) >= MAX_STAMPS:
                stamps[path] = [path, 0, 0]  # the stamp of no file
                return [stamps[each] for each in sorted(stamps)]
            stamps[path] = _stamp(path)
            pending += [path] if is_folder else []
    return [stamps[each] for each in sorted(stamps)]


def _entries(folder: str, visited: set[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Return the paths in ``folder``, and whether each is a folder; none if ``visited`` contains the folder."""
    try:
        status = os.stat(folder)
        identity = status.st_dev, status.st_ino
        if identity in visited:
            return []
        with os.scandir(folder) as entries:
            inside = [(entry.path, entry.is_dir()) for entry in entries]
    except OSError:
        return []
    visited.add(identity)
    return [(path, is_folder) for path, is_folder in inside if not is_folder or os.path.basename(path) not in _SKIPPED]


def files() -> list[str]:
    """Return all files in the cache folder, sorted, valid or not; none if other users can write to the folder."""
    try:
        names = sorted(os.listdir(folder())) if is_folder_ours() else []
    except OSError:
        return []
    return [file for name in names if not os.path.isdir(file := os.path.join(folder(), name))]


def _stamp(source: str) -> Stamp:
    """Return what changes whenever a file changes; for a folder, whenever a name in it changes."""
    try:
        s = os.stat(source)
    except OSError:
        return [source]
    return [source, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns, s.st_mode]


def _mark_used(file: str) -> None:
    """Set the time of last use for `_prune`. A failure is ignored."""
    from contextlib import suppress

    with suppress(OSError):
        os.utime(file)


def _encode(value: object) -> bytes:
    """Encode as JSON. Paths that are not UTF-8 contain lone surrogates, which `stdlib.loads` restores."""
    return _ENCODE(value).encode("utf-8", "surrogatepass")


def _is_ours(status: os.stat_result) -> bool:
    """Return whether it is a regular file that only this user can write."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def is_folder_ours() -> bool:
    """Return whether the cache folder belongs to this user, and only this user can write to it."""
    try:
        status = os.lstat(folder())
    except OSError:
        return False
    if not os.path.isabs(folder()) or not stat.S_ISDIR(status.st_mode):
        return False
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)

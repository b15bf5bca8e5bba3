"""What was read and checked, kept in a file so that the next start need not do it again.

A cache file never changes an answer: it counts only if it was made by this version, for this request, from files that
are exactly as they were, and if it is whole; else it is as if it were not there. It holds JSON, nothing that could run.

The folder stays small: each write deletes the least recently used entries beyond `MOST_FILES` and `MOST_BYTES`, and
temporary files that a killed process has left.

Layout: a line with the checksum of the rest; a line of JSON with the request, the stamps of all sources and the head;
then a line of JSON for each section, which is parsed only when somebody asks for it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from binascii import crc32
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tmkb.schema.values import JsonObject

    Stamp = list[str | int]

MOST_FILES = 32  # entries in the folder, of all releases, servers and options
MOST_BYTES = 64 << 20  # of all entries together; one of the packaged servers has about 1 MB

MOST_STAMPS = 50_000  # files and folders of all sources; the packaged ones and our code have about 1000

_MAGIC = b"tmkb-cache 1 "
_DAY = 86_400  # seconds; the time of last use is kept to the day, so that a start seldom writes
_ABANDONED = 60  # seconds after which a temporary file has no process any more that writes it
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_RACE = 100_000_000  # nanoseconds in which a file could change again without its stamp showing it
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Entry:
    """A head, and sections by name that are not parsed yet."""

    __slots__ = ("head", "lines")

    def __init__(self, head: JsonObject, lines: Mapping[str, bytes]) -> None:
        self.head = head
        self.lines = lines

    def section(self, name: str) -> JsonObject:
        """The section ``name``, parsed now."""
        value: JsonObject = json.loads(self.lines[name])
        return value

    def packed(self) -> bytes:
        """The entry for another process, which can `unpack` it."""
        return b"\n".join([_encoded({"sections": list(self.lines), "head": self.head}), *self.lines.values()])


def entry(head: JsonObject, sections: Mapping[str, JsonObject]) -> Entry:
    """An entry of what was just made."""
    return Entry(head, {name: _encoded(section) for name, section in sections.items()})


def unpack(packed: bytes) -> Entry:
    """The entry that was `packed`."""
    head, *lines = packed.split(b"\n")
    found = json.loads(head)
    return Entry(found["head"], dict(zip(found["sections"], lines, strict=True)))


def folder() -> str:
    """Where cache files lie: the platform's folder for caches, below it one of our own."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA") or home, "tmkb", "cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "tmkb")
    named = os.environ.get("XDG_CACHE_HOME", "")  # the XDG specification: a relative path is ignored
    return os.path.join(named if os.path.isabs(named) else os.path.join(home, ".cache"), "tmkb")


def path(request: JsonObject) -> str:
    """The file that an entry for ``request`` lies in. Two requests may share one; the file says whose it is."""
    return os.path.join(folder(), f"{crc32(_encoded(request)):08x}.json")


def read(request: JsonObject, sources: Iterable[str] = ()) -> Entry | None:
    """The entry for ``request``, if there is one that still holds.

    ``request`` is all that the entry depends on besides the files below its sources. ``sources`` are some that it must
    have: an entry that depends on less was not made for the request.
    """
    import time

    file = path(request)
    try:
        with open(file, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _SAFE)) as source:
            status = os.fstat(source.fileno())
            if not _is_folder_ours() or not _is_ours(status):
                return None
            first, _, rest = source.read().partition(b"\n")
        if first != _MAGIC + b"%08x" % crc32(rest):
            return None
        head, *lines = rest.split(b"\n")
        found = json.loads(head)
        if found["request"] != request or not {*sources} <= {stamp[0] for stamp in found["stamps"]}:
            return None
        if any(_stamp(stamp[0]) != stamp for stamp in found["stamps"]):
            return None
        if abs(time.time() - status.st_mtime) > _DAY:
            _mark_used(file)
        return Entry(found["head"], dict(zip(found["sections"], lines, strict=True)))
    except (OSError, ValueError):  # none, or none that can be read
        return None


def write(request: JsonObject, stamps: list[Stamp], made: Entry) -> None:
    """Keep ``made``, whose sources had ``stamps`` before they were read, and prune the folder.

    Not being able to is no error, and leaves nothing behind. The file is replaced in one step: a process that reads
    meanwhile finds a whole one.
    """
    import tempfile
    import time

    newest = max((stamp[-2] for stamp in stamps if len(stamp) > 1), default=0)
    if stamps != [_stamp(str(stamp[0])) for stamp in stamps] or int(newest) > time.time_ns() - _RACE:
        return
    head = _encoded({"request": request, "stamps": stamps, "sections": list(made.lines), "head": made.head})
    rest = b"\n".join([head, *made.lines.values()])
    file = path(request)
    try:
        if not os.path.isabs(folder()):
            return
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        if not _is_folder_ours():
            return
        # A name that nobody can guess, made with O_EXCL and O_NOFOLLOW, only for this user.
        descriptor, temporary = tempfile.mkstemp(prefix=f"{os.path.basename(file)}.", dir=folder())
    except OSError:
        return
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.write(_MAGIC + b"%08x\n" % crc32(rest) + rest)
        os.replace(temporary, file)
    except OSError:  # a full disk; on Windows also a file that another process reads
        pass
    finally:
        with suppress(OSError):  # where it was put in place it has gone
            os.remove(temporary)
    _prune(file)


def _prune(newest: str) -> None:
    """Delete what is too much in the folder, but never the file ``newest``, and nothing that is not named as ours."""
    import time

    entries = []
    for file in files():
        name, ours, rest = os.path.basename(file).partition(".json")
        with suppress(OSError):  # another process deletes too
            status = os.lstat(file)
            if not ours or len(name) != 8 or not stat.S_ISREG(status.st_mode):
                continue
            if not rest:
                entries.append((file != newest, -status.st_mtime, status.st_size, file))
            elif rest.startswith(".") and abs(time.time() - status.st_mtime) > _ABANDONED:
                os.remove(file)
    size = 0
    for number, (_, _, each, file) in enumerate(sorted(entries), 1):
        size += each
        if file != newest and (number > MOST_FILES or size > MOST_BYTES):
            with suppress(OSError):
                os.remove(file)


def stamps(sources: Iterable[str]) -> list[Stamp]:
    """A stamp of every file and folder below each of ``sources``, and of these themselves, there or not.

    Compiled bytecode is no source: it comes and goes without a change. Links to folders are followed, as readers of
    sources follow them. Beyond `MOST_STAMPS` the last stamp is none that a file can have, so nothing is kept.
    """
    found: dict[str, Stamp] = {}
    walked: set[tuple[int, int]] = set()  # device and inode; links can lead back
    waiting = [*sources]
    for source in waiting:
        found[source] = _stamp(source)
    while waiting:
        inside = _entries(waiting.pop(), walked)
        for path, is_folder in inside:
            if len(found) >= MOST_STAMPS:
                found[path] = [path, 0, 0]  # the stamp of no file
                return [found[each] for each in sorted(found)]
            found[path] = _stamp(path)
            waiting += [path] if is_folder else []
    return [found[each] for each in sorted(found)]


def _entries(folder: str, walked: set[tuple[int, int]]) -> list[tuple[str, bool]]:
    """The paths in ``folder``, and whether each is a folder; none if it is in ``walked``, to which it is added."""
    try:
        status = os.stat(folder)
        identity = status.st_dev, status.st_ino
        if identity in walked:
            return []
        with os.scandir(folder) as entries:
            inside = [(entry.path, entry.is_dir()) for entry in entries]
    except OSError:
        return []
    walked.add(identity)
    return [(path, is_folder) for path, is_folder in inside if not is_folder or os.path.basename(path) != "__pycache__"]


def files() -> list[str]:
    """Every file in the cache folder, sorted, whether it still holds or not; none where the folder is not ours."""
    try:
        return sorted(os.path.join(folder(), name) for name in os.listdir(folder())) if _is_folder_ours() else []
    except OSError:
        return []


def _stamp(source: str) -> Stamp:
    """What tells a file from any other that was there before or after it; a folder's changes when a name in it does."""
    try:
        s = os.stat(source)
    except OSError:
        return [source]
    return [source, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns, s.st_mode]


def _mark_used(file: str) -> None:
    """Set the time of last use, by which `_prune` decides. Not being able to is no error."""
    with suppress(OSError):
        os.utime(file)


def _encoded(value: object) -> bytes:
    """``value`` as JSON. Paths that are not UTF-8 hold halves of surrogate pairs, which `json.loads` reads back."""
    return _ENCODE(value).encode("utf-8", "surrogatepass")


def _is_ours(status: os.stat_result) -> bool:
    """Whether it is a file that nobody else could have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def _is_folder_ours() -> bool:
    """Whether the cache folder is one that nobody else could have put there, or written to."""
    try:
        status = os.lstat(folder())
    except OSError:
        return False
    if not os.path.isabs(folder()) or not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)

"""The chunks of an .evtx file. Each holds 64 KiB of records and all they refer to, so it can be read by itself.

A log that has run full overwrites its oldest chunk, so their order in the file is not that of their records. What the
header of a chunk says is enough to put them in order and to leave most of them unread.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import NamedTuple

from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logquery import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tmkb.sysmcp.eventlog.logfile import LogFile

SIZE = 65536
_FILE_HEADER = 4096
_FILE_MAGIC = b"ElfFile\0"
_MAGIC = b"ElfChnk\0"
_HEADER = 512
_RECORD = 24  # bytes of a record's header: magic, size, id, time
_MOST_RECORDS = (SIZE - _HEADER) // (_RECORD + 4)
_MOST_ERRORS = 1000
_1601 = 11_644_473_600_000_000  # microseconds before 1970
_STEP = 128  # headers that are read at once


class Chunk(NamedTuple):
    """Ids of its first and last record, their times in microseconds, where it is, and what changes when it does.

    Times that run backwards say nothing of those between them.
    """

    first: int
    last: int
    oldest: int
    newest: int
    offset: int
    checksum: int

    @property
    def size(self) -> int | None:
        """How many records it says it has; None where that cannot be."""
        size = self.last - self.first + 1
        return size if 0 < size <= _MOST_RECORDS else None


class Record(NamedTuple):
    """Its id and time are those of its header; ``xml`` is the event."""

    id: int
    time: int
    xml: str


def index(file: LogFile) -> Generator[None, None, tuple[list[Chunk], int]]:
    """The chunks of an open file in the order of their records, and how many places hold something else.

    Raises `Unreadable` where it is no .evtx file.
    """
    if file.read(0, len(_FILE_MAGIC)) != _FILE_MAGIC:
        raise Unreadable("corrupt")
    chunks, bad = [], 0
    for number, offset in enumerate(range(_FILE_HEADER, file.size, SIZE)):
        if number % _STEP == _STEP - 1:
            yield
        header = file.read(offset, _HEADER + _RECORD)
        chunk = _chunk(file, offset, header)
        if chunk is not None:
            chunks.append(chunk)
        elif any(header):  # Windows lays out chunks in advance, all zeros
            bad += 1
    return sorted(chunks), bad


def _chunk(file: LogFile, offset: int, header: bytes) -> Chunk | None:
    if len(header) < _HEADER + _RECORD or not header.startswith(_MAGIC):
        return None
    first, last = struct.unpack_from("<2Q", header, 24)
    (last_record,) = struct.unpack_from("<I", header, 44)
    (checksum,) = struct.unpack_from("<I", header, 124)
    oldest = _microseconds(header[_HEADER + 16 : _HEADER + _RECORD])
    time = file.read(offset + last_record + 16, 8) if last_record < SIZE - _RECORD else b""
    newest = _microseconds(time) if len(time) == 8 else oldest - 1  # not known: it has been cut off
    return Chunk(first, last, oldest, newest, offset, checksum)


def _microseconds(filetime: bytes) -> int:
    return int.from_bytes(filetime, "little") // 10 - _1601


def records(file: LogFile, chunk: Chunk) -> tuple[list[Record], int]:
    """The records of a chunk that can be read, in their order, and how many cannot."""
    from evtx import PyEvtxParser

    data = file.read(chunk.offset, SIZE).ljust(SIZE, b"\0")
    read: list[Record] = []
    errors = 0
    try:
        parser = PyEvtxParser(io.BytesIO(_FILE + data), number_of_threads=1, indent=False).records()
        while errors < _MOST_ERRORS:
            try:
                found: Any = next(parser)
                read.append(Record(found["event_record_id"], _time(found["timestamp"]), found["data"]))
            except StopIteration:
                break
            except (RuntimeError, ValueError, OverflowError):  # this record; the next may be well
                errors += 1
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # the library panicked, which it tells by an exception of no class of Python's
        errors += 1
    return read, max(errors, (chunk.size or 0) - len(read))


def _time(text: str) -> int:
    return logentry.microseconds(text.removesuffix(" UTC"))


def _file_header() -> bytes:
    """That of a file with one chunk, put before whichever is read."""
    header = struct.pack("<8sQQQIHHHH", _FILE_MAGIC, 0, 0, 1, 128, 1, 3, _FILE_HEADER, 1).ljust(120, b"\0")
    return (header + struct.pack("<II", 0, zlib.crc32(header))).ljust(_FILE_HEADER, b"\0")


_FILE = _file_header()

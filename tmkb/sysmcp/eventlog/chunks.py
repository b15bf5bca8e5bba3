"""The chunks of an .evtx file: 64 KiB of records with everything they refer to, so a chunk can be read alone.

A full log overwrites its oldest chunk, so chunks are not ordered by their records. Their headers are enough to sort
them and to leave most of them unread.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Generator
from typing import Any, NamedTuple

from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logquery import LogFile, Unreadable

SIZE = 65536
_FILE_HEADER = 4096
_FILE_MAGIC = b"ElfFile\0"
_MAGIC = b"ElfChnk\0"
_HEADER = 512
_RECORD = 24  # bytes of a record's header: magic, size, id, time
_MAX_RECORDS = (SIZE - _HEADER) // (_RECORD + 4)
_MAX_ERRORS = 1000
_OFFSET = struct.Struct("<I")
_NAMES = range(128, 384, 4)  # in the header: offsets of the first names of linked lists
_1601 = 11_644_473_600_000_000  # microseconds before 1970
_STEP = 128  # headers between two yields


class Chunk(NamedTuple):
    """Ids of the first and last records, their times in microseconds, the offset, and a checksum of the records.

    If ``newest`` is before ``oldest``, the times of the other records are unknown.
    """

    first: int
    last: int
    oldest: int
    newest: int
    offset: int
    checksum: int

    @property
    def size(self) -> int | None:
        """The number of records in its header; None if that is impossible."""
        size = self.last - self.first + 1
        return size if 0 < size <= _MAX_RECORDS else None


class Record(NamedTuple):
    """A record: id and time from its header, and the event as XML."""

    id: int
    time: int
    xml: str


def index(file: LogFile) -> Generator[None, None, tuple[list[Chunk], int]]:
    """Return the chunks of a file in the order of their records, and the number of damaged ones, in steps.

    Raises Unreadable if the file is not an .evtx file.
    """
    if file.read(0, len(_FILE_MAGIC)) != _FILE_MAGIC:
        raise Unreadable("corrupt")
    listed, bad = [], 0
    for number, offset in enumerate(range(_FILE_HEADER, file.size, SIZE)):
        if number % _STEP == _STEP - 1:
            yield
        header = file.read(offset, _HEADER + _RECORD)
        chunk = _chunk(file, offset, header)
        if chunk is not None:
            listed.append(chunk)
        elif any(header):  # unused chunks contain zeros
            bad += 1
    return sorted(listed), bad


def _chunk(file: LogFile, offset: int, header: bytes) -> Chunk | None:
    if len(header) < _HEADER + _RECORD or not header.startswith(_MAGIC):
        return None
    first, last = struct.unpack_from("<2Q", header, 24)
    (last_record,) = struct.unpack_from("<I", header, 44)
    (checksum,) = struct.unpack_from("<I", header, 124)
    oldest = _microseconds(header[_HEADER + 16 : _HEADER + _RECORD])
    time = file.read(offset + last_record + 16, 8) if last_record < SIZE - _RECORD else b""
    newest = _microseconds(time) if len(time) == 8 else oldest - 1  # unknown: the file is truncated
    return Chunk(first, last, oldest, newest, offset, checksum)


def _microseconds(filetime: bytes) -> int:
    return int.from_bytes(filetime, "little") // 10 - _1601


def records(file: LogFile, chunk: Chunk) -> tuple[list[Record], int]:
    """Return the readable records of a chunk in their order, and the number of unreadable ones."""
    from evtx import PyEvtxParser

    data = file.read(chunk.offset, SIZE).ljust(SIZE, b"\0")
    if _has_circular_list(data):  # the library would not return
        return [], chunk.size or 1
    read: list[Record] = []
    errors = 0
    try:
        parser = PyEvtxParser(io.BytesIO(_FILE + data), number_of_threads=1, indent=False).records()
        while errors < _MAX_ERRORS:
            try:
                record: Any = next(parser)
                timestamp = record["timestamp"].removesuffix(" UTC")
                time = logentry.parse_microseconds(timestamp)
                read.append(Record(record["event_record_id"], time, record["data"]))
            except StopIteration:
                break
            except (RuntimeError, ValueError, OverflowError):  # only this record is damaged
                errors += 1
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the library is not an Exception
        errors += 1
    return read, max(errors, (chunk.size or 0) - len(read))


def _has_circular_list(data: bytes) -> bool:
    """Return whether a linked list of names leads back to itself. Each name begins with the offset of the next."""
    known: set[int] = set()  # names from which the end of a list is reached
    for head in _NAMES:
        passed: set[int] = set()
        (offset,) = _OFFSET.unpack_from(data, head)
        while 0 < offset <= SIZE - _OFFSET.size and offset not in known:
            if offset in passed:
                return True
            passed.add(offset)
            (offset,) = _OFFSET.unpack_from(data, offset)
        known |= passed
    return False


def _file_header() -> bytes:
    """Return the header of a file with one chunk, to put before any chunk."""
    header = struct.pack("<8sQQQIHHHH", _FILE_MAGIC, 0, 0, 1, 128, 1, 3, _FILE_HEADER, 1).ljust(120, b"\0")
    return (header + struct.pack("<II", 0, zlib.crc32(header))).ljust(_FILE_HEADER, b"\0")


_FILE = _file_header()

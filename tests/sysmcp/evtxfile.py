"""Write .evtx files, from the published descriptions of their format.

All records of a file have one template, which the first record of each chunk defines, so it always stands at the same
place; the others refer to it there.
"""

import struct
import zlib
from typing import NamedTuple

CHUNK = 65536
HEAD = 512
TEXT, BYTE, SHORT, LONG, TIME, HEX = 1, 4, 6, 10, 0x11, 0x15  # types of values
FORMATS = {BYTE: "<B", SHORT: "<H", LONG: "<Q", TIME: "<Q", HEX: "<Q"}
FRAGMENT = b"\x0f\x01\x01\x00"
TEMPLATE_ID = 7


class Event(NamedTuple):
    time: int  # microseconds since 1970
    level: int
    source: str
    event_id: int
    values: tuple[str, ...]


def filetime(time):
    return (time + 11_644_473_600_000_000) * 10


class Template:
    """The binary XML of an event with so many values, as it stands at ``offset`` of a chunk."""

    def __init__(self, values, offset):
        self.offset = offset
        self.out = bytearray(FRAGMENT)
        self.element("Event", {"xmlns": "http://schemas.microsoft.com/win/2004/08/events/event"}, self.event, values)
        self.out += b"\0"

    def event(self, values):
        self.element("System", {}, self.system)
        self.element("EventData", {}, self.data, values)

    def system(self):
        self.element("Provider", {"Name": (0, TEXT)})
        self.element("EventID", {}, self.value, (1, SHORT))
        self.element("Version", {}, self.value, "0")
        self.element("Level", {}, self.value, (2, BYTE))
        self.element("Keywords", {}, self.value, (3, HEX))
        self.element("TimeCreated", {"SystemTime": (4, TIME)})
        self.element("EventRecordID", {}, self.value, (5, LONG))
        self.element("Channel", {}, self.value, (6, TEXT))
        self.element("Computer", {}, self.value, (7, TEXT))

    def data(self, values):
        for number in range(values):
            self.element("Data", {"Name": f"param{number + 1}"}, self.value, (8 + number, TEXT))

    def element(self, name, attributes, content=None, *arguments):
        self.out += bytes([0x41 if attributes else 0x01]) + b"\xff\xff"
        with Size(self.out):
            self.name(name)
            if attributes:
                with Size(self.out):
                    for left, (key, value) in zip(range(len(attributes))[::-1], attributes.items(), strict=True):
                        self.out.append(0x46 if left else 0x06)
                        self.name(key)
                        self.value(value)
            if content is None:
                self.out.append(3)
            else:
                self.out.append(2)
                content(*arguments)
                self.out.append(4)

    def name(self, name):
        here = self.offset + len(self.out) + 4
        hashed = 0
        for character in name:
            hashed = (hashed * 65599 + ord(character)) & 0xFFFFFFFF
        self.out += struct.pack("<IIHH", here, 0, hashed & 0xFFFF, len(name)) + name.encode("utf-16-le") + b"\0\0"

    def value(self, value):
        if isinstance(value, str):
            self.out += struct.pack("<BBH", 5, 1, len(value)) + value.encode("utf-16-le")
        else:
            self.out += struct.pack("<BHB", 0x0E, *value)  # a substitution that may be absent


class Size:
    """Four bytes that say how many follow them until it is left."""

    def __init__(self, out):
        self.out = out

    def __enter__(self):
        self.place = len(self.out)
        self.out += bytes(4)

    def __exit__(self, *_):
        struct.pack_into("<I", self.out, self.place, len(self.out) - self.place - 4)


DEFINITION = (
    HEAD + 24 + 4 + 10
)  # where the first record of a chunk defines the template: 24 is its header, 10 the instance


def record(number, event, channel, define):
    """The bytes of a record; ``define``: it is the first of its chunk."""
    out = bytearray(24) + FRAGMENT + struct.pack("<BBII", 0x0C, 1, TEMPLATE_ID, DEFINITION)
    if define:
        template = Template(len(event.values), DEFINITION + 24).out
        out += struct.pack("<I16sI", 0, TEMPLATE_ID.to_bytes(16, "little"), len(template)) + template
    typed = [(TEXT, event.source), (SHORT, event.event_id), (BYTE, event.level), (HEX, 1 << 55)]
    typed += [(TIME, filetime(event.time)), (LONG, number), (TEXT, channel), (TEXT, "PC")]
    typed += [(TEXT, value) for value in event.values]
    raw = [value.encode("utf-16-le") if kind == TEXT else struct.pack(FORMATS[kind], value) for kind, value in typed]
    out += struct.pack("<I", len(raw))
    out += b"".join(struct.pack("<HBB", len(each), kind, 0) for each, (kind, _) in zip(raw, typed, strict=True))
    out += b"".join(raw) + b"\0"
    out += bytes(-(len(out) + 4) % 8)
    out += struct.pack("<I", len(out) + 4)
    struct.pack_into("<4sIQQ", out, 0, b"**\0\0", len(out), number, filetime(event.time))
    return bytes(out)


def chunks(events, channel="System", first=1, records=10**9):
    """The events in chunks of at most so many records, with ids from ``first`` on. All have as many values."""
    full, body, begun, last = [], b"", first, 0
    for number, event in enumerate(events, first):
        encoded = record(number, event, channel, not body)
        if body and (HEAD + len(body) + len(encoded) > CHUNK or number - begun == records):
            full.append(chunk(body, begun, number - 1, last))
            body, begun = b"", number
            encoded = record(number, event, channel, True)
        last = HEAD + len(body)
        body += encoded
    return [*full, chunk(body, begun, number, last)] if body else full


def chunk(body, first, last, last_record):
    free = HEAD + len(body)
    head = bytearray(HEAD)
    struct.pack_into(
        "<8s4Q4I", head, 0, b"ElfChnk\0", first, last, first, last, 128, last_record, free, zlib.crc32(body)
    )
    struct.pack_into("<I", head, 384 + 4 * (TEMPLATE_ID % 32), DEFINITION)
    struct.pack_into("<I", head, 124, zlib.crc32(bytes(head[:120] + head[128:])))
    return (bytes(head) + body).ljust(CHUNK, b"\0")


def file(found):
    """The bytes of a file with these chunks."""
    head = struct.pack("<8s3QI4H", b"ElfFile\0", 0, max(0, len(found) - 1), 1, 128, 1, 3, 4096, len(found) & 0xFFFF)
    head = head.ljust(120, b"\0")
    return (head + struct.pack("<II", 0, zlib.crc32(head))).ljust(4096, b"\0") + b"".join(found)


def events(count, begin=1_700_000_000_000_000, step=7_000_000):
    """Events of five sources, four ids and all levels, always the same."""
    sources = ["kernel", "Service Control Manager", "EventLog", "Microsoft-Windows-Kernel-Power", 'a "b" & <c>']
    return [
        Event(
            begin + number * step,
            (4, 4, 4, 3, 4, 2, 0, 5, 4, 4, 1, 4, 6)[number % 13],
            sources[number * 7 % 5],
            (7036, 41, 6005, 7)[number * 3 % 4],
            (f"value {number}", "Ünï 日本 <&>"),
        )
        for number in range(count)
    ]

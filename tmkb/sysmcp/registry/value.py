"""Values of the registry: their bytes as JSON, and JSON as their bytes."""

from __future__ import annotations

import base64
import binascii
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.values import JsonObject, JsonValue

NAMES = (
    "REG_NONE",
    "REG_SZ",
    "REG_EXPAND_SZ",
    "REG_BINARY",
    "REG_DWORD",
    "REG_DWORD_BIG_ENDIAN",
    "REG_LINK",
    "REG_MULTI_SZ",
    "REG_RESOURCE_LIST",
    "REG_FULL_RESOURCE_DESCRIPTOR",
    "REG_RESOURCE_REQUIREMENTS_LIST",
    "REG_QWORD",
)
ONE_CELL = 16344  # bytes of a value that stand together; a larger one is spread over cells
_TEXTS = ("REG_SZ", "REG_EXPAND_SZ")
_NUMBERS = {"REG_DWORD": 4, "REG_QWORD": 8}  # their bytes
_EXACT = 2**53  # integers up to here survive a JSON reader that has only doubles
EXPECTED = {
    "REG_SZ": "a text without NUL",
    "REG_EXPAND_SZ": "a text without NUL",
    "REG_MULTI_SZ": "an array of texts, none of them empty or with NUL",
    "REG_DWORD": "an integer from 0 to 4294967295",
    "REG_QWORD": "an integer from 0 to 18446744073709551615, as a number or as a text of digits",
    "REG_BINARY": "base64",
    "REG_NONE": "base64",
}


class Mismatch(Exception):
    """Data that a type cannot hold; what it can is in `EXPECTED`."""


def type_name(number: int) -> str:
    """The name of a type; one that has none is told as a number."""
    return NAMES[number] if number < len(NAMES) else f"0x{number:08x}"


def to_json(type_: str, raw: bytes, whole: bool = True) -> JsonObject:
    """``data``, and ``encoding`` where that is base64. A number of a size that is not its type's is bytes, too.

    ``whole``: nothing was cut off.
    """
    if type_ in _TEXTS:
        return {"data": _text(raw).rstrip("\0")}
    if type_ == "REG_MULTI_SZ":
        text = _text(raw).rstrip("\0")
        return {"data": [*text.split("\0")] if text else []}
    if whole and _NUMBERS.get(type_) == len(raw):
        number = int.from_bytes(raw, "little")
        return {"data": number if number <= _EXACT else str(number)}
    return {"data": base64.b64encode(raw).decode("ascii"), "encoding": "base64"}


def to_bytes(type_: str, data: JsonValue) -> bytes:
    """What a hive holds for ``data``, which may be anything. Raises Mismatch."""
    try:
        if type_ in _TEXTS:
            return _terminated(data)
        if type_ == "REG_MULTI_SZ":
            return _strings(data)
        if type_ in _NUMBERS:
            return _number(data, _NUMBERS[type_])
        return base64.b64decode(_str(data), validate=True)
    except (binascii.Error, OverflowError, ValueError, struct.error):
        raise Mismatch from None


def _text(raw: bytes) -> str:
    return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace")


def _str(data: JsonValue) -> str:
    if not isinstance(data, str):
        raise Mismatch
    return data


def _terminated(data: JsonValue) -> bytes:
    if "\0" in _str(data):
        raise Mismatch
    return f"{data}\0".encode("utf-16-le")


def _strings(data: JsonValue) -> bytes:
    if not isinstance(data, list) or "" in data:
        raise Mismatch
    return b"".join(_terminated(text) for text in data) + b"\0\0"


def _number(data: JsonValue, size: int) -> bytes:
    if isinstance(data, str) and size == 8 and data.isascii() and data.isdigit() and len(data) <= 20:
        data = int(data)
    if not isinstance(data, int) or isinstance(data, bool):
        raise Mismatch
    return data.to_bytes(size, "little")

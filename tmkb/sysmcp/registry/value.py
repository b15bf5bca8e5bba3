"""Convert registry values between the bytes of a hive and JSON."""

from __future__ import annotations

import base64

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
ONE_CELL = 16344  # bytes; Windows spreads a larger value over several cells
_TEXTS = ("REG_SZ", "REG_EXPAND_SZ")
_SIZES = {"REG_DWORD": 4, "REG_QWORD": 8}  # bytes
_MAX_NUMBER = 2**53  # not all JSON readers have larger integers
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
    """The type cannot hold the data; `EXPECTED` says what it can hold."""


def type_name(number: int) -> str:
    """Return the name of a type, or its number in hexadecimal."""
    return NAMES[number] if number < len(NAMES) else f"0x{number:08x}"


def to_json(type_: str, raw: bytes, whole: bool = True) -> JsonObject:
    """Return ``data``, and ``encoding`` if the data is base64.

    ``whole``: ``raw`` is not truncated. A number of an unexpected size is returned as base64.
    """
    if type_ in _TEXTS:
        return {"data": _text(raw)}
    if type_ == "REG_MULTI_SZ":
        text = _text(raw)
        return {"data": [*text.split("\0")] if text else []}
    if whole and _SIZES.get(type_) == len(raw):
        number = int.from_bytes(raw, "little")
        return {"data": number if number <= _MAX_NUMBER else str(number)}
    return {"data": base64.b64encode(raw).decode("ascii"), "encoding": "base64"}


def to_bytes(type_: str, data: JsonValue) -> bytes:
    """Return the bytes that a hive stores for ``data``, which is not validated. Raises Mismatch."""
    try:
        if type_ in _TEXTS:
            return _terminated(data)
        if type_ == "REG_MULTI_SZ":
            if not isinstance(data, list) or "" in data:
                raise Mismatch
            return b"".join(map(_terminated, data)) + b"\0\0"
        if type_ in _SIZES:
            return _number(data, _SIZES[type_])
        return base64.b64decode(_str(data), validate=True)
    except (OverflowError, ValueError):
        raise Mismatch from None


def _text(raw: bytes) -> str:
    return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace").rstrip("\0")


def _str(data: JsonValue) -> str:
    if not isinstance(data, str):
        raise Mismatch
    return data


def _terminated(data: JsonValue) -> bytes:
    if "\0" in _str(data):
        raise Mismatch
    return f"{data}\0".encode("utf-16-le")


def _number(data: JsonValue, size: int) -> bytes:
    if isinstance(data, str) and size == 8 and data.isascii() and data.isdigit() and len(data) <= 20:
        data = int(data)
    if not isinstance(data, int) or isinstance(data, bool):
        raise Mismatch
    return data.to_bytes(size, "little")

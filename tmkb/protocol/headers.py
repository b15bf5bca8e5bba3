"""Check the HTTP headers that repeat parts of a request's body. A request whose headers differ is refused.

Specification: Basic / Transports / Streamable HTTP, Standard Request Headers and Custom Headers from Tool Parameters.
"""

from __future__ import annotations

import base64
import binascii
import json
import re

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonValue

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")  # RFC 8259, section 6
_OPENING, _CLOSING = "=?base64?", "?="


def check(spec: Spec, governing: Revision, headers: Mapping[str, str], request: Request) -> None:
    """Raise ProtocolError if a required header is missing, malformed or differs from ``request``."""
    for name, value, encoded in _required(spec, governing, request):
        expect(headers, name, value, encoded)


def expect(headers: Mapping[str, str], name: str, value: JsonValue, encoded: bool = False) -> None:
    """Raise ProtocolError if the header ``name`` is not ``value`` or, with ``encoded``, an encoding of it."""
    try:
        text = headers[name.lower()].strip(" \t")
        matches = _matches(decode(text) if encoded else text, value)
    except (KeyError, ValueError):
        matches = False
    if not matches:
        raise ProtocolError("header_mismatch", header=name)


def for_request(spec: Spec, governing: Revision, request: Request) -> dict[str, str]:
    """Return the headers that a client sends with ``request``: the revision, and those that repeat its body."""
    headers = {governing["http"]["version"]: governing["revision"]}
    for name, value, encoded in _required(spec, governing, request):
        text = value if isinstance(value, str) else json.dumps(value)
        headers[name] = encode(text) if encoded else text
    return headers


def _required(spec: Spec, governing: Revision, request: Request) -> Iterator[tuple[str, JsonValue, bool]]:
    """Yield each header that repeats a part of ``request``: its name, the part, and whether it may be encoded."""
    rules = governing["http"]
    if "method" in rules:
        yield rules["method"], request.method, False
    method: Any = governing["methods"].get(request.method, {})
    if "name" in rules and isinstance(name := request.params.get(method.get("named_by", "")), str):
        yield rules["name"], name, True
    if "params" in rules and "tools" in method.get("capability", ""):
        tool = spec["tools"].get(str(request.params.get("name")))
        schema = tool["input"] if tool is not None else {}
        for name, value in _argument_headers(schema, request.params.get("arguments"), rules["marked"]):
            yield rules["params"] + name, value, True


def _argument_headers(schema: Any, arguments: Any, mark: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the header name and the value of each argument whose schema has the keyword ``mark``."""
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for key, inner in properties.items() if isinstance(arguments, dict) else ():
        value = arguments.get(key)
        if isinstance(inner, dict) and mark in inner and value is not None:
            yield inner[mark], value
        yield from _argument_headers(inner, value, mark)


def _matches(text: str, value: JsonValue) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        return _NUMBER.fullmatch(text) is not None and _equal_numbers(text, json.dumps(value))
    return text == value


def _equal_numbers(one: str, other: str) -> bool:
    """Compare two JSON numbers exactly: 42.0 equals 42, but 2^53 + 1 differs from 2^53, unlike as floats."""
    import decimal

    try:
        return decimal.Decimal(one) == decimal.Decimal(other)
    except decimal.InvalidOperation:  # an exponent beyond any number of a message
        return False


def encode(text: str) -> str:
    """Return ``text`` if a header can contain it, else its base64 form."""
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith(_OPENING)
    return text if plain else f"{_OPENING}{base64.b64encode(text.encode()).decode()}{_CLOSING}"


def decode(text: str) -> str:
    """Return the text of a header value. Raises ValueError if it is marked as base64 and is not."""
    if not (text.startswith(_OPENING) and text.endswith(_CLOSING) and len(text) >= len(_OPENING) + len(_CLOSING)):
        return text
    try:
        return base64.b64decode(text[len(_OPENING) : -len(_CLOSING)], validate=True).decode("utf-8")
    except binascii.Error as error:
        raise ValueError(text) from error

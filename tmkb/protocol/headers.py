"""What an HTTP request says beside its body: the same as the body, or it is refused.

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
    """Raises ProtocolError where a header that ``request`` has to have is missing, malformed or differs from it."""
    for name, value, encoded in _repeated(spec, governing, request):
        expect(headers, name, value, encoded)


def expect(headers: Mapping[str, str], name: str, value: JsonValue, decode: bool = False) -> None:
    """Raises ProtocolError where the header ``name`` does not say ``value``, or (``decode``) an encoding of it."""
    given = headers.get(name.lower())
    try:
        said = _decoded(given.strip(" \t")) if given is not None and decode else given and given.strip(" \t")
    except ValueError:
        said = None
    if said is None or not _same(said, value):
        raise ProtocolError("header_mismatch", header=name)


def written(spec: Spec, governing: Revision, request: Request) -> dict[str, str]:
    """The headers that a client sends with ``request``: the revision, and what they repeat of it."""
    said = {governing["http"]["version"]: governing["revision"]}
    for name, value, encoded in _repeated(spec, governing, request):
        text = value if isinstance(value, str) else json.dumps(value)
        said[name] = _encoded(text) if encoded else text
    return said


def _repeated(spec: Spec, governing: Revision, request: Request) -> Iterator[tuple[str, JsonValue, bool]]:
    """Each header that repeats a part of ``request``: its name, that part, and whether it may be encoded."""
    rules = governing["http"]
    if "method" in rules:
        yield rules["method"], request.method, False
    method: Any = governing["methods"].get(request.method, {})
    if "name" in rules and isinstance(named := request.params.get(method.get("named_by", "")), str):
        yield rules["name"], named, True
    if "params" in rules and "tools" in method.get("capability", ""):
        tool = spec["tools"].get(str(request.params.get("name")))
        schema = tool["input"] if tool is not None else {}
        for name, value in _marked(schema, request.params.get("arguments"), rules["marked"]):
            yield rules["params"] + name, value, True


def _marked(schema: Any, arguments: Any, mark: str) -> Iterator[tuple[str, JsonValue]]:
    """The name under which ``schema`` marks each of ``arguments`` that is also sent as a header, and its value."""
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for key, inner in properties.items() if isinstance(arguments, dict) else ():
        value = arguments.get(key)
        if isinstance(inner, dict) and mark in inner and value is not None:
            yield inner[mark], value
        yield from _marked(inner, value, mark)


def _same(said: str, value: JsonValue) -> bool:
    if isinstance(value, bool):
        return said == ("true" if value else "false")
    if isinstance(value, int | float):
        return _NUMBER.fullmatch(said) is not None and _same_number(said, json.dumps(value))
    return said == value


def _same_number(one: str, other: str) -> bool:
    """Compare two numbers in JSON's spelling exactly: 42.0 is 42, but 2^53 + 1 is not 2^53, as it is for floats."""
    import decimal

    try:
        return decimal.Decimal(one) == decimal.Decimal(other)
    except decimal.InvalidOperation:  # an exponent beyond any number of a message
        return False


def _encoded(text: str) -> str:
    """``text`` as a header can carry it."""
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith(_OPENING)
    return text if plain else f"{_OPENING}{base64.b64encode(text.encode()).decode()}{_CLOSING}"


def _decoded(text: str) -> str:
    """The text that a header stands for. Raises ValueError where it claims to be base64 and is not."""
    if not (text.startswith(_OPENING) and text.endswith(_CLOSING) and len(text) >= len(_OPENING) + len(_CLOSING)):
        return text
    try:
        return base64.b64decode(text[len(_OPENING) : -len(_CLOSING)], validate=True).decode("utf-8")
    except binascii.Error as error:
        raise ValueError(text) from error

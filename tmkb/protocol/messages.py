"""Decode and encode JSON-RPC 2.0 messages. This module knows the envelope, but no method and no revision.

Specification: https://www.jsonrpc.org/specification and MCP, Basic / Messages.
"""

from __future__ import annotations

from tmkb import stdlib
from tmkb.errors import ProtocolError
from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.values import JsonObject, JsonValue

Id = str | int


@record
class Request:
    """A message with an id and a method. It gets exactly one response."""

    id: Id
    method: str
    params: JsonObject


@record
class Notification:
    """A message with a method and no id. It gets no response, not even an error."""

    method: str
    params: JsonObject


@record
class Response:
    """The client's response to a request of the server: ``value`` has a result or an error."""

    id: Id | None
    value: JsonObject


def decode(line: bytes) -> JsonValue:
    """Decode one line. Raises ProtocolError if it is not UTF-8, not JSON, or exceeds the parser's limits."""
    try:
        value: JsonValue = _DECODE(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError("parse_error") from error
    return value


def encode(value: JsonValue) -> bytes:
    """Encode as compact ASCII JSON: lone surrogates and U+2028 are escaped, and there is no newline."""
    return _ENCODE(value).encode("ascii")


def response(request_id: Id, result: bytes) -> bytes:
    """Build the response with an encoded result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode_id(request_id), result)


def error_response(request_id: Id | None, error: JsonObject, omit_id: bool) -> bytes:
    """Build the error response. An id of None becomes null, or is omitted."""
    if request_id is None and omit_id:
        return b'{"jsonrpc":"2.0","error":%b}' % encode(error)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode_id(request_id), encode(error))


def request(request_id: Id, method: str, params: JsonObject | None) -> bytes:
    """Encode a request to the client."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, **_params(params)})


def notification(method: str, params: JsonObject | None) -> bytes:
    """Encode a notification to the client."""
    return encode({"jsonrpc": "2.0", "method": method, **_params(params)})


def batch(responses: list[bytes]) -> bytes:
    """Build the response to a batch."""
    return b"[" + b",".join(responses) + b"]"


def compact(value: JsonValue) -> str:
    """Encode as compact JSON for people: only the characters that JSON requires are escaped."""
    return _READABLE(value)


def read(value: JsonValue) -> Request | Notification | Response:
    """Convert a JSON value to a message. Specification: JSON-RPC 2.0, sections 4 and 5.

    The order of the checks decides which error a client receives, so it is fixed.

    Raises:
        ProtocolError: if the value is not a message. `readable_id` returns the id for the error response.
    """
    if not isinstance(value, dict):
        raise ProtocolError("invalid_request")
    if is_response(value):
        return Response(readable_id(value), value)
    if value.get("jsonrpc") != "2.0":
        raise ProtocolError("invalid_jsonrpc")
    id_ = readable_id(value)
    if id_ is None and "id" in value:
        raise ProtocolError("invalid_request")
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        raise ProtocolError("invalid_request")
    if not isinstance(params, dict):
        if id_ is None:
            return Notification(method, {})
        raise ProtocolError("params_not_object")
    return Notification(method, params) if id_ is None else Request(id_, method, params)


def is_response(value: JsonValue) -> bool:
    """Return whether a value is a response, even if the rest of it is invalid."""
    return isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value)


def readable_id(value: JsonValue) -> Id | None:
    """Return the id of a message if it is a string or an integer, else None."""
    id_ = value.get("id") if isinstance(value, dict) else None
    return id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None


def request_id(value: JsonValue) -> Id | None:
    """Return the id of a request, even if the rest of it is invalid; None for other messages."""
    return readable_id(value) if isinstance(value, dict) and "method" in value else None


def _params(params: JsonObject | None) -> JsonObject:
    return {} if params is None else {"params": params}


def _encode_id(id_: Id | None) -> bytes:
    return b"%d" % id_ if isinstance(id_, int) else encode(id_)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:  # infinite, which could not be sent back as JSON
        raise ValueError(digits)
    return number


_DECODE = stdlib.decoder(_finite, _refuse_constant)
_ENCODE = stdlib.encoder(ensure_ascii=True, allow_nan=False)
_READABLE = stdlib.encoder(allow_nan=False)

"""Sign and verify request states: texts that a client stores for the server, bound to a subject, with an expiry time.

The signature is HMAC-SHA256 (RFC 2104) over the encoded text, so another encoding of the same bytes is invalid.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tmkb.schema.values import JsonObject, JsonValue


def sign(key: bytes, value: JsonObject, subject: JsonValue, expires: float) -> str:
    """Return ``value`` as a signed text for `verify`.

    Args:
        key: the key.
        value: what the text contains.
        subject: what the text is valid for.
        expires: the time of expiry, in seconds of Unix time.
    """
    payload = json.dumps({"value": value, "about": _digest(subject), "until": expires}, separators=(",", ":"))
    text = base64.urlsafe_b64encode(payload.encode()).decode()
    return f"{text}.{_signature(key, text)}"


def verify(keys: Iterable[bytes], state: str, subject: JsonValue, now: float) -> JsonObject:
    """Return the value in ``state``, which one of ``keys`` has signed.

    Raises:
        ProtocolError: if it was changed, has another subject, or has expired.
    """
    text, _, signature = state.rpartition(".")
    given = signature.encode("utf-8", "surrogatepass")
    if not any(hmac.compare_digest(_signature(key, text).encode(), given) for key in keys):
        raise ProtocolError("request_state_invalid")
    payload = json.loads(base64.urlsafe_b64decode(text))
    if payload["about"] != _digest(subject) or payload["until"] < now:
        raise ProtocolError("request_state_invalid")
    value: JsonObject = payload["value"]
    return value


def _signature(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _digest(subject: JsonValue) -> str:
    return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()

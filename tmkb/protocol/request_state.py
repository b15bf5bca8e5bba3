"""Text that a client keeps for us and cannot change: signed, bound to what it is about, and of limited age.

HMAC-SHA256 (RFC 2104) over the text as it travels, so that not even another spelling of the same bytes passes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.values import JsonObject, JsonValue


def seal(key: bytes, value: JsonObject, about: JsonValue, until: float) -> str:
    """``value`` as a text that `unseal` reads with the same key for the same ``about``, until that time (Unix)."""
    payload = json.dumps({"value": value, "about": _digest(about), "until": until}, separators=(",", ":"))
    text = base64.urlsafe_b64encode(payload.encode()).decode()
    return f"{text}.{_sign(key, text)}"


def unseal(key: bytes, sealed: str, about: JsonValue, now: float) -> JsonObject:
    """What was sealed. Raises ProtocolError for a text that was changed, is about something else, or is too old."""
    text, _, signature = sealed.rpartition(".")
    if not hmac.compare_digest(_sign(key, text).encode(), signature.encode("utf-8", "surrogatepass")):
        raise ProtocolError("request_state_invalid")
    payload = json.loads(base64.urlsafe_b64decode(text))
    if payload["about"] != _digest(about) or payload["until"] < now:
        raise ProtocolError("request_state_invalid")
    value: JsonObject = payload["value"]
    return value


def _sign(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _digest(about: JsonValue) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

"""The webhook of a Git server: a signed request that asks to pull the patterns. Its content is not read.

Signatures: https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries (also Gitea and Forgejo) and
https://www.standardwebhooks.com (GitLab).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping

from tmkb.errors import ProtocolError

PATH = "/hooks/patterns"
PRINCIPAL = "webhook"  # whose quota the requests use, which nobody else has
_HUB, _HUB_FORM = "x-hub-signature-256", "sha256="
_STANDARD, _STANDARD_FORM, _KEY_FORM = "webhook-signature", "v1,", "whsec_"
_TOLERANCE = 300  # seconds between the time of a signature and ours; signatures of GitHub have no time


class Hook:
    """Checks signed requests, and calls ``ring`` for each."""

    def __init__(self, secret: str, ring: Callable[[], None]) -> None:
        """``secret``: the key of the signatures, as the settings of the webhook have it."""
        self.secret = secret
        self.ring = ring

    def receive(self, headers: Mapping[str, str], body: bytes) -> None:
        """Handle a request. Raises ProtocolError without a valid signature."""
        if not (self._signed_for_hub(headers, body) or self._signed_by_standard(headers, body)):
            raise ProtocolError("bad_signature")
        self.ring()

    def _signed_for_hub(self, headers: Mapping[str, str], body: bytes) -> bool:
        digest = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        return _equal(headers.get(_HUB, ""), _HUB_FORM + digest)

    def _signed_by_standard(self, headers: Mapping[str, str], body: bytes) -> bool:
        moment = headers.get("webhook-timestamp", "")
        if not moment.isdecimal() or abs(time.time() - int(moment[:12])) > _TOLERANCE:
            return False
        content = f"{headers.get('webhook-id', '')}.{moment}.".encode() + body
        digest = base64.b64encode(hmac.new(self._standard_key(), content, hashlib.sha256).digest()).decode()
        return any(_equal(each, _STANDARD_FORM + digest) for each in headers.get(_STANDARD, "").split(" "))

    def _standard_key(self) -> bytes:
        if self.secret.startswith(_KEY_FORM):
            try:
                return base64.b64decode(self.secret.removeprefix(_KEY_FORM))
            except binascii.Error:
                pass
        return self.secret.encode()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())

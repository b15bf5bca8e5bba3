"""Signed webhooks: who may ask for a pull."""

import base64
import hashlib
import hmac
import time

import pytest

from tmkb.errors import ProtocolError
from tmkb.transport.hook import Hook

SECRET = "s" * 32
KEY = SECRET.encode()
BODY = b'{"ref": "refs/heads/main"}'


def hub(body=BODY, secret=SECRET):
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def standard(body=BODY, key=KEY, moment=None, before=""):
    moment = str(int(time.time()) if moment is None else moment)
    digest = hmac.new(key, f"msg_1.{moment}.".encode() + body, hashlib.sha256).digest()
    signature = f"{before}v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": "msg_1", "webhook-timestamp": moment, "webhook-signature": signature}


def rings(headers, secret=SECRET, body=BODY):
    rung = []
    try:
        Hook(secret, lambda: rung.append(1)).receive(headers, body)
    except ProtocolError as error:
        assert error.error == "bad_signature"
    return bool(rung)


def test_signatures_of_github_and_gitlab_are_accepted():
    key = b"k" * 32

    assert rings(hub())
    assert rings(standard())
    assert rings(standard(before="v1,b3RoZXI= "))
    assert rings(standard(key=key), secret="whsec_" + base64.b64encode(key).decode())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        hub(BODY + b" "),
        hub(secret="t" * 32),
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha256=é"},
        {"x-hub-signature": hub()["x-hub-signature-256"]},
        {"x-gitlab-token": SECRET},
        standard(BODY + b" "),
        standard(key=b"t" * 32),
        standard(moment=time.time() // 1 - 3600),
        standard() | {"webhook-timestamp": "soon"},
        standard() | {"webhook-id": "msg_2"},
    ],
)
def test_other_requests_are_not(headers):
    assert not rings(headers)

"""What a client keeps for us, and cannot change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol import request_state

KEY = b"k" * 32
ABOUT = {"kind": "tool", "params": {"name": "book", "arguments": {"guests": 2}}}
SEALED = request_state.seal(KEY, {"user": {"action": "accept"}}, ABOUT, until=1000)


def test_what_was_sealed_is_read_with_the_same_key():
    assert request_state.unseal(KEY, SEALED, ABOUT, now=999) == {"user": {"action": "accept"}}


def test_no_bit_can_be_changed():
    for bit in range(len(SEALED) * 8):
        changed = bytearray(SEALED.encode())
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError):
            request_state.unseal(KEY, changed.decode("latin-1"), ABOUT, now=999)


@given(st.text())
def test_what_was_not_sealed_is_refused(text):
    with pytest.raises(ProtocolError):
        request_state.unseal(KEY, text, ABOUT, now=0)
    with pytest.raises(ProtocolError):
        request_state.unseal(KEY, SEALED + text if text else "", ABOUT, now=0)


@pytest.mark.parametrize(
    ("key", "about", "now"),
    [
        (b"x" * 32, ABOUT, 0),
        (KEY, {**ABOUT, "kind": "prompt"}, 0),
        (KEY, {"kind": "tool", "params": {"name": "book", "arguments": {"guests": 3}}}, 0),
        (KEY, ABOUT, 1001),
    ],
)
def test_another_key_another_request_or_too_late(key, about, now):
    with pytest.raises(ProtocolError):
        request_state.unseal(key, SEALED, about, now)

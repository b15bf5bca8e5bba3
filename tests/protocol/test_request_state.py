"""Request states: texts that the client stores and cannot change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol import request_state

KEY = b"k" * 32
SUBJECT = {"kind": "tool", "params": {"name": "book", "arguments": {"guests": 2}}}
STATE = request_state.sign(KEY, {"user": {"action": "accept"}}, SUBJECT, expires=1000)


def test_a_signed_state_is_verified_with_the_same_key():
    in_other_order = {"params": {"arguments": {"guests": 2}, "name": "book"}, "kind": "tool"}
    state = request_state.sign(KEY, {"user": {"action": "accept"}}, SUBJECT, expires=1000)

    for subject, now in [(SUBJECT, 999), (SUBJECT, 1000), (in_other_order, 0)]:
        assert request_state.verify([KEY], state, subject, now) == {"user": {"action": "accept"}}


def test_a_state_with_one_changed_bit_is_refused():
    for bit in range(len(STATE) * 8):
        changed = bytearray(STATE.encode())
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError) as caught:
            request_state.verify([KEY], changed.decode("latin-1"), SUBJECT, now=999)
        assert caught.value.error == "request_state_invalid"


@given(st.text())
def test_an_unsigned_text_is_refused(text):
    with pytest.raises(ProtocolError):
        request_state.verify([KEY], text, SUBJECT, now=0)
    with pytest.raises(ProtocolError):
        request_state.verify([KEY], STATE + text if text else "", SUBJECT, now=0)


@pytest.mark.parametrize("state", ["\ud800", ".\ud800", f"{STATE}\ud800", f"\ud800.{STATE}"])
def test_a_lone_surrogate_is_refused(state):
    with pytest.raises(ProtocolError) as caught:
        request_state.verify([KEY], state, SUBJECT, now=0)
    assert caught.value.error == "request_state_invalid"


@pytest.mark.parametrize(
    ("key", "subject", "now"),
    [
        (b"x" * 32, SUBJECT, 0),
        (KEY, {**SUBJECT, "kind": "prompt"}, 0),
        (KEY, {"kind": "tool", "params": {"name": "book", "arguments": {"guests": 3}}}, 0),
        (KEY, SUBJECT, 1001),
    ],
)
def test_another_key_another_request_and_an_expired_state_are_refused(key, subject, now):
    with pytest.raises(ProtocolError) as caught:
        request_state.verify([key], STATE, subject, now)
    assert caught.value.error == "request_state_invalid"


def test_each_of_several_keys_verifies():
    for keys in ([KEY, b"new"], [b"new", KEY]):
        assert request_state.verify(keys, STATE, SUBJECT, 0) == {"user": {"action": "accept"}}
    with pytest.raises(ProtocolError):
        request_state.verify([b"new"], STATE, SUBJECT, 0)

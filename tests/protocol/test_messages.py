"""Messages from bytes and to bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol import messages


def refusal(function, *arguments):
    with pytest.raises(ProtocolError) as caught:
        function(*arguments)
    return caught.value.error


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff",
        b'"\xed\xa0\x80"',
        b"NaN",
        b"[Infinity]",
        b"1e400",
        b"-1e400",
        b"[" * 200_000,
        b"1" * 5000,
        b"{'a': 1}",
    ],
    ids=lambda line: repr(line[:12]),
)
def test_invalid_json_is_a_parse_error(line):
    assert refusal(messages.decode, line) == "parse_error"


def test_text_survives_a_round_trip_as_ascii():
    value = {"text": "\ud800 😀 \u2028 é \n", "number": 2**53}

    assert json.loads(messages.encode(value)) == value
    assert b"\n" not in messages.encode(value)


def test_values_outside_json_are_never_sent():
    with pytest.raises(ValueError):
        messages.encode({"x": float("nan")})


def test_keys_keep_their_order():
    assert messages.encode({"jsonrpc": "2.0", "id": 1, "result": {}}) == b'{"jsonrpc":"2.0","id":1,"result":{}}'


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_every_value_is_a_message_or_is_refused(value):
    try:
        found = messages.read(value)
    except ProtocolError as error:
        assert error.error in ("invalid_request", "invalid_jsonrpc", "params_not_object")
    else:
        assert isinstance(found, messages.Request | messages.Notification | messages.Response)


def test_a_response_may_have_any_id():
    assert messages.read({"id": [], "result": 1}).id is None
    assert messages.read({"id": 3, "error": 1}).id == 3

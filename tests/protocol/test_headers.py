"""Headers that repeat a part of the body: numbers are compared exactly, in the spellings that JSON has."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol import headers


def agrees(text, value):
    try:
        headers.expect({"mcp-param-n": text}, "Mcp-Param-N", value, decode=True)
    except ProtocolError:
        return False
    return True


def encoded(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("42.0", 42),
        ("4.2e1", 42),
        ("42", 42.0),
        ("-0", 0),
        ("0.1", 0.1),
        ("9007199254740993", 9007199254740993),
        ("9" * 4000, int("9" * 4000)),
        (encoded("7"), 7),
    ],
)
def test_the_same_number_agrees(text, value):
    assert agrees(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740992", 9007199254740993),
        ("9007199254740993", 9007199254740992.0),
        ("1e400", 10**399),
        ("1e99999999999999999999", 1),
        ("9" * 5000, 1),
    ],
)
def test_another_number_differs_however_near_it_is(text, value):
    assert not agrees(text, value)


@pytest.mark.parametrize(
    "text",
    [
        "1_0",
        "0x1",
        "+10",
        "010",
        "10.",
        ".1e2",
        "inf",
        "nan",
        "Infinity",
        "",
        "1\N{ARABIC-INDIC DIGIT ZERO}",
        encoded(" 10"),
        encoded("10\n"),
        encoded("\N{ARABIC-INDIC DIGIT ONE}0"),
        "sNaN",
    ],
)
def test_spellings_that_json_does_not_have_are_refused(text):
    assert not agrees(text, 10)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_agrees_with_its_json(value):
    assert agrees(json.dumps(value), value)

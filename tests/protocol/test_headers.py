"""Headers that repeat a part of the body: numbers are compared exactly, in the spellings that JSON has."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol import headers
from tmkb.protocol.messages import Request

MARKED = {
    "properties": {
        "text": {"type": "string", "x-mcp-header": "Text"},
        "number": {"type": "integer", "x-mcp-header": "Number"},
        "inner": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}, "free": {"type": "string"}}},
        "open": {"type": "object"},
        "free": True,
    }
}


def agrees(text, value):
    try:
        headers.expect({"mcp-param-n": text}, "Mcp-Param-N", value, encoded=True)
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


arguments = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(st.characters(exclude_categories=["Cs"])),
        "number": st.integers(),
        "inner": st.fixed_dictionaries({}, optional={"flag": st.booleans(), "free": st.text()}) | st.none(),
        "open": st.dictionaries(st.text(), st.integers()),
        "free": st.text(),
    },
)


methods = st.sampled_from(["tools/call", "prompts/get", "resources/read", "ping", "=?base64?cGluZw==?="])
names = st.sampled_from(["named", "n\N{LATIN SMALL LETTER A WITH DIAERESIS}med", "unknown"])


@given(arguments, methods, names)
def test_a_server_accepts_the_headers_of_a_client(spec, arguments, method, name):
    request = Request(1, method, {"name": name, "uri": name, "arguments": arguments})
    tools = {"tools": {"named": {"input": MARKED}, "n\N{LATIN SMALL LETTER A WITH DIAERESIS}med": {"input": {}}}}

    for revision in (each for each in spec["revisions"].values() if "version" in each["http"]):
        sent = {name.lower(): value for name, value in headers.for_request(tools, revision, request).items()}

        headers.check(tools, revision, sent, request)
        assert all(value.isascii() and value.isprintable() for value in sent.values())


@pytest.mark.parametrize("flag", [True, False])
def test_the_headers_of_a_client_repeat_its_message(spec, flag):
    inner = {"flag": flag, "free": "free"}
    request = Request(
        1, "tools/call", {"name": "named", "arguments": {"text": "\N{EURO SIGN}", "number": 7, "inner": inner}}
    )
    tools, revision = {"tools": {"named": {"input": MARKED}}}, spec["revisions"]["2026-07-28"]
    sent = headers.for_request(tools, revision, request)
    received = {name.lower(): value for name, value in sent.items()}

    assert sent == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "named",
        "Mcp-Param-Text": encoded("\N{EURO SIGN}"),
        "Mcp-Param-Number": "7",
        "Mcp-Param-Flag": "true" if flag else "false",
    }
    headers.check(tools, revision, received, request)
    headers.check(tools, revision, received | {"mcp-name": encoded("named")}, request)
    for name in sent.keys() - {"MCP-Protocol-Version"}:
        absent = {each: value for each, value in received.items() if each != name.lower()}
        for others in ({}, {name.lower(): "other"}, {name.lower(): encoded("other")}):
            refused(name, lambda wrong=absent | others: headers.check(tools, revision, wrong, request))
    refused(
        "Mcp-Method", lambda: headers.check(tools, revision, received | {"mcp-method": encoded("tools/call")}, request)
    )


def refused(name, check):
    with pytest.raises(ProtocolError) as caught:
        check()
    assert (caught.value.error, caught.value.fields) == ("header_mismatch", {"header": name})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" \tXaX\t ", "XaX"),
        (encoded("XaX"), "XaX"),
        ("=?base64??=", ""),
        ("=?base64?=", "=?base64?="),
        ("=?base64?YQ==", "=?base64?YQ=="),
        ("YQ==?=", "YQ==?="),
    ],
)
def test_a_text_agrees_as_it_is_or_as_base64(text, value):
    assert agrees(text, value)


@pytest.mark.parametrize(
    ("text", "value"), [("=?base64?!YQ==?=", "a"), (encoded("a")[:-3] + "?=", "a"), ("\x0ba", "a")]
)
def test_other_spellings_of_a_text_are_refused(text, value):
    assert not agrees(text, value)


def test_only_some_headers_may_be_encoded():
    refused("Mcp-Method", lambda: headers.expect({"mcp-method": encoded("ping")}, "Mcp-Method", "ping"))

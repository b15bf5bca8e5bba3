"""Values of the registry as JSON, and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp.registry import value

WRITABLE = sorted(value.EXPECTED)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50)
fitting = {
    "REG_SZ": texts,
    "REG_EXPAND_SZ": texts,
    "REG_MULTI_SZ": st.lists(texts.filter(bool), max_size=5),
    "REG_DWORD": st.integers(0, 2**32 - 1),
    "REG_QWORD": st.integers(0, 2**64 - 1).map(lambda number: number if number <= 2**53 else str(number)),
}
pairs = st.sampled_from(sorted(fitting)).flatmap(lambda type_: st.tuples(st.just(type_), fitting[type_]))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(pairs)
def test_data_round_trips(pair):
    type_, data = pair

    assert value.to_json(type_, value.to_bytes(type_, data)) == {"data": data}


@given(st.sampled_from(["REG_BINARY", "REG_NONE"]), st.binary(max_size=100))
def test_bytes_come_back_as_base64(type_, raw):
    converted = value.to_json(type_, raw)

    assert converted["encoding"] == "base64"
    assert value.to_bytes(type_, converted["data"]) == raw


@given(st.integers(0, 2**32 - 1), st.binary(max_size=100), st.booleans())
def test_any_bytes_of_any_type_are_json(number, raw, whole):
    converted = value.to_json(value.type_name(number), raw, whole)

    assert json.loads(json.dumps(converted, allow_nan=False).encode("utf-8")) == converted


@given(st.sampled_from(WRITABLE), anything)
def test_any_data_is_bytes_or_is_refused(type_, data):
    try:
        assert isinstance(value.to_bytes(type_, data), bytes)
    except value.Mismatch:
        assert value.EXPECTED[type_]


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        *(("REG_DWORD", wrong) for wrong in (-1, 2**32, True, 1.0, "1", None, [1])),
        *(("REG_QWORD", wrong) for wrong in (-1, 2**64, "-1", "0x10", "\u0661", "1" * 21, "", 1.5, False)),
        *(("REG_SZ", wrong) for wrong in (1, None, "a\0b", "\ud800", ["a"])),
        *(("REG_MULTI_SZ", wrong) for wrong in ("a", ["a", ""], [1], ["a\0"], None, {"a": 1})),
        *(("REG_BINARY", wrong) for wrong in ("a", "****", "YQ=", 1, None, "é")),
    ],
)
def test_data_that_a_type_cannot_hold(type_, data):
    with pytest.raises(value.Mismatch):
        value.to_bytes(type_, data)


@pytest.mark.parametrize(
    ("type_", "raw", "data"),
    [
        ("REG_SZ", b"a\0b\0\0", "ab"),
        ("REG_SZ", b"a\0\0\0\0\0", "a"),
        ("REG_SZ", b"\0\xd8a\0", "\ufffda"),
        ("REG_SZ", b"a", ""),
        ("REG_EXPAND_SZ", b"%\0a\0%\0\0\0", "%a%"),
        ("REG_MULTI_SZ", b"", []),
        ("REG_MULTI_SZ", b"\0\0", []),
        ("REG_MULTI_SZ", b"a\0\0\0\0\0b\0\0\0\0\0", ["a", "", "b"]),
        ("REG_QWORD", (2**53).to_bytes(8, "little"), 2**53),
        ("REG_QWORD", (2**53 + 1).to_bytes(8, "little"), "9007199254740993"),
    ],
)
def test_bytes_as_json(type_, raw, data):
    assert value.to_json(type_, raw) == {"data": data}


@pytest.mark.parametrize(
    ("type_", "raw"), [("REG_DWORD", b"abc"), ("REG_DWORD", b""), ("REG_QWORD", b"abcd"), ("REG_LINK", b"a\0")]
)
def test_a_number_of_unexpected_size_is_base64(type_, raw):
    assert value.to_json(type_, raw)["encoding"] == "base64"


def test_unnamed_types_are_numbers():
    assert value.type_name(7) == "REG_MULTI_SZ"
    assert value.type_name(0xFFFF0012) == "0xffff0012"

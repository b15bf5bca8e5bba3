"""YAML of other programs: each node knows its place, and errors have theirs."""

import pytest

from tmkb.schema import spans

TEXT = """\
a: &name [1, "2", true, no]  # comment
b: *name
c:
  - x: 0x10
    y: 2026-07-28
  - null
? [d]
: {}
"""


def test_values_and_places():
    node = spans.parse(TEXT)

    assert node.value() == {
        "a": [1, "2", True, False],
        "b": None,
        "c": [{"x": 16, "y": "2026-07-28"}, None],
        "": {},
    }
    assert node.get("b").text == "name" and node.get("missing") is None
    spots = {name: TEXT[part.start : part.end] for name in "abc" if (part := node.get(name))}
    assert spots == {"a": '&name [1, "2", true, no]', "b": "*name", "c": "- x: 0x10\n    y: 2026-07-28\n  - null"}
    assert (node.is_flow, node.get("a").is_flow, node.end) == (False, True, len(TEXT) - 1)


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n# a comment\n"])
def test_a_text_without_values(text):
    assert spans.parse(text) is None or spans.parse(text).text == ""


def test_numbers_of_any_size():
    digits = "9" * 5000

    assert spans.parse(digits).value() == digits


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("a: 1\n---\nb: 2\n", "a second document begins", 5),
        ("a: [1\n", "expected ',' or ']', but got '<stream end>'", 6),
        ("a: 1\n b: 2\n", "mapping values are not allowed here", 7),
        ("a: 1\nb: \x07\n", "the character U+0007 cannot stand here", 8),
    ],
)
def test_errors_have_their_place(text, reason, offset):
    with pytest.raises(spans.SpanError) as caught:
        spans.parse(text)

    assert (caught.value.reason, caught.value.offset) == (reason, offset)

"""Entries are spliced into JSON texts: whatever the text, everything else stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.clients import jsontext
from tmkb.clients.faults import TextError

KEY = ("mcpServers",)
ENTRY = {"command": "/x/tmkb", "args": ["serve"]}

gaps = st.lists(
    st.sampled_from([" ", "\n", "\t", "\r\n", "\n  ", "// note\n", "/* a, b: {} */", '// "x": 1,\r\n']), max_size=3
).map("".join)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words


@st.composite
def written(draw, value):
    """The text of a value, with comments, white space and trailing commas."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    parts = []
    for item in value.items() if isinstance(value, dict) else value:
        key = f"{json.dumps(item[0])}{draw(gaps)}:{draw(gaps)}" if isinstance(value, dict) else ""
        inner = item[1] if isinstance(value, dict) else item
        parts.append(f"{draw(gaps)}{key}{draw(written(inner))}{draw(gaps)}")
    comma = "," + draw(gaps) if parts and draw(st.booleans()) else ""
    body = ",".join(parts) + comma or draw(gaps)
    return "{" + body + "}" if isinstance(value, dict) else "[" + body + "]"


values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)
servers = st.dictionaries(words.filter(lambda word: word != "tmkb"), values, max_size=3)


@st.composite
def documents(draw):
    """A map, perhaps with servers, and its text."""
    value = draw(st.dictionaries(words.filter(lambda word: word != KEY[0]), values, max_size=3))
    if draw(st.booleans()):
        value = dict(draw(st.permutations([*value.items(), (KEY[0], draw(servers))])))
    return value, draw(gaps) + draw(written(value)) + draw(gaps)


def value_of(text):
    parsed = jsontext.parse(text)
    return parsed.value(parsed.root)


@given(documents())
def test_an_entry_is_added_and_taken_out_and_all_else_is_equal(document):
    value, text = document
    assert value_of(text) == value

    added = jsontext.with_entry(text, KEY, "tmkb", ENTRY)
    assert value_of(added) == value | {KEY[0]: {**value.get(KEY[0], {}), "tmkb": ENTRY}}
    assert jsontext.rest(added, KEY, "tmkb") == jsontext.rest(text, KEY, "tmkb")

    removed = jsontext.without_entry(added, KEY, "tmkb")
    assert value_of(removed) == value | {KEY[0]: value.get(KEY[0], {})}
    if value.get(KEY[0]):
        assert removed == text


@given(documents(), servers.filter(bool))
def test_an_entry_among_others_is_replaced_and_taken_out(document, before):
    value, _ = document
    value = value | {KEY[0]: {**before, "tmkb": {"command": "old", "env": {"A": "1"}}, "zzz": 1}}
    text = json.dumps(value, indent=2)

    replaced = jsontext.with_entry(text, KEY, "tmkb", ENTRY)
    assert value_of(replaced) == value | {KEY[0]: value[KEY[0]] | {"tmkb": ENTRY}}
    removed = jsontext.without_entry(replaced, KEY, "tmkb")
    assert value_of(removed) == value | {KEY[0]: {**before, "zzz": 1}}


@given(documents(), st.data())
def test_a_damaged_text_is_an_error_with_a_place_or_reads_as_something_else(document, data):
    _, text = document
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.sampled_from(["", "{", "}", '"', "/*", ",", "x", "\\", "\x00"])) + text[at + 1 :]
    try:
        jsontext.with_entry(damaged, KEY, "tmkb", ENTRY)
    except TextError as error:
        assert 0 <= error.offset <= len(damaged)


@given(st.dictionaries(words, values, max_size=4), st.sampled_from([None, 1, 2, 4, "\t"]))
def test_strict_json_stays_strict(value, indent):
    text = json.dumps(value | {KEY[0]: {}}, indent=indent)

    assert json.loads(jsontext.with_entry(text, KEY, "tmkb", ENTRY)) == value | {KEY[0]: {"tmkb": ENTRY}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', '{"a":1,"mcpServers":{"tmkb":{"command":"/x/tmkb","args":["serve"]}}}'),
        ('{"a": 1}', '{"a": 1, "mcpServers": {"tmkb": {"command": "/x/tmkb", "args": ["serve"]}}}'),
        (
            '{\n\t"mcpServers": {\n\t\t"x": 1 // one\n\t}\n}\n',
            '{\n\t"mcpServers": {\n\t\t"x": 1, // one\n\t\t"tmkb": {\n\t\t\t"command": "/x/tmkb",\n\t\t\t"args": ["serve"]\n'
            "\t\t}\n\t}\n}\n",
        ),
        (
            '{\r\n    "mcpServers": {}\r\n}',
            '{\r\n    "mcpServers": {\r\n        "tmkb": {\r\n            "command": "/x/tmkb",\r\n'
            '            "args": ["serve"]\r\n        }\r\n    }\r\n}',
        ),
    ],
)
def test_the_style_of_the_text_is_kept(text, expected):
    assert jsontext.with_entry(text, KEY, "tmkb", ENTRY) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "a comma or } is missing"),
        ("{\n  a: 1}", 2, 3, "'a' needs quotes"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ('{"a": "x\n"}', 1, 7, "does not end in its line"),
        ('{"a": 1', 1, 8, "a comma or } is missing"),
        ('{"a": ', 1, 7, "the rest is missing"),
        ('{"a": [1, 2}', 1, 12, "a comma or ] is missing"),
        ("{} {}", 1, 4, "something follows"),
        ("{ /* ", 1, 3, "this comment does not end"),
        ('{"a": 01}', 1, 7, "'01' needs quotes"),
        ('{"a": 1,, "b": 2}', 1, 9, "a key in quotes"),
    ],
)
def test_an_error_has_a_place_and_a_reason(text, line, column, part):
    with pytest.raises(TextError) as raised:
        jsontext.entries(text, KEY)
    before = text[: raised.value.offset]

    assert (before.count("\n") + 1, len(before) - before.rfind("\n")) == (line, column)
    assert part in raised.value.fields["reason"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[]", "client_not_a_map"),
        ('{"mcpServers": []}', "client_not_a_map"),
        ('{"mcpServers": null}', "client_not_a_map"),
        ('{"mcpServers": {}, "mcpServers": {}}', "client_twice"),
        ('{"mcpServers": {"tmkb": 1, "tmkb": 2}}', "client_twice"),
        ("[" * 200 + "]" * 200, "client_too_deep"),
    ],
)
def test_what_cannot_have_an_entry_is_an_error(text, rule):
    with pytest.raises(TextError) as raised:
        jsontext.with_entry(text, KEY, "tmkb", ENTRY)

    assert raised.value.rule == rule


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"mcpServers": {"tmkb": {}\n // "old": {}\n ,"b": 1}}', '{"mcpServers": {\n // "old": {}\n "b": 1}}'),
        ('{"mcpServers": {"a": 1,\n "tmkb": {}\n // b\n ,"b": 1}}', '{"mcpServers": {"a": 1,\n // b\n "b": 1}}'),
        ('{"mcpServers": {"a": 1,\n "tmkb": {}, // c\n}}', '{"mcpServers": {"a": 1,\n // c\n}}'),
        ('{"mcpServers": {"a": 1,\n "tmkb": {} // c\n}}', '{"mcpServers": {"a": 1\n // c\n}}'),
        (
            '{"mcpServers": {"a": 1, // a\n "tmkb": {}, // c\n "b": 2}}',
            '{"mcpServers": {"a": 1, // a\n // c\n "b": 2}}',
        ),
        ('{"mcpServers": {"a": 1, "tmkb": {}, /* b */ "b": 2}}', '{"mcpServers": {"a": 1, /* b */ "b": 2}}'),
    ],
)
def test_comments_stay_where_they_are(text, expected):
    assert jsontext.without_entry(text, KEY, "tmkb") == expected


def test_a_number_of_thousands_of_digits_stays():
    text = '{"mcpServers": {"x": {"n": %s}}}' % ("1" * 5000)

    assert jsontext.without_entry(jsontext.with_entry(text, KEY, "tmkb", ENTRY), KEY, "tmkb") == text
    assert jsontext.entries(text, KEY)["x"][0] == {"n": "1" * 5000}


def test_equal_keys_elsewhere_stay():
    text = '{"a": 1, "a": 2, "mcpServers": {"x": {"env": {"B": "1", "B": "2"}}}}'
    added = jsontext.with_entry(text, KEY, "tmkb", ENTRY)

    assert added.startswith(text[:-2])
    assert jsontext.without_entry(added, KEY, "tmkb") == text

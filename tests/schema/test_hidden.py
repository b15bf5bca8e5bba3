"""Hidden characters are found, named and escaped."""

import json
import unicodedata

import pytest

from tmkb.knowledge import library, pattern
from tmkb.schema import hidden, problems


def test_every_control_and_format_character_is_hidden_and_no_visible_one_is():
    missed, wrong = [], []
    for code in range(0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        is_hidden = hidden.find(character) == character
        if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in "\n\t" and not is_hidden:
            missed.append(hex(code))
        if category[0] in "PSZ" and category not in ("Zl", "Zp") and is_hidden:
            wrong.append(hex(code))

    assert (missed, wrong) == ([], [])


@pytest.mark.parametrize("text", ["", "a\tb\n", "Ünïcödé → ✓ “quoted” 漢字 עברית العربية", "⚠️", "x = 'a'"])
def test_visible_characters_are_not_hidden(text):
    assert hidden.find(text) == ""
    assert hidden.escape(text) == text


def test_a_character_is_named():
    assert hidden.describe("\u202e") == "U+202E RIGHT-TO-LEFT OVERRIDE"
    assert hidden.describe("\x1b") == "U+001B (control character)"
    assert hidden.describe("\U000e0041") == "U+E0041 TAG LATIN CAPITAL LETTER A"
    assert hidden.describe("\ud800") == "U+D800 (half of a surrogate pair)"


def test_escaping_does_not_change_json():
    value = {"a": "".join(map(chr, range(0x20, 0x3000))) + "\U000e0041\ud800"}
    text = hidden.escape(json.dumps(value, ensure_ascii=False))

    assert json.loads(text) == value
    assert hidden.find(text) == ""


def test_a_line_stays_one_line():
    assert hidden.line("a\n\x1bb\tc\U000e0041") == "a\\n\\u001bb\tc\\udb40\\udc41"


def test_places_are_counted_from_one():
    assert list(hidden.places("a\r\nb\x1bc\u202e\n\u200bd")) == [(2, 2, "\x1b"), (3, 1, "\u200b")]


HIDDEN = ["\u202e", "\x1b", "\x00", "\U000e0041", "\u200b", "\r", "\ud800", "\x9b"]


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001", "acme_auth_024")


def faults(folder):
    """The problems of the first pattern, which is left out while the other one is served."""
    found = library.load([str(folder)])
    assert [p["id"] for p in found.patterns] == ["ACME-AUTH-024"]
    return [problems.line(p).removeprefix(f"{folder}/acme_auth_001/") for p in found.problems]


@pytest.mark.parametrize("character", HIDDEN)
def test_an_escaped_character_is_reported(folder, character):
    path = folder / "acme_auth_001" / "pattern.yaml"
    lines = path.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  threat:"))
    lines[at] = f'  threat: "It shows \\U{ord(character):08x} here."'
    path.write_text("\n".join(lines) + "\n")
    (line,) = faults(folder)

    if character != "\ud800":  # PyYAML without libyaml reads it, libyaml refuses it
        assert line.startswith(f"pattern.yaml:{at + 1}:11: Hidden or control character {hidden.describe(character)}. ")


@pytest.mark.parametrize("character", ["\u202e", "\U000e0041", "\u200b"])
def test_a_literal_character_is_reported_at_its_column(folder, character):
    path = folder / "acme_auth_001" / "pattern.yaml"
    text = path.read_text()
    path.write_text(text.replace("  check: Does", f"  check: Do{character}es"))
    number = text[: text.index("  check:")].count("\n") + 1

    assert faults(folder)[0].startswith(
        f"pattern.yaml:{number}:12: Hidden or control character {hidden.describe(character)}. "
    )


@pytest.mark.parametrize("character", ["\u202e", "\x1b", "\x00", "\U000e0041", "\x0c"])
@pytest.mark.parametrize("file", ["secure.py", "vulnerable.py", "proof.py"])
def test_a_character_in_code_is_reported(folder, file, character):
    path = folder / "acme_auth_001" / file
    lines = path.read_text().splitlines()
    lines[2:2] = [f"#{character}"]
    path.write_text("\n".join(lines) + "\n")

    assert faults(folder)[0].startswith(f"{file}:3:2: Hidden or control character {hidden.describe(character)}. ")


def test_an_escape_in_the_docstring_of_an_exploit_is_reported(folder):
    path = folder / "acme_auth_001" / "proof.py"
    text = path.read_text()
    at = text.index('"""', text.index("def exploit_")) + 3
    path.write_text(text[:at] + "\\x1b[2J" + text[at:])

    number = text[:at].count("\n") + 1
    assert faults(folder)[0].startswith(
        f"proof.py:{number}:1: Hidden or control character U+001B (control character). "
    )


def test_a_pattern_text_is_checked_for_hidden_characters(folder):
    text = (folder / "acme_auth_001" / "pattern.yaml").read_text()

    assert [p.rule for p in pattern.check_text(text.replace("Does", "Do\u200bes", 1), "x.yaml", [])] == [
        "hidden_character"
    ]

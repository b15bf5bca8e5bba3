"""Layouts in a terminal and elsewhere."""

import pytest

from tmkb.cli import layout

PAGE = layout.text(("Threat", "bold")) + layout.indented(layout.text("one two three four five six"), ("- ", "dim"))


@pytest.fixture
def terminal(monkeypatch):
    """Let stdout be a terminal of 24 columns."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_terminal_gets_styles_and_wrapped_lines(terminal):
    bold, dim, end = "\x1b[1m", "\x1b[2m", "\x1b[0m"

    assert layout.rendered(PAGE) == f"{bold}Threat{end}\n{dim}- {end}one two three four\n  five six"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_styles_can_be_switched_off(terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    assert layout.rendered(PAGE) == "Threat\n- one two three four\n  five six"


def test_styles_can_be_forced(monkeypatch):
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert layout.rendered(PAGE) == "\x1b[1mThreat\x1b[0m\n\x1b[2m- \x1b[0mone two three four five six"


def test_a_file_gets_plain_lines():
    assert layout.rendered(PAGE) == "Threat\n- one two three four five six"


def test_a_style_continues_in_the_next_row(terminal):
    shown = layout.rendered(layout.text("one two three ", ("four five six seven", "red")))

    assert shown == "one two three \x1b[31mfour five\x1b[0m\n\x1b[31msix seven\x1b[0m"


def test_a_long_word_stays_whole(terminal):
    assert layout.rendered(layout.text("see https://example.org/a-long-address")).split("\n") == [
        "see",
        "https://example.org/a-long-address",
    ]


def test_a_quoted_command_stays_whole(terminal):
    shown = layout.rendered(layout.text("Run one of these: `tmkb list --json`."))

    assert shown.split("\n") == ["Run one of these:", "`tmkb list --json`."]


def test_prose_is_not_wider_than_people_can_follow(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")

    assert max(map(len, layout.rendered(layout.text("word " * 60)).split("\n"))) <= 100


def test_columns_of_wide_and_combining_characters(terminal):
    assert layout.rendered(layout.text("日本語 日本語 日本語 日本語")) == "日本語 日本語 日本語\n日本語"
    shown = layout.rendered(layout.table(["a", "b"], [["日本", "x"], ["e\u0301", "y"]]))
    assert shown.split("\n")[1:] == ["日本  x", "e\u0301     y"]


def test_only_the_last_column_is_wrapped(terminal):
    shown = layout.rendered(layout.table(["id", "name"], [["ACME-1", "one two three four five"], ["ACME-2", ""]]))

    assert shown.split("\n")[1:] == ["ACME-1  one two three four", "        five", "ACME-2"]


@pytest.mark.parametrize(
    ("language", "source", "shown"),
    [
        ("python", "if x:  # '", "\x1b[35mif\x1b[0m x:  \x1b[2m# '\x1b[0m"),
        ("python", "a = '#'", "a = \x1b[32m'#'\x1b[0m"),
        ("python", "'''a\nb'''", "\x1b[32m'''a\x1b[0m\n\x1b[32mb'''\x1b[0m"),
        ("diff", "-a\n+b\n c", "\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c"),
        ("yaml", "a: {b: 1}", "\x1b[36ma\x1b[0m: {\x1b[36mb\x1b[0m: 1}"),
        ("javascript", "const a = `if`; // if", "\x1b[35mconst\x1b[0m a = \x1b[32m`if`\x1b[0m; \x1b[2m// if\x1b[0m"),
        ("ruby", "find(params[:if]) if x", "find(params[:if]) \x1b[35mif\x1b[0m x"),
        ("sql", "SELECT selected", "\x1b[35mSELECT\x1b[0m selected"),
        ("json", '{"a": "b"}', '{\x1b[36m"a"\x1b[0m: \x1b[32m"b"\x1b[0m}'),
        ("text", "if", "if"),
    ],
)
def test_code_is_highlighted(terminal, language, source, shown):
    assert layout.rendered(layout.code(source, language)) == shown


def test_code_is_not_wrapped(terminal):
    source = "x = " + "1 + " * 30 + "1"

    assert layout.rendered(layout.code(source, "python")) == source

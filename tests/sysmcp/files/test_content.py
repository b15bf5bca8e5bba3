"""Lines that hold some words, and files that change while they are read."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp import faults
from tmkb.sysmcp.files import beneath, content


@pytest.fixture
def write(tmp_path):
    def write(data):
        (tmp_path / "file").write_bytes(data)
        return tmp_path / "file"

    return write


def text(path, most=1 << 20):
    with beneath.closing_fd(os.open(path, os.O_RDONLY)) as fd:
        return content.read_text(fd, os.fstat(fd).st_size, most)


def test_a_text_is_read_whole(write):
    assert text(write("é€\n".encode() * 100_000), 1 << 20) == "é€\n" * 100_000
    assert text(write(b"a\xffb")) == "a\ufffdb"
    assert text(write(b"")) == ""


def test_an_early_zero_byte_marks_a_binary_file(write):
    with pytest.raises(content.Binary):
        text(write(b"a" * 1023 + b"\0"))
    assert text(write(b"a" * 1024 + b"\0")) == "a" * 1024 + "\0"


def test_large_files_are_not_read(write):
    path = write(b"a" * 1000)

    assert text(path, 1000)
    with pytest.raises(faults.TooLarge):
        text(path, 999)
    with beneath.closing_fd(os.open(path, os.O_RDONLY)) as fd, pytest.raises(faults.TooLarge):
        content.read_text(fd, 10, 999)  # it was smaller when it was looked at


@pytest.mark.parametrize(
    ("content_text", "wanted", "expected_lines"),
    [
        ("one\ntwo\r\nthree two\n", "two", [(2, "two"), (3, "three two")]),
        ("two two\n\ntwo", "two", [(1, "two two"), (3, "two")]),
        ("TWO", "two", []),
        ("a\nb\na\nb", "a\nb", [(1, "a"), (3, "a")]),
        ("a\na\na\na\na\n", "a", [(1, "a"), (2, "a"), (3, "a")]),
    ],
)
def test_the_lines_of_words(content_text, wanted, expected_lines):
    assert content.lines(content_text, wanted, str, 3, 50) == expected_lines


def test_a_long_line_is_cut_around_the_words():
    ((number, line),) = content.lines("\n" + "<" * 500 + "needle" + ">" * 500, "needle", str, 3, 20)

    assert (number, line) == (2, "<<<<<<<needle>>>>>>>")
    assert content.lines("needle" + ">" * 500, "needle", str, 3, 10) == [(1, "needle>>>>")]
    assert content.lines("<" * 500 + "needle", "needle", str, 3, 10) == [(1, "<<<<needle")]


def test_letters_that_grow_when_folded():
    assert content.lines("ß\nßß\nSTRASSE straße", "strasse", str.casefold, 3, 50) == [(3, "STRASSE straße")]


@given(st.text(alphabet="aAß\n", max_size=40), st.text(alphabet="aAs", min_size=1, max_size=3))
def test_all_matching_lines_are_returned(content_text, wanted):
    expected = [
        (number, line)
        for number, line in enumerate(content_text.split("\n"), 1)
        if wanted.casefold() in line.casefold()
    ]

    assert content.lines(content_text, wanted, str.casefold, 100, 100) == expected


def test_a_file_that_grows_while_it_is_read(write):
    path = write(b"a" * 200_000)
    with beneath.closing_fd(os.open(path, os.O_RDONLY)) as fd:
        blocks = content.stable_blocks(fd, 1 << 20)
        next(blocks)
        with open(path, "ab") as file:
            file.write(b"b")
        with pytest.raises(faults.Changed):
            list(blocks)


def test_a_file_that_never_ends(write):
    path = write(b"a" * 200_000)
    with beneath.closing_fd(os.open(path, os.O_RDONLY)) as fd, pytest.raises(faults.TooLarge):
        for _ in content.stable_blocks(fd, 1 << 20):
            with open(path, "ab") as file:
                file.write(b"b" * 200_000)


def test_a_file_that_is_cut_while_it_is_read(write):
    path = write(b"a" * 200_000)
    with beneath.closing_fd(os.open(path, os.O_RDONLY)) as fd:
        blocks = content.stable_blocks(fd, 1 << 20)
        next(blocks)
        os.truncate(path, 10)
        with pytest.raises(faults.Changed):
            list(blocks)

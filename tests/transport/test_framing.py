"""Splitting a stream into lines."""

from hypothesis import given
from hypothesis import strategies as st

from tmkb.transport.framing import Lines


def lines(*chunks, limit=10):
    cutter = Lines(limit)
    complete = [line for chunk in chunks for line in cutter.feed(chunk)]
    return complete + cutter.finish()


def test_lines_end_with_lf_or_cr_lf():
    assert lines(b"a\nb\r\nc") == [b"a", b"b", b"c"]


def test_blank_lines_are_skipped():
    assert lines(b"\n\r\n \t\n", b"a\n\n") == [b"a"]


def test_a_byte_order_mark_is_skipped_at_the_start_only():
    assert lines(b"\xef", b"\xbb\xbfa\n\xef\xbb\xbfb\n") == [b"a", b"\xef\xbb\xbfb"]


def test_the_limit_does_not_count_the_end_of_the_line():
    assert lines(b"0123456789\n", b"0123456789\r\n", b"0123456789") == [b"0123456789"] * 3
    assert lines(b"\xef\xbb\xbf0123456789\r\n") == [b"0123456789"]


def test_a_line_beyond_the_limit_is_reported_once_and_the_next_is_read():
    assert lines(b"01234567890\nb\n") == [None, b"b"]
    assert lines(*[b"0123456789"] * 1000, b"\nb\n") == [None, b"b"]
    assert lines(b"01234567890") == [None]


def test_a_line_beyond_the_limit_is_reported_before_its_end():
    cutter = Lines(10)

    assert cutter.feed(b"x" * 20) == [None]
    assert len(cutter.incomplete) == 0
    assert cutter.feed(b"x" * 20) == []


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b" ", b"\xef\xbb\xbf", b"0123456789", b"\x00"])), st.data()
)
def test_chunk_boundaries_do_not_matter(parts, data):
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert lines(*chunks) == lines(stream)


@given(st.binary(max_size=200))
def test_no_line_is_longer_than_the_limit(stream):
    assert all(line is None or 0 < len(line) <= 10 for line in lines(stream))

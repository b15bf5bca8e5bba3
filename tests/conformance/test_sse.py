"""Streams of server-sent events, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.conformance import sse

STREAM = (
    b"\xef\xbb\xbfdata: {}\n\n"  # a byte order mark
    b"id: 1\ndata:\n\n"  # an event without data
    b": a comment\nevent: message\ndata:1\ndata: 2\nretry: 5\n\n"
    b"event: ping\ndata: no message\n\n"
    b"data:  \xc3\xa9\xe2\x80\xa8x\x0b\n\n"  # line separators of Unicode end no line
    b"data\n\n"
    b"data: incomplete\n"
)
MESSAGES = [b"{}", b"1\n2", b" \xc3\xa9\xe2\x80\xa8x\x0b"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@given(data=st.data())
def test_a_stream_is_read_wherever_it_is_cut(end, data):
    stream = STREAM.replace(b"\n", end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert [*sse.messages(chunks)] == MESSAGES
    assert [*sse.messages(stream[index : index + 1] for index in range(len(stream)))] == MESSAGES


def test_a_message_is_there_as_soon_as_its_last_line_ends():
    events = sse.Events()

    assert events.feed(b"data: 1\r\r") == [b"1"]
    assert events.feed(b"\ndata: 2\r\n\r") == [b"2"]

"""Events of Windows as XML become entries."""

import timeit
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp.eventlog import event

NAMESPACE = "http://schemas.microsoft.com/win/2004/08/events/event"


def xml(provider='Name="disk"', event_id="<EventID>7</EventID>", level="<Level>2</Level>", rest="", data=""):
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<Event xmlns="{NAMESPACE}"><System><Provider {provider}></Provider>'
        f"{event_id}<Version>0</Version>{level}{rest}</System>{data}</Event>"
    )


def test_an_entry_of_an_event():
    rest = '<TimeCreated SystemTime="2024-02-10T10:13:20.1234567Z"/><EventRecordID>99</EventRecordID><Channel>Setup</Channel>'
    data = '<EventData><Data Name="a">1</Data><Data>two</Data><Binary>00FF</Binary><Data Name="e"></Data></EventData>'

    entry = event.read(xml(rest=rest, data=data), "asked")

    assert entry.value(4096) == {
        "id": 99,
        "logName": "Setup",
        "level": "ERROR",
        "source": "disk",
        "eventId": 7,
        "message": "a=1; two; Binary=00FF; e=",
        "timestamp": "2024-02-10T10:13:20.123456Z",
        "messageRendered": False,
    }


@pytest.mark.parametrize(
    ("number", "level"),
    [
        *[("0", "INFORMATION"), ("1", "CRITICAL"), ("2", "ERROR"), ("3", "WARNING"), ("4", "INFORMATION")],
        *[("5", "VERBOSE"), ("6", "INFORMATION"), ("255", "INFORMATION"), ("", "INFORMATION"), ("x", "INFORMATION")],
    ],
)
def test_levels(number, level):
    assert (
        event.kind(xml(level=f"<Level>{number}</Level>"))[0]
        == event.read(xml(level=f"<Level>{number}</Level>"), "").level
        == level
    )


def test_a_name_of_many_parts_takes_no_longer_than_its_length():
    def seconds(parts):
        name = "System><Provider" + ' Name="x"' * parts
        hostile = xml().replace("<System>", f"<{name}<x></x><System>")
        return min(timeit.repeat(lambda: event.kind(hostile), number=1, repeat=5))

    assert seconds(4000) < 40 * seconds(400)


def test_the_message_is_preferred_to_the_values():
    rendered = "<RenderingInfo Culture='en'><Message>All is well.</Message><Level>Error</Level></RenderingInfo>"
    data = "<EventData><Data>1</Data></EventData>"

    assert event.read(xml(data=data), "", "Said now.").message == "Said now."
    assert event.read(xml(data=data + rendered), "").value(99)["message"] == "All is well."
    assert "messageRendered" not in event.read(xml(data=data + rendered), "").value(99)
    assert event.read(xml(data=data), "").message == "1"


def test_user_data_is_part_of_the_message():
    data = (
        "<UserData><Job xmlns='urn:x'><Name>backup</Name><Steps><Step>1</Step><Step>2</Step></Steps></Job></UserData>"
    )

    assert event.read(xml(data=data), "").message == "Name=backup; Step=1; Step=2"


def test_control_characters_are_replaced():
    assert event.read(xml(data="<EventData><Data>a\x00b\x1b[0m</Data></EventData>"), "").message == "a\ufffdb\ufffd[0m"


def test_invalid_xml_is_read_as_far_as_possible():
    entry = event.read(xml(data="<EventData><Data Name='x'>bell &amp; whistle</1></EventData>"), "Log")

    assert (entry.log, entry.source, entry.level, entry.event_id) == ("Log", "disk", "ERROR", 7)
    assert "bell & whistle" in entry.message


@pytest.mark.parametrize("text", ["", "junk", "<Event/>", "<Event><System/", "<Event><EventData/></Event>"])
def test_an_invalid_event_raises(text):
    with pytest.raises(ValueError):
        event.kind(text)
    with pytest.raises(ValueError):
        event.read(text, "")


def test_system_may_be_empty():
    assert event.kind("<Event><System/></Event>") == ("INFORMATION", "", 0)


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)


@given(
    source=texts.filter(str.strip),
    before=st.sampled_from(["", "Guid='{1}' ", 'EventSourceName="old" ']),
    qualifiers=st.sampled_from(["", ' Qualifiers="16384"']),
    number=st.integers(0, 65535),
    level=st.integers(0, 255),
    value=texts,
)
def test_the_expression_and_the_parser_agree(source, before, qualifiers, number, level, value):
    """A comment before the provider makes the expression fail, so the parser runs."""
    data = f"<EventData><Data Name={quoteattr(source)}>{escape(value)}</Data></EventData>"
    event_xml = xml(
        before + f"Name={quoteattr(source)}",
        f"<EventID{qualifiers}>{number}</EventID>",
        f"<Level>{level}</Level>",
        data=data,
    )
    long = event_xml.replace("<System>", "<System><!-- -->")

    assert event.kind(event_xml) == event.kind(long)
    assert event.kind(event_xml)[1:] == (source, number)
    assert event.read(event_xml, "") == event.read(long, "")

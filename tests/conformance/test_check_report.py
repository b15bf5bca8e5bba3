"""The reports of `tmkb check`: what a server says is escaped, and the badge counts."""

import json
from xml.etree import ElementTree

import pytest

from tests.conformance.test_report import Page
from tmkb.conformance import check_report, checks
from tmkb.conformance.check import Outcome
from tmkb.conformance.session import FAIL, NOT_APPLICABLE, NOT_COVERED, PASS

CHECKS = checks.read()
REVISION = "2025-11-25"
LINKS = {name: speech["specification"] for name, speech in CHECKS.revisions.items()}
MUST = [each for each in CHECKS.requirements if each.clause(REVISION) and each.keyword(REVISION) == "MUST"]
HOSTILE = "<script>\x1b[2J\u202e&\x00"
SHOWN = r"<script>\u001b[2J\u202e&\u0000"


def outcome(status, number=0, **more):
    return Outcome(MUST[number], REVISION, "stdio", status, **more)


FAILED = outcome(FAIL, reasons=[HOSTILE], sent=HOSTILE, received=HOSTILE)
UNCOVERED = outcome(NOT_COVERED, 1, reasons=[HOSTILE])


def test_the_page_escapes_what_a_server_says():
    text = check_report.page([FAILED, UNCOVERED], LINKS, "a page")
    page = Page(text)

    assert not {*HOSTILE} & {*text} - {*SHOWN}
    assert page.text.count(SHOWN) == 3
    assert [attributes["title"] for tag, attributes in page.elements if tag == "td" and attributes] == [SHOWN, SHOWN]
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img"}


def test_text_escapes_what_a_server_says():
    text = check_report.text([FAILED], LINKS)

    assert text.count(SHOWN) == 3
    assert not {*HOSTILE} & {*text} - {*SHOWN}


def test_junit_escapes_what_a_server_says():
    (failure,) = ElementTree.fromstring(check_report.junit([FAILED], LINKS, ["MUST"])).iter("failure")

    assert failure.text.count(SHOWN) == 3


@pytest.mark.parametrize(
    ("statuses", "words", "colour"),
    [
        ([PASS, PASS, NOT_COVERED], "2 of 2", "#1a7f37"),
        ([PASS, FAIL, NOT_APPLICABLE], "1 of 2", "#b3261e"),
        ([FAIL], "0 of 1", "#b3261e"),
        ([NOT_COVERED], "0 of 0", "#59636e"),
        ([], "0 of 0", "#59636e"),
    ],
)
def test_the_badge_counts_what_was_checked(statuses, words, colour):
    root = ElementTree.fromstring(check_report.badge([outcome(status, n) for n, status in enumerate(statuses)]))

    assert root.get("aria-label") == f"MCP MUST: {words}"
    assert [each.get("fill") for each in root if each.tag.endswith("rect")] == ["#444", colour]


def test_json_has_every_outcome():
    value = json.loads(json.dumps(check_report.value([FAILED, outcome(PASS, 1)], LINKS)))

    assert [(each["status"], each.get("received")) for each in value] == [(FAIL, HOSTILE), (PASS, None)]

"""Reports of checks: JUnit XML, annotations of GitHub, and the HTML page."""

import html.parser
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tmkb.conformance import report
from tmkb.conformance.report import Case, Suite

FAILED = Suite(
    "a.yaml (2025-11-25)",
    "A title",
    "dir/a,b.yaml",
    [
        Case("turn 1", "passed", seconds=0.5),
        Case("turn 2: about", "failed", ["[0].x: expected 1, got 2", "more"], 0.25, 12, '{"id":1}', [{"x": 1, "y": 0}], [{"x": 2, "y": 0}]),
        Case("turn 3", "skipped", ["not there"]),
    ],
    remarks=["translated"],
    notes=["stderr: 100 % <bad>\x1b[31m"],
)  # fmt: skip
PASSED = Suite("b.yaml (2025-11-25)", "Another", "b.yaml", [Case("turn 1", "passed")])
# Attributes of the schema that Jenkins publishes (junit-10.xsd), and those of them that must be there.
ATTRIBUTES = {
    "testsuites": ({"name"}, {"name", "time", "tests", "failures", "disabled", "errors", "skipped"}),
    "testsuite": (
        {"name", "tests"},
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
    ),
    "testcase": ({"name", "classname"}, {"name", "classname", "time", "group", "assertions", "status"}),
    "failure": (set(), {"type", "message"}),
    "skipped": (set(), {"type", "message"}),
    "system-out": (set(), set()),
}  # fmt: skip
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase", "system-out"},
    "testcase": {"failure", "skipped"},
}


def check(element):
    """Check the names, the nesting and the attributes of JUnit XML."""
    required, allowed = ATTRIBUTES[element.tag]
    assert required <= set(element.attrib) <= allowed
    if element.tag in ("testsuites", "testsuite"):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests")) == len(cases)
        assert int(element.get("failures")) == len([each for each in cases if each.find("failure") is not None])
        assert int(element.get("skipped")) == len([each for each in cases if each.find("skipped") is not None])
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time"))
    for child in element:
        assert child.tag in CHILDREN.get(element.tag, ())
        check(child)


def test_junit():
    root = ElementTree.fromstring(report.junit("tmkb replay", [FAILED, PASSED]))

    check(root)
    (failure,) = root.iter("failure")
    assert failure.get("message") == "[0].x: expected 1, got 2"
    assert failure.text == "[0].x: expected 1, got 2\nmore\nstderr: 100 % <bad>\\u001b[31m"
    assert next(root.iter("skipped")).get("message") == "not there"
    assert next(root.iter("testsuite")).get("file") == "dir/a,b.yaml"


@given(st.text(max_size=20), st.text(max_size=20))
def test_junit_of_any_text(name, sentence):
    check(
        ElementTree.fromstring(report.junit("x", [Suite(name, name, name, [Case(name, "failed", [sentence])], [name])]))
    )


def test_annotations_of_github_name_file_and_line():
    (line,) = report.github([FAILED, PASSED])

    assert line == (
        "::error file=dir/a%2Cb.yaml,line=12,title=A title%2C turn 2%3A about::"
        "[0].x: expected 1, got 2%0Amore%0Astderr: 100 %25 <bad>\\u001b[31m"
    )


@given(st.text(max_size=20))
def test_an_annotation_is_one_line(text):
    (line,) = report.github([Suite(text, text, text, [Case(text, "failed", [text])])])

    assert len(line.splitlines()) == 1 and line.startswith("::error file=")


class Page(html.parser.HTMLParser):
    """Collects the elements of a page and checks that they are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_both_sides_of_a_failure():
    page = Page(report.page("Replay", "1 of 2", [PASSED, FAILED]))

    assert [attributes.get("class") for tag, attributes in page.elements if tag == "details"] == ["failed", "passed"]
    assert [tag for tag, _ in page.elements].count("mark") == 2
    assert '"x": 1' in page.text and '"x": 2' in page.text and '{"id":1}' in page.text
    assert "stderr: 100 % <bad>\\u001b[31m" in page.text


def test_the_page_needs_nothing_else():
    text = report.page("Replay", "1 of 2", [PASSED, FAILED])
    tags = {tag for tag, _ in Page(text).elements}

    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert "url(" not in text and "@import" not in text and "http" not in text
    assert "prefers-color-scheme: dark" in text


@given(st.text(max_size=20))
def test_a_page_of_any_text(text):
    case = Case(text, "failed", [text], sent=text, expected=[{text: text}], actual=[text])
    page = Page(report.page(text, text, [Suite(text, text, text, [case], [text], [text])]))

    assert not {tag for tag, _ in page.elements} & {"script", "img", "a"}


def test_large_messages_are_cut():
    case = Case("turn 1", "failed", ["x"], expected=[[*range(5000)]], actual=["y" * 50_000])
    text = report.page("t", "s", [Suite("n", "t", "f", [case])])

    assert "(3002 more lines)" in text and len(text) < 100_000

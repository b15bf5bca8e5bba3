"""Reports of checks for people and programs: JUnit XML, annotations of GitHub, and one HTML page.

A report is a list of suites, such as transcripts, with cases, such as turns.
"""

from __future__ import annotations

import difflib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

from tmkb.schema import hidden
from tmkb.schema.values import JsonValue

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINES = 2000  # of a value on the page
_COLUMNS = 4000  # characters of a line on the page


@dataclass(frozen=True, slots=True)
class Case:
    """One check.

    Attributes:
        name: one line, unique in its suite.
        sentences: what is wrong, or why it was skipped.
        line: where it is in the file of its suite; 0 if nowhere.
        sent, expected, actual: what a page shows of a failure.
    """

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    sentences: Sequence[str] = ()
    seconds: float = 0.0
    line: int = 0
    sent: str = ""
    expected: Sequence[JsonValue] = ()
    actual: Sequence[JsonValue] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Checks that belong together. ``remarks``: sentences for any outcome; ``notes``: hints for a failure."""

    name: str
    title: str
    file: str
    cases: Sequence[Case]
    remarks: Sequence[str] = ()
    notes: Sequence[str] = field(default=())

    @property
    def failed(self) -> bool:
        """Whether a case has failed."""
        return any(case.outcome == "failed" for case in self.cases)

    @property
    def seconds(self) -> float:
        """How long its cases took."""
        return sum(case.seconds for case in self.cases)

    def count(self, outcome: str) -> int:
        """Return the number of cases with this outcome."""
        return sum(case.outcome == outcome for case in self.cases)


def text(suite: Suite) -> Iterator[str]:
    """Yield the remarks and the failed cases of a suite as lines; nothing for a suite without either."""
    if suite.failed or suite.remarks:
        yield f"{suite.name}: {suite.title}"
    yield from (f"  {remark}" for remark in suite.remarks)
    for case in suite.cases:
        if case.outcome == "failed":
            yield f"  {case.name}"
            yield from (f"    {sentence}" for sentence in case.sentences)
    yield from (f"  {note}" for note in suite.notes if suite.failed)


def junit(name: str, suites: Sequence[Suite]) -> bytes:
    """Return the suites as JUnit XML, in the form that Jenkins, GitLab and pytest have in common."""
    root = ElementTree.Element("testsuites", {"name": name, **_totals(suites)})
    for suite in suites:
        attributes = {"name": _xml(suite.name), **_totals([suite]), "file": _xml(suite.file)}
        element = ElementTree.SubElement(root, "testsuite", attributes)
        for case in suite.cases:
            attributes = {"classname": _xml(suite.name), "name": _xml(case.name), "time": f"{case.seconds:.3f}"}
            inner = ElementTree.SubElement(element, "testcase", attributes)
            if case.outcome == "failed":
                message = {"message": _xml(case.sentences[0] if case.sentences else ""), "type": "difference"}
                failure = ElementTree.SubElement(inner, "failure", message)
                failure.text = _xml("\n".join([*case.sentences, *suite.notes]))
            elif case.outcome == "skipped":
                ElementTree.SubElement(inner, "skipped", {"message": _xml(" ".join(case.sentences))})
        if suite.remarks:
            ElementTree.SubElement(element, "system-out").text = _xml("\n".join(suite.remarks))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def github(suites: Sequence[Suite]) -> Iterator[str]:
    """Yield an annotation for each failed case, as a workflow command of GitHub Actions."""
    for suite in suites:
        for case in suite.cases:
            if case.outcome == "failed":
                where = {"file": suite.file, "line": str(case.line or 1), "title": f"{suite.title}, {case.name}"}
                yield annotation("error", where, "\n".join([*case.sentences, *suite.notes]))


def annotation(level: str, properties: Mapping[str, str], message: str) -> str:
    """Return a workflow command of GitHub Actions. ``level``: error, warning or notice."""
    shown = ",".join(f"{name}={_command(value, ':,')}" for name, value in properties.items())
    return f"::{level} {shown}::{_command(message)}"


def page(title: str, summary: str, suites: Sequence[Suite]) -> str:
    """Return one HTML page: the summary, then the suites, first those with failures."""
    sections = "".join(map(_section, sorted(suites, key=lambda suite: not suite.failed)))
    return document(title, f"<p>{escaped(summary)}</p>\n{sections}")


def document(title: str, body: str) -> str:
    """Return an HTML page that needs nothing else: no scripts, no fonts, no images. ``body``: HTML."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escaped(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escaped(title)}</h1>\n{body}</body>\n</html>\n"
    )


def escaped(value: str) -> str:
    """Return a text as HTML; hidden characters are escaped, too."""
    return html.escape(hidden.escape(value))


def _totals(suites: Sequence[Suite]) -> dict[str, str]:
    return {
        "tests": str(sum(len(suite.cases) for suite in suites)),
        "failures": str(sum(suite.count("failed") for suite in suites)),
        "errors": "0",
        "skipped": str(sum(suite.count("skipped") for suite in suites)),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }


def _xml(value: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", hidden.escape(value))


def _command(value: str, more: str = "") -> str:
    """Escape a value in a workflow command, as the runner decodes it. ``more``: other characters to escape."""
    escaped = hidden.escape(value).replace("%", "%25")
    for character in f"\r\n{more}":
        escaped = escaped.replace(character, f"%{ord(character):02X}")
    return escaped


def _section(suite: Suite) -> str:
    opened, mark = (" open", "failed") if suite.failed else ("", "passed")
    lines = "".join(f"<p>{escaped(line)}</p>\n" for line in [*suite.remarks, *(suite.notes if suite.failed else ())])
    cases = "".join(map(_case, suite.cases))
    head = f"<strong>{escaped(suite.title)}</strong> <code>{escaped(suite.name)}</code>"
    counted = f"{suite.count('passed')} passed, {suite.count('failed')} failed, {suite.count('skipped')} skipped"
    return (
        f'<details class="{mark}"{opened}>\n<summary><span class="mark">{mark}</span> {head}'
        f" <small>{counted}, {suite.seconds:.2f} s</small></summary>\n{lines}<ol>\n{cases}</ol>\n</details>\n"
    )


def _case(case: Case) -> str:
    sentences = "".join(f"<li>{escaped(sentence)}</li>" for sentence in case.sentences)
    listed = f"<ul>{sentences}</ul>" if sentences else ""
    shown = ""
    if case.outcome == "failed" and (case.sent or case.expected or case.actual):
        expected, actual = _marked(_lines(case.expected), _lines(case.actual))
        sent = f"<h3>Sent</h3><pre>{escaped(case.sent[:_COLUMNS])}</pre>" if case.sent else ""
        shown = (
            f'{sent}<div class="sides"><div><h3>Expected</h3><pre>{expected}</pre></div>'
            f"<div><h3>Actual</h3><pre>{actual}</pre></div></div>"
        )
    mark = f'<span class="mark">{case.outcome}</span>'
    return f'<li class="{case.outcome}">{mark} {escaped(case.name)}{listed}{shown}</li>\n'


def _lines(messages: Sequence[JsonValue]) -> list[str]:
    """Return messages as lines of indented JSON, at most `_LINES`; members are sorted, as their order means nothing."""
    try:
        texts = [json.dumps(each, indent=2, ensure_ascii=False, sort_keys=True) for each in messages]
        lines = [line for text in texts for line in text.split("\n")]
    except RecursionError:
        return ["(nested too deeply to show)"]
    more = len(lines) - _LINES
    cut = [line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]}…" for line in lines[:_LINES]]
    return [*cut, f"({more} more lines)"] if more > 0 else cut or ["(nothing)"]


def _marked(expected: list[str], actual: list[str]) -> tuple[str, str]:
    """Return both sides as HTML, in which the lines that differ are marked."""
    sides: tuple[list[str], list[str]] = [], []
    matcher = difflib.SequenceMatcher(None, expected, actual, autojunk=True)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        for side, part in zip(sides, (expected[start:end], actual[other_start:other_end]), strict=True):
            side += [escaped(line) if kind == "equal" else f"<mark>{escaped(line)}</mark>" for line in part]
    return "\n".join(sides[0]), "\n".join(sides[1])


_STYLE = """
:root { --back: #fff; --text: #1b1f24; --quiet: #59636e; --line: #d1d9e0; --bad: #b3261e; --good: #1a7f37;
  --mark: #ffe2df; --code: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --quiet: #9198a1; --line: #3d444d;
  --bad: #ff7b72; --good: #3fb950; --mark: #5c1f1b; --code: #161b22; } }
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 80rem; padding: 0 1rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .5rem 1rem; }
summary { cursor: pointer; }
small { color: var(--quiet); }
ol { padding-left: 1.5rem; }
h3 { font-size: .875rem; margin: .5rem 0 0; color: var(--quiet); }
pre { background: var(--code); margin: .25rem 0; padding: .5rem; overflow: auto; font-size: .8125rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
mark { background: var(--mark); color: inherit; }
.sides { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem; }
@media (max-width: 48rem) { .sides { grid-template-columns: minmax(0, 1fr); } }
.mark { font-weight: 600; }
.passed > .mark, .passed > summary > .mark { color: var(--good); }
.failed > .mark, .failed > summary > .mark { color: var(--bad); }
.skipped > .mark { color: var(--quiet); }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: left; }
td.pass { color: var(--good); }
td.fail { color: var(--bad); font-weight: 600; }
td.none { color: var(--quiet); }
section { border-left: 3px solid var(--bad); margin: 1.25rem 0; padding-left: 1rem; }
"""

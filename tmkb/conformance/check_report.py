"""Report the outcomes of a check: text, JSON, JUnit XML, one HTML page, and a badge as SVG."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tmkb.conformance import report
from tmkb.conformance.check import Outcome
from tmkb.conformance.checks import KEYWORDS
from tmkb.conformance.report import Case, Suite
from tmkb.conformance.session import ACCEPTED, FAIL, NOT_APPLICABLE, NOT_COVERED, PASS
from tmkb.schema import hidden
from tmkb.schema.template import cut

Links = Mapping[str, str]  # revision → the address of its specification
_MARKS = {PASS: "pass", FAIL: "FAIL", ACCEPTED: "(fail)", NOT_APPLICABLE: "-", NOT_COVERED: "?"}
_WIDTH = 80
_CELL = 8
_SHOWN = 400  # characters of what was sent or received


def _wrapper(first: str, further: str) -> textwrap.TextWrapper:
    return textwrap.TextWrapper(_WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False)


def link(outcome: Outcome, links: Links) -> str:
    """Return the address of the clause that demands the requirement."""
    clause = outcome.requirement.clause(outcome.revision) or ""
    return clause if "://" in clause else f"{links[outcome.revision].rstrip('/')}/{clause}"


def failures(outcomes: Sequence[Outcome], keyword: str) -> list[Outcome]:
    """Return the failures of requirements with a keyword."""
    return [each for each in outcomes if each.status == FAIL and each.keyword == keyword]


def counted(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Return keyword → status → number of outcomes."""
    return {
        keyword: dict(Counter(each.status for each in outcomes if each.keyword == keyword))
        for keyword in KEYWORDS
        if any(each.keyword == keyword for each in outcomes)
    }


def text(outcomes: Sequence[Outcome], links: Links) -> str:
    """Return the report for a terminal of 80 columns: failures, the matrix and a summary."""
    return "\n".join(map(hidden.escape, [*_failures(outcomes, links), *_matrix(outcomes), *_summary(outcomes)]))


def _failures(outcomes: Sequence[Outcome], links: Links) -> Iterator[str]:
    for keyword in KEYWORDS:
        for shown, where in _grouped(outcomes, keyword):
            yield f"FAIL {keyword} {shown.requirement.id}"
            yield from _indented("", shown.requirement.says)
            yield from _indented("under  ", where)
            yield from _indented("", "; ".join(shown.reasons))
            yield from _indented("sent   ", cut(shown.sent, _SHOWN))
            yield from _indented("came   ", cut(shown.received, _SHOWN))
            yield f"  clause {link(shown, links)}"
            yield ""


def _grouped(outcomes: Sequence[Outcome], keyword: str) -> Iterator[tuple[Outcome, str]]:
    """Yield a failure of each requirement that fails, the easiest one to read, and where it fails."""
    failed = sorted(failures(outcomes, keyword), key=lambda each: each.requirement.id)
    for _, group in itertools.groupby(failed, lambda each: each.requirement.id):
        same = [*group]
        shown = min(reversed(same), key=lambda each: len(each.sent))
        yield shown, ", ".join(f"{each.revision} {each.transport}" for each in same)


def _indented(first: str, content: str) -> Iterator[str]:
    if content:
        blank = " " * (2 + len(first))
        for number, line in enumerate(content.split("\n")):
            start = blank if number else f"  {first}"
            yield from _wrapper(start, blank).wrap(line) or [start]


def _matrix(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for transport in dict.fromkeys(each.transport for each in outcomes):
        here = [each for each in outcomes if each.transport == transport]
        revisions = [*dict.fromkeys(each.revision for each in here)]
        ids = [*dict.fromkeys(each.requirement.id for each in here)]
        table = {(each.requirement.id, each.revision): each for each in here}
        for keyword in KEYWORDS:
            rows = [id_ for id_ in ids if _strongest(here, id_) == keyword and not _is_empty(here, id_)]
            if rows:
                heads = "".join(f"{revision[:7]:>{_CELL}}" for revision in revisions)  # year and month
                yield f"{f'{keyword} over {transport}':{_WIDTH - _CELL * len(revisions)}}" + heads
            for id_ in rows:
                cells = [_MARKS[table[id_, revision].status] for revision in revisions]
                yield f"  {id_:{_WIDTH - _CELL * len(revisions) - 2}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)
            if rows:
                yield ""


def _strongest(outcomes: Sequence[Outcome], id_: str) -> str:
    keywords = {each.keyword for each in outcomes if each.requirement.id == id_ and each.status != NOT_APPLICABLE}
    return next((keyword for keyword in KEYWORDS if keyword in keywords), KEYWORDS[-1])


def _is_empty(outcomes: Sequence[Outcome], id_: str) -> bool:
    return all(each.status == NOT_APPLICABLE for each in outcomes if each.requirement.id == id_)


def _summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for keyword, numbers in counted(outcomes).items():
        failed = len({each.requirement.id for each in failures(outcomes, keyword)})
        remarks = {FAIL: f" ({failed} requirements)"} if 1 < failed < numbers.get(FAIL, 0) else {}
        parts = [f"{numbers[status]} {status}{remarks.get(status, '')}" for status in _MARKS if numbers.get(status)]
        yield f"{keyword:6} {', '.join(parts)}"
    accepted = ", (fail): accepted" if any(each.status == ACCEPTED for each in outcomes) else ""
    yield f"-: not applicable, ?: not covered{accepted}"


def value(outcomes: Sequence[Outcome], links: Links) -> list[dict[str, object]]:
    """Return the outcomes as JSON values."""
    return [
        {
            "requirement": each.requirement.id,
            "says": each.requirement.says,
            "keyword": each.keyword,
            "revision": each.revision,
            "transport": each.transport,
            "status": each.status,
            **({"clause": link(each, links)} if each.requirement.clause(each.revision) else {}),
            **({"reasons": each.reasons} if each.reasons else {}),
            **({"sent": each.sent, "received": each.received} if each.status == FAIL else {}),
        }
        for each in outcomes
    ]


def junit(outcomes: Sequence[Outcome], links: Links, fail_on: Sequence[str]) -> bytes:
    """Return JUnit XML, a suite for each keyword. A failure with a keyword that is not in ``fail_on`` is skipped."""
    suites = []
    for keyword in KEYWORDS:
        cases = [_case(each, links, fail_on) for each in outcomes if each.keyword == keyword and _is_demanded(each)]
        suites += [Suite(keyword, keyword, "", cases)] if cases else []
    return report.junit("tmkb check", suites)


def _is_demanded(outcome: Outcome) -> bool:
    return outcome.requirement.clause(outcome.revision) is not None


def _case(outcome: Outcome, links: Links, fail_on: Sequence[str]) -> Case:
    name = f"{outcome.requirement.id} ({outcome.revision}, {outcome.transport})"
    if outcome.status == PASS:
        return Case(name, "passed")
    if outcome.status != FAIL:
        return Case(name, "skipped", outcome.reasons)
    seen = [f"sent: {outcome.sent}", f"came: {outcome.received}", link(outcome, links)]
    return Case(name, "failed" if outcome.keyword in fail_on else "skipped", [*outcome.reasons, *seen])


def github(outcomes: Sequence[Outcome], links: Links, fail_on: Sequence[str]) -> Iterator[str]:
    """Yield an annotation of GitHub Actions for each failed requirement: an error if ``fail_on`` has its keyword."""
    for keyword in KEYWORDS:
        for each, where in _grouped(outcomes, keyword):
            title = f"{keyword} {each.requirement.id}"
            reasons = [each.requirement.says, f"under {where}", *each.reasons]
            seen = [f"sent: {cut(each.sent, _SHOWN)}", f"came: {cut(each.received, _SHOWN)}"]
            message = "\n".join([*reasons, *seen, link(each, links)])
            yield report.annotation("error" if keyword in fail_on else "notice", {"title": title}, message)


def page(outcomes: Sequence[Outcome], links: Links, title: str) -> str:
    """Return one HTML page that needs nothing else: the summary, the failures and the matrix."""
    parts = [f"<p>{report.escaped(line)}</p>\n" for line in [*_summary(outcomes)][:-1]]
    parts += [_failed(*each, links) for keyword in KEYWORDS for each in _grouped(outcomes, keyword)]
    for transport in dict.fromkeys(each.transport for each in outcomes):
        parts += _table([each for each in outcomes if each.transport == transport], transport, links)
    return report.document(title, "".join(parts))


def _failed(outcome: Outcome, where: str, links: Links) -> str:
    e = report.escaped
    return (
        f"<section><h3>{e(outcome.keyword)} {e(outcome.requirement.id)} <small>{e(where)}</small></h3>\n"
        f'<p>{e(outcome.requirement.says)} <a href="{e(link(outcome, links))}">clause</a></p>\n'
        f"<p>{e('; '.join(outcome.reasons))}</p>\n<h3>Sent</h3><pre>{e(outcome.sent)}</pre>\n"
        f"<h3>Received</h3><pre>{e(outcome.received)}</pre></section>\n"
    )


def _table(here: Sequence[Outcome], transport: str, links: Links) -> Iterator[str]:
    e = report.escaped
    revisions = [*dict.fromkeys(each.revision for each in here)]
    table = {(each.requirement.id, each.revision): each for each in here}
    for keyword in KEYWORDS:
        ids = [*dict.fromkeys(each.requirement.id for each in here)]
        rows = [id_ for id_ in ids if _strongest(here, id_) == keyword and not _is_empty(here, id_)]
        if rows:
            heads = "".join(f"<th>{e(revision)}</th>" for revision in revisions)
            yield f"<h2>{e(keyword)} over {e(transport)}</h2>\n<table>\n<tr><th>Requirement</th>{heads}</tr>\n"
        for id_ in rows:
            known = next(each for each in here if each.requirement.id == id_ and each.requirement.clause(each.revision))
            name = f'<a href="{e(link(known, links))}" title="{e(known.requirement.says)}">{e(id_)}</a>'
            yield f"<tr><td>{name}</td>{''.join(_cell(table[id_, revision]) for revision in revisions)}</tr>\n"
        if rows:
            yield "</table>\n"


def _cell(outcome: Outcome) -> str:
    style = {PASS: "pass", FAIL: "fail"}.get(outcome.status, "none")
    title = report.escaped("; ".join(outcome.reasons))
    return f'<td class="{style}" title="{title}">{_MARKS[outcome.status]}</td>'


def badge(outcomes: Sequence[Outcome]) -> str:
    """Return an SVG image with the share of MUST requirements that are met; it is gray if none was checked."""
    numbers = counted(outcomes).get(KEYWORDS[0], {})
    passed, failed = numbers.get(PASS, 0), numbers.get(FAIL, 0) + numbers.get(ACCEPTED, 0)
    label, words = "MCP MUST", f"{passed} of {passed + failed}"
    colour = "#b3261e" if failed else "#1a7f37" if passed else "#59636e"
    left, right = 7 * len(label) + 12, 7 * len(words) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {words}"><title>{label}: {words}</title>'
        f'<rect width="{left}" height="20" fill="#444"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,Geneva,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{label}</text><text x="{left + right / 2:g}" y="14">{words}</text></g></svg>\n'
    )

"""Make the comments of ``tmkb review``, by the linear models or by a language model."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.knowledge import library
from tmkb.knowledge.retrieval import index
from tmkb.review import suppression
from tmkb.review.changes import Section
from tmkb.review.judge import Comment, Judge
from tmkb.schema import template

if TYPE_CHECKING:
    from tmkb.review.prompt import Current, Prompt


class Reviewed(NamedTuple):
    """What was found.

    Attributes:
        comments: those that the code does not ignore.
        sections: how many were reviewed.
        ignored: how many it ignores.
        failures: sentences about what was not reviewed or cannot be used.
        faults: sentences about comments in the code that ignore nothing.
    """

    comments: list[Comment]
    sections: int
    ignored: int
    failures: Sequence[str]
    faults: Sequence[str]


def by_model(provider: Any, sections: Sequence[Section]) -> Reviewed:
    """Review ``sections`` with the linear models. ``provider``: of the patterns."""
    judge = _judge(provider)
    found = ((section, judge.comment(section)) for section in sections)
    return _reviewed(provider, sections, [(section, comment) for section, comment in found if comment])


def by_reviewer(
    provider: Any,
    sections: Sequence[Section],
    current: Current,
    ask: Callable[[str], str],
    show: Callable[[str], None],
) -> Reviewed:
    """Review ``sections`` with a language model. The first error ends the review; comments before it stay.

    Args:
        provider: of the patterns.
        sections: what is reviewed.
        current: returns the lines of a new file.
        ask: returns the answer to a prompt; can raise ReviewerError.
        show: shows how far the review is.
    """
    from tmkb.review import reviewer

    judge, ids = _judge(provider), provider.operation("ids", {})()
    written = [*prompts(provider, sections, current)]
    total = sum(len(each.sections) for each in written)
    read: list[Section] = []
    found: list[tuple[Section, Comment]] = []
    failures: list[str] = []
    for number, each in enumerate(written, 1):
        if len(written) > 1:
            show(f"Reviewing {template.plural(total, 'section')}: prompt {number} of {len(written)}")
        try:
            findings, faults = reviewer.read(ask(each.text), each, ids)
        except reviewer.ReviewerError as error:
            left = template.plural(total - len(read), "section")
            failures.append(f"{error} {left} of {total} got no review.")
            break
        read += each.sections.values()
        failures += faults
        found += [(finding.section, judge.comment_as(finding)) for finding in findings]
    return _reviewed(provider, read, found, failures)


def prompts(provider: Any, sections: Sequence[Section], current: Current) -> Iterator[Prompt]:
    """Return what a language model reads about ``sections``. ``current``: returns the lines of a new file."""
    from tmkb.review import prompt

    patterns = map(provider.operation("get", {}), provider.operation("ids", {})())
    described = {each["id"]: prompt.Described(each["name"], each["threat"], each["check"]) for each in patterns}
    candidates = functools.partial(_judge(provider).candidates, most=prompt.CANDIDATES)
    return prompt.write(sections, current, candidates, described, provider.settings.get("review_rules", ""))


def _judge(provider: Any) -> Judge:
    model = index.path(library.resolve(provider.settings.get("folders")), index.REVIEW_FILE)
    return Judge(provider.index, model, lambda *asked: json.loads(provider.advise_on(*asked)))


def _reviewed(
    provider: Any, sections: Sequence[Section], found: Sequence[tuple[Section, Comment]], failures: Sequence[str] = ()
) -> Reviewed:
    """Return comments on ``sections`` and failures, without the comments that the code ignores."""
    ids = provider.operation("ids", {})()
    ignored = {section: suppression.in_code(section) for section in sections}
    faults = [
        f"{each.path}:{each.line}: `tmkb: ignore` has no effect: {'; '.join(wrong)}."
        for each in (each for listed in ignored.values() for each in listed)
        if (wrong := suppression.faults(each, ids))
    ]
    comments = [comment for section, comment in found if not suppression.is_ignored(comment, ignored[section])]
    return Reviewed(comments, len(sections), len(found) - len(comments), failures, faults)

"""Write what a language model is asked about changed sections: rules, patterns, and the code as data."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tmkb.review.changes import Section
from tmkb.review.listing import File
from tmkb.schema import template

LARGEST = 60_000  # code points of code in a prompt
CANDIDATES = 6  # patterns for a section
_AROUND = (400, 100, 40, 12)  # lines around a section, as many as fit
_AROUND_PARTS = 40  # the same if the change does not fit into one prompt
_TEXT = os.path.join(os.path.dirname(__file__), "prompt.md")


Current = Callable[[Sequence[Section]], Sequence[str] | None]


class Described(NamedTuple):
    """What a prompt says about a pattern."""

    name: str
    threat: str
    check: str


class Prompt(NamedTuple):
    """A prompt. ``sections``: number → section that a comment can name."""

    text: str
    sections: Mapping[int, Section]


def write(
    sections: Sequence[Section],
    current: Current,
    candidates: Callable[[Section], Sequence[str]],
    patterns: Mapping[str, Described],
    rules: str,
) -> Iterator[Prompt]:
    """Yield the prompts for a change: one if it fits, so that the reader sees what belongs together.

    Args:
        sections: of the change.
        current: returns the lines of the new file with these sections, if they are known.
        candidates: returns the ids of patterns that fit a section.
        patterns: id → pattern, of all.
        rules: when to comment.
    """
    with open(_TEXT, encoding="utf-8") as file:
        text = file.read()
    for code, shown in _batches(_files(sections, current)):
        numbered = {number: section for number, section in shown.items() if section.can_be_named}
        if not numbered:
            continue
        marker = f"code-{secrets.token_hex(8)}"
        near = {id_ for section in numbered.values() for id_ in candidates(section)}
        fields = {
            "rules": rules.strip(),
            "candidates": "\n".join(f"{_row(id_, patterns[id_])} Check: {patterns[id_].check}" for id_ in sorted(near)),
            "others": "\n".join(_row(id_, each) for id_, each in patterns.items() if id_ not in near),
            "marker": marker,
            "code": code,
        }
        yield Prompt(template.fill(text, fields), numbered)


def _row(id_: str, pattern: Described) -> str:
    return f"- {id_}: {pattern.name}. {pattern.threat}"


def _files(sections: Sequence[Section], current: Current) -> Iterator[File]:
    by_path: dict[str, dict[int, Section]] = {}
    for number, section in enumerate(sections, 1):
        by_path.setdefault(section.path, {})[number] = section
    for path, numbered in by_path.items():
        yield File(path, numbered, current([*numbered.values()]))


def _batches(files: Iterator[File]) -> Iterator[tuple[str, dict[int, Section]]]:
    """Yield the code of each prompt, and the sections in it."""
    every = [*files]
    for around in _AROUND:
        texts = [file.text(around) for file in every]
        if sum(map(len, texts)) <= LARGEST:
            if texts:
                yield "\n".join(texts), {number: each for file in every for number, each in file.sections.items()}
            return
    code: list[str] = []
    sections: dict[int, Section] = {}
    for part in (part for file in every for part in _parts(file)):
        text = part.text(_AROUND_PARTS)
        if code and sum(map(len, code)) + len(text) > LARGEST:
            yield "\n".join(code), sections
            code, sections = [], {}
        code.append(text)
        sections |= part.sections
    yield "\n".join(code), sections


def _parts(file: File) -> Iterator[File]:
    """Yield ``file`` in parts whose sections are no longer than half a prompt, unless a section is."""
    chosen: dict[int, Section] = {}
    length = 0
    for number, section in file.sections.items():
        if chosen and length + len(section.text) > LARGEST // 2:
            yield file._replace(sections=chosen)
            chosen, length = {}, 0
        chosen[number] = section
        length += len(section.text)
    yield file._replace(sections=chosen)

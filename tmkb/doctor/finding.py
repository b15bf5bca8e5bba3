"""Findings, and the file with their levels and sentences, ``tmkb/doctor/findings.yaml``.

The file is beside the code and not among the packaged schemas, because damaged schemas are one of the findings.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tmkb.doctor import program
from tmkb.errors import DocumentError
from tmkb.schema import hidden, reader, template
from tmkb.schema.values import JsonObject

ERROR, WARNING, FINE = LEVELS = ("error", "warning", "fine")
_STOPS = re.compile(r"""(?<=[\w'"`)])([.?!])\.(?= |$)""")  # of a sentence in a sentence
_NAME = "tmkb.doctor.findings"  # a part of the program, as its modules are
_MOST = 400  # characters of a field from a file or a process


class Place(NamedTuple):
    """A place in a file. ``line`` and ``column`` count from 1; 0: the whole file."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([self.file, *(str(number) for number in (self.line, self.column) if number)])


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found.

    Attributes:
        id: a key of ``findings.yaml``.
        subject: what was checked: ``tmkb``, ``server``, ``http``, or the name of a client.
        level: "error", "warning" or "fine".
        cause: one sentence.
        remedy: one sentence; empty if nothing needs to be done.
        place: the file that it is about.
        details: lines of others that show it, such as the end of stderr.
    """

    id: str
    subject: str
    level: str
    cause: str
    remedy: str
    place: Place = NOWHERE
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """What findings are about.

    Attributes:
        subject: see `Finding`.
        place: see `Finding`.
        install: the sentence that says how to write the entry anew.
    """

    subject: str
    place: Place = NOWHERE
    install: str = "Install tmkb again."

    def found(self, id_: str, details: Sequence[str] = (), **fields: object) -> Finding:
        """Return the finding ``id_`` about this topic, with ``fields`` in its sentences."""
        entry = catalogue()[id_]
        texts = {name: _short(value) for name, value in fields.items()} | {"install": self.install}
        cause, remedy = (template.fill(str(entry.get(key, "")), texts) for key in ("cause", "remedy"))
        cause, remedy = (_STOPS.sub(r"\1", text).replace("`tmkb ", f"`{program.name()} ") for text in (cause, remedy))
        lines = tuple(map(hidden.line, details))
        return Finding(id_, self.subject, str(entry["level"]), cause, remedy, self.place, lines)

    def at(self, file: str, line: int = 0, column: int = 0) -> Topic:
        """Return this topic at another place."""
        return dataclasses.replace(self, place=Place(file, line, column))


def worst(findings: Iterable[Finding]) -> str:
    """Return the highest level of ``findings``: "error", "warning" or "fine"."""
    return min((each.level for each in findings), key=LEVELS.index, default=FINE)


def without_repetition(findings: Iterable[Finding]) -> list[Finding]:
    """Return ``findings`` without those that differ from an earlier one in their details only."""
    return [*{dataclasses.replace(each, details=()): each for each in reversed([*findings])}.values()][::-1]


@cache
def catalogue() -> dict[str, JsonObject]:
    """Return every finding by id: ``level``, ``cause``, ``remedy``. Raises ImportError if the file is damaged."""
    listed = _document()["findings"]
    assert isinstance(listed, dict)
    return {id_: entry for id_, entry in listed.items() if isinstance(entry, dict)}


def symptom(lines: Iterable[str], among: str = "stderr") -> tuple[str, str]:
    """Return the finding that explains the last line with a known cause, and the line; empty strings if there is none.

    ``among``: where the lines are from, "stderr" or "logs".
    """
    for line in reversed([*lines]):
        for text, id_ in _symptoms(among):
            if text.search(line):
                return id_, line
    return "", ""


@cache
def _symptoms(among: str) -> list[tuple[re.Pattern[str], str]]:
    listed = _document()[among]
    assert isinstance(listed, dict)
    return [(re.compile(text), str(id_)) for text, id_ in listed.items()]


@cache
def _document() -> JsonObject:
    try:
        document = reader.read(os.path.join(os.path.dirname(__file__), "findings.yaml")).mapping()
    except DocumentError as error:
        raise ImportError(error, name=_NAME) from error
    if not {"findings", "stderr", "logs"} <= {*document}:
        raise ImportError("the end of the file is missing", name=_NAME)
    return document


def _short(value: object) -> str:
    text = hidden.line(str(value)).replace("\t", "\\t")
    return text if len(text) <= _MOST else text[:_MOST] + "…"

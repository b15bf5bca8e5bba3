"""Problems as sentences: ``file:line:column: sentence``, or ``--option: sentence``.

The sentences stand in ``schemas/problems.yaml``.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from functools import cache

from tmkb.errors import Problem
from tmkb.schema import hidden, paths, reader, template
from tmkb.schema.values import JsonObject


@cache
def _file() -> JsonObject:
    return reader.read(os.path.join(paths.SCHEMAS, "problems.yaml")).mapping()


@cache
def rules() -> dict[str, JsonObject]:
    """Rule id → its sentences: ``message``, then ``nearest`` where a right spelling was found, else ``otherwise``."""
    found = _file()["rules"]
    assert isinstance(found, dict)
    return {name: rule for name, rule in found.items() if isinstance(rule, dict)}


def _type_words(names: Iterable[str]) -> str:
    """Return the words for JSON types, as ``a map or a list``."""
    words = _file()["types"]
    assert isinstance(words, dict)
    return " or ".join(str(words[name]) for name in names)


def sentence(problem: Problem) -> str:
    """What is wrong and what to do about it, in one or two sentences."""
    said = template.fill(str(rules()[problem.rule]["message"]), _cut(problem.fields))
    return " ".join(text for text in (said, remedy(problem)) if text)


def remedy(problem: Problem) -> str | None:
    """What to do about it, in a sentence; None where what is wrong says so itself."""
    rule = rules()[problem.rule]
    said = rule.get("nearest") if problem.fields.get("nearest") else rule.get("otherwise")
    return template.fill(str(said), _cut(problem.fields)) if said else None


def line(problem: Problem) -> str:
    """Format the problem as compilers do, so that editors can jump to the place; an argument has none.

    Hidden characters and line feeds are escaped.
    """
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    return hidden.line(f"{place}: {sentence(problem)}")


def _cut(fields: dict[str, object]) -> dict[str, object]:
    """Shorten what an author wrote, which may be of any length, and put words for types; all else stays whole."""
    return {
        key: template.cut(value)
        if isinstance(value, str) and key in _WRITTEN
        else _type_words(map(str, value))
        if isinstance(value, list) and key in _TYPES
        else value
        for key, value in fields.items()
    }


_WRITTEN = ("found", "key", "name", "text", "value")
_TYPES = ("found_types", "types")  # lists of JSON types

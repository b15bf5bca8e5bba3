"""Format problems as ``file:line:column: sentence`` or ``--option: sentence``.

The sentences are in ``schemas/problems.yaml``.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from functools import cache

from tmkb.errors import Problem
from tmkb.schema import hidden, paths, reader, template
from tmkb.schema.reader import Document
from tmkb.schema.values import JsonObject


@cache
def _file() -> Document:
    return reader.read(os.path.join(paths.SCHEMAS, "problems.yaml"))


@cache
def rules() -> dict[str, JsonObject]:
    """Return the templates of each rule: ``message``, and as its remedy ``nearest`` or ``otherwise``."""
    return {name: rule for name, rule in _file().section("rules").items() if isinstance(rule, dict)}


def _type_words(names: Iterable[str]) -> str:
    """Return the words for JSON types, for example ``a map or a list``."""
    words = _file().section("types")
    return " or ".join(str(words[name]) for name in names)


def sentence(problem: Problem) -> str:
    """Return what is wrong and how to fix it, in one or two sentences."""
    message = template.fill(str(rules()[problem.rule]["message"]), _shown(problem.fields))
    return " ".join(text for text in (message, remedy(problem)) if text)


def remedy(problem: Problem) -> str | None:
    """Return how to fix the problem; None if the message is enough."""
    rule = rules()[problem.rule]
    text = rule.get("nearest") if problem.fields.get("nearest") else rule.get("otherwise")
    return template.fill(str(text), _shown(problem.fields)) if text else None


def line(problem: Problem) -> str:
    """Return the problem in the format of compilers, so that editors can jump to it.

    Hidden characters and line feeds are escaped.
    """
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    return hidden.line(f"{place}: {sentence(problem)}")


def _shown(fields: dict[str, object]) -> dict[str, object]:
    """Return ``fields`` with long values from files cut, and words in place of JSON types."""
    return {
        key: template.cut(value)
        if isinstance(value, str) and key in _FROM_FILES
        else _type_words(map(str, value))
        if isinstance(value, list) and key in _TYPES
        else value
        for key, value in fields.items()
    }


_FROM_FILES = ("actual", "key", "name", "text", "value")
_TYPES = ("actual_types", "types")  # lists of JSON types

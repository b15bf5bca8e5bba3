"""Problems as sentences: ``file:line:column: sentence``. The sentences stand in ``schemas/problems.yaml``."""

from __future__ import annotations

import os.path
from functools import cache

from tmkb import document, hidden, paths, template
from tmkb.errors import Problem
from tmkb.values import JsonObject


@cache
def rules() -> dict[str, JsonObject]:
    """Rule id → its sentences: ``message``, then ``nearest`` where a right spelling was found, else ``otherwise``."""
    found = document.read(os.path.join(paths.SCHEMAS, "problems.yaml")).mapping()["rules"]
    assert isinstance(found, dict)
    return {name: rule for name, rule in found.items() if isinstance(rule, dict)}


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
    """The problem as compilers say it, so that editors can jump to the place; hidden characters are escaped."""
    return hidden.escape(f"{problem.file}:{problem.line}:{problem.column}: {sentence(problem)}")


def _cut(fields: dict[str, object]) -> dict[str, object]:
    """What an author wrote may be of any length; paths, lists and reasons have to be whole."""
    return {k: template.cut(v) if isinstance(v, str) and k in _WRITTEN else v for k, v in fields.items()}


_WRITTEN = ("found", "key", "name", "text", "value")

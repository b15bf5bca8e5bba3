"""Answers that are written in a file, held against what the file says of them: its arguments, and its output schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import jsonschema
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from tmkb.errors import Problem
from tmkb.schema.metaschema import near, nearest
from tmkb.schema.reader import Document, Path

_HOLE = re.compile(r"\{([A-Za-z_][\w.]*)\}")
_WHOLE = ("required", "type", "additionalProperties", "dependentRequired")  # decided whatever is put in below


def check(doc: Document) -> Iterator[Problem]:
    """What is wrong with the answers of a tool or a prompt."""
    tool = doc.mapping()
    filled = str(tool["provider"]).startswith("script.")  # others may put in more
    written = [key for key in ("answer", "steps") if key in tool and filled]
    declared: Any = tool.get("arguments", properties(tool.get("input")))
    for key in written:
        yield from _holes(doc, (key,), tool[key], [*declared, "constants", "answers"])
    for path, answer in _results(tool):
        yield from _output(doc, path, answer)


def _holes(doc: Document, path: Path, value: Any, known: Collection[str]) -> Iterator[Problem]:
    """Names that nothing is put in for. In texts only those that are like a name: every other brace stays."""
    if isinstance(value, dict) and list(value) == ["$value"]:
        name = str(value["$value"]).split(".")[0]
        if name not in known:
            yield doc.problem("unknown_name", (*path, "$value"), kind="argument", name=name, **near(name, known))
        return
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _holes(doc, (*path, step), inner, known)
    for hole in _HOLE.findall(value) if isinstance(value, str) else ():
        name = hole.split(".")[0]
        if name not in known and (meant := nearest(name, known)):
            yield doc.problem("misspelt_hole", path, name=name, meant=meant)


def _results(tool: Any) -> Iterator[tuple[Path, Any]]:
    if "answer" in tool:
        yield ("answer",), tool["answer"]
    for number, step in enumerate(tool.get("steps", [])):
        if "return" in step:
            yield ("steps", number, "return"), step["return"]


def _output(doc: Document, path: Path, answer: Any) -> Iterator[Problem]:
    schema: Any = doc.mapping().get("output")
    if schema is None or (isinstance(answer, dict) and answer.get("isError")):
        return
    if not isinstance(answer, dict) or "structuredContent" not in answer:
        yield doc.problem("no_structure", path)
        return
    structured = answer["structuredContent"]
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        errors = list(jsonschema.Draft202012Validator(schema, registry=REGISTRY).iter_errors(structured))
    except (jsonschema.SchemaError, Unresolvable):  # told elsewhere
        return
    for error in errors:
        if not _open(error.instance) and (error.validator in _WHOLE or not _any_open(error.instance)):
            at = (*path, "structuredContent", *error.absolute_path)
            yield doc.problem("breaks_output", at, reason=error.message)


def _open(value: Any) -> bool:
    """Whether ``value`` is known only when somebody has called."""
    return (isinstance(value, dict) and list(value) == ["$value"]) or (
        isinstance(value, str) and _HOLE.search(value) is not None
    )


def _any_open(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _open(value) or any(map(_any_open, parts))


def properties(schema: Any) -> dict[str, Any]:
    """Return what a JSON Schema says about each property; nothing where its `properties` are no map."""
    found = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return found if isinstance(found, dict) else {}

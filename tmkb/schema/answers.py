"""Check the answers in a tool or prompt file against its arguments and its output schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import jsonschema
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from tmkb.errors import Problem
from tmkb.schema import template
from tmkb.schema.metaschema import near, nearest
from tmkb.schema.reader import Document, Path

# Keywords whose violation does not depend on placeholders inside the value.
_STRUCTURAL = ("required", "type", "additionalProperties", "dependentRequired")


def check(doc: Document) -> Iterator[Problem]:
    """Yield the problems of the answers of a tool or a prompt."""
    tool = doc.mapping()
    arguments: Any = tool.get("arguments", properties(tool.get("input")))
    if str(tool["provider"]).startswith("script."):  # other providers may offer more names
        for key in ("answer", "steps"):
            yield from _placeholders(doc, (key,), tool.get(key), [*arguments, "constants", "answers"])
    for path, answer in _results(tool):
        yield from _output(doc, path, answer)


def _placeholders(doc: Document, path: Path, value: Any, known: Collection[str]) -> Iterator[Problem]:
    """Yield unknown names in ``{$value: NAME}``, and placeholders in texts that resemble a ``known`` name."""
    if (value_path := template.value_path(value)) is not None:
        name = value_path.split(".")[0]
        if name not in known:
            yield doc.problem("unknown_name", (*path, "$value"), kind="argument", name=name, **near(name, known))
        return
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _placeholders(doc, (*path, step), inner, known)
    for dotted in template.find_names(value) if isinstance(value, str) else ():
        name = dotted.split(".")[0]
        if name not in known and (intended := nearest(name, known)):
            yield doc.problem("misspelled_placeholder", path, name=name, intended=intended)


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
    except (jsonschema.SchemaError, Unresolvable):  # reported by `jsonschemas`
        return
    for error in errors:
        if not _is_dynamic(error.instance) and (error.validator in _STRUCTURAL or not _has_dynamic(error.instance)):
            at = (*path, "structuredContent", *error.absolute_path)
            yield doc.problem("breaks_output", at, reason=error.message)


def _is_dynamic(value: Any) -> bool:
    """Return whether ``value`` depends on the arguments of a call."""
    return template.value_path(value) is not None or (isinstance(value, str) and bool(template.find_names(value)))


def _has_dynamic(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _is_dynamic(value) or any(map(_has_dynamic, parts))


def properties(schema: Any) -> dict[str, Any]:
    """Return the schemas of the properties of a JSON Schema; empty if its `properties` is not a map."""
    found = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return found if isinstance(found, dict) else {}

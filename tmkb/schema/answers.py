"""Check the answers in a tool or prompt file against its arguments and its output schema."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import jsonschema
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from tmkb.errors import Problem
from tmkb.schema import template
from tmkb.schema.metaschema import near, nearest
from tmkb.schema.reader import Document, Path, entries

# Keywords whose violation does not depend on placeholders inside the value.
_STRUCTURAL = ("required", "type", "additionalProperties", "dependentRequired")


def check(doc: Document, arguments: Collection[str]) -> Iterator[Problem]:
    """Yield the problems of the answers of a tool, a prompt or a resource with these ``arguments``."""
    value = doc.mapping()
    if str(value["provider"]).startswith("script."):  # other providers may offer more names
        for key in ("answer", "steps"):
            yield from _placeholders(doc, (key,), value.get(key), [*arguments, "constants", "answers"])
    if "answer" in value:
        yield from _outputs(doc, ("answer",), value["answer"])
    steps: Any = value.get("steps", [])
    for number, step in enumerate(steps):
        if "return" in step:
            yield from _outputs(doc, ("steps", number, "return"), step["return"])


def _placeholders(doc: Document, path: Path, value: Any, known: Collection[str]) -> Iterator[Problem]:
    """Yield unknown names in ``{$value: NAME}``, and placeholders in texts that resemble a ``known`` name."""
    if (value_path := template.value_path(value)) is not None:
        name = value_path.split(".")[0]
        if name not in known:
            yield doc.problem("unknown_name", (*path, "$value"), kind="argument", name=name, **near(name, known))
        return
    if isinstance(value, dict) and "$by" in value:
        yield from _choice(doc, path, value, known)
    for step, inner in entries(value):
        yield from _placeholders(doc, (*path, step), inner, known)
    for dotted in template.find_names(value) if isinstance(value, str) else ():
        name = dotted.split(".")[0]
        if name not in known and (intended := nearest(name, known)):
            yield doc.problem("misspelled_placeholder", path, name=name, intended=intended)


def _choice(doc: Document, path: Path, value: dict[str, Any], known: Collection[str]) -> Iterator[Problem]:
    """Check an answer by the value of an argument: the argument exists, and each of its values has an answer."""
    if (choice := template.choice(value)) is None:
        yield doc.problem("bad_choice", path)
        return
    name, answers, _ = choice
    if name.split(".")[0] not in known:
        yield doc.problem("unknown_name", (*path, "$by"), kind="argument", name=name, **near(name, known))
        return
    schema: Any = doc.mapping().get("input", {})
    argument = properties(schema).get(name)
    values = _values(argument)
    for key in answers if values else ():
        if key not in values:
            hint = near(key, values)
            yield doc.key_problem("unknown_name", (*path, "values", key), kind=f"value of {name}", name=key, **hint)
    missing = [each for each in values if each not in answers]
    is_present = name in schema.get("required", ()) or "default" in (argument or {})
    if "otherwise" not in value and (missing or not values or not is_present):
        cases = missing if values else ["another value"]
        rest = ", ".join(cases) if cases else "absent"
        yield doc.key_problem("no_otherwise", (*path, "values"), name=name, values=rest)


def _values(argument: Any) -> list[str]:
    """Return the values in the `enum` of an argument, as texts; those of a boolean; else an empty list."""
    schema = argument if isinstance(argument, dict) else {}
    values = schema.get("enum", [False, True] if schema.get("type") == "boolean" else ())
    listed = values if isinstance(values, list) else []
    return [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in listed]


def _outputs(doc: Document, path: Path, answer: Any) -> Iterator[Problem]:
    """Check an answer, or each answer of a choice, against the tool's output schema."""
    if (choice := template.choice(answer)) is None:
        yield from _output(doc, path, answer)
        return
    for key, inner in choice[1].items():
        yield from _output(doc, (*path, "values", key), inner)
    if "otherwise" in answer:
        yield from _output(doc, (*path, "otherwise"), answer["otherwise"])


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
    return (
        template.value_path(value) is not None
        or template.choice(value) is not None
        or (isinstance(value, str) and bool(template.find_names(value)))
    )


def _has_dynamic(value: Any) -> bool:
    return _is_dynamic(value) or any(_has_dynamic(inner) for _, inner in entries(value))


def properties(schema: Any) -> dict[str, Any]:
    """Return the schemas of the properties of a JSON Schema; empty if its `properties` is not a map."""
    value = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return value if isinstance(value, dict) else {}

"""Run answers and steps that are written in YAML: fill in values, compute nothing.

In texts, ``{name}`` is an argument or a variable, ``{answers.KEY.path}`` a part of the client's answers, and
``{constants.NAME}`` a constant of the settings. All other braces are literal. ``{$value: name}`` is the value itself.
``{$by: name, values: {…}, otherwise: …}`` is the answer for the value of an argument.
"""

from __future__ import annotations

import json

from tmkb.errors import ToolError
from tmkb.providers import operation
from tmkb.providers.base import Provider
from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

    from tmkb.providers.operation import Operation, Step, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue


class Script(Provider):
    """Runs the key ``answer`` or ``steps`` of a tool, a prompt or a resource."""

    operations: ClassVar = {"answer": (), "steps": ()}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return an operation that runs ``answer`` or ``steps`` of ``definition``."""
        return self._answer(definition) if name == "answer" else self._steps(definition)

    def _answer(self, definition: Mapping[str, Any]) -> Operation:
        def answer(**arguments: JsonValue) -> operation.Result | JsonValue:
            return _result(substitute(definition["answer"], self._values(definition, arguments)))

        return answer

    def _steps(self, definition: Mapping[str, Any]) -> Operation:
        def run(**arguments: JsonValue) -> StepGenerator:
            answers: JsonObject = {}
            values = {**self._values(definition, arguments), "answers": answers}
            for step in definition["steps"]:
                ((verb, tree),) = step.items()
                value = substitute(tree, values)
                if verb == "return":
                    return _result(value)
                if verb == "fail":
                    raise _error(value)
                answers.update((yield _STEPS[verb](value)) or {})
            return ""

        return run

    def _values(self, definition: Mapping[str, Any], arguments: JsonObject) -> dict[str, JsonValue]:
        """Return the constants and all declared arguments; an absent argument is None."""
        declared = definition.get("arguments", definition.get("input", {}).get("properties", {}))
        return {**dict.fromkeys(declared), **arguments, "constants": self.settings.get("constants", {})}


_STEPS: dict[str, Callable[[Any], Step]] = {
    "ask": lambda value: operation.Ask(_questions(value)),
    "ask_declared": lambda value: operation.Ask(_questions(value), declared_only=True),
    "require": operation.RequireCapability,
    "detach": lambda _: operation.Detach(),
    "release_stream": lambda _: operation.ReleaseStream(),
    "log": lambda value: operation.Log(**value),
    "notify": lambda value: operation.Notify(**value),
    "pause": operation.Pause,
    "progress": lambda value: operation.Progress(**value),
}


def substitute(tree: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return ``tree`` with its placeholders replaced.

    A missing value is an empty text. As ``{$value: name}``, it removes the key whose value it would be.
    """
    if isinstance(tree, dict):
        if (path := template.value_path(tree)) is not None:
            return _lookup(path, values)
        if (choice := template.choice(tree)) is not None:
            name, answers, otherwise = choice
            return substitute(answers.get(_text(_lookup(name, values)), otherwise), values)
        filled = {key: substitute(inner, values) for key, inner in tree.items()}
        return {key: inner for key, inner in filled.items() if inner is not None or tree[key] is None}
    if isinstance(tree, list):
        return [substitute(inner, values) for inner in tree]
    return _fill(tree, values) if isinstance(tree, str) else tree


def _fill(text: str, values: Mapping[str, JsonValue]) -> str:
    filled = ""
    for literal, path in template.parse_paths(text):
        filled += literal
        if path is not None:
            filled += _text(_lookup(path, values)) if path.split(".")[0] in values else f"{{{path}}}"
    return filled


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lookup(path: str, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return the value at the dotted ``path``; None if there is none."""
    value: Any = values
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value  # type: ignore[no-any-return] # JSON inside of JSON


def _questions(value: Any) -> dict[str, operation.Question]:
    """Return one question, or several, by the keys of their answers."""
    questions = value if isinstance(value, list) else [value]
    return {each["as"]: operation.Question(each["method"], each.get("params")) for each in questions}


def _result(value: Any) -> operation.Result | JsonValue:
    """Return a `Result` if ``value`` has the fields of one; values of prompts and resources stay unchanged."""
    if not isinstance(value, dict) or not ("content" in value or "structuredContent" in value):
        return value
    structured = value.get("structuredContent")
    content = value.get("content", [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}])
    return operation.Result(content, bool(value.get("isError", False)), structured=structured, meta=value.get("_meta"))


def _error(value: Any) -> ToolError:
    """Return the exception for the step ``fail``: a text, or an error id with fields."""
    if isinstance(value, str):
        return ToolError("as_written", sentence=value)
    return ToolError(value["error"], **value.get("fields", {}))

"""Answers that are written in the YAML itself. Data, not a language: values are put in, nothing is computed.

In texts ``{name}`` is the argument or variable of that name, ``{answers.KEY.path}`` part of what the client answered
and ``{constants.NAME}`` a constant of the settings; every other brace stays. ``{$value: name}`` is the value, not its
text.
"""

from __future__ import annotations

import json

from tmkb.errors import ProtocolError, ToolError
from tmkb.providers.base import Provider
from tmkb.providers.operation import (
    Ask,
    Detach,
    Log,
    Notify,
    Pause,
    Progress,
    Question,
    ReleaseStream,
    RequireCapability,
    Result,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

    from tmkb.providers.operation import Operation, Step, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue


class Script(Provider):
    """Answers with what a tool, a prompt or a resource says."""

    operations: ClassVar = {"answer": (), "steps": ()}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return an operation that runs ``answer`` or ``steps`` of ``definition``."""
        return self._answer(definition) if name == "answer" else self._steps(definition)

    def _answer(self, definition: Mapping[str, Any]) -> Operation:
        def operation(**arguments: JsonValue) -> Result | JsonValue:
            return _result(substitute(definition["answer"], self._known(definition, arguments)))

        return operation

    def _steps(self, definition: Mapping[str, Any]) -> Operation:
        def operation(**arguments: JsonValue) -> StepGenerator:
            answers: JsonObject = {}
            known = {**self._known(definition, arguments), "answers": answers}
            for step in definition["steps"]:
                ((verb, template),) = step.items()
                value = substitute(template, known)
                if verb == "return":
                    return _result(value)
                if verb == "fail":
                    raise _failure(value)
                answers.update((yield _STEPS[verb](value)) or {})
            return ""

        return operation

    def _known(self, definition: Mapping[str, Any], arguments: JsonObject) -> dict[str, JsonValue]:
        """What texts can name: the constants, and every argument there is, also if it was not given."""
        declared = definition.get("arguments", definition.get("input", {}).get("properties", {}))
        return {**dict.fromkeys(declared), **arguments, "constants": self.settings.get("constants", {})}


_STEPS: dict[str, Callable[[Any], Step]] = {
    "ask": lambda value: Ask(_questions(value)),
    "ask_declared": lambda value: Ask(_questions(value), declared_only=True),
    "need": RequireCapability,
    "detach": lambda _: Detach(),
    "hang": lambda _: ReleaseStream(),
    "log": lambda value: Log(**value),
    "notify": lambda value: Notify(**value),
    "pause": Pause,
    "progress": lambda value: Progress(**value),
}


def substitute(value: JsonValue, known: Mapping[str, JsonValue]) -> JsonValue:
    """``value`` with what stands for a name of ``known``, or for a part of one, replaced; other braces stay.

    What is not there is an empty text, and as a value the key that would have it is left out.
    """
    if isinstance(value, dict):
        if list(value) == ["$value"]:
            return _found(str(value["$value"]), known)
        filled = {key: substitute(inner, known) for key, inner in value.items()}
        return {key: inner for key, inner in filled.items() if inner is not None or value[key] is None}
    if isinstance(value, list):
        return [substitute(inner, known) for inner in value]
    return _filled(value, known) if isinstance(value, str) else value


def _filled(text: str, known: Mapping[str, JsonValue]) -> str:
    head, *rest = text.split("{")
    filled = head
    for piece in rest:
        name, brace, after = piece.partition("}")
        if brace and name.split(".")[0] in known:
            filled += _text(_found(name, known)) + after
        else:
            filled += "{" + piece
    return filled


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _found(path: str, known: Mapping[str, JsonValue]) -> JsonValue:
    """What ``path`` leads to; None where an argument was not given, or the client answered otherwise than hoped."""
    value: Any = known
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value  # type: ignore[no-any-return] # JSON inside of JSON


def _questions(given: Any) -> dict[str, Question]:
    """One question, or several, by the keys of their answers."""
    asked = given if isinstance(given, list) else [given]
    return {each["as"]: Question(each["method"], each.get("params")) for each in asked}


def _result(value: JsonValue) -> Result | JsonValue:
    """The result of a call, where ``value`` is one; what prompts and resources say stays as it is."""
    if not isinstance(value, dict) or not ("content" in value or "structuredContent" in value):
        return value
    given: Any = value
    structured = given.get("structuredContent")
    content = given.get("content", [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}])
    return Result(content, bool(given.get("isError", False)), structured=structured, meta=given.get("_meta"))


def _failure(given: Any) -> Exception:
    """What a text, or an error with its fields, makes an operation end with."""
    if isinstance(given, str):
        return ToolError("said", sentence=given)
    return ProtocolError(given["error"], **given.get("fields", {}))

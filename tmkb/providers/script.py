"""Answers that are written in the YAML itself. Data, not a language: arguments are put in, nothing is computed."""

from __future__ import annotations

import json

from tmkb.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tmkb.operation import Operation
    from tmkb.providers.registry import Prepared
    from tmkb.values import JsonObject, JsonValue

OPERATIONS: dict[str, tuple[str, ...]] = {"answer": ()}
FACTS: tuple[str, ...] = ()
FOLDERS = False


def sources(settings: Mapping[str, Any]) -> list[str]:
    """None: what it says stands in each tool."""
    return []


def prepare(settings: Mapping[str, Any]) -> Prepared:
    """Nothing, likewise."""
    return {"facts": {}, "warnings": [], "parts": {}}


class Script:
    """Answers with what a tool says."""

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        """Needs neither settings nor parts."""

    def operation(self, name: str, tool: Mapping[str, Any]) -> Operation:
        """The canned answer of ``tool``, whatever ``name``: there is one operation."""
        answer = tool["answer"]
        canned: JsonObject = {"content": [{"type": "text", "text": answer}]} if isinstance(answer, str) else answer

        def operation(**arguments: JsonValue) -> Result:
            filled = substitute(canned, arguments)
            assert isinstance(filled, dict)
            content, is_error = filled["content"], filled.get("isError", False)
            assert isinstance(content, list)
            return Result([block for block in content if isinstance(block, dict)], bool(is_error))

        return operation


open = Script


def substitute(value: JsonValue, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """``value`` with every ``{name}`` in its strings replaced by the argument of that name; other braces stay."""
    if isinstance(value, dict):
        return {key: substitute(inner, arguments) for key, inner in value.items()}
    if isinstance(value, list):
        return [substitute(inner, arguments) for inner in value]
    return _filled(value, arguments) if isinstance(value, str) else value


def _filled(text: str, arguments: Mapping[str, JsonValue]) -> str:
    head, *rest = text.split("{")
    filled = head
    for piece in rest:
        name, brace, after = piece.partition("}")
        if brace and name in arguments:
            value = arguments[name]
            filled += (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) + after
        else:
            filled += "{" + piece
    return filled

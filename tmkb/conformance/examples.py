"""Values for the matchers of a transcript: a mock has to send something where a replay accepts many values."""

from __future__ import annotations

import re
from collections.abc import Callable
from re import _constants as codes  # type: ignore[attr-defined] # the parse tree of expressions has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tmkb.conformance import matchers
from tmkb.conformance.matchers import Bindings, Matcher
from tmkb.protocol import messages
from tmkb.schema import keywords
from tmkb.schema.values import JsonValue

_OF_TYPE: dict[str, JsonValue] = {
    "string": "example",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
_OF_CATEGORY = {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_SPACE": "a"}
_MOST = 1000  # repetitions in a text for an expression
_CHARACTERS = "a0A-_. ~"  # tried where an expression excludes some


class NoExampleError(ValueError):
    """No text was found for an expression of ``$re``."""


def example(expected: JsonValue, bindings: Bindings) -> JsonValue:
    """Return a value that ``expected`` matches. Captured values are added to ``bindings``.

    The result is the same each time. Raises NoExampleError.
    """
    matcher = matchers.read(expected)
    if matcher is None:
        if isinstance(expected, dict):
            present = {key: inner for key, inner in expected.items() if not matchers.may_be_absent(inner)}
            return {key: example(inner, bindings) for key, inner in present.items()}
        return [example(inner, bindings) for inner in expected] if isinstance(expected, list) else expected
    value = _EXAMPLES[matcher.name](matcher, bindings)
    if matcher.captures:
        bindings[matcher.captures] = value
    return value


_EXAMPLES: dict[str, Callable[[Matcher, Bindings], JsonValue]] = {
    "$any": lambda matcher, _: _OF_TYPE[matcher.operand],
    "$re": lambda matcher, _: _text(matcher.operand),
    "$ignore": lambda _, __: None,  # in a list; a member of an object is left out
    "$subset": lambda matcher, bindings: example(matcher.operand, bindings),
    "$unordered": lambda matcher, bindings: example(matcher.operand, bindings),
    "$json": lambda matcher, bindings: messages.compact(example(matcher.operand, bindings)),
    "$capture": lambda matcher, _: matcher.captures,
    "$ref": lambda matcher, bindings: bindings[matcher.operand],
    "$literal": lambda matcher, _: matcher.operand,
    "$var": lambda matcher, _: matcher.operand,
}


def _text(expression: str) -> str:
    """Return a text that ``expression`` matches as a whole. Raises NoExampleError."""
    try:
        text = "".join(map(_piece, parser.parse(expression)))
    except (re.error, KeyError, RecursionError, OverflowError, StopIteration) as error:
        raise NoExampleError(expression) from error
    if not keywords.full_match(expression, text):
        raise NoExampleError(expression)
    return text


def _piece(node: Any) -> str:
    """Return the text of one node of a parsed expression. Raises KeyError for a node that is not supported."""
    text: str = _PIECES[str(node[0])](node[1])
    return text


def _joined(nodes: Any) -> str:
    return "".join(map(_piece, nodes))


def _repeated(operand: Any) -> str:
    least, most, inner = operand
    count: int = min(max(least, 1), most)
    if count > _MOST:
        raise KeyError("MAX_REPEAT")
    return _joined(inner) * count


def _member(choices: Any) -> str:
    """Return a character of a class such as ``[a-f0-9]``."""
    if choices[0][0] is codes.NEGATE:
        return next(each for each in _CHARACTERS if not any(_is_in(each, choice) for choice in choices[1:]))
    code, operand = str(choices[0][0]), choices[0][1]
    if code == "RANGE":
        return chr(operand[0])
    return chr(operand) if code == "LITERAL" else _OF_CATEGORY.get(str(operand), "a")


def _is_in(character: str, choice: Any) -> bool:
    code, operand = str(choice[0]), choice[1]
    if code == "RANGE":
        return bool(operand[0] <= ord(character) <= operand[1])
    if code == "LITERAL":
        return bool(ord(character) == operand)
    category = {"CATEGORY_DIGIT": str.isdigit, "CATEGORY_SPACE": str.isspace}.get(str(operand), str.isalnum)
    return category(character)


_PIECES: dict[str, Callable[[Any], str]] = {
    "AT": lambda _: "",
    "LITERAL": chr,
    "ANY": lambda _: "a",
    "NOT_LITERAL": lambda operand: next(each for each in _CHARACTERS if ord(each) != operand),
    "IN": _member,
    "BRANCH": lambda operand: _joined(operand[1][0]),
    "SUBPATTERN": lambda operand: _joined(operand[-1]),
    "MAX_REPEAT": _repeated,
    "MIN_REPEAT": _repeated,
}

"""Validate against JSON Schema 2020-12 in time linear to the value.

This is `jsonschema` with four keywords replaced. Its `uniqueItems` compares every pair of items. It matches regular
expressions with Python's `re`, which backtracks: ``^(a+)+$`` takes 9 s for 28 characters, and ``a+$`` takes quadratic
time. No check of an expression finds all such cases. So RE2 matches expressions, in linear time. It refuses to compile
what it cannot match this way (look-around, back-references). Its ``\\d``, ``\\w`` and ``$`` are those of ECMA-262,
which JSON Schema requires; Python's are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import jsonschema_specifications

from tmkb.schema.values import JsonObject, JsonValue

MODULE, EXTRA = "re2", "regex"  # the module that matches expressions, and the extra that installs it
_HALF = re.compile("[\ud800-\udfff]")  # an unpaired surrogate: valid in JSON, not in UTF-8
_NAMED = 20  # unknown names in one message


def errors(schema: JsonObject, value: JsonValue) -> Iterator[Any]:
    """Yield the errors of `jsonschema` for ``value``. A ``$ref`` to the network is not followed."""
    # The default registry fetches.
    yield from _VALIDATOR(schema, registry=jsonschema_specifications.REGISTRY).iter_errors(value)


def unknown(value: JsonObject, schema: Any) -> list[str]:
    """Return the names in ``value`` that neither `properties` nor `patternProperties` of ``schema`` describes."""
    properties, expressions = schema.get("properties", {}), schema.get("patternProperties", {})
    names = [name for name in value if name not in properties]
    return [name for name in names if not any(search(each, name) for each in expressions)] if expressions else names


def search(expression: str, text: str) -> bool:
    """Return whether ``expression`` matches anywhere in ``text``. Raises as `compiled` does."""
    return compiled(expression).search(_HALF.sub("\N{REPLACEMENT CHARACTER}", text)) is not None


def full_match(expression: str, text: str) -> bool:
    """Return whether ``expression`` matches the whole ``text``. Raises as `compiled` does."""
    return compiled(expression).fullmatch(_HALF.sub("\N{REPLACEMENT CHARACTER}", text)) is not None


@cache
def compiled(expression: str) -> Any:
    """Compile ``expression`` with RE2.

    Raises:
        ValueError: with the reason why RE2 refuses it.
        ModuleNotFoundError: the extra ``regex`` is not installed.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_HALF.sub("\N{REPLACEMENT CHARACTER}", expression), options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None


def evolve(validator: Any, **changes: Any) -> Any:
    """Return ``validator`` with ``changes``. That of `jsonschema` is slower and changes its class at a `$schema`."""
    attributes = {"schema": validator.schema, "registry": validator._registry, "_resolver": validator._resolver}
    return type(validator)(**attributes | changes)


def _additional(validator: Any, expected: Any, value: JsonValue, schema: Any) -> Iterator[Any]:
    names = unknown(value, schema) if isinstance(value, dict) else []
    if expected is False and names:
        shown = ", ".join(map(repr, names[:_NAMED]))
        yield jsonschema.ValidationError(f"Additional properties are not allowed ({shown} unexpected)")
    elif isinstance(value, dict) and isinstance(expected, dict):
        for name in names:
            yield from validator.descend(value[name], expected, path=name)


def _multiple(_: object, expected: Any, value: JsonValue, __: object) -> Iterator[Any]:
    if isinstance(value, int | float) and not isinstance(value, bool) and not _divides(expected, value):
        yield jsonschema.ValidationError(f"{_number(value)} is not a multiple of {_number(expected)}")


def _divides(divisor: Any, number: Any) -> bool:
    """Return whether ``number`` is a multiple of ``divisor``: of floats by their quotient, else exactly."""
    if not isinstance(divisor, float):
        return bool(number % divisor == 0)
    try:
        quotient = number / divisor
        return bool(int(quotient) == quotient)
    except OverflowError:  # an integer beyond any float, or a quotient that is infinite
        from fractions import Fraction

        return (Fraction(number) / Fraction(divisor)).denominator == 1


def _number(number: Any) -> str:
    """Return ``number`` as text; Python refuses to write more than 4300 digits."""
    try:
        return repr(number)
    except ValueError:
        return "The number"


def _expression(_: object, expected: str, value: JsonValue, __: object) -> Iterator[Any]:
    if isinstance(value, str) and not search(expected, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {expected!r}")


def _by_expression(validator: Any, expected: Any, value: JsonValue, _: object) -> Iterator[Any]:
    if isinstance(value, dict):
        for expression, schema in expected.items():
            for name, inner in value.items():
                if search(expression, name):
                    yield from validator.descend(inner, schema, path=name, schema_path=expression)


def _unevaluated(validator: Any, expected: Any, value: JsonValue, schema: Any) -> Iterator[Any]:
    """Validate `unevaluatedProperties`. The keyword of `jsonschema` matches `patternProperties` with Python's `re`."""
    if not isinstance(value, dict):
        return
    known = _evaluated(
        validator, value, {key: inner for key, inner in schema.items() if key != "unevaluatedProperties"}
    )
    names = [name for name in value if name not in known and not _valid(validator, value[name], expected)]
    if names:
        shown = ", ".join(map(repr, names[:_NAMED]))
        yield jsonschema.ValidationError(f"Unevaluated properties are not allowed ({shown} unexpected)")


def _evaluated(validator: Any, value: JsonObject, schema: Any) -> set[str]:
    """Return the names in ``value`` that ``schema``, for which it is valid, evaluates (2020-12, section 11.3)."""
    if not isinstance(schema, dict):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return {*value}
    names = {*value} & {*schema.get("properties", ())}
    for expression in schema.get("patternProperties", ()):
        names |= {name for name in value if search(expression, name)}
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            target = validator._resolver.lookup(schema[keyword])
            below = validator.evolve(schema=target.contents, _resolver=target.resolver)
            names |= _evaluated(below, value, target.contents)
    inner = [each for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword, ())]
    inner += [each for name, each in schema.get("dependentSchemas", {}).items() if name in value]
    if "if" in schema:
        chosen = ("if", "then") if _valid(validator, value, schema["if"]) else ("else",)
        inner += [schema[keyword] for keyword in chosen if keyword in schema]
    for each in inner:
        if _valid(validator, value, each):
            names |= _evaluated(validator, value, each)
    return names


def _valid(validator: Any, value: JsonValue, schema: Any) -> bool:
    return next(iter(validator.descend(value, schema)), None) is None


def _unique(_: object, expected: bool, value: JsonValue, __: object) -> Iterator[Any]:
    if expected and isinstance(value, list) and len({_canonical(item) for item in value}) < len(value):
        yield jsonschema.ValidationError(f"{value!r} has non-unique elements")


def _canonical(value: JsonValue) -> str:
    """Return a text that is the same for values that JSON Schema considers equal, such as 1 and 1.0."""
    return json.dumps(_with_integers(value), sort_keys=True)


def _with_integers(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _with_integers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_VALIDATOR: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        "additionalProperties": _additional,
        "multipleOf": _multiple,
        "pattern": _expression,
        "patternProperties": _by_expression,
        "unevaluatedProperties": _unevaluated,
        "uniqueItems": _unique,
    },
)
_VALIDATOR.evolve = evolve

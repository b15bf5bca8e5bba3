"""JSON Schema 2020-12 → ordered violations, with the fields their sentences need.

`jsonschema` decides. It takes 70 ms to import, so a small walk over the keywords below first looks whether a value is
plainly right; only what it does not accept is handed on. A property test holds the two together.
"""

from __future__ import annotations

import json

from tmkb import template
from tmkb.engine.refusal import Failure
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.spec.model import ErrorTemplate
    from tmkb.values import JsonObject, JsonValue

    Path = tuple[str | int, ...]

FIELDS = ("field", "path", "value", "allowed", "expected", "an_expected", "received", "got", "limit", "reason")
_ANNOTATIONS = ("title", "description", "default", "examples")


class Violation:
    """One place where a value breaks a schema: where, which keyword, and `FIELDS` for its sentence."""

    __slots__ = ("fields", "keyword", "path")

    def __init__(self, path: Path, keyword: str, fields: JsonObject) -> None:
        self.path = path
        self.keyword = keyword
        self.fields = fields


def violations(
    schema: JsonObject, value: JsonValue, types: Mapping[str, list[str]], whole: str = ""
) -> list[Violation]:
    """Where ``value`` breaks ``schema``: in the schema's property order, unknown keys last as they were sent.

    ``types`` has the words for JSON's types; ``whole`` is what the value itself is called, and how its paths begin. A
    wrong type hides what else is wrong with the same place.
    """
    if plainly_valid(schema, value):
        return []
    import jsonschema
    import jsonschema_specifications

    registry = jsonschema_specifications.REGISTRY  # the default one would fetch a `$ref` from the network
    errors = jsonschema.Draft202012Validator(schema, registry=registry).iter_errors(value)
    # Once each: `jsonschema` has an error for every missing name, and each leads to all of them.
    found = {(v.path, v.keyword): v for error in errors for v in _violations(error, types)}
    mistyped = {path for path, keyword in found if keyword == "type"}
    kept = [v for (path, keyword), v in found.items() if keyword == "type" or path not in mistyped]
    for violation in kept:
        inside = violation.fields["field"]
        violation.fields |= {"field": inside or whole, "path": ".".join(filter(None, (whole, _dotted(violation.path))))}
    return sorted(kept, key=lambda violation: _rank(schema, value, violation.path))


def failures(
    found: list[Violation], surface: str, bindings: Mapping[str, str], errors: Mapping[str, ErrorTemplate]
) -> list[Failure]:
    """What to tell a peer of each violation: the error bound to PATH.KEYWORD, else the one that tells the keyword."""
    if not found:
        return []
    by_keyword = {e["keyword"]: id for id, e in errors.items() if "keyword" in e and e["surface"] == surface}
    told = []
    for violation in found:
        place = f"{_dotted(violation.path)}.{violation.keyword}"
        error = errors[bindings.get(place) or by_keyword.get(violation.keyword) or by_keyword["*"]]
        told.append(Failure(error, violation.fields, violation.fields))
    return told


def sentence(
    found: list[Violation], errors: Mapping[str, ErrorTemplate], bindings: Mapping[str, str] | None = None
) -> str:
    """What to tell a peer whose params are wrong: of the first violation, which there has to be."""
    return failures(found[:1], "params", bindings or {}, errors)[0].sentence


def refusal(
    found: list[Violation],
    errors: Mapping[str, ErrorTemplate],
    error: str = "invalid_params",
    bindings: Mapping[str, str] | None = None,
) -> ProtocolError:
    """The refusal of a request whose params are wrong, by its first violation."""
    where = {name: found[0].fields[name] for name in ("path", "expected", "got")}
    return ProtocolError(error, violation=sentence(found, errors, bindings), **where)


def plainly_valid(schema: JsonObject, value: JsonValue) -> bool:
    """True only if ``value`` is valid; False if it is not, or if the schema says more than is understood here."""
    for keyword, expected in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            if keyword not in _ANNOTATIONS:
                return False
        elif not check(expected, value, schema):
            return False
    return True


def json_type(value: JsonValue) -> str:
    """What JSON calls the type of ``value``; a number written with a point or an exponent is a "number"."""
    return _NAMES.get(type(value), "null")


def _type(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    found = json_type(value)
    wanted = expected if isinstance(expected, list) else (expected,)
    return found in wanted or ("number" in wanted and found == "integer")


def _items(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    return not isinstance(value, list) or (
        isinstance(expected, dict) and all(plainly_valid(expected, v) for v in value)
    )


def _properties(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    if isinstance(value, dict):
        for name, schema in expected.items():
            if name in value and not (isinstance(schema, dict) and plainly_valid(schema, value[name])):
                return False
    return True


def _additional(expected: Any, value: JsonValue, schema: JsonObject) -> bool:
    if expected is True or not isinstance(value, dict):
        return True
    known: Any = schema.get("properties", {})
    rest = [inner for name, inner in value.items() if name not in known]
    return not rest or (isinstance(expected, dict) and all(plainly_valid(expected, inner) for inner in rest))


def _required(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    return not isinstance(value, dict) or all(name in value for name in expected)


def _enum(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    return isinstance(value, str) and value in expected


def _min_length(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    return not isinstance(value, str) or len(value) >= expected


def _max_length(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    return not isinstance(value, str) or len(value) <= expected


_CHECKS = {
    "additionalProperties": _additional,
    "enum": _enum,
    "items": _items,
    "maxLength": _max_length,
    "minLength": _min_length,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def _violations(error: Any, types: Mapping[str, list[str]]) -> list[Violation]:
    """One for each name that a `required` or `additionalProperties` is about; else one for the error itself."""
    path, keyword, schema, value = tuple(error.absolute_path), str(error.validator), error.schema, error.instance
    properties = schema.get("properties", {})
    if keyword == "required":
        missing = [name for name in error.validator_value if name not in value]
        return [
            Violation((*path, n), keyword, _fields((*path, n), properties.get(n, {}), error, types)) for n in missing
        ]
    if keyword == "additionalProperties" and error.validator_value is False:
        unknown = [name for name in value if name not in properties]
        return [Violation((*path, n), keyword, _fields((*path, n), schema, error, types)) for n in unknown]
    return [Violation(path, keyword, _fields(path, schema, error, types))]


def _fields(path: Path, schema: Any, error: Any, types: Mapping[str, list[str]]) -> JsonObject:
    """`FIELDS`. ``schema`` is what the place should obey; values of the peer are cut."""
    wanted = schema.get("type", [])
    names = [types.get(name, [name, name]) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    allowed = schema.get("properties", {}) if error.validator == "additionalProperties" else schema.get("enum", [])
    value = error.instance
    return {
        "field": template.cut(_dotted(path)),
        "value": template.cut(value if isinstance(value, str) else json.dumps(value)),
        "allowed": ", ".join(item if isinstance(item, str) else json.dumps(item) for item in allowed),
        "expected": ", ".join(bare for bare, _ in names),
        "an_expected": ", ".join(with_article for _, with_article in names),
        "received": types[json_type(value)][0],
        "got": _got(error, types),
        "limit": str(error.validator_value),
        "reason": template.cut(error.message),
    }


def _got(error: Any, types: Mapping[str, list[str]]) -> JsonValue:
    """What is there instead of what should be: its type where that is wrong, else itself, a text cut."""
    if error.validator == "required":
        return types["absent"][0]
    value: JsonValue = error.instance
    if error.validator == "type" or isinstance(value, dict | list):
        return types[json_type(value)][0]
    return template.cut(value) if isinstance(value, str) else value


def _rank(schema: Any, value: Any, path: Path) -> list[int]:
    """Where a place stands: by the order of the schema's properties; unknown ones after them, as they were sent."""
    rank = []
    for part in path:
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        if isinstance(part, int):
            rank.append(part)
            schema, value = schema.get("items", {}) if isinstance(schema, dict) else {}, value[part]
            continue
        order = [*properties, *(name for name in value if name not in properties), part]  # which may be missing
        rank.append(order.index(part))
        schema, value = properties.get(part, {}), value.get(part)
    return rank


def _dotted(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")

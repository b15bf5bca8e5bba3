"""Coerce the arguments of tools, validate them by JSON Schema 2020-12, and render violations in a fixed order.

`plainly_valid` accepts most valid values without `jsonschema`, whose import takes 70 ms. `jsonschema` validates all
others. A property test compares both. Fields are built only for the violations that are returned, so the cost is linear
in the size of the value.
"""

from __future__ import annotations

from itertools import islice

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import outbound
from tmkb.protocol.outbound import Failure
from tmkb.schema import template
from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.schema.model import ErrorTemplate, Spec, Tool
    from tmkb.schema.values import JsonObject, JsonValue

    Path = tuple[str | int, ...]

FIELDS = ("field", "path", "value", "allowed", "expected", "an_expected", "received", "got", "limit", "reason")
_ANNOTATIONS = ("title", "description", "default", "examples")


def check(
    tool: Tool, arguments: JsonObject, spec: Spec, errors: Mapping[str, ErrorTemplate]
) -> tuple[JsonObject, list[Failure]]:
    """Return the arguments for the operation, coerced and with defaults, and the failures of ``arguments``."""
    coerced = coerce(arguments, tool.get("coerce", {}))
    schema: Any = tool["input"]
    invalid = violations(schema, coerced, spec, "arguments")
    defaults = {
        name: part["default"]
        for name, part in schema.get("properties", {}).items()
        if name not in coerced and isinstance(part, dict) and "default" in part
    }
    return {**defaults, **coerced}, failures(invalid, "tool", tool.get("errors", {}), errors)


# --- Coercion: functions for a tool's key ``coerce``


def strip(value: JsonValue) -> JsonValue:
    """Remove white space at both ends."""
    return value.strip() if isinstance(value, str) else value


def empty_is_absent(value: JsonValue) -> JsonValue:
    """Treat an empty string as an absent argument."""
    return ABSENT if value == "" else value


def upper(value: JsonValue) -> JsonValue:
    """Convert to upper case."""
    return value.upper() if isinstance(value, str) else value


ABSENT: JsonValue = ["absent"]  # compared by identity, so no value of a peer equals it
COERCIONS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "empty_is_absent": empty_is_absent,
    "strip": strip,
    "upper": upper,
}


def coerce(arguments: JsonObject, rules: Mapping[str, str]) -> JsonObject:
    """Apply ``rules`` (argument → name of a coercion) to ``arguments``, and keep their order."""
    values = {name: COERCIONS[rules[name]](value) if name in rules else value for name, value in arguments.items()}
    return {name: value for name, value in values.items() if value is not ABSENT}


# --- Validation


@record
class Violation:
    """A mismatch between a value and a schema: its path, the keyword, and the `FIELDS` of its sentence."""

    path: Path
    keyword: str
    fields: JsonObject


class Violations(list[Violation]):
    """The first violations of a value, in order.

    ``more``: the number of further violations; a lower bound if ``exact`` is false.
    """

    def __init__(self, listed: Iterable[Violation] = (), more: int = 0, exact: bool = True) -> None:
        super().__init__(listed)
        self.more = more
        self.exact = exact


def violations(schema: JsonObject, value: JsonValue, spec: Spec, whole: str = "") -> Violations:
    """Return the violations of ``value``: in the schema's property order, then unknown keys in the order of the value.

    A wrong type hides other violations at the same path.

    Args:
        schema: a JSON Schema.
        value: the value to validate.
        spec: contains the names of JSON types, and the limits on the violations to describe and to count.
        whole: the name of ``value``, with which all paths begin.
    """
    if plainly_valid(schema, value):
        return Violations()
    from tmkb.schema import keywords

    limits = spec["server"]["limits"]
    most, counted = limits["violations"], limits["violations_counted"]
    errors = keywords.errors(schema, value)
    broken: dict[tuple[Path, str], tuple[Any, Any]] = {}  # (path, keyword) → the error, and the schema at the path
    unlisted: dict[tuple[Path, str], int] = {}
    examined = 0
    for error in islice(errors, counted):
        examined += 1
        listed, left = _places(error, most)
        # `jsonschema` yields one error per missing name, and `_places` returns all missing names for each.
        broken |= {(path, str(error.validator)): (error, obeyed) for path, obeyed in listed}
        if left:
            unlisted[tuple(error.absolute_path), str(error.validator)] = left
    mistyped = {path for path, keyword in broken if keyword == "type"}
    relevant = [place for place in broken if place[1] == "type" or place[0] not in mistyped]
    orders: dict[Path, dict[str | int, int]] = {}
    relevant.sort(key=lambda place: _rank(schema, value, place[0], orders))
    described = []
    for path, keyword in relevant[:most]:
        error, obeyed = broken[path, keyword]
        fields = _fields(path, obeyed, error, spec["types"])
        fields |= {"field": fields["field"] if path else whole, "path": ".".join(filter(None, (whole, _dotted(path))))}
        described.append(Violation(path, keyword, fields))
    more = len(relevant) - len(described) + sum(unlisted.values())
    return Violations(described, more, examined < counted)


def failures(
    invalid: Violations, surface: str, bindings: Mapping[str, str], errors: Mapping[str, ErrorTemplate]
) -> list[Failure]:
    """Render each violation with the error bound to PATH.KEYWORD, else with the error of the keyword.

    The last failure contains the number of further violations, if any.
    """
    if not invalid:
        return []
    by_keyword = {e["keyword"]: id for id, e in errors.items() if "keyword" in e and e["surface"] == surface}
    rendered = []
    for violation in invalid:
        place = f"{_dotted(violation.path)}.{violation.keyword}"
        error = bindings.get(place) or by_keyword.get(violation.keyword) or by_keyword["*"]
        rendered.append(Failure(error, errors[error], violation.fields, violation.fields))
    if invalid.more:
        more = ToolError("more_violations", count=str(invalid.more))
        at_least = ToolError("many_more_violations", count=str(invalid.more))
        rendered.append(outbound.failure(more if invalid.exact else at_least, errors))
    return rendered


def sentence(
    invalid: Violations, errors: Mapping[str, ErrorTemplate], bindings: Mapping[str, str] | None = None
) -> str:
    """Render the first of at least one violation of params."""
    return failures(Violations(invalid[:1]), "params", bindings or {}, errors)[0].sentence


def error_for(
    invalid: Violations,
    errors: Mapping[str, ErrorTemplate],
    error: str = "invalid_params",
    bindings: Mapping[str, str] | None = None,
) -> ProtocolError:
    """Build the error for invalid params from their first violation."""
    fields = {name: invalid[0].fields[name] for name in ("path", "expected", "got")}
    return ProtocolError(error, violation=sentence(invalid, errors, bindings), **fields)


def plainly_valid(schema: JsonObject, value: JsonValue) -> bool:
    """Return whether ``value`` is valid; False also if a keyword is not in `_CHECKS`."""
    for keyword, expected in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            if keyword not in _ANNOTATIONS:
                return False
        elif not check(expected, value, schema):
            return False
    return True


def json_type(value: JsonValue) -> str:
    """Return the JSON type of ``value``. A number with a point or an exponent is a "number"."""
    return _NAMES.get(type(value), "null")


def _type(expected: Any, value: JsonValue, _: JsonObject) -> bool:
    name = json_type(value)
    wanted = expected if isinstance(expected, list) else (expected,)
    return name in wanted or ("number" in wanted and name == "integer")


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


def _places(error: Any, most: int) -> tuple[list[tuple[Path, Any]], int]:
    """Return the paths of ``error``, each with its schema, and the number of further paths.

    `required` and `additionalProperties` have one path for each name, all other keywords only that of the error.
    """
    from tmkb.schema import keywords

    path, schema, value = tuple(error.absolute_path), error.schema, error.instance
    properties = schema.get("properties", {})
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in value]
        return [((*path, name), properties.get(name, {})) for name in missing], 0
    if error.validator == "additionalProperties" and error.validator_value is False:
        unknown = keywords.unknown(value, schema)
        return [((*path, name), schema) for name in unknown[:most]], max(0, len(unknown) - most)
    return [(path, schema)], 0


def _fields(path: Path, schema: Any, error: Any, types: Mapping[str, list[str]]) -> JsonObject:
    """Return the `FIELDS` of a violation. ``schema``: the schema at ``path``. Values of the peer are cut."""
    import json

    wanted = schema.get("type", [])
    names = [types.get(name, [name, name]) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    allowed = schema.get("properties", {}) if error.validator == "additionalProperties" else schema.get("enum", [])
    return {
        "field": template.cut(_dotted(path)),
        "value": _display(error.instance),
        "allowed": ", ".join(item if isinstance(item, str) else json.dumps(item) for item in allowed),
        "expected": ", ".join(bare for bare, _ in names),
        "an_expected": ", ".join(with_article for _, with_article in names),
        "received": types[json_type(error.instance)][0],
        "got": _got(error, types),
        "limit": str(error.validator_value),
        "reason": template.cut(error.message),
    }


def _display(value: JsonValue) -> str:
    """Return a string itself, any other value as JSON, cut. Encoding stops at the cut."""
    import json

    if isinstance(value, str):
        return template.cut(value)
    text = ""
    for chunk in json.JSONEncoder().iterencode(value):
        text += chunk
        if len(text) > template.SHOWN_CODE_POINTS:
            break
    return template.cut(text)


def _got(error: Any, types: Mapping[str, list[str]]) -> JsonValue:
    """Return the type of the invalid value if that is wrong, else the value, a string cut."""
    if error.validator == "required":
        return types["absent"][0]
    value: JsonValue = error.instance
    if error.validator == "type" or isinstance(value, dict | list):
        return types[json_type(value)][0]
    return template.cut(value) if isinstance(value, str) else value


def _rank(schema: Any, value: Any, path: Path, orders: dict[Path, dict[str | int, int]]) -> list[int]:
    """Return the sort key of ``path``: the schema's property order, then unknown keys in the order of the value.

    ``orders`` caches the order of each object.
    """
    rank = []
    for depth, part in enumerate(path):
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        if isinstance(part, int):
            rank.append(part)
            schema, value = schema.get("items", {}) if isinstance(schema, dict) else {}, value[part]
            continue
        order = orders.get(path[:depth])
        if order is None:
            names = [*properties, *(name for name in value if name not in properties)]
            order = orders[path[:depth]] = {name: position for position, name in enumerate(names)}
        rank.append(order.get(part, len(order)))
        schema, value = properties.get(part, {}), value.get(part)
    return rank


def _dotted(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")

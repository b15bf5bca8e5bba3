"""Read the arguments of a tool or a prompt from words such as ``limit=5``, by the JSON Schema of the arguments."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tmkb.cli import output
from tmkb.cli.layout import Line, indented, text
from tmkb.errors import ProtocolError
from tmkb.protocol import messages
from tmkb.protocol.arguments import json_type
from tmkb.schema import hidden
from tmkb.schema.values import JsonObject, JsonValue

HELP = "an argument; KEY=@FILE reads a file, KEY:=JSON is JSON (for example KEY:='\"@x\"')"
_DEEPEST = 8  # references and branches that are followed to find a type
_BRANCHES = ("allOf", "anyOf", "oneOf")
_CHOICES = 12  # values of an `enum` that are shown


class ArgumentError(Exception):
    """The words are no arguments. The message says which, and what to write."""


class Argument(NamedTuple):
    """An argument that a schema describes. `type`: for people, such as ``array of string`` or ``red | green``."""

    name: str
    type: str
    required: bool
    description: str


def read(words: Iterable[str], schema: JsonObject) -> JsonObject:
    """Return the arguments that ``words`` contain.

    Args:
        words: ``KEY=VALUE``, ``KEY=@FILE`` or ``KEY:=JSON``. A key of a list can be repeated, once for each entry.
        schema: the JSON Schema of the arguments, as a server sent it.

    Raises:
        ArgumentError: for a word without a key, an unknown key, or a value of another type.
    """
    properties = schema.get("properties")
    known: Any = properties if isinstance(properties, dict) else {}
    arguments: JsonObject = {}
    for word in words:
        key, value, is_json = _split(word)
        if key not in known and not is_json and not schema.get("additionalProperties"):
            raise ArgumentError(_unknown(key, known))
        read_value = _json(key, value) if is_json else _value(key, value, known.get(key), schema)
        if key not in arguments:
            arguments[key] = read_value
            continue
        earlier = arguments[key]
        if not (isinstance(earlier, list) and isinstance(read_value, list)):
            raise ArgumentError(f"{key} is given twice.")
        earlier += read_value
    return arguments


def described(schema: JsonObject) -> list[Argument]:
    """Return the arguments that ``schema`` describes, required ones first."""
    properties, required = schema.get("properties"), schema.get("required")
    known: Any = properties if isinstance(properties, dict) else {}
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    listed = [
        Argument(name, _shown_type(inner, schema), name in needed, _text_of(inner, "description"))
        for name, inner in known.items()
    ]
    listed += [Argument(name, "any", True, "") for name in needed if name not in known]
    return sorted(listed, key=lambda each: not each.required)


def missing(schema: JsonObject, arguments: Collection[str]) -> list[Argument]:
    """Return the required arguments of ``schema`` that ``arguments`` lacks."""
    return [each for each in described(schema) if each.required and each.name not in arguments]


def fail_missing(name: str, lacking: Sequence[Argument]) -> None:
    """Print to stderr that ``name`` needs the arguments ``lacking``, with their descriptions."""
    output.fail(f"{name} needs {'this argument' if len(lacking) == 1 else 'these arguments'}:")
    for each in lacking:
        about = f": {each.description}" if each.description else ""
        print(hidden.escape(f"  {each.name} ({each.type}){about}"), file=sys.stderr)


def lines(arguments: Iterable[Argument]) -> list[Line]:
    """Render arguments, each with its description below."""
    rendered: list[Line] = []
    for each in arguments:
        rendered += text((each.name, "bold"), f"  {each.type}{', required' if each.required else ''}")
        rendered += indented(text(each.description)) if each.description else []
    return rendered


def _split(word: str) -> tuple[str, str, bool]:
    """Return key, value and whether the value is JSON."""
    key, equals, value = word.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        raise ArgumentError(f"{word!r} is not an argument. Write it as KEY=VALUE.")
    if value.startswith("@"):
        value = _file(key, value[1:])
    if not hidden.is_unicode(key + value):
        raise ArgumentError(f"{key!r} is not valid UTF-8.")
    return key, value, is_json


def _file(key: str, path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "It is not UTF-8"
        hint = f" To pass a text that starts with @, write {key}:='\"@…\"'."
        raise ArgumentError(f"{key}: cannot read {path or repr(path)}: {reason}.{hint}") from error


def _unknown(key: str, known: Collection[str]) -> str:
    otherwise = f"Arguments: {', '.join(known)}." if known else "There are no arguments."
    hint = output.did_you_mean(key, known, otherwise)
    return f"There is no argument {key}. {hint} To send it anyway, write {key}:=JSON."


def _json(key: str, value: str) -> JsonValue:
    try:
        return messages.decode(value.encode())
    except ProtocolError as error:
        raise ArgumentError(f"{key}: {_short(value)} is not JSON. A text needs quotes: {key}:='\"text\"'.") from error


def _value(key: str, value: str, schema: JsonValue, root: JsonObject) -> JsonValue:
    """Read ``value`` as the type that ``schema`` asks for. Without a type, it is a string."""
    types = _types(schema, root)
    if not types or "string" in types:
        return value
    if "array" in types and not value.lstrip().startswith("["):
        return [_value(key, value, _resolved(schema, root).get("items"), root)]
    spelled = value.strip().lower() if types & {"boolean", "null"} else value
    try:
        found = messages.decode((spelled if spelled in ("true", "false", "null") else value).encode())
    except ProtocolError:
        found = value
    if "integer" in types and isinstance(found, float) and found.is_integer():
        found = int(found)
    if json_type(found) not in types | ({"integer"} if "number" in types else set()):
        example = _EXAMPLES.get(next(iter(sorted(types))), "")
        raise ArgumentError(f"{key} must be {' or '.join(sorted(types))}, got {_short(value)}.{example}")
    return found


_EXAMPLES = {
    "boolean": " Write true or false.",
    "object": " Write it as JSON, for example '{\"name\": 1}'.",
}


def _types(schema: JsonValue, root: JsonObject, depth: int = 0) -> set[str]:
    """Return the JSON types that ``schema`` names; an empty set if it names none."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return set()
    schema = _resolved(schema, root)
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return {each for each in named if isinstance(each, str)}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    types = {json_type(each) for each in values} if isinstance(values, list) else set()
    for branch in _inner(schema):
        types |= _types(branch, root, depth + 1)
    return types


def _resolved(schema: JsonValue, root: JsonObject) -> JsonObject:
    """Return ``schema``, or what its reference within ``root`` leads to."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not (isinstance(reference, str) and reference.startswith("#/")):
            return schema
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(schema, dict) else None
    return {}


def _inner(schema: JsonObject) -> Iterator[JsonValue]:
    for key in _BRANCHES:
        branches = schema.get(key)
        yield from branches if isinstance(branches, list) else ()


def _shown_type(schema: JsonValue, root: JsonObject) -> str:
    whole = _resolved(schema, root)
    choices = whole.get("enum")
    if isinstance(choices, list) and choices:
        shown = [each if isinstance(each, str) else json.dumps(each) for each in choices[:_CHOICES]]
        return " | ".join([*shown, "…"] if len(choices) > _CHOICES else shown)
    types = sorted(_types(schema, root))
    if types == ["array"]:
        return f"array of {' or '.join(sorted(_types(whole.get('items'), root))) or 'any'}"
    default = (
        f", default {_short(json.dumps(whole['default'], ensure_ascii=False))}"
        if whole.get("default") is not None
        else ""
    )
    return (" or ".join(types) or "any") + default


def _text_of(schema: JsonValue, key: str) -> str:
    value = schema.get(key) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else ""


def _short(value: str) -> str:
    return repr(value) if len(value) <= 60 else f"{value[:60]!r}…"

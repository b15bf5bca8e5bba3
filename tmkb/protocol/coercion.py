"""How a tool's arguments are read before they are validated. A tool names these functions under ``read``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tmkb.schema.values import JsonObject, JsonValue


def strip(value: JsonValue) -> JsonValue:
    """Without white space at either end."""
    return value.strip() if isinstance(value, str) else value


def empty_is_absent(value: JsonValue) -> JsonValue:
    """An empty string counts as if the argument had not been given."""
    return ABSENT if value == "" else value


def upper(value: JsonValue) -> JsonValue:
    """In capitals."""
    return value.upper() if isinstance(value, str) else value


ABSENT: JsonValue = ["absent"]  # told by identity, so that no value of a peer can be it
READINGS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "empty_is_absent": empty_is_absent,
    "strip": strip,
    "upper": upper,
}


def read(arguments: JsonObject, rules: Mapping[str, str]) -> JsonObject:
    """``arguments`` as ``rules`` (argument → name of a reading) want them, in the order they came."""
    values = {name: READINGS[rules[name]](value) if name in rules else value for name, value in arguments.items()}
    return {name: value for name, value in values.items() if value is not ABSENT}

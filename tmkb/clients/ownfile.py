"""A YAML file that has nothing but one entry of ours, in a list."""

from __future__ import annotations

from collections.abc import Sequence

from tmkb.clients import yamltext
from tmkb.schema import emission
from tmkb.schema.spans import Node
from tmkb.schema.values import JsonObject, JsonValue


def entries(text: str, key: Sequence[str]) -> dict[str, tuple[JsonValue, int]]:
    """Return the entries of the list under ``key``: name → value and offset. Raises TextError."""
    return {name: (item.value(), item.start) for name, item in _items(yamltext.parse(text), key).items()}


def rest(text: str, key: Sequence[str], name: str) -> object:
    """Return everything but one entry, for comparison. Raises TextError."""
    root = yamltext.parse(text)
    others = [yamltext.without(item, ()) for other, item in _items(root, key).items() if other != name]
    return yamltext.without(root, key), others


def fresh(key: Sequence[str], entry: JsonObject, whole: JsonObject, newline: str) -> str:
    """Return the text of the file. ``whole``: its other keys."""
    head = [f"{emission.key(name)}: {emission.inline(value)}" for name, value in whole.items()]
    lines = [f"{emission.key(name)}: {emission.inline(value)}" for name, value in entry.items()]
    return newline.join([*head, f"{key[0]}:", f"  - {lines[0]}", *(f"    {line}" for line in lines[1:])]) + newline


def _items(root: Node | None, key: Sequence[str]) -> dict[str, Node]:
    """Return the entries by name."""
    listed = root.get(key[0]) if root is not None and root.kind == "map" else None
    named = [(item.get("name"), item) for item in (listed.items if listed is not None else []) if item.kind == "map"]
    return {name.text: item for name, item in named if name is not None}

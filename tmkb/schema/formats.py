"""What each kind of file may hold, as a page for people: the prose of each meta-schema, an example, a table of keys.

A key inside of another is written as a path, with ``*`` for any name in a map and any entry of a list. What the
meta-schema of another kind describes is told there, and linked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tmkb.schema import metaschema, paths, reader

_COMMON = "file"  # what all kinds have in common
_LINES, _WIDTH = 20, 120  # of an example
_WORDS = {"object": "map", "array": "list"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
_MARKUP = re.compile(r"[*<|]|(?<!\w)_|_(?!\w)")


class Row(NamedTuple):
    """A key; ``home`` is the kind whose meta-schema describes it."""

    home: str
    key: str
    type: str
    required: bool
    description: str


def kinds() -> list[str]:
    """All kinds of files, then what is part of several, in the order in which they are told."""
    told: list[str] = _schemas()[_COMMON]["$defs"]["kinds"]["enum"]
    return [*told, *(kind for kind in _schemas() if kind not in (*told, _COMMON))]


def page() -> str:
    """Everything, in Markdown."""
    table = [f"| [{kind}](#{_anchor(kind)}) | {' | '.join(_summary(kind))} |" for kind in kinds()]
    parts = [
        "# Formats",
        "<!-- `tmkb schema formats` writes this from schemas/meta/ and conformance/*.schema.yaml. -->",
        _schemas()[_COMMON]["description"],
        "\n".join(["| kind | place | holds |", "|---|---|---|", *table]),
        *(section(kind) for kind in kinds()),
    ]
    return "\n\n".join(parts)


def section(kind: str) -> str:
    """What is said of one kind."""
    place, said = _described(kind)
    parts = [f"## {kind}", f"{place}: {said}" if place else said, *_example(kind)]
    if rows := list(_rows(kind, _top(kind), "", set())):
        parts.append("\n".join(["| key | type | required | description |", "|---|---|---|---|", *map(_line, rows)]))
    return "\n\n".join(parts)


@cache
def _schemas() -> dict[str, Any]:
    return {kind: reader.read(file).value for kind, file in paths.meta_schemas().items()}


def _top(kind: str) -> Any:
    """What describes a file; for parts of files, what has those that are no part of another as its keys."""
    schema = _schemas()[kind]
    if "properties" in schema:
        return schema
    inner = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
    return {"properties": {name: part for name, part in schema["$defs"].items() if name not in inner}}


def _described(kind: str) -> tuple[str, str]:
    """Where files of ``kind`` lie, as code, and what else its description says; parts of files lie nowhere."""
    text = _schemas()[kind]["description"]
    if "kind" not in _top(kind)["properties"]:
        return "", text
    place, _, said = text.partition(": ")
    return " and ".join(f"`{each}`" for each in place.split(" and ")), said


def _summary(kind: str) -> tuple[str, str]:
    place, said = _described(kind)
    return place, re.split(r"\. |\n", said)[0].rstrip(".") if place else _schemas()[kind]["title"]


def _example(kind: str) -> Iterator[str]:
    """The beginning of the file that the meta-schema names, if it names one."""
    if "example" in _schemas()[kind]:
        file = os.path.normpath(os.path.join(paths.meta_schemas()[kind], os.pardir, _schemas()[kind]["example"]))
        with open(file, encoding="utf-8") as source:
            lines = [line for line in source.read().splitlines() if not line.startswith(metaschema.POINTER)]
        shown = [line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines[:_LINES]]
        yield f"Example: `{os.path.relpath(file, paths.ROOT).replace(os.sep, '/')}`:"
        yield "\n".join(["```yml", *shown, *(["# …"] if len(lines) > _LINES else []), "```"])


def _rows(kind: str, schema: Any, path: str, told: set[str]) -> Iterator[Row]:
    """A row for each key inside of what ``schema`` of ``kind`` describes; ``told``: what was referred to before."""
    for name, inner in schema.get("properties", {}).items():
        home, whole = _whole(kind, inner)
        said = " ".join(whole["description"].split())
        inside = list(_rows(home, whole, f"{path}{name}.", told))
        if elsewhere := {row.home for row in inside} - {kind}:
            said += "".join(f" As in [{other}](#{_anchor(other)})." for other in sorted(elsewhere))
        elif inside and inner.get("$ref") in told:
            said += " As above."
            inside = []
        if "$ref" in inner:
            told.add(inner["$ref"])
        required = name in schema.get("required", ()) and "default" not in whole
        yield Row(kind, path + name, _type(home, whole), required, said)
        yield from (row for row in inside if row.home == kind)
    for entry in (schema.get("additionalProperties"), schema.get("items")):
        if isinstance(entry, dict):
            yield from _rows(*_whole(kind, entry), f"{path}*.", told)
    for branch in [*schema.get("anyOf", ()), *([schema["else"]] if "else" in schema else ())]:
        yield from _rows(*_whole(kind, branch), path, told)


def _whole(kind: str, schema: Any) -> tuple[str, Any]:
    """``schema`` of ``kind`` with what it refers to, and the kind that describes that."""
    if "$ref" not in schema:
        return kind, schema
    file, _, name = schema["$ref"].partition("#/$defs/")
    home = file.removesuffix(".yaml").removesuffix(".schema") or kind
    defined = _schemas()[home]["$defs"][name]
    return kind if home == _COMMON else home, {**defined, **schema}


def _type(kind: str, schema: Any) -> str:
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in values)
    if "refersTo" in schema:
        return f"name ({schema['refersTo']})"
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(dict.fromkeys(_type(*_whole(kind, each)) for each in schema["anyOf"]))
    types = schema.get("type", "any")
    named = " or ".join(_WORDS.get(each, each) for each in ([types] if isinstance(types, str) else types))
    entry = schema.get("items") or schema.get("additionalProperties")
    if isinstance(entry, dict) and not any(_rows(*_whole(kind, entry), "", set())):
        return f"{named} of {_type(*_whole(kind, entry))}"
    return " ".join([named, *(f"{sign} {schema[bound]}" for bound, sign in _BOUNDS.items() if bound in schema)])


def _line(row: Row) -> str:
    """A row in Markdown that says its description to the letter, links and what stands between backticks aside."""
    parts = row.description.split("`")
    said = "`".join(part if at % 2 else _MARKUP.sub(r"\\\g<0>", part) for at, part in enumerate(parts))
    return f"| `{row.key}` | {row.type} | {'yes' if row.required else ''} | {said} |"


def _anchor(kind: str) -> str:
    """What a heading is linked by."""
    return kind.replace("/", "")

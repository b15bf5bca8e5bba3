"""Generate the reference of file formats from the meta-schemas: a description, an example and a table of keys.

A nested key is written as a path, with ``*`` for any name in a map and any entry of a list. Keys that the meta-schema
of another kind describes are linked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tmkb.schema import metaschema, paths, reader

_COMMON = "file"  # the definitions shared by all kinds
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
    """Return all kinds of files, then the definitions shared by several, in the order of the page."""
    files: list[str] = _schemas()[_COMMON]["$defs"]["kinds"]["enum"]
    return [*files, *(kind for kind in _schemas() if kind not in (*files, _COMMON))]


def page() -> str:
    """Return the whole page in Markdown."""
    table = [f"| [{kind}](#{_anchor(kind)}) | {' | '.join(_summary(kind))} |" for kind in kinds()]
    parts = [
        "# Formats",
        "<!-- `tmkb schema formats` writes this from schemas/meta/ and conformance/*.schema.yaml. -->",
        _schemas()[_COMMON]["description"],
        "\n".join(["| kind | place | content |", "|---|---|---|", *table]),
        *(section(kind) for kind in kinds()),
    ]
    return "\n\n".join(parts)


def section(kind: str) -> str:
    """Return the section of one kind in Markdown."""
    place, text = _description(kind)
    parts = [f"## {kind}", f"{place}: {text}" if place else text, *_example(kind)]
    if rows := list(_rows(kind, _top(kind), "", set())):
        parts.append("\n".join(["| key | type | required | description |", "|---|---|---|---|", *map(_line, rows)]))
    return "\n\n".join(parts)


@cache
def _schemas() -> dict[str, Any]:
    return {kind: reader.read(file).value for kind, file in paths.meta_schemas().items()}


def _top(kind: str) -> Any:
    """Return the schema of a file; for shared definitions, a schema with the top-level definitions as keys."""
    schema = _schemas()[kind]
    if "properties" in schema:
        return schema
    inner = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
    return {"properties": {name: part for name, part in schema["$defs"].items() if name not in inner}}


def _description(kind: str) -> tuple[str, str]:
    """Return the paths of files of ``kind``, and the rest of its description; shared definitions have no path."""
    text = _schemas()[kind]["description"]
    if "kind" not in _top(kind)["properties"]:
        return "", text
    place, _, rest = text.partition(": ")
    return " and ".join(f"`{each}`" for each in place.split(" and ")), rest


def _summary(kind: str) -> tuple[str, str]:
    place, text = _description(kind)
    return place, re.split(r"\. |\n", text)[0].rstrip(".") if place else _schemas()[kind]["title"]


def _example(kind: str) -> Iterator[str]:
    """Yield the first lines of the example file of the meta-schema, if it has one."""
    if "example" in _schemas()[kind]:
        file = os.path.normpath(os.path.join(paths.meta_schemas()[kind], os.pardir, _schemas()[kind]["example"]))
        with open(file, encoding="utf-8") as source:
            lines = [line for line in source.read().splitlines() if not line.startswith(metaschema.POINTER)]
        shown = [line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines[:_LINES]]
        yield f"Example: `{os.path.relpath(file, paths.ROOT).replace(os.sep, '/')}`:"
        yield "\n".join(["```yml", *shown, *(["# …"] if len(lines) > _LINES else []), "```"])


def _rows(kind: str, schema: Any, path: str, shown: set[str]) -> Iterator[Row]:
    """Yield a row for each key in ``schema`` of ``kind``; ``shown``: references that already have rows."""
    for name, inner in schema.get("properties", {}).items():
        home, whole = _whole(kind, inner)
        text = " ".join(whole["description"].split())
        inside = list(_rows(home, whole, f"{path}{name}.", shown))
        if elsewhere := {row.home for row in inside} - {kind}:
            text += "".join(f" As in [{other}](#{_anchor(other)})." for other in sorted(elsewhere))
        elif inside and inner.get("$ref") in shown:
            text += " As above."
            inside = []
        if "$ref" in inner:
            shown.add(inner["$ref"])
        required = name in schema.get("required", ()) and "default" not in whole
        yield Row(kind, path + name, _type(home, whole), required, text)
        yield from (row for row in inside if row.home == kind)
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and f"branch {values.get('$ref')}" in shown:
        values = None  # the rows of this branch are above
    for entry in (values, schema.get("items")):
        if isinstance(entry, dict):
            yield from _rows(*_whole(kind, entry), f"{path}*.", shown)
    for branch in [*schema.get("anyOf", ()), *([schema["else"]] if "else" in schema else ())]:
        yield from _rows(*_whole(kind, branch), path, shown)
        shown.update({branch["$ref"], f"branch {branch['$ref']}"} if "$ref" in branch else ())


def _whole(kind: str, schema: Any) -> tuple[str, Any]:
    """Return the kind that defines ``schema``, and ``schema`` with its reference resolved."""
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
        types = [_type(*_whole(kind, each)).split(" or ") for each in schema["anyOf"]]
        return " or ".join(dict.fromkeys(word for words in types for word in words))
    type_ = schema.get("type", "any")
    words = " or ".join(_WORDS.get(each, each) for each in ([type_] if isinstance(type_, str) else type_))
    entry = schema.get("items") or schema.get("additionalProperties")
    if isinstance(entry, dict) and not any(_rows(*_whole(kind, entry), "", set())):
        return f"{words} of {_type(*_whole(kind, entry))}"
    return " ".join([words, *(f"{sign} {schema[bound]}" for bound, sign in _BOUNDS.items() if bound in schema)])


def _line(row: Row) -> str:
    """Return a table row; Markdown in the description is escaped, except for links and code."""
    parts = row.description.split("`")
    text = "`".join(part if at % 2 else _MARKUP.sub(r"\\\g<0>", part) for at, part in enumerate(parts))
    return f"| `{row.key}` | {row.type} | {'yes' if row.required else ''} | {text} |"


def _anchor(kind: str) -> str:
    """Return the anchor of a heading."""
    return kind.replace("/", "")

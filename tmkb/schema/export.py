"""Export the meta-schemas as JSON Schemas for editors, which see a file before it is merged.

A file that may extend another can be incomplete, and can remove keys with null. Names that the code offers become
enums, and the settings of each provider are included in the schema of a server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from tmkb.schema import paths, reader, textfile
from tmkb.schema.metaschema import Names

EDITOR = os.path.join(paths.SCHEMAS, "editor")  # the schemas that packaged files refer to
_NAMED = ("properties", "patternProperties", "$defs")  # keywords that hold schemas by name
_SINGLE = ("additionalProperties", "items", "propertyNames")
_SEVERAL = ("anyOf", "oneOf", "allOf")
_OURS = ("described", "elsewhere", "example", "lacks", "noticed", "remedy", "renamed")  # our own keywords
_WHOLE = ("required", "dependentRequired", "if", "then", "else")  # true for the merged result only


def write(folder: str, names: Names) -> list[str]:
    """Write the schema of each kind below ``folder``, unless it is there, and return the file names."""
    written = []
    for name, text in texts(names):
        target = os.path.join(folder, *name.split("/"))
        if not _is(target, text):  # a build beside this one finds it whole
            textfile.save(target, text)
        written.append(name)
    return written


def _is(file: str, text: str) -> bool:
    """Return whether the content of ``file`` is ``text``."""
    try:
        with open(file, encoding="utf-8") as source:
            return source.read() == text
    except (OSError, UnicodeDecodeError):
        return False


def texts(names: Names) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of the schema of each kind. ``names``: the names that the code offers."""
    settings = {name: file for name in names["provider"] for file in names.get(f"settings of {name}", ())}
    files = paths.meta_schemas() | {f"providers/{name}": file for name, file in settings.items()}
    for kind, file in sorted(files.items()):
        schema = reader.read(file).mapping()
        properties: Any = schema.get("properties", {})
        partial = "extends" in properties or "kind" not in properties
        exported = _schema(schema, names, partial)
        if partial and "kind" in properties:
            exported |= {"type": "object", "required": ["kind"]}
        if "providers" in properties:
            exported["properties"]["providers"]["properties"] = {
                name: {"$ref": f"providers/{name}.json"} for name in settings
            }
        yield f"{kind}.json", json.dumps(exported, ensure_ascii=False, separators=(",", ":")) + "\n"


def _schema(schema: Any, names: Names, partial: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED:
            result[key] = {name: _schema(inner, names, partial) for name, inner in value.items()}
        elif key in _SINGLE:
            result[key] = _schema(value, names, partial)
        elif key in _SEVERAL:
            inner = [each for each in (_schema(each, names, partial) for each in value) if each]
            result |= {"anyOf" if partial and key == "oneOf" else key: inner} if inner else {}
        elif key == "$ref":
            result[key] = value.replace(".schema.yaml", ".json").replace(".yaml", ".json")
        elif key == "refersTo":
            result |= {"enum": sorted(names[value])} if value in names else {}
        elif not (key in _OURS or (partial and key in _WHOLE)):
            result[key] = value
    return _removable(result) if partial else result


def _removable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with null allowed, because null removes a key."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        schema["type"] = [kinds, "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return schema

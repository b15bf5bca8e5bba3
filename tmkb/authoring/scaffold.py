"""Create a new pattern from the files of `patterns/_template`, with another id and name."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from tmkb.errors import Problem, SpecError
from tmkb.knowledge import attacks, examples, vocabulary
from tmkb.knowledge.pattern import SCHEMA, folder_name
from tmkb.schema import metaschema, packed, paths, reader, textfile

TEMPLATE = os.path.join(paths.PATTERNS, "_template")
_MITIGATION = "MIT-AUTH-000"


def choices(key: str) -> list[str]:
    """Return the values that an enumerated ``key`` of a pattern can have."""
    enum: list[str] = _schema(key)["enum"]
    return enum


def check(key: str, value: str, parent: str = os.curdir) -> Problem | None:
    """Return the problem with ``value`` as the ``key`` of a new pattern inside the folder ``parent``, or None."""
    schema, flag = _schema(key), f"--{key}"
    if key == "id" and not re.fullmatch(schema["pattern"], value):
        return Problem.of_argument("bad_id", flag, text=value)
    if key == "id" and packed.exists(other := os.path.join(paths.PATTERNS, folder_name(value))):
        return Problem.of_argument("id_taken", flag, id=value, other=paths.shown(other))
    if key == "name" and not (0 < len(value) <= schema["maxLength"] and value.isprintable()):
        return Problem.of_argument("bad_name", flag, limit=schema["maxLength"])
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return Problem.of_argument("bad_word", flag, text=value, key=key)
    if key == "category" and value not in (known := vocabulary.read([parent]).categories):
        near = metaschema.near(value, known)
        if near["nearest"]:  # a value that is similar to none is the author's own category
            return Problem.of_argument("not_in_vocabulary", flag, kind=key, name=value, **near)
    return None


def write(parent: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Create the folder of a pattern with ``values`` inside ``parent``; return its path and its files.

    All files are written or none, and no existing file is changed. Raises SpecError.
    """
    folder = os.path.join("" if parent == os.curdir else parent, folder_name(values["id"]))
    if os.path.exists(os.path.join(parent, "pattern.yaml")):
        raise SpecError([Problem.of_argument("inside_pattern", "--dir", folder=parent)])
    is_new = False
    try:
        os.makedirs(parent, exist_ok=True)
        os.mkdir(folder)
        is_new = True
        os.mkdir(os.path.join(folder, examples.WRONG))
        files = packed.names(TEMPLATE) + [
            f"{examples.WRONG}/{name}" for name in packed.names(f"{TEMPLATE}/{examples.WRONG}")
        ]
        names = sorted(name for name in files if name.endswith((".yaml", ".py")))
        for name in names:
            _copy(name, folder, values)
    except OSError as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        elif isinstance(error, FileExistsError):
            rule = "taken" if error.filename == folder else "not_a_place"
            raise SpecError([Problem.of_argument(rule, "--dir", folder=error.filename)]) from error
        raise SpecError([Problem.of_argument("unwritable", "--dir", folder=folder, reason=error.strerror)]) from error
    return folder, names


@cache
def _schema(key: str) -> Any:
    properties: Any = reader.read(SCHEMA).mapping()["properties"]
    return properties[key]


def _copy(name: str, folder: str, values: Mapping[str, str]) -> None:
    path = os.path.join(TEMPLATE, name)
    text = textfile.read(path, path)
    if name == "pattern.yaml":
        text = _fill(metaschema.pointed(text, SCHEMA, os.path.join(folder, name)), values)
    elif name == attacks.NAME:
        text = metaschema.pointed(text, attacks.SCHEMA, os.path.join(folder, name))
    with open(os.path.join(folder, name), "x", encoding="utf-8", newline="\n") as target:
        target.write(text)


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the values of pattern.yaml, and set the review date to today."""
    lines = text.splitlines(keepends=True)
    values = {**values, "reviewed": datetime.date.today().isoformat()}
    for number, line in enumerate(lines):
        key = line.partition(":")[0]
        if key in values:
            value = values[key]
            lines[number] = f"{key}: {value if reader.bare(value) else json.dumps(value, ensure_ascii=False)}\n"
    return "".join(lines).replace(_MITIGATION, "MIT-" + values["id"].removeprefix("TMKB-"))

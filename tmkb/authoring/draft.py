"""A new pattern: the files of `patterns/_template`, which hold together, under an id and a name of their own."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
from functools import cache

from tmkb.errors import Problem, SpecError
from tmkb.knowledge import vocabulary
from tmkb.knowledge.pattern import SCHEMA, folder_name
from tmkb.schema import metaschema, paths, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TEMPLATE = os.path.join(paths.PATTERNS, "_template")
_MITIGATION = "MIT-AUTH-000"


def choices(key: str) -> list[str]:
    """What ``key`` of a pattern can be, where only some words are possible."""
    known: list[str] = _schema(key)["enum"]
    return known


def fault(key: str, value: str, place: str = os.curdir) -> Problem | None:
    """Why ``value`` cannot be the ``key`` of a new pattern in the folder ``place``; None where it can."""
    schema, flag = _schema(key), f"--{key}"
    if key == "id" and not re.fullmatch(schema["pattern"], value):
        return Problem.of_argument("bad_id", flag, text=value)
    if key == "id" and os.path.exists(other := os.path.join(paths.PATTERNS, folder_name(value))):
        return Problem.of_argument("id_taken", flag, id=value, other=paths.shown(other))
    if key == "name" and not (0 < len(value) <= schema["maxLength"] and value.isprintable()):
        return Problem.of_argument("bad_name", flag, limit=schema["maxLength"])
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return Problem.of_argument("bad_word", flag, text=value, key=key)
    if key == "category" and value not in (known := vocabulary.read([place]).categories):
        hint = metaschema.near(value, known)
        if hint["nearest"]:  # any other is a category of the author's own
            return Problem.of_argument("not_in_vocabulary", flag, kind=key, name=value, **hint)
    return None


def write(place: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Make the folder of a pattern with these ``values`` (key → what it is) in ``place``; gives it, and its files.

    All of it is made or nothing, and nothing that is there is touched. Raises SpecError.
    """
    folder = os.path.join("" if place == os.curdir else place, folder_name(values["id"]))
    if os.path.exists(os.path.join(place, "pattern.yaml")):
        raise SpecError([Problem.of_argument("inside_pattern", "--dir", folder=place)])
    try:
        os.makedirs(place, exist_ok=True)
        os.mkdir(folder)
    except FileExistsError as error:
        rule = "taken" if error.filename == folder else "not_a_place"
        raise SpecError([Problem.of_argument(rule, "--dir", folder=error.filename)]) from error
    except OSError as error:
        raise SpecError([Problem.of_argument("unwritable", "--dir", folder=folder, reason=error.strerror)]) from error
    try:
        return folder, [_copy(name, folder, values) for name in _files()]
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SpecError([Problem.of_argument("unwritable", "--dir", folder=folder, reason=error.strerror)]) from error


@cache
def _schema(key: str) -> Any:
    properties: Any = reader.read(SCHEMA).mapping()["properties"]
    return properties[key]


def _files() -> list[str]:
    return sorted(name for name in os.listdir(TEMPLATE) if name.endswith((".yaml", ".py")))


def _copy(name: str, folder: str, values: Mapping[str, str]) -> str:
    with open(os.path.join(TEMPLATE, name), encoding="utf-8") as source:
        text = source.read()
    if name == "pattern.yaml":
        text = _named(metaschema.pointed(text, SCHEMA, os.path.join(folder, name)), values)
    with open(os.path.join(folder, name), "x", encoding="utf-8", newline="\n") as target:
        target.write(text)
    return name


def _named(text: str, values: Mapping[str, str]) -> str:
    """The file of the template with ``values``, and with the day on which it was made."""
    lines = text.splitlines(keepends=True)
    given = {**values, "reviewed": datetime.date.today().isoformat()}
    for number, line in enumerate(lines):
        key = line.partition(":")[0]
        if key in given:
            value = given[key]
            lines[number] = f"{key}: {value if reader.bare(value) else json.dumps(value, ensure_ascii=False)}\n"
    return "".join(lines).replace(_MITIGATION, "MIT-" + values["id"].removeprefix("TMKB-"))

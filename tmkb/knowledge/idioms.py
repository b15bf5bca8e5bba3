"""Read idioms.yaml: the fix of a pattern in the idiom of other stacks than that of its own code."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import provenance
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import metaschema, paths, reader, textfile

NAME = "idioms.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "idioms.yaml")
_STAGE = "flask"  # the stack on whose stage the code of patterns runs
_REGION = re.compile(r"^[ \t]*(?:#|//) region idiom[ \t]*\n(.*?)^[ \t]*(?:#|//) endregion", re.M | re.S)


class Idiom(NamedTuple):
    """The fix of a pattern for a stack."""

    code: str
    caution: str | None
    app: str | None  # the file of the application that uses it, relative to the pattern


def read(folder: str) -> tuple[dict[str, Idiom], list[Problem]]:
    """Return the idioms of the pattern in ``folder`` by stack, and the problems of its files."""
    file = os.path.join(folder, NAME)
    if not os.path.lexists(file):
        return {}, []
    try:
        doc = reader.read(file, paths.shown(file))
        if problems := metaschema.check(doc, SCHEMA):
            return {}, problems
        value: Any = doc.value
        return {stack: _idiom(folder, each) for stack, each in value["stacks"].items()}, []
    except DocumentError as error:
        return {}, error.problems


def _idiom(folder: str, value: dict[str, str]) -> Idiom:
    code = value.get("code")
    if code is None:
        text = textfile.read(os.path.join(folder, value["app"]), value["app"])
        match = _REGION.search(text)
        code = match[1] if match else ""
    return Idiom(code, value.get("caution"), value.get("app"))


def served(folder: str, pattern: Pattern) -> dict[str, dict[str, str]]:
    """Return what is shown of the idioms of a pattern, by stack: code, status and, if there is one, caution.

    The stack of the pattern's own code has its template. The status is proven if the attacks of the pattern were played
    on the code, compiled if the parser of its language has accepted it, and text otherwise.
    """
    shown: dict[str, dict[str, str]] = {}
    if "template" in pattern:
        stack = pattern["framework"] if pattern["framework"] != "any" else _STAGE
        proven = provenance.status(folder, pattern) == "proven"
        own = Idiom(pattern["template"], pattern["agent_summary"].get("caution"), None)
        shown[stack] = _shown(own, "proven" if proven else "text")
    for stack, idiom in read(folder)[0].items():
        shown[stack] = _shown(idiom, "text")
    return shown


def _shown(idiom: Idiom, status: str) -> dict[str, str]:
    return {"code": idiom.code, **({"caution": idiom.caution} if idiom.caution else {}), "status": status}

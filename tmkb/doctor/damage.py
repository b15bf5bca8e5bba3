"""Explain an installation that cannot import its own modules. Needs nothing but the standard library."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

from tmkb import __version__

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FINDINGS = os.path.join(_PACKAGE, "doctor", "findings.yaml")
_VARIABLES = ("PYTHONHOME", "PYTHONPATH")  # they change which packages Python finds


class Damage(NamedTuple):
    """A finding that the file with the findings describes: its id, and the fields of its sentences."""

    id: str
    fields: Mapping[str, str]


def damage(error: BaseException) -> Damage | None:
    """Return the damage of this installation that an exception shows; None for other exceptions."""
    is_syntax, is_import = isinstance(error, SyntaxError), isinstance(error, ImportError)
    frames = traceback.extract_tb(error.__traceback__)
    if not is_syntax and not is_import and not any(frame.name == "<module>" for frame in frames):
        return None  # it was not raised by an import
    name = _module(error).partition(".")[0]
    file = (error.filename or "" if isinstance(error, SyntaxError) else frames[-1].filename) if frames else ""
    if name in ("", "tmkb") and file.startswith(_PACKAGE + os.sep):
        shown = _module(error) or os.path.relpath(file, os.path.dirname(_PACKAGE))
        return Damage("package-damaged", {"count": "1", "names": shown})
    package = name or _package(file)
    return Damage("dependency-missing", {"names": package, "python": sys.executable}) if package else None


def variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables that change which packages Python finds."""
    return [name for name in _VARIABLES if environment.get(name)]


def report(error: BaseException, words: Sequence[str]) -> str | None:
    """Return why this installation does not run, in the form that `tmkb doctor` has; None for other exceptions.

    ``words``: the arguments of the command line. Other commands than `doctor` get a line for each finding.
    """
    found = damage(error)
    if found is None:
        return None
    listed = [found]
    if names := variables(os.environ):
        listed.append(Damage("python-variables", {"names": ", ".join(names)}))
    findings = [_value(each, error) for each in listed]
    if "doctor" not in words[:1]:
        return "\n".join(f"tmkb: {each['cause']} {each['remedy']}" for each in findings)
    if "--json" in words:
        return json.dumps({**_versions(), "level": "error", "checks": [], "findings": findings})
    return "\n".join(_page(findings))


def _versions() -> dict[str, object]:
    return {
        "tmkb": __version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "executable": sys.executable,
    }


def _value(found: Damage, error: BaseException) -> dict[str, object]:
    level, cause, remedy = _sentences(found)
    return {
        "id": found.id,
        "subject": "tmkb",
        "level": level,
        "cause": cause,
        "remedy": remedy,
        "file": None,
        "line": None,
        "column": None,
        "details": [f"{type(error).__name__}: {error}"] if level == "error" else [],
    }


def _page(findings: Sequence[Mapping[str, object]]) -> Iterator[str]:
    yield f"tmkb {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}\n\ntmkb"
    for each in findings:
        yield f"  {each['level']}  {each['id']}\n    {each['cause']}"
        details = each["details"]
        assert isinstance(details, list)
        yield from (f"    | {line}" for line in details)
        yield f"    Fix: {each['remedy']}"
    yield "\nNothing else was checked."


def _sentences(found: Damage) -> tuple[str, str, str]:
    """Return level, cause and remedy. The lines of the file are read without a parser of YAML, which may be missing."""
    try:
        with open(_FINDINGS, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        text = ""
    match = re.search(rf"^  {found.id}:\n    level: (\w+)\n    cause: (.*)\n    remedy: (.*)\n", text, re.M)
    if match is None:  # this file is damaged too
        return "error", f"{found.id}: {', '.join(found.fields.values())}.", "Install tmkb again."
    cause, remedy = (json.loads(each).format(**found.fields) for each in match.group(2, 3))
    return match[1], cause, remedy


def _module(error: BaseException) -> str:
    """Return the module that is missing, or lacks a name; empty if the exception does not say so."""
    if isinstance(error, ImportError):
        return error.name or ""
    owner = error.obj if isinstance(error, AttributeError) else None
    return owner.__name__ if isinstance(owner, ModuleType) else ""


def _package(file: str) -> str:
    """Return the package that a file below a folder of modules belongs to; empty if there is none."""
    for folder in sorted(filter(os.path.isabs, sys.path), key=len, reverse=True):
        if file.startswith(os.path.join(folder, "")):
            return os.path.relpath(file, folder).split(os.sep)[0].removesuffix(".py")
    return ""

"""Which entries in files of a project are started: others may have written them, so only what `tmkb install` writes."""

from __future__ import annotations

import os
import re
import shutil

from tmkb.clients import launch
from tmkb.clients.machine import Machine
from tmkb.doctor.inventory import Entry
from tmkb.knowledge.library import PACKAGED

_WORDS = re.compile(rf"{launch.PORTABLE}\nserve(?:\n--server\n\w[\w-]*)?(?:\n--patterns\n{PACKAGED})*")


def refusal(entry: Entry, machine: Machine) -> str:
    """Return why the server of an entry must not be started or asked; empty if it may be.

    Args:
        entry: of a client.
        machine: whose current folder is the project.
    """
    if entry.scope != "project" or entry.place.file in entry.client.files("user", machine):
        return ""
    if entry.url and not entry.words:
        return "it has a URL"
    for key in ("env", "cwd"):
        if entry.value.get(key):
            return f"it has `{key}`"
    if not _WORDS.fullmatch("\n".join(entry.words)):
        return "its command is not `tmkb serve` as `tmkb install` writes it"
    program = _program(machine)
    if program and any(_is_below(path, machine.folder) for path in (os.path.dirname(program), program)):
        return f"`tmkb` on PATH is {program}, in the folder of the project"
    return ""


def _program(machine: Machine) -> str:
    """Return the program that the command names; parts of PATH can be relative to the project, where it is started."""
    parts = machine.environment.get("PATH", "").split(os.pathsep)
    path = os.pathsep.join(os.path.join(machine.folder, part) for part in parts)
    found = shutil.which(launch.PORTABLE, path=path)  # on Windows it can be relative, too
    return os.path.join(machine.folder, found) if found else ""


def _is_below(path: str, folder: str) -> bool:
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))

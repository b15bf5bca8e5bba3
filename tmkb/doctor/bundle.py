"""Write a ZIP file for a bug report: versions, findings, entries and logs, without secrets."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tmkb import __version__
from tmkb.clients.machine import Machine
from tmkb.doctor import client_logs
from tmkb.doctor.inventory import Inventory
from tmkb.doctor.masking import Mask
from tmkb.schema import installation, paths
from tmkb.schema.values import JsonObject, JsonValue

_README = """\
Made by `tmkb doctor --bundle`. Values of environment variables and headers, tokens, and the path of the home folder
are replaced. Read the files before you publish them: names of folders, servers and projects are not replaced.
"""


@dataclass(frozen=True)
class Content:
    """What the file gets besides versions.

    Attributes:
        page: the findings as text.
        values: the findings as JSON.
        configurations: see `configurations`.
        logs: path of a log → its last lines.
    """

    page: str
    values: JsonValue
    configurations: Sequence[JsonObject]
    logs: Mapping[str, Sequence[str]]


def write(file: str, content: Content, mask: Mask) -> None:
    """Write a new file that only this user can read. Raises OSError, also if ``file`` exists."""
    members = {
        "README.txt": _README,
        "doctor.txt": content.page + "\n",
        "doctor.json": _json(content.values),
        "versions.json": _json(versions()),
        "configurations.json": _json([*content.configurations]),
    }
    for number, (path, lines) in enumerate(content.logs.items(), 1):
        members[f"logs/{number}.txt"] = "\n".join([path, "", *lines, ""])
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with (
        os.fdopen(os.open(file, flags, 0o600), "wb") as target,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in members.items():
            masked = mask.without_home(mask.text(text) if name.endswith(".txt") else text)
            archive.writestr(name, masked.encode("utf-8", "backslashreplace"))


def configurations(inventories: Iterable[Inventory], mask: Mask) -> list[JsonObject]:
    """Return our entries without secrets, and the names of other servers."""
    listed: list[JsonObject] = []
    for each in inventories:
        name = each.client.name
        for entry in each.entries:
            known: JsonObject = {"client": name, "scope": entry.scope, "file": str(entry.place), "name": entry.name}
            listed.append({**known, "entry": mask.entry(entry.value)})
        listed += [{"client": name, "file": path, "other_servers": [*others]} for path, others in each.others.items()]
    return listed


def logs(inventories: Iterable[Inventory], machine: Machine) -> dict[str, list[str]]:
    """Return the last lines about our entries of the newest log of each client, by path."""
    found = (client_logs.newest(each.client, machine, [entry.name for entry in each.entries]) for each in inventories)
    return {extract.path: client_logs.tail(extract) for extract in found if extract is not None}


def versions() -> JsonObject:
    """Return the versions of TMKB, Python, the system and the packages that TMKB can use."""
    packages: JsonObject = {}
    for name in _packages():
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "tmkb": __version__,
        "data": paths.ROOT,
        "python": sys.version,
        "executable": sys.executable,
        "system": platform.platform(),
        "encoding": sys.getfilesystemencoding(),
        "packages": packages,
    }


def _packages() -> Iterable[str]:
    try:
        return sorted({each.package for each in installation.required()} - {installation.NAME})
    except importlib.metadata.PackageNotFoundError:
        return []


def _json(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"  # TOML has dates

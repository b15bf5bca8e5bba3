"""Check the settings of a client beside an entry: is it switched on, trusted and approved?"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

from tmkb.clients.client import Client
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.machine import Machine
from tmkb.doctor.entry_keys import TOOL
from tmkb.doctor.finding import Finding
from tmkb.doctor.inventory import Entry, Inventory
from tmkb.schema.values import JsonValue

_ACCESS = "chat.mcp.access"  # a setting of VS Code


def approval(found: Inventory, machine: Machine) -> Iterator[Finding]:
    """Yield what keeps a client from starting the server of an entry: it is switched off, or the user has to agree."""
    for entry in found.entries:
        if entry.value.get("disabled") is True:
            key = "`enabled` of the entry is false" if "enabled" in entry.raw else "`disabled` of the entry is true"
            yield _disabled(found, entry, key)
        check = _APPROVALS.get(found.client.name)
        yield from check(found, entry, machine) if check else ()


def _disabled(found: Inventory, entry: Entry, how: str) -> Finding:
    return entry.topic.found("entry-disabled", name=entry.name, client=found.client.title, how=how)


def _untrusted(found: Inventory, entry: Entry, machine: Machine, remedy: str) -> Finding:
    return entry.topic.found("project-untrusted", client=found.client.title, folder=machine.folder, remedy=remedy)


def _claude_code(found: Inventory, entry: Entry, machine: Machine) -> Iterator[Finding]:
    project = found.at(("projects", machine.repository), "user")
    off = {key: _names(project.get(key)) for key in ("disabledMcpServers", "disabledMcpjsonServers")}
    settings = [
        *machine.paths("{claude}/settings.json", found.client.data["folders"]),
        *(os.path.join(machine.folder, ".claude", name) for name in ("settings.json", "settings.local.json")),
    ]
    approved = _names(project.get("enabledMcpjsonServers"))
    agrees = False
    denied: list[str] = []
    for path in settings:
        values = _settings(path, found.client)
        off["disabledMcpjsonServers"] += _names(values.get("disabledMcpjsonServers"))
        approved += _names(values.get("enabledMcpjsonServers"))
        permissions = values.get("permissions")
        denied += _names(permissions.get("deny")) if isinstance(permissions, dict) else []
        agrees = agrees or values.get("enableAllProjectMcpServers") is True
    forms = {f"mcp__{entry.name}{tool}" for tool in ("", "__*", f"__{TOOL}")}
    for rule in dict.fromkeys(each for each in denied if each in forms):
        how = f"`permissions.deny` contains `{rule}`"
        yield entry.topic.found("tools-off", client=found.client.title, tool=TOOL, how=how)
    if keys := [key for key, names in off.items() if entry.name in names]:
        yield _disabled(found, entry, f"`{keys[0]}` of this project contains it")
    elif entry.scope == "project" and not agrees and entry.name not in approved:
        yield entry.topic.found("approval-pending", name=entry.name)


def _codex(found: Inventory, entry: Entry, machine: Machine) -> Iterator[Finding]:
    projects = found.at(("projects",), "user")
    folders = [machine.folder, os.path.realpath(machine.folder)]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    trusted = any(
        isinstance(each, dict) and each.get("trust_level") == "trusted" for each in map(projects.get, folders)
    )
    if entry.scope == "project" and not trusted:
        remedy = "Start `codex` in this folder and trust it, or put the entry into the user's file"
        yield _untrusted(found, entry, machine, remedy)


def _gemini(found: Inventory, entry: Entry, machine: Machine) -> Iterator[Finding]:
    mcp = found.at(("mcp",), "user") | found.at(("mcp",), "project")
    allowed = mcp.get("allowed")
    if entry.name in _names(mcp.get("excluded")):
        yield _disabled(found, entry, "`mcp.excluded` contains it")
    elif isinstance(allowed, list) and entry.name not in allowed:
        yield _disabled(found, entry, "`mcp.allowed` lacks it")
    trust = found.at(("security", "folderTrust"), "user").get("enabled", True)
    path = os.path.join(machine.home, ".gemini", "trustedFolders.json")
    folders = {folder: level for folder, level in _settings(path, found.client).items() if isinstance(level, str)}
    if trust is not False and folders and not _is_trusted(machine.folder, folders):
        remedy = "Start `gemini` in this folder and trust it; `/permissions` changes it later"
        yield _untrusted(found, entry, machine, remedy)


def _opencode(found: Inventory, entry: Entry, _: Machine) -> Iterator[Finding]:
    tools = found.at(("tools",), "user") | found.at(("tools",), "project")
    for form, value in tools.items():
        if value is False and fnmatch.fnmatchcase(f"{entry.name}_{TOOL}", form):
            yield entry.topic.found(
                "tools-off", client=found.client.title, tool=TOOL, how=f"`tools` has `{form}`: false"
            )


def _vscode(found: Inventory, entry: Entry, machine: Machine) -> Iterator[Finding]:
    folder = os.path.dirname(found.client.files("user", machine)[0])
    if _settings(os.path.join(folder, "settings.json"), found.client).get(_ACCESS) == "none":
        yield _disabled(found, entry, f"the setting `{_ACCESS}` is `none`")


def _is_trusted(folder: str, levels: dict[str, str]) -> bool:
    """Return what the nearest folder with a level says; TRUST_PARENT is about the folder above."""
    folder, nearest = os.path.realpath(folder), ""
    for name, level in levels.items():
        above = os.path.realpath(os.path.dirname(name) if level == "TRUST_PARENT" else name)
        if os.path.join(folder, "").startswith(os.path.join(above, "")):
            nearest = max(nearest, name, key=len)
    return levels.get(nearest, "").startswith("TRUST")


_APPROVALS = {"claude-code": _claude_code, "codex": _codex, "gemini": _gemini, "opencode": _opencode, "vscode": _vscode}


def _settings(path: str, client: Client) -> dict[str, JsonValue]:
    """Return the values of another file of a client; nothing if it is missing or broken."""
    try:
        return Configuration.at(path, client, ()).raw
    except ConfigurationError:
        return {}


def _names(value: JsonValue) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []

"""What a recorded server offers: its identity, its capabilities and its tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmkb.conformance.scripts import Recording, Say
from tmkb.conformance.transcript import Transcript
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject, JsonValue


def identity(recording: Recording, transcripts: Sequence[Transcript]) -> JsonObject:
    """Return the name and version of the recorded server."""
    for _, result in recording.results("initialize", "serverInfo"):
        if isinstance(info := result["serverInfo"], dict):
            return info
    for script in recording.requests:
        meta: Any = (script.result or {}).get("_meta")
        info = meta.get(script.revision.get("identity")) if isinstance(meta, dict) else None
        if isinstance(info, dict):
            return info
    name = str(transcripts[0].value["server"]) if transcripts else "mock"
    return {"name": name, "version": "0"}


def declared(recording: Recording) -> tuple[JsonObject, JsonValue] | None:
    """Return the capabilities and the instructions of the recorded server; None if they were not recorded."""
    for handler in ("initialize", "discover"):
        for _, result in recording.results(handler, "capabilities"):
            if isinstance(declared := result["capabilities"], dict):
                return declared, result.get("instructions")
    return None


def used(recording: Recording) -> JsonObject:
    """Return the capabilities that the recorded server used."""
    used: JsonObject = {}
    scripts = [*recording.requests, *recording.notifications]
    said = [step.message for each in scripts for step in each.steps if isinstance(step, Say)]
    methods = [each.method for each in scripts if each.result is not None]
    methods += [str(each.get("method")) for each in said if isinstance(each, dict)]
    rules = [
        rows["methods"][name]
        for rows in recording.spec["revisions"].values()
        for name in methods
        if name in rows["methods"]
    ]
    for capability in [row["capability"] for row in rules if "capability" in row]:
        place: Any = used
        name, _, flag = capability.partition(".")
        place = place.setdefault(name, {})
        if flag:
            place[flag] = True
    return used


def spec(rules: Spec, recording: Recording, capabilities: JsonObject) -> Spec:
    """Return the rules with the recorded tools, whose schemas select HTTP headers, and the capabilities."""
    tools: Any = {}
    for _, result in recording.results("list_tools", "tools"):
        for tool in result["tools"] if isinstance(result["tools"], list) else ():
            if isinstance(tool, dict) and "name" in tool:
                tools[str(tool["name"])] = {"name": str(tool["name"]), "input": tool.get("inputSchema")}
    server: Any = {**rules["server"], "capabilities": capabilities}
    spec: Any = {**rules, "server": server, "tools": tools, "prompts": {}, "resources": {}}
    return spec  # type: ignore[no-any-return] # a Spec

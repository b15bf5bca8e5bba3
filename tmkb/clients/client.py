"""An MCP client as data: ``clients/<name>.yaml``."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tmkb.clients.machine import Machine
from tmkb.errors import Problem, SpecError
from tmkb.schema import metaschema, paths, template
from tmkb.schema.values import JsonObject, JsonValue

SCOPES = ("user", "project", "local")
_EXAMPLE = "tmkb"  # the name of an entry


class Location(NamedTuple):
    """Where a scope has its entries. `paths`: alternatives, best first. `folder`: exists if the client is there."""

    paths: tuple[str, ...]
    folder: str

    @property
    def path(self) -> str:
        """The file to use: the first that exists, else the first."""
        return next((path for path in self.paths if os.path.lexists(path)), self.paths[0])

    @property
    def is_there(self) -> bool:
        """Whether the client seems to be there."""
        return os.path.exists(self.folder) or any(map(os.path.lexists, self.paths))


class Dead(NamedTuple):
    """A file that looks right and is never read. `scope`: where its entries belong."""

    path: str
    key: tuple[str, ...]
    scope: str


@dataclass(frozen=True)
class Client:
    """An MCP client. ``data``: the content of its file."""

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name in `tmkb install NAME`."""
        return str(self.data["name"])

    @property
    def title(self) -> str:
        """The name of the product."""
        return str(self.data["title"])

    @property
    def syntax(self) -> str:
        """How its file is written: `json`, `toml`, `yaml` or `own`."""
        return str(self.data["syntax"])

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that it has: `user`, `project`, `local`."""
        return tuple(scope for scope in SCOPES if scope in self.data["scopes"])

    @property
    def program(self) -> str | None:
        """The name of its own command, if it has one."""
        return self.data.get("program")

    @property
    def note(self) -> str | None:
        """What else to know about an installation."""
        return self.data.get("note")

    @property
    def start_seconds(self) -> float:
        """Seconds that a server may take to start."""
        return float(self.data["start_seconds"])

    def scope(self, scope: str) -> Mapping[str, Any]:
        """Return the facts of a scope, which must be one of `scopes`."""
        facts: Mapping[str, Any] = self.data["scopes"][scope]
        return facts

    def after(self, scope: str) -> str:
        """Return what the user does after an installation."""
        return str(self.scope(scope)["after"])

    def key(self, scope: str, machine: Machine) -> tuple[str, ...]:
        """Return the path of the map or list that has the servers."""
        key = self.scope(scope).get("key", self.data["key"])
        return tuple(template.fill(step, {"repository": machine.repository}) for step in key)

    def locations(self, scope: str, machine: Machine, name: str = _EXAMPLE) -> list[Location]:
        """Return where a scope has its entries; each location whose client is there gets an entry.

        ``name``: the name of the entry, which some clients have in the name of the file.
        """
        found = []
        for form in self._forms(self.scope(scope)["files"], machine):
            alternatives = [form] if isinstance(form, str) else form["first"]
            folder = None if isinstance(form, str) else form.get("folder")
            files = [self._paths(alternative, machine, name) for alternative in alternatives]
            folders = self._paths(folder, machine, name) if folder else []
            for number, path in enumerate(files[0]):
                same = (path, *(other[number] for other in files[1:]))
                default = machine.folder if scope == "project" else os.path.dirname(path)
                found.append(Location(same, folders[number] if folders else default))
        return found

    def files(self, scope: str, machine: Machine, name: str = _EXAMPLE) -> list[str]:
        """Return all files that the client may read in a scope, whether they exist or not."""
        return [path for location in self.locations(scope, machine, name) for path in location.paths]

    def is_installed(self, machine: Machine) -> bool:
        """Return whether the client seems to be on this machine."""
        scopes = [scope for scope in self.scopes if scope != "project"]
        return any(place.is_there for scope in scopes for place in self.locations(scope, machine))

    def dead(self, machine: Machine) -> list[Dead]:
        """Return the files that look right and are never read, whether they exist or not."""
        return [
            Dead(path, tuple(each["key"]), each.get("scope", "user"))
            for each in self.data.get("dead", [])
            for path in self._paths(each["path"], machine, _EXAMPLE)
        ]

    def logs(self, machine: Machine) -> list[str]:
        """Return the existing log files, the newest first."""
        forms = self._forms(self.data.get("logs", []), machine)
        files = [path for form in forms for path in self._paths(form, machine, _EXAMPLE) if os.path.isfile(path)]
        return sorted(files, key=_changed, reverse=True)

    def entry(self, scope: str, name: str, command: str, args: list[str]) -> JsonObject:
        """Return the entry of a server that ``command`` with ``args`` starts, in the shape of the client."""
        shape = self.scope(scope).get("entry", self.data["entry"])
        words: list[JsonValue] = [command, *args]
        filled = _filled(shape, {"name": name, "command": command, "args": [*args], "words": words})
        assert isinstance(filled, dict)
        return filled

    def whole(self, name: str) -> JsonObject:
        """Return the other keys of a file that has only our entry."""
        filled = _filled(self.data["whole"], {"name": name})
        assert isinstance(filled, dict)
        return filled

    def normalised(self, entry: JsonObject) -> JsonObject:
        """Return an entry with the usual keys.

        These are `command` (a string), `args` (a list), `env` (a map), `cwd`, `url` and `disabled` (a boolean), as far
        as the entry has them. Other keys stay as they are.
        """
        usual = {theirs: ours for ours, theirs in self.data.get("fields", {}).items()}
        result: JsonObject = {usual.get(key, key): value for key, value in entry.items()}
        command, enabled = result.get("command"), result.pop("enabled", None)
        if isinstance(command, list) and command:
            result["command"], result["args"] = command[0], command[1:]
        if isinstance(enabled, bool):
            result["disabled"] = not enabled
        return result

    def _forms(self, files: Any, machine: Machine) -> list[Any]:
        return [*(files.get(machine.platform, []) if isinstance(files, Mapping) else files)]

    def _paths(self, form: str, machine: Machine, name: str) -> list[str]:
        return machine.paths(form, self.data.get("folders"), name=name)


@functools.cache
def clients() -> tuple[Client, ...]:
    """Return all clients, by name. Raises SpecError if a file is damaged."""
    schema = os.path.join(paths.SCHEMAS, "meta", "client.yaml")
    files = sorted(glob.glob(os.path.join(paths.CLIENTS, "*.yaml")))
    return tuple(Client(metaschema.read(file, schema).mapping()) for file in files)


def client(name: str) -> Client:
    """Return the client with a name or alias. Raises SpecError, with a suggestion, if there is none."""
    known = {each.name: each for each in clients()}
    aliases = {alias: each for each in clients() for alias in each.data.get("aliases", [])}
    found = known.get(name) or aliases.get(name)
    if found is None:
        near = metaschema.nearest(name, [*known, *aliases])
        problem = Problem.of_argument("unknown_client", "CLIENT", name=name, nearest=near, known=", ".join(known))
        raise SpecError([problem])
    return found


def _filled(shape: JsonValue, fields: Mapping[str, JsonValue]) -> JsonValue:
    """Return an entry with its placeholders filled."""
    if isinstance(shape, dict):
        if (field := template.value_path(shape)) is not None:
            return fields[field]
        return {key: _filled(inner, fields) for key, inner in shape.items()}
    if isinstance(shape, list):
        return [_filled(inner, fields) for inner in shape]
    return template.fill(shape, fields) if isinstance(shape, str) else shape


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0

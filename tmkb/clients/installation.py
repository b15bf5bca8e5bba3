"""Add the entry of a server to the files of a client, and take it out."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tmkb.clients import files, launch
from tmkb.clients.client import Client, Location
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.machine import Machine
from tmkb.errors import Problem
from tmkb.schema.values import JsonObject, JsonValue


class Target(NamedTuple):
    """A file that gets the entry."""

    client: Client
    scope: str
    path: str


@dataclass(frozen=True)
class Outcome:
    """What happened to a file, or would happen.

    Args:
        target: the file.
        action: `added`, `replaced`, `unchanged`, `removed` or `absent`.
        before: its content; None if it is missing.
        after: its new content; None if it is deleted.
        backup: the path of the backup; None without one.
        warnings: what the user should know.
    """

    target: Target
    action: str
    before: bytes | None = None
    after: bytes | None = None
    backup: str | None = None
    warnings: list[str] = field(default_factory=list)


class Differs(ConfigurationError):
    """There is another entry with the name. ``outcome``: what a replacement would do."""

    def __init__(self, problem: Problem, outcome: Outcome) -> None:
        super().__init__(problem)
        self.outcome = outcome


@dataclass(frozen=True)
class Edit:
    """An entry to add or to take out.

    Args:
        name: of the entry.
        machine: whose files are edited.
        force: whether another entry with this name is replaced, and a file made for a client that is not there.
        dry: whether nothing is written.
    """

    name: str
    machine: Machine
    force: bool = False
    dry: bool = False

    def targets(self, client: Client, scope: str) -> list[Target]:
        """Return the files that get the entry: one in each location of the client.

        Raises:
            ConfigurationError: the client is not there: neither its folder nor its command; without ``force``.
        """
        places = client.locations(scope, self.machine, self.name)
        present = [place for place in places if place.is_there]
        if not present and places and (self.force or self._has_program(client)):
            present = places[:1]
        if not present:
            shown = [self.machine.shown(place.folder) for place in places] or ["folder of it"]
            fields = {"title": client.title, "folder": " and no ".join(shown)}
            raise ConfigurationError(Problem("client_missing", client.name, 0, 0, **fields))
        return [Target(client, scope, self._file(client, scope, place)) for place in present]

    def present(self, client: Client, scope: str) -> list[Target]:
        """Return the files of a scope that exist, or that cannot be looked for."""
        found = client.files(scope, self.machine, self.name)
        return [Target(client, scope, path) for path in found if files.is_there(path)]

    def install(self, target: Target, entry: JsonObject) -> Outcome:
        """Add an entry to a file.

        Raises:
            Differs: there is another entry with the name, without ``force``.
            ConfigurationError: the file cannot be read, edited or written.
        """
        plan = self._plan(target, self._read(target), entry)
        if plan.action == "unchanged":
            return plan
        return self._written(plan, lambda data: self._plan(target, self._of(target, data), entry).after)

    def uninstall(self, target: Target) -> Outcome:
        """Take the entry out of a file; if only the entry was added since a backup, the file is as it was.

        Raises:
            Differs: the entry does not start tmkb, without ``force``.
            ConfigurationError: the file cannot be read, edited or written.
        """
        plan = self._removal(target, self._read(target))
        if plan.action == "absent":
            return plan
        return self._written(plan, lambda data: self._removal(target, self._of(target, data)).after)

    def _plan(self, target: Target, configuration: Configuration, entry: JsonObject) -> Outcome:
        """Return what an installation would do. Raises Differs and ConfigurationError."""
        data, warnings = configuration.data, self._warnings(configuration, entry)
        found = configuration.raw.get(self.name)
        if is_same(entry, found):
            return Outcome(target, "unchanged", data, data, warnings=warnings)
        if isinstance(found, dict) and _is_moved(target.client, entry, found):
            old, new = (str(target.client.normalised(each)["command"]) for each in (found, entry))
            after = configuration.with_word(self.name, old, new, found | entry)
            if after is not None:
                return Outcome(target, "replaced", data, after, warnings=warnings)
        action = "replaced" if self.name in configuration.raw else "added"
        plan = Outcome(target, action, data, configuration.with_server(self.name, entry), warnings=warnings)
        if action == "replaced" and not self.force:
            raise self._differs("client_differs", configuration, plan)
        return plan

    def _removal(self, target: Target, configuration: Configuration) -> Outcome:
        """Return what an uninstallation would do. Raises Differs and ConfigurationError."""
        data = configuration.data
        if self.name not in configuration.raw:
            return Outcome(target, "absent", data, data)
        earlier = self._before_installation(configuration)
        if earlier is None:
            plan = Outcome(target, "removed", data, configuration.without_server(self.name))
        else:
            plan = Outcome(target, "removed", data, earlier.data)
            if self.name in earlier.raw:
                plan.warnings.append(f"The entry '{self.name}' that --force replaced is in this file again.")
        if not (self.force or _starts_tmkb(configuration, self.name)):
            raise self._differs("client_foreign", configuration, plan)
        return plan

    def _differs(self, rule: str, configuration: Configuration, plan: Outcome) -> Differs:
        place = configuration.place(self.name)
        return Differs(Problem(rule, self._shown(plan.target), *place, name=self.name), plan)

    def _before_installation(self, configuration: Configuration) -> Configuration | None:
        """Return the file as it was when the entry was added, or put in the place of one that does not start tmkb.

        None: something else has changed since, or there is no backup.
        """
        entry, is_ours = configuration.raw[self.name], _starts_tmkb(configuration, self.name)
        if not isinstance(entry, dict):
            return None
        for backup in [*files.backups(configuration.path), None]:
            with contextlib.suppress(ConfigurationError):
                earlier = _earlier(configuration, backup)
                is_before = self.name not in earlier.raw or (is_ours and not _starts_tmkb(earlier, self.name))
                if is_before and earlier.with_server(self.name, entry) == configuration.data:
                    return earlier
        return None

    def _written(self, plan: Outcome, change: files.Change) -> Outcome:
        """Carry out a plan by an edit of the file."""
        path = plan.target.path
        with contextlib.suppress(OSError):
            if os.stat(path).st_nlink > 1:
                sentence = "This file has more than one name (hard links); the others keep the content of before."
                plan.warnings.append(f"{self._shown(plan.target)}: {sentence}")
        if self.dry:
            has_backup = plan.before is not None and plan.after is not None
            return replace(plan, backup=files.next_backup(path) if has_backup else None)
        scope = plan.target.client.scope(plan.target.scope)
        lock = path + scope["lock"] if "lock" in scope else None
        backup = files.replace(path, self._shown(plan.target), change, "private" in scope, lock)
        return replace(plan, backup=backup)

    def _has_program(self, client: Client) -> bool:
        """Return whether a client that runs in a terminal has its command there, also if it was never started."""
        path = self.machine.environment.get("PATH", "")
        return "terminal" in client.data and shutil.which(str(client.program), path=path) is not None

    def _warnings(self, configuration: Configuration, entry: JsonObject) -> list[str]:
        """Return what keeps the client from using the entry. Raises ConfigurationError if it must not be added."""
        client, warnings = configuration.client, []
        for words, how, line, column in configuration.refused():
            fields = {"title": client.title, "what": words}
            problem = Problem("client_refused", self.machine.shown(configuration.path), line, column, **fields)
            if how == "refuse":
                raise ConfigurationError(problem)
            place = f"{problem.file}:{line}:{column}"
            warnings.append(f"{place}: {client.title} may be unable to read a file with {words}, as here.")
        servers, wanted = configuration.servers, client.normalised(entry)
        found = servers.get(self.name, {})
        if found.get("disabled") is True and is_same(entry, configuration.raw.get(self.name)):
            warnings.append(f"The entry is disabled. Enable it in {client.title}.")
        for name, server in servers.items():
            if name != self.name and launch.is_ours(name, server) and server.get("args") == wanted["args"]:
                place = ":".join([self.machine.shown(configuration.path), *map(str, configuration.place(name))])
                warnings.append(f"{place}: The entry {name} starts tmkb, too. Remove one of them.")
        return warnings

    def _file(self, client: Client, scope: str, place: Location) -> str:
        """Return the file of a location that has the entry already, else the preferred one."""
        for path in place.paths:
            with contextlib.suppress(ConfigurationError):
                if self.name in Configuration.read(path, client, scope, self.machine).raw:
                    return path
        return place.path

    def _read(self, target: Target) -> Configuration:
        return Configuration.read(target.path, target.client, target.scope, self.machine)

    def _of(self, target: Target, data: bytes | None) -> Configuration:
        """Return the file with another content."""
        key = target.client.key(target.scope, self.machine)
        return Configuration(target.path, target.client, key, None, "", self._shown(target)).with_data(data)

    def _shown(self, target: Target) -> str:
        return self.machine.shown(target.path)


def is_same(entry: JsonObject, found: JsonValue) -> bool:
    """Return whether ``found`` has all of ``entry``; what a user or a client added does not matter."""
    return isinstance(found, dict) and all(key in found and found[key] == value for key, value in entry.items())


def _starts_tmkb(configuration: Configuration, name: str) -> bool:
    return launch.starts_tmkb(configuration.servers.get(name, {}))


def _is_moved(client: Client, entry: JsonObject, found: JsonObject) -> bool:
    """Return whether ``found`` differs from ``entry`` only in a command of ours that is gone."""
    old = client.normalised(found)
    wanted = client.normalised(entry) | {"command": old.get("command")}
    return launch.starts_tmkb(old) and launch.is_gone(old) and is_same(wanted, old)


def _earlier(configuration: Configuration, backup: str | None) -> Configuration:
    """Return the file as a backup has it; None stands for the missing file. Raises ConfigurationError."""
    if backup is None:
        return configuration.with_data(None)
    return Configuration.at(backup, configuration.client, configuration.key)

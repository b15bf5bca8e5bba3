"""Add the entry of a server to the files of a client, and take it out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tmkb.clients import files, launch
from tmkb.clients.client import Client, Location
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.machine import Machine
from tmkb.errors import Problem
from tmkb.schema import template
from tmkb.schema.values import JsonObject, JsonValue

_PATIENCE = 120  # seconds for a client's own command
_BATCH = (".bat", ".cmd")  # whose arguments Windows reads in its own way


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
        after: its new content; None if it is deleted, or if a command of the client writes it.
        backup: the path of the backup; None without one.
        command: the words of the client's own command, if it is used.
        warnings: what the user should know.
    """

    target: Target
    action: str
    before: bytes | None = None
    after: bytes | None = None
    backup: str | None = None
    command: tuple[str, ...] = ()
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
        if not present and places and (self.force or self._program(client, scope)):
            present = places[:1]
        if not present:
            shown = [self.machine.shown(place.folder) for place in places] or ["folder of it"]
            fields = {"title": client.title, "folder": " and no ".join(shown)}
            raise ConfigurationError(Problem("client_missing", client.name, 0, 0, **fields))
        return [Target(client, scope, self._file(client, scope, place)) for place in present]

    def present(self, client: Client, scope: str) -> list[Target]:
        """Return the files of a scope that exist."""
        found = client.files(scope, self.machine, self.name)
        return [Target(client, scope, path) for path in found if os.path.exists(path)]

    def install(self, target: Target, entry: JsonObject) -> Outcome:
        """Add an entry to a file.

        Raises:
            Differs: there is another entry with the name, without ``force``.
            ConfigurationError: the file cannot be read, edited or written.
        """
        plan = self._plan(target, self._read(target), entry)
        if plan.action == "unchanged":
            return plan
        if words := self._own_command(target, "add", entry):
            return self._run(plan, words, entry)
        if "own_command" in target.client.scope(target.scope):
            sentence = "The command {} was not found, so the file itself is edited: do it while no session runs."
            plan.warnings.append(sentence.format(target.client.program))
        return self._written(plan, lambda data: self._plan(target, self._of(target, data), entry).after)

    def uninstall(self, target: Target) -> Outcome:
        """Take the entry out of a file; if only the entry was added since our last backup, the file is as it was.

        Raises:
            ConfigurationError: the file cannot be read, edited or written.
        """
        configuration = self._read(target)
        if self.name not in configuration.raw:
            return Outcome(target, "absent", configuration.data, configuration.data)
        plan = Outcome(target, "removed", configuration.data, self._without(configuration))
        if words := self._own_command(target, "remove", {}):
            return self._run(plan, words, None)
        return self._written(plan, lambda data: self._without(self._of(target, data)))

    def _plan(self, target: Target, configuration: Configuration, entry: JsonObject) -> Outcome:
        """Return what an installation would do. Raises Differs and ConfigurationError."""
        data, warnings = configuration.data, self._warnings(configuration, entry)
        found = configuration.raw.get(self.name)
        if is_same(entry, found):
            return Outcome(target, "unchanged", data, data, warnings=warnings)
        action = "added" if found is None else "replaced"
        plan = Outcome(target, action, data, configuration.with_server(self.name, entry), warnings=warnings)
        if found is not None and not self.force:
            place = configuration.place(self.name)
            raise Differs(Problem("client_differs", self._shown(target), *place, name=self.name), plan)
        return plan

    def _without(self, configuration: Configuration) -> bytes | None:
        """Return the content of a file without the entry; None if nothing else was ever there."""
        entry, data = configuration.raw.get(self.name), configuration.data
        if isinstance(entry, dict):
            for backup in [*files.backups(configuration.path), None]:
                with contextlib.suppress(ConfigurationError):
                    earlier = _earlier(configuration, backup)
                    if self.name not in earlier.raw and earlier.with_server(self.name, entry) == data:
                        return earlier.data
        return configuration.without_server(self.name)

    def _written(self, plan: Outcome, change: files.Change) -> Outcome:
        """Carry out a plan by an edit of the file."""
        path = plan.target.path
        if self.dry:
            has_backup = plan.before is not None and plan.after is not None
            return replace(plan, backup=files.next_backup(path) if has_backup else None)
        is_private = "private" in plan.target.client.scope(plan.target.scope)
        return replace(plan, backup=files.replace(path, self._shown(plan.target), change, is_private))

    def _own_command(self, target: Target, action: str, entry: JsonObject) -> tuple[str, ...]:
        """Return the words of the client's own command, if it is preferred and found."""
        program = self._program(target.client, target.scope)
        if program is None:
            return ()
        fields = {"program": program, "scope": target.scope, "name": self.name}
        fields["json"] = json.dumps(entry, ensure_ascii=False)
        return tuple(template.fill(word, fields) for word in target.client.data["commands"][action])

    def _program(self, client: Client, scope: str) -> str | None:
        """Return the absolute path of the client's own command, if it is preferred and found."""
        if "own_command" not in client.scope(scope) or client.program is None:
            return None
        program = shutil.which(client.program, path=self.machine.environment.get("PATH", ""))
        return None if program is None or program.lower().endswith(_BATCH) else os.path.abspath(program)

    def _run(self, plan: Outcome, words: tuple[str, ...], entry: JsonObject | None) -> Outcome:
        """Carry out a plan by the client's own command. Its exit status proves nothing, so the file is read again."""
        target = plan.target
        if self.dry:
            backup = None if plan.before is None else files.next_backup(target.path)
            return replace(plan, backup=backup, command=words)
        backup = files.back_up(target.path, self._shown(target))
        if plan.action == "replaced":
            self._call(target, self._own_command(target, "remove", {}))
        try:
            self._call(target, words)
        except ConfigurationError:
            if plan.action == "replaced":
                files.replace(target.path, self._shown(target), lambda _: plan.before)
            raise
        found = self._read(target).raw.get(self.name)
        if not (found is None if entry is None else is_same(entry, found)):
            problem = Problem("client_command_ignored", self._shown(target), 0, 0, command=" ".join(words))
            raise ConfigurationError(problem)
        return replace(plan, backup=backup, command=words)

    def _call(self, target: Target, words: tuple[str, ...]) -> None:
        """Run a command of the client. Raises ConfigurationError if it fails."""
        try:
            done = subprocess.run(
                words,
                cwd=self.machine.folder,
                env=dict(self.machine.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                check=False,
            )
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            reason = None if done.returncode == 0 else lines[-1] if lines else f"exit status {done.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        if reason is not None:
            fields = {"command": " ".join(words), "reason": reason.rstrip(".")}
            raise ConfigurationError(Problem("client_command", self._shown(target), 0, 0, **fields))

    def _warnings(self, configuration: Configuration, entry: JsonObject) -> list[str]:
        """Return what keeps the client from using the entry. Raises ConfigurationError if it must not be added."""
        client, warnings = configuration.client, []
        for kind, how, line, column in configuration.refused():
            fields = {"title": client.title, "kind": kind.replace("_", " ")}
            problem = Problem("client_refused", self.machine.shown(configuration.path), line, column, **fields)
            if how == "refuse":
                raise ConfigurationError(problem)
            place = f"{problem.file}:{line}:{column}"
            warnings.append(f"{place}: {client.title} may be unable to read a file with {fields['kind']}, as here.")
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


def _earlier(configuration: Configuration, backup: str | None) -> Configuration:
    """Return the file as a backup has it; None stands for the missing file. Raises ConfigurationError."""
    if backup is None:
        return configuration.with_data(None)
    return Configuration.at(backup, configuration.client, configuration.key)

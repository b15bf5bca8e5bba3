"""Check an entry for TMKB: what its words mean, and what happens when its client starts it."""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
from collections.abc import Iterator

from tmkb.clients.machine import Machine
from tmkb.doctor import entry_keys, launch, project_entry
from tmkb.doctor.damage import variables
from tmkb.doctor.finding import ERROR, Finding, worst
from tmkb.doctor.inventory import Entry
from tmkb.doctor.launch import Launch
from tmkb.doctor.probe import Probe
from tmkb.doctor.variables import Expansion
from tmkb.doctor.web import web
from tmkb.knowledge import library
from tmkb.knowledge.library import PACKAGED
from tmkb.schema.model import Spec

_FOLDERS = ("--patterns", "--schemas")  # options of `tmkb serve` with a folder
_FILES = ("--config",)
_VARIABLES = {"TMKB_PATTERNS": "--patterns", "TMKB_SCHEMAS": "--schemas"}
_WSL = re.compile(r"^(?:/mnt/[a-z]/|/(?:home|usr)/|\\\\wsl)")
_SHELLS = ("bash", "dash", "sh", "zsh")


class Started:
    """Findings of commands that were started before, because several clients often have the same command."""

    def __init__(self, spec: Spec, timeout: float) -> None:
        """``spec``: the revisions that clients speak; ``timeout``: seconds for one answer."""
        self.spec, self.timeout = spec, timeout
        self._fine: dict[tuple[object, ...], list[Finding]] = {}

    def run(self, command: Launch, entry: Entry, is_complete: bool) -> list[Finding]:
        """Start ``command`` and return the findings; those of the last time if all was fine then."""
        key = (
            command.argv,
            tuple(sorted(command.environment.items())),
            command.folder,
            is_complete,
            entry_keys.limit(entry),
        )
        if key not in self._fine:
            probe = Probe(command, self.spec, self.timeout, entry.topic)
            findings = [*probe.run(is_complete), *self._slowness(probe, entry)]
            if worst(findings) != "fine":
                return findings
            self._fine[key] = findings
        topic = entry.topic
        return [
            Finding(each.id, topic.subject, each.level, each.cause, each.remedy, topic.place)
            for each in self._fine[key]
        ]

    def _slowness(self, probe: Probe, entry: Entry) -> Iterator[Finding]:
        """Yield that the client would have given up; the first start may build the start-up cache."""
        own, limit = entry_keys.limit(entry), entry_keys.limit(entry) or entry.client.start_seconds
        if probe.measured.listed > limit * 1000:
            again = Probe(probe.launch, self.spec, self.timeout, entry.topic)
            if worst(again.run(is_complete=False)) != ERROR and again.measured.listed > limit * 1000:
                milliseconds, title = round(again.measured.listed), entry.client.title
                id_, facts = "timeout-short" if own else "start-slow", entry.client.data.get("timeout", {})
                fields = {"milliseconds": milliseconds, "client": title, "limit": f"{limit:g}", **facts}
                yield entry.topic.found(id_, (), **fields)


def words(entry: Entry, machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong with the words of an entry, without starting anything."""
    topic = entry.topic
    yield from entry_keys.keys(entry, machine)
    if not entry.words and not entry.url:
        yield topic.found("entry-incomplete", name=entry.name)
        return
    _, expansion = expanded(entry, machine)
    for name in dict.fromkeys(expansion.unset):
        yield topic.found("variable-unset", name=name, client=entry.client.title)
    for text in dict.fromkeys(expansion.literal):
        yield topic.found("variable-literal", text=text, client=entry.client.title)
    for name in dict.fromkeys(expansion.asked):
        yield topic.found("variable-asked", name=name, client=entry.client.title)
    if entry.words:
        yield from _command(entry, machine)
        yield from _arguments(entry, machine)


def _command(entry: Entry, machine: Machine) -> Iterator[Finding]:
    topic, command = entry.topic, entry.words[0]
    if machine.platform == "win32":
        if _WSL.match(command):
            yield topic.found("command-wsl", command=command)
        elif command.lower().endswith((".cmd", ".bat")):
            yield topic.found("command-shim", command=command)
    path = ntpath if machine.platform == "win32" else posixpath
    if command.startswith("~"):
        yield topic.found("tilde", text=command, client=entry.client.title)
    elif path.dirname(command) and not path.isabs(command) and "$" not in command:
        yield topic.found("command-relative", command=command)


def _arguments(entry: Entry, machine: Machine) -> Iterator[Finding]:
    """Yield options whose folders and files are not what `tmkb serve` needs."""
    (words, environment), _ = expanded(entry, machine)
    values = [
        (variable, folder)
        for variable in _VARIABLES
        for folder in environment.get(variable, "").split(os.pathsep)
        if folder
    ]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in (*_FOLDERS, *_FILES):
            values.append((option, value if equals else following))
    for option, value in values:
        yield from _path(entry, _VARIABLES.get(option, option), option, value)


def _path(entry: Entry, option: str, shown: str, value: str) -> Iterator[Finding]:
    topic = entry.topic
    if option == "--patterns" and value == PACKAGED:
        return
    if value.startswith("~"):
        yield topic.found("tilde", text=value, client=entry.client.title)
    elif not os.path.isabs(value):
        yield topic.found("path-relative", option=shown, path=value)
    elif not os.path.exists(value):
        yield topic.found("path-missing", option=shown, path=value)
    elif option in _FOLDERS and not os.path.isdir(value):
        yield topic.found("path-not-a-folder", option=shown, path=value)
    elif option == "--patterns" and not _has_patterns(value):
        yield topic.found("folder-without-patterns", option=shown, path=value)


def _has_patterns(folder: str) -> bool:
    try:
        return bool(library.pattern_folders(folder))
    except OSError:
        return False


def starts(entry: Entry, machine: Machine, started: Started) -> Iterator[Finding]:
    """Start the command of an entry as its client does, and yield what is wrong; or ask the server at its URL.

    An entry of a project is started only if it plainly starts the tmkb of this machine.
    """
    if not (entry.words or entry.url):
        return
    if reason := project_entry.refusal(entry, machine):
        yield entry.topic.found("entry-not-started", name=entry.name, reason=reason)
        return
    (argv, own), expansion = expanded(entry, machine)
    if expansion.unset or expansion.asked:
        return
    if not argv:
        headers = {**entry.headers, **_bearer(entry, machine)}
        yield from web(expansion.text(entry.url), headers, started.spec, started.timeout, entry.topic)
        return
    cwd = entry.value.get("cwd")
    folder = os.path.join(machine.folder, expansion.text(cwd)) if isinstance(cwd, str) else ""
    if folder and not os.path.isdir(folder):
        yield entry.topic.found("folder-missing", folder=folder)
        return
    is_complete = True
    for command in _launches(entry, argv, own, folder, machine):
        findings = [*launch.defects(command, entry.topic)] or started.run(command, entry, is_complete)
        yield from findings
        if worst(findings) == ERROR and (names := variables(own)):
            yield entry.topic.found("entry-python-variables", names=", ".join(names))
        if any(each.id == "server-silent" for each in findings):  # once is long enough
            return
        is_complete = worst(findings) == ERROR


def _launches(entry: Entry, argv: list[str], own: dict[str, str], folder: str, machine: Machine) -> Iterator[Launch]:
    """Yield the surroundings in which a client may start the command, the poorest first."""
    user = machine.environment
    if inherited := entry.client.data.get("inherits"):
        user = {name: user[name] for name in inherited if name in user}
    if not entry.client.data.get("terminal"):
        path = user.get("PATH", "") if entry.client.data.get("shell_path") else launch.SHORT_PATH
        yield launch.from_desktop(argv, user, own, folder, path)
    if not entry.client.data.get("terminal") and not entry.client.data.get("shell_path"):
        user = {name: value for name, value in user.items() if name not in _VARIABLES}  # it is no child of a shell
    yield launch.from_shell(argv, user, own, folder or machine.folder)


def _bearer(entry: Entry, machine: Machine) -> dict[str, str]:
    """Return the header with the token in the variable that the entry names, for clients that have such a key."""
    name = entry.raw.get(entry.client.data.get("token_variable", ""))
    token = machine.environment.get(name, "") if isinstance(name, str) else ""
    return {"Authorization": f"Bearer {token}"} if token else {}


def expanded(entry: Entry, machine: Machine) -> tuple[tuple[list[str], dict[str, str]], Expansion]:
    """Return the words and the variables of an entry with its variables replaced, and what could not be replaced."""
    expansion = Expansion(str(entry.client.data.get("expands", "")), machine)
    argv = [expansion.text(word) for word in entry.words]
    if "-c" in argv and os.path.basename(argv[0]) in _SHELLS:
        expansion.literal.clear()  # the shell replaces them
    return (argv, {name: expansion.text(value) for name, value in entry.environment.items()}), expansion

"""Find the entries for TMKB in the configuration files of a client."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from tmkb.clients import launch
from tmkb.clients.client import Client
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.files import is_there
from tmkb.clients.machine import Machine
from tmkb.doctor.finding import Finding, Place, Topic
from tmkb.schema import problems
from tmkb.schema.values import JsonObject, JsonValue

NAME = "tmkb"
_ON_PATH = "Put tmkb on PATH, for example with `pipx install tmkb` or `uv tool install tmkb`."
_BROKEN = {  # rule of a problem → finding
    "client_not_utf8": "configuration-encoding",
    "client_twice": "configuration-repeated",
    "not_regular": "configuration-unreadable",
    "unreadable": "configuration-unreadable",
}
PRECEDENCE = ("local", "project", "user")  # the first scope with a name is the one that counts


@dataclass(frozen=True)
class Entry:
    """An entry of a server.

    Attributes:
        client: whose entry it is.
        scope: `user`, `project` or `local`.
        place: where it is.
        name: its key.
        value: with the usual keys, see `Client.normalised`.
        raw: as the file has it.
    """

    client: Client
    scope: str
    place: Place
    name: str
    value: JsonObject
    raw: JsonObject

    @property
    def topic(self) -> Topic:
        """The topic of findings about this entry."""
        is_shared = "portable" in self.client.scope(self.scope) and self.words[:1] == [launch.PORTABLE]
        remedy = _ON_PATH if is_shared else install(self.client, self.scope, self.name)
        return Topic(self.client.name, self.place, remedy)

    @property
    def is_ours(self) -> bool:
        """Whether it starts TMKB, or has its name."""
        return launch.is_ours(self.name, self.value)

    @property
    def words(self) -> list[str]:
        """The command with its arguments; empty if there is no command."""
        command, args = self.value.get("command"), self.value.get("args")
        words = [command] if isinstance(command, str) and command else []
        return [*words, *(str(each) for each in args)] if words and isinstance(args, list) else words

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the entry."""
        return _strings(self.value.get("env"))

    @property
    def url(self) -> str:
        """The URL of a server over HTTP; empty if there is none."""
        url = self.value.get("url") or self.raw.get("url")
        return url if isinstance(url, str) else ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a server over HTTP."""
        return _strings(self.value.get("headers")) | _strings(self.value.get("http_headers"))


@dataclass
class Inventory:
    """The files of a client. ``others``: path → names of other servers. ``broken``: why files cannot be read."""

    client: Client
    files: list[tuple[str, Configuration]] = field(default_factory=list)  # scope and file
    entries: list[Entry] = field(default_factory=list)
    everything: list[JsonObject] = field(default_factory=list)  # all entries, whose secrets must not be shown
    others: dict[str, list[str]] = field(default_factory=dict)
    broken: list[Finding] = field(default_factory=list)

    def at(self, key: tuple[str, ...], scope: str) -> dict[str, JsonValue]:
        """Return the map at another path of the files of a scope; empty if there is none."""
        found: dict[str, JsonValue] = {}
        for each, configuration in self.files:
            if each == scope:
                found |= members(configuration, key)
        return found


def install(client: Client, scope: str = "user", name: str = NAME) -> str:
    """Return the sentence that says how to write an entry anew."""
    options = "".join([f" --scope {scope}" if scope != "user" else "", f" --name {name}" if name != NAME else ""])
    return f"Run `tmkb install {client.name}{options} --force`."


def in_project(client: Client, machine: Machine) -> Machine:
    """Return the machine with the nearest folder above that has a file of a project as the current one.

    Only for clients that look there; not above the folder of the repository.
    """
    folder = machine.folder
    while client.data.get("parents"):
        here = dataclasses.replace(machine, folder=folder)
        if any(map(os.path.lexists, client.files("project", here))):
            return here
        above = os.path.dirname(folder)
        if above == folder or os.path.lexists(os.path.join(folder, ".git")):
            return machine
        folder = above
    return machine


def read(client: Client, machine: Machine) -> Inventory:
    """Read all files of a client."""
    inventory = Inventory(client)
    for scope in client.scopes:
        for path in dict.fromkeys(client.files(scope, machine)):
            if not is_there(path):
                continue
            try:
                configuration = Configuration.read(path, client, scope, machine)
                found = [*entries(configuration, scope)]
            except ConfigurationError as error:
                topic = Topic(client.name, Place(path, error.line, error.column))
                problem = error.problems[0]
                reason = error.sentence.removesuffix(problems.remedy(problem) or "").strip()
                id_ = _BROKEN.get(problem.rule, "configuration-broken")
                broken = topic.found(id_, client=client.title, reason=reason)
                inventory.broken += [] if broken in inventory.broken else [broken]
                continue
            inventory.files.append((scope, configuration))
            inventory.everything += [each.value for each in found]
            ours = [each for each in found if each.is_ours]
            inventory.entries += ours
            others = [each.name for each in found if each not in ours]
            inventory.others[path] = sorted({*inventory.others.get(path, []), *others})
    return inventory


def members(configuration: Configuration, key: tuple[str, ...]) -> dict[str, JsonValue]:
    """Return the map at a path of a file; empty if there is none."""
    try:
        return dataclasses.replace(configuration, key=key).raw
    except ConfigurationError:
        return {}


def entries(configuration: Configuration, scope: str) -> Iterator[Entry]:
    """Yield the entries of all servers of a file. Raises ConfigurationError."""
    client, servers = configuration.client, configuration.servers
    raw = configuration.raw
    for name, value in servers.items():
        place = Place(configuration.path, *configuration.place(name))
        original = raw[name]
        yield Entry(client, scope, place, name, value, original if isinstance(original, dict) else {})


def _strings(value: JsonValue) -> dict[str, str]:
    return {name: str(each) for name, each in value.items()} if isinstance(value, dict) else {}

"""Check the configuration files of a client: can it read them, is there an entry, and does it count?"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from tmkb.clients.client import Client, clients
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.files import backups
from tmkb.clients.machine import Machine
from tmkb.doctor import inventory
from tmkb.doctor.finding import Finding, Place, Topic
from tmkb.doctor.inventory import Entry, Inventory


def files(found: Inventory, machine: Machine, is_named: bool) -> Iterator[Finding]:
    """Yield what is wrong with the files of a client, or where its entries are.

    Args:
        found: the content of the files.
        machine: where they are.
        is_named: whether the user asked about this client, who then expects an entry.
    """
    yield from found.broken
    for _, configuration in found.files:
        yield from _refused(configuration)
    dead = [*_dead(found, machine)]
    yield from dead
    if found.entries:
        yield from _several(found)
        yield from _incomplete(found, machine)
        for entry in found.entries:
            yield entry.topic.found("entry", name=entry.name, scope=entry.scope)
    elif not found.broken and not dead:
        yield _absent(found, machine, is_named)


def _absent(found: Inventory, machine: Machine, is_named: bool) -> Finding:
    client = found.client
    topic = Topic(client.name, install=f"Run `tmkb install {client.name}`.")
    for path in dict.fromkeys(configuration.path for _, configuration in found.files):
        if vanished := _vanished(path, found, topic.at(path)):
            return vanished
    if client.is_installed(machine):
        return topic.found("entry-expected" if is_named else "entry-absent", client=client.title)
    return topic.found("client-expected" if is_named else "client-absent", client=client.title)


def _refused(configuration: Configuration) -> Iterator[Finding]:
    """Yield what a client cannot read in a file that others can read."""
    title = configuration.client.title
    for words, how, line, column in configuration.refused():
        topic = Topic(configuration.client.name, Place(configuration.path, line, column))
        yield topic.found(
            "configuration-refused" if how == "refuse" else "configuration-strict",
            client=title,
            what=words,
        )


def _dead(found: Inventory, machine: Machine) -> Iterator[Finding]:
    """Yield entries in files or under keys that the client never reads."""
    client = found.client
    id_ = "dead-entry-too" if found.entries else "dead-entry"
    places = [(each.path, each.key, each.scope) for each in client.dead(machine)]
    keys = {each.key(scope, machine) for each in clients() for scope in each.scopes if scope != "local"}
    right_keys = {client.key(scope, machine) for scope in client.scopes}
    for scope, configuration in found.files:
        places += [(configuration.path, key, scope) for key in sorted(keys - right_keys)]
    read = {configuration.path: configuration for _, configuration in found.files}
    for path, key, scope in dict.fromkeys(places):
        if scope in client.scopes and (line := _line(path, key, client, read)):
            topic = Topic(
                client.name,
                Place(path, line),
                install=f"Run `tmkb install {client.name}{_scope(scope)}`, and delete this entry.",
            )
            right = ".".join(client.key(scope, machine))
            where = " or ".join(map(machine.shown, client.files(scope, machine)))
            yield topic.found(id_, client=client.title, key=".".join(key), right=right, files=where)


def _line(path: str, key: tuple[str, ...], client: Client, read: dict[str, Configuration]) -> int:
    """Return the line of the first entry for TMKB at a path of a file; 0 if there is none.

    ``read``: path → the file, for those that have been read.
    """
    try:
        configuration = read.get(path) or read.setdefault(path, Configuration.at(path, client, key))
        keyed = dataclasses.replace(configuration, key=key)
        return next((each.place.line for each in inventory.entries(keyed, "") if each.is_ours), 0)
    except ConfigurationError:
        return 0


def _several(found: Inventory) -> Iterator[Finding]:
    """Yield entries that hide others, and further names for the same server."""
    by_name: dict[str, list[Entry]] = {}
    for entry in sorted(found.entries, key=lambda each: inventory.PRECEDENCE.index(each.scope)):
        by_name.setdefault(entry.name, []).append(entry)
    for name, (first, *others) in by_name.items():
        for other in others:
            if other.scope != first.scope and other.value != first.value:
                yield other.topic.found(
                    "entry-shadowed", name=name, scope=other.scope, other=first.scope, file=first.place
                )
    if len(by_name) > 1:
        first, *others = [entries[0] for entries in by_name.values()]
        places = ", ".join(f"{each.name} ({each.place})" for each in (first, *others))
        yield others[0].topic.found("entry-repeated", names=places)


def _incomplete(found: Inventory, machine: Machine) -> Iterator[Finding]:
    """Yield files without an entry, of a client that may read one of several."""
    client = found.client
    for scope in {entry.scope for entry in found.entries}:
        places = [each.path for each in client.locations(scope, machine) if each.is_there]
        having = {entry.place.file for entry in found.entries if entry.scope == scope}
        if len(places) > 1:
            for path in places:
                if path not in having:
                    topic = Topic(client.name, Place(path), install=f"Run `tmkb install {client.name}{_scope(scope)}`.")
                    yield topic.found("entry-in-one-file", client=client.title, others=", ".join(sorted(having)))


def _vanished(path: str, found: Inventory, topic: Topic) -> Finding | None:
    """Return that a file has lost its entry without `tmkb install --uninstall`."""
    current = [(scope, each) for scope, each in found.files if each.path == path]
    for backup in backups(path):
        try:
            without = saved = Configuration.at(backup, found.client, current[0][1].key)
            names = []
            for scope, configuration in current:
                keyed = dataclasses.replace(saved, key=configuration.key)
                names += [each.name for each in inventory.entries(keyed, scope) if each.is_ours]
                for name in names:
                    keyed = dataclasses.replace(without, key=configuration.key)
                    without = keyed.with_data(keyed.without_server(name))
        except ConfigurationError:
            continue
        if not names:  # made by the installation, the last thing that we did with this file
            return topic.found("entry-lost", backup=os.path.basename(backup))
        if without.data == current[0][1].data:  # made by an uninstallation
            return None
        return topic.found("entry-vanished", backup=os.path.basename(backup))
    return None


def _scope(scope: str) -> str:
    return f" --scope {scope}" if scope != "user" else ""

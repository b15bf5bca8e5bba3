"""Check the keys of an entry: whether its client accepts them, and whether they let it use the server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tmkb.clients.machine import Machine
from tmkb.doctor.finding import Finding
from tmkb.doctor.inventory import Entry
from tmkb.schema import keywords

TOOL = "tmkb_query"  # of the server that an entry starts by default
_UNITS = {"milliseconds": 0.001, "seconds": 1.0}
_LEAST_TIMEOUT = 1000  # milliseconds; Claude Code ignores a smaller `timeout`


def keys(entry: Entry, machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong with the keys of an entry and the types of their values."""
    topic, client = entry.topic, entry.client
    for error in keywords.errors(client.data.get("shape", {}), entry.raw):
        reason = ": ".join([*(f"`{key}`" for key in error.absolute_path), error.message])
        yield topic.found("entry-not-accepted", client=client.title, reason=reason)
    if entry.url:
        yield from _address(entry, machine)
    if isinstance(entry.value.get("args", []), str):
        yield topic.found("args-not-a-list", args=entry.value["args"])
    timeout = entry.raw.get("timeout")
    if client.name == "claude-code" and isinstance(timeout, int) and timeout < _LEAST_TIMEOUT:
        yield topic.found("timeout-ignored", timeout=timeout)
    yield from _tools(entry)


def limit(entry: Entry) -> float:
    """Return the seconds that the entry itself gives the server for its start; 0 if it says nothing."""
    facts = entry.client.data.get("timeout", {})
    value = entry.raw.get(facts.get("key", ""))
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return float(value) * _UNITS[facts["unit"]]  # numbers with a fraction in TOML are strings here
    return 0.0


def _tools(entry: Entry) -> Iterator[Finding]:
    """Yield lists of the entry that leave out the tool of the server `tmkb`; other servers have other tools."""
    for kind, key in entry.client.data.get("tools", {}).items():
        names = entry.raw.get(key)
        is_listed = isinstance(names, list) and bool({TOOL, "*"} & {*map(str, names)})
        if isinstance(names, list) and "--server" not in entry.words and is_listed == (kind == "exclude"):
            how = f"`{key}` of the entry {'contains' if is_listed else 'lacks'} it"
            yield entry.topic.found("tools-off", client=entry.client.title, tool=TOOL, how=how)


def _address(entry: Entry, machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong with the keys of a server over HTTP."""
    topic, client = entry.topic, entry.client
    key = client.data.get("fields", {}).get("url", "url")
    if "url" in entry.raw and key != "url":
        yield topic.found("url-key-wrong", key=key, client=client.title)
    if client.data.get("remote") == "none":
        yield topic.found("url-not-accepted", client=client.title)
    variable = entry.raw.get(client.data.get("token_variable", ""))
    if isinstance(variable, str) and not machine.environment.get(variable):
        yield topic.found("variable-unset", name=variable, client=client.title)
    if client.data.get("remote") == "type" and "type" not in entry.raw:
        yield topic.found("url-without-type", client=client.title)

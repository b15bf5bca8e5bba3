"""Links that install a server with one click, and the text to paste into a file."""

from __future__ import annotations

import base64
import json
import urllib.parse

from tmkb.clients.client import Client
from tmkb.clients.configuration import Configuration
from tmkb.clients.machine import Machine
from tmkb.schema import template
from tmkb.schema.values import JsonObject


def link(client: Client, name: str, entry: JsonObject) -> str | None:
    """Return a link that makes the client ask its user whether to install the server; None if it has no such links."""
    if "link" not in client.data:
        return None
    written = json.dumps(entry, separators=(",", ":"))
    named = json.dumps({"name": name, **entry}, separators=(",", ":"))
    fields = {
        "name": urllib.parse.quote(name, safe=""),
        "base64": urllib.parse.quote(base64.b64encode(written.encode()).decode(), safe=""),
        "urlencoded": urllib.parse.quote(named, safe=""),
    }
    return template.fill(client.data["link"], fields)


def snippet(client: Client, scope: str, machine: Machine, name: str, entry: JsonObject) -> str:
    """Return a whole file with nothing but the entry."""
    empty = Configuration("", client, client.key(scope, machine), None)
    return empty.with_server(name, entry).decode()

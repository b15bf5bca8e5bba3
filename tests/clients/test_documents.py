"""The table of clients in the documentation is the data."""

import os
import re

from tests.support.repository import ROOT, source
from tmkb.clients.client import clients

SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}
FOLDERS = {"{home}": "~", "{config}": "~/.config", "{appdata}": "%APPDATA%", "{localappdata}": "%LOCALAPPDATA%"}
TABLE = re.compile(r"<!-- generated: clients -->\n(.*?)<!-- end -->", re.S)


def written(form, folders):
    """A path as people write it."""
    for name, folder in reversed(folders.items()):
        form = form.replace(f"{{{name}}}", folder["default"])
    for name, path in FOLDERS.items():
        form = form.replace(name, path)
    return f"`{form.replace('{project}/', '').replace('{name}', 'tmkb')}`"


def files(client, scope):
    """The files of a scope, by system if they differ."""
    if scope not in client.scopes:
        return "none"
    forms = client.scope(scope)["files"]
    folders = client.data.get("folders", {})

    def listed(each):
        paths = [path for form in each for path in ([form] if isinstance(form, str) else form["first"])]
        return ", ".join(written(path, folders) for path in paths)

    if isinstance(forms, list):
        return listed(forms)
    systems = {}
    for system, title in SYSTEMS.items():
        systems.setdefault(listed(forms[system]), []).append(title)
    return "<br>".join(f"{', '.join(titles)}: {paths}" for paths, titles in systems.items())


def table():
    rows = ["| client | `tmkb install` | file for all projects | file of a project | key |", "|---|---|---|---|---|"]
    for each in clients():
        key = ".".join(each.data["key"])
        cells = (each.title, f"`{each.name}`", files(each, "user"), files(each, "project"), f"`{key}`")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def test_the_table_of_clients_is_that_of_their_files():
    assert TABLE.search(source(os.path.join(ROOT, "docs", "clients.md")))[1] == table()

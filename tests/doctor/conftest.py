"""A home folder for staged failures: the files of clients, and servers that misbehave."""

import json
import os
import stat
import sys

import pytest

import tmkb.doctor
from tmkb.clients import client as known
from tmkb.clients import launch
from tmkb.clients.machine import Machine
from tmkb.conformance import client as conformance_client
from tmkb.doctor import probe, program

SERVE = {"command": sys.executable, "args": ["-m", "tmkb", "serve"]}


class Home:
    """A home folder with a project, and the findings about a client in it."""

    def __init__(self, folder, environment, cache):
        self.folder = folder / "home"
        self.project = folder / "project"
        self.environment = {**environment, "HOME": str(self.folder)}
        for each in (self.folder, self.project):
            each.mkdir()
        (self.folder / ".cache").symlink_to(cache)

    @property
    def machine(self):
        return Machine("linux", str(self.folder), self.environment, str(self.project))

    def write(self, path, content):
        """Write a file below the home folder, or of the project; gives the path. Values become JSON."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return file

    def program(self, name, source, interpreter=sys.executable):
        """Write an executable Python script; gives its path."""
        file = self.write(f"bin/{name}", f"#!{interpreter}\n{source}")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    def claude(self, name="tmkb", **entry):
        """Give Claude Code an entry in the file of the user."""
        return self.write(".claude.json", {"mcpServers": {name: {"type": "stdio", **entry}}})

    def findings(self, name, timeout=30.0):
        """What the doctor finds about a client."""
        return tmkb.doctor.Checker(self.machine, timeout).check(known.client(name))

    def wrong(self, name, timeout=30.0):
        """The errors and warnings about a client, by id."""
        return {each.id: each for each in self.findings(name, timeout) if each.level != "fine"}


@pytest.fixture
def home(tmp_path, monkeypatch, own_cache):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL", "XDG_", "CLAUDE_"))
    }
    found = Home(tmp_path, environment, own_cache)
    for key in ("XDG_CONFIG_HOME", "TMKB_PATTERNS", "TMKB_SCHEMAS"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setattr(program, "name", lambda: "tmkb")  # whether PATH has it or not
    monkeypatch.setattr(launch, "temporary_folder", lambda: None)  # wherever the checkout of these tests is
    monkeypatch.setattr(probe, "END", 30.0)  # a busy machine is no failure of a server
    monkeypatch.setattr(conformance_client, "_END", 30.0)
    monkeypatch.setenv("HOME", str(found.folder))
    monkeypatch.chdir(found.project)
    return found

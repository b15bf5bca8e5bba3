"""What the pytest plugin starts for tests: connections to the server under test, and mocks."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from tmkb.conformance import targets
from tmkb.conformance.targets import Target
from tmkb.schema import hidden
from tmkb.schema.model import Spec
from tmkb.server import server

_START = 60.0  # seconds until a mock listens
_NO_SERVER = (
    "No server is configured. Write `mcp_command = CMD` or `mcp_url = URL` into the configuration of pytest, or use "
    "--mcp-command CMD or --mcp-url URL."
)


def connect(config: pytest.Config) -> Target:
    """Return a new connection to the configured server. Raises OSError with a sentence."""
    command, url = config.getoption("mcp_command"), config.getoption("mcp_url")
    folder = str(config.invocation_params.dir)
    if not command and not url:
        command, url = config.getini("mcp_command"), config.getini("mcp_url")
        folder = str(config.inipath.parent if config.inipath else config.rootpath)
    if command and url:
        raise OSError("Both a command and a URL of an MCP server are configured: choose one.")
    if command:
        try:
            return targets.Command(_words(command, folder), cwd=folder)
        except (OSError, ValueError) as error:
            raise OSError(f"Cannot start {command}: {getattr(error, 'strerror', None) or error}.") from error
    if not url:
        raise OSError(_NO_SERVER)
    try:
        from tmkb.conformance.http import Http
    except ImportError as error:
        from tmkb.schema import installation

        raise OSError(f"Servers over HTTP need the extra `replay`: {installation.command('replay')}") from error
    target = Http(url, spec())
    try:
        target.check_connection()
    except OSError as error:
        target.close()
        raise OSError(f"Cannot reach {url}: {error.strerror or error}.") from error
    return target


def _words(command: str, folder: str) -> list[str]:
    """Split a command as a shell does. Programs of the environment that runs pytest come first. Raises ValueError."""
    program, *rest = shlex.split(command)
    programs = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    found = shutil.which(program, path=programs)
    return [found or program, *rest]


@functools.cache
def spec() -> Spec:
    """Return what a client needs to know about all revisions."""
    return server.protocol()


class Mock:
    """A recording that is served instead of a server.

    Attributes:
        command: the words of a command that serves it over stdio.
    """

    def __init__(self, folder: str, path: str, lenient: bool = False, faults: str | None = None) -> None:
        """Serve the recording at ``path``; it and ``faults`` start at ``folder``. Nothing runs yet."""
        self.command = [sys.executable, "-m", "tmkb", "mock", os.path.join(folder, path)]
        self.command += ["--lenient"] if lenient else []
        self.command += ["--faults", os.path.join(folder, faults)] if faults else []
        self._process: subprocess.Popen[str] | None = None
        self._stderr: list[str] = []
        self._ready = threading.Event()

    @functools.cached_property
    def url(self) -> str:
        """The URL at which it is served; the first use starts the server."""
        command = [*self.command, "--http", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        threading.Thread(target=self._read, daemon=True).start()
        self._ready.wait(_START)
        found = [match[0] for line in self._stderr if (match := re.search(r"http://\S+", line))]
        if not found:
            pytest.fail("\n".join(["The mock did not start.", *self._stderr]), pytrace=False)
        return found[-1]

    def stop(self) -> str:
        """Stop the server. Return what clients sent that is not recorded, as text; empty without it."""
        if self._process is None:
            return ""
        self._process.send_signal(signal.SIGINT) if sys.platform != "win32" else self._process.terminate()
        self._process.wait(_START)
        return "\n".join(self._stderr) if self._process.returncode == 1 and sys.platform != "win32" else ""

    def _read(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._stderr.append(hidden.line(line.rstrip("\n")))
                if "ready at http" in line:
                    self._ready.set()
        self._ready.set()

"""A small multi-tenant Express application around an idiom, in a Node process that is reached over HTTP.

`stage.mjs` is what applications import as ``tmkb/express``. `main.mjs` serves an application. The packages are those
of package.json, which ``npm install`` installs beside it.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import urllib.parse
import uuid
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from http.cookies import SimpleCookie
from typing import Any

from tmkb.authoring.play import Response, Rival
from tmkb.authoring.stacks.stage import ANONYMOUS

HERE = os.path.dirname(os.path.abspath(__file__))
_TIMEOUT = 20.0  # seconds for one request or command
_nodes: list[_Node] = []  # the running one


class Stage:
    """An application in a Node process, with a SQLite database in memory."""

    def __init__(self, app: str, config: Mapping[str, Any]) -> None:
        """``app``: the source of the application."""
        if not _nodes:
            _nodes.append(_Node())
        self._node = _nodes[0]
        self._cookies: dict[str, SimpleCookie] = {}  # of each actor
        self._node.begin(app, config)

    @property
    def crashes(self) -> list[str]:
        """The errors behind responses with status 500."""
        return list(self._node.command("crashes"))

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; anonymous sends no user."""
        body, headers = _encoded(parts)
        if actor != ANONYMOUS:
            headers["X-User"] = actor
        cookies = self._cookies.setdefault(actor, SimpleCookie())
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={each.value}" for name, each in cookies.items())
        headers |= {name: str(value).encode() for name, value in parts.get("headers", {}).items()}
        connection = http.client.HTTPConnection("127.0.0.1", self._node.port, timeout=_TIMEOUT)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except TimeoutError:
            self._node.close()
            raise
        finally:
            connection.close()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            cookies.load(cookie)
        return Response(answer.status, text, dict(answer.headers))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application, or one of the common events."""
        return self._node.command("event", name=name, values=dict(values))

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application."""
        return self._node.command("state", name=name)

    def work(self) -> Response:
        """Run all queued jobs."""
        return Response(**self._node.command("work"))

    def wait(self, seconds: float) -> None:
        """Advance the clock of JavaScript."""
        self._node.command("wait", seconds=seconds)

    def during(self, after: str | None, rival: Rival) -> AbstractContextManager[dict[str, Any] | None]:
        """Idioms are not played by two requests at the same time."""
        raise NotImplementedError("during")


class _Node:
    """A Node process that serves one application after another.

    It may read files and write only in the current folder.
    """

    def __init__(self) -> None:
        """Prepare the current folder as a package with the name of ours, so that its modules can import ours."""
        _clear(())
        shutil.copy(os.path.join(HERE, "main.mjs"), "main.mjs")
        os.symlink(os.path.join(HERE, "stage.mjs"), "stage.mjs")
        os.symlink(os.path.join(HERE, "node_modules"), "node_modules")
        with open("package.json", "w", encoding="utf-8") as file:
            json.dump({"name": "tmkb", "type": "module", "exports": {"./express": "./stage.mjs"}}, file)
        permissions = [_permission(), "--allow-fs-read=*", f"--allow-fs-write={os.getcwd()}/*"]
        command = ["node", "--no-warnings", *permissions, "main.mjs"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "NODE_ENV": "production"}
        )
        atexit.register(self.close)
        self.port = int(self._reply())
        self._files = os.listdir()

    def begin(self, app: str, config: Mapping[str, Any]) -> None:
        """Begin a case of the application with the source ``app``, without the files of the case before it."""
        _clear(self._files)
        with open("app.mjs", "w", encoding="utf-8") as file:
            file.write(app)
        self.command("begin", config=dict(config))

    def command(self, command: str, **values: Any) -> Any:
        """Return the result of a command of main.mjs.

        Raises:
            RuntimeError: the application raised an error, or the process ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **values}).encode() + b"\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> Any:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _TIMEOUT)[0]:
            self.close()
            raise RuntimeError(f"no answer within {_TIMEOUT} s")
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError("the Node process ended")
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["result"]

    def close(self) -> None:
        """End the process."""
        _nodes.clear()
        self._process.kill()
        self._process.wait()


def _clear(kept: Collection[str]) -> None:
    """Remove all files and folders in the current folder, except those with a name in ``kept``."""
    for entry in list(os.scandir()):
        if entry.is_dir(follow_symlinks=False) and entry.name not in kept:
            shutil.rmtree(entry)
        elif entry.name not in kept:
            os.remove(entry)


def missing() -> str:
    """Return what is not installed; an empty text if everything is."""
    if not shutil.which("node") or _version() < (20,):
        return "Node 20 or newer"
    if not os.path.isdir(os.path.join(HERE, "node_modules")):
        return f"Node packages: npm install --prefix {shlex.quote(HERE)}"
    return ""


@functools.cache
def _version() -> tuple[int, ...]:
    text = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", text)))


def _permission() -> str:
    return "--permission" if _version() >= (23, 5) else "--experimental-permission"


def _encoded(parts: Mapping[str, Any]) -> tuple[bytes | None, dict[str, str | bytes]]:
    """Return the body and its headers."""
    if "json" in parts:
        return json.dumps(parts["json"]).encode(), {"Content-Type": "application/json"}
    if "files" in parts:
        return _multipart(parts.get("form", {}), parts["files"])
    if "form" in parts:
        return urllib.parse.urlencode(parts["form"]).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
    return (str(parts["data"]).encode() if "data" in parts else None), {}


def _multipart(form: Mapping[str, Any], files: Mapping[str, Any]) -> tuple[bytes, dict[str, str | bytes]]:
    """Return the fields and files as multipart/form-data (RFC 7578)."""
    boundary = uuid.uuid4().hex
    fields = [(f'name="{name}"', "", str(value)) for name, value in form.items()]
    for name, file in files.items():
        fields.append(
            (f'name="{name}"; filename="{file["name"]}"', f"Content-Type: {file['type']}\r\n", file["content"])
        )
    parts = (
        f"--{boundary}\r\nContent-Disposition: form-data; {each}\r\n{kind}\r\n{text}\r\n" for each, kind, text in fields
    )
    return f"{''.join(parts)}--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}

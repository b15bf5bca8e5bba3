"""Replicas and a Redis server as processes, and a client that talks to any of them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time

import httpx2

from tests.support.process import TIMEOUT, HttpServer

KEY = "k" * 40
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
STATELESS = "2026-07-28"
OPTIONS = {"timeout": TIMEOUT, "trust_env": False}
TASKS = "io.modelcontextprotocol/tasks"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    """A real ``redis-server`` (or valkey-server) without persistence."""

    def __init__(self):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        options = ["--port", str(self.port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", "/"]
        self.process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        until(self._answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def command(self, *words):
        lines = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in (w.encode() for w in words))
        with socket.create_connection(("127.0.0.1", self.port), TIMEOUT) as peer:
            peer.sendall(b"*%d\r\n%b" % (len(words), lines))
            return peer.recv(1 << 20)

    def _answers(self):
        with contextlib.suppress(OSError):
            return self.command("PING") == b"+PONG\r\n"


class Replica(HttpServer):
    """``tmkb serve --cluster``, whose streams begin soon. ``folder``: for its schemas."""

    def __init__(self, redis, folder, *arguments, **options):
        (folder / "limits.yaml").write_text("kind: limits\nextends: packaged\nlimits: {quiet_seconds: 0.5}\n")
        environment = {"TMKB_STATE_KEY": KEY, "TMKB_CLUSTER": redis.url}
        super().__init__("--server", "everything", "--schemas", str(folder), *arguments, env=environment, **options)

    def kill(self):
        """Kill it, unless it has ended, and release what belongs to it."""
        self.process.kill()
        self.process.wait()
        self.thread.join(TIMEOUT)
        self.process.stderr.close()


class Client:
    """A client after a handshake. Each request goes to the replica with the index ``at``, over a new connection."""

    def __init__(self, servers, revision="2025-11-25", at=0, capabilities=None, token=None):
        self.servers = servers
        self.headers = {**JSON, **({"Authorization": f"Bearer {token}"} if token else {})}
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        response = self.post({"id": 0, "method": "initialize", "params": params}, at)
        assert response.status_code == 200, response.text
        self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        assert self.post({"method": "notifications/initialized"}, at).status_code == 202

    @property
    def id(self):
        return self.headers["Mcp-Session-Id"]

    def url(self, at):
        return self.servers[at].address

    def post(self, message, at):
        return httpx2.post(self.url(at), json={"jsonrpc": "2.0", **message}, headers=self.headers, **OPTIONS)

    def ask(self, method, at, id=1, **params):
        """The last message of the response."""
        response = self.post({"id": id, "method": method, "params": params}, at)
        return messages(response)[-1]

    def call(self, tool, at, id=1, **arguments):
        return self.ask("tools/call", at, id, name=tool, arguments=arguments)

    def stream(self, message, at):
        """A context manager: the response, whose events can be read as they come."""
        return httpx2.stream("POST", self.url(at), json={"jsonrpc": "2.0", **message}, headers=self.headers, **OPTIONS)

    def listen(self, at, after=None):
        resumed = {} if after is None else {"Last-Event-ID": after}
        return httpx2.stream(
            "GET", self.url(at), headers={**self.headers, "Accept": "text/event-stream", **resumed}, **OPTIONS
        )

    def delete(self, at):
        return httpx2.delete(self.url(at), headers=self.headers, **OPTIONS)


def alone(server, method, id=1, token=None, **params):
    """The response to a stateless request."""
    name = params.get("name", params.get("taskId"))
    headers = {**JSON, "MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
    headers |= {"Mcp-Name": name} if name is not None else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
    return httpx2.post(server.address, json=message, headers=headers, **OPTIONS)


def messages(response):
    """The messages of a complete response."""
    if response.headers.get("content-type", "").startswith("application/json"):
        return [response.json()]
    return [message for _, message in events(response.text.splitlines())]


def events(lines):
    """Yield the id and the message (None if it has none) of each event, as they come."""
    id_ = data = None
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            id_ = value
        elif name == "data" or line == "data:":
            data = value
        elif not line and (id_ or data):
            yield id_, json.loads(data) if data else None
            id_ = data = None


def until(condition, seconds=TIMEOUT):
    """Wait until ``condition`` returns something true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{condition} stayed false; {os.getpid()}")

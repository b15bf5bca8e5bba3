"""Clients that ask for everything, again and again, and hold each answer against the states of the folder."""

import collections
import contextlib
import http.client
import itertools
import json
import threading
import time
from typing import NamedTuple

from tests.soak import stamped
from tests.support.process import TIMEOUT

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LEGACY = "2025-11-25"


def _of(*names):
    return lambda state: {name: state[name] for name in names if name in state}


# What is asked: a method, its params, and which files' versions its answer has.
KINDS = {
    "tools": ("tools/list", {}, _of("stamp", "slow", "extra")),
    "call": ("tools/call", {"name": "stamp"}, _of("stamp")),
    "refused": ("tools/call", {"name": "stamp", "arguments": {"pick": "none"}}, _of("stamp", "errors")),
    "unknown": ("tools/call", {"name": "nope"}, _of("errors")),
    "extra": ("tools/call", {"name": "extra"}, lambda state: _of("extra" if "extra" in state else "errors")(state)),
    "slow": ("tools/call", {"name": "slow"}, _of("slow")),
    "prompts": ("prompts/list", {}, _of("told")),
    "prompt": ("prompts/get", {"name": "told"}, _of("told")),
    "resources": ("resources/list", {}, _of("note")),
    "resource": ("resources/read", {"uri": "note://note"}, _of("note")),
    "discover": ("server/discover", {}, _of("server")),
}


class Asked(NamedTuple):
    """A request whose answer has not come: of which kind, in which era, and what had been seen when it was sent."""

    kind: str
    modern: bool
    since: int
    at: float


class Asking:
    """One client: what it has asked, what it has received, and how notifications have to look."""

    def __init__(self, history, rng):
        self.history = history
        self.rng = rng
        self.ids = itertools.count(1)
        self.pending = {}
        self.looks = {}  # of each answer without its versions, the first that came
        self.progress = collections.defaultdict(list)
        self.heard = collections.Counter()
        self.answered = collections.Counter()
        self.slowest = 0.0

    def request(self):
        """A request of any kind, noted down as asked."""
        kind = self.rng.choice([*KINDS])
        modern = kind == "discover" or self.rng.random() < 0.5
        method, params, _ = KINDS[kind]
        id_ = next(self.ids)
        meta = {"progressToken": id_} | (MODERN if modern else {})
        self.pending[id_] = Asked(kind, modern, self.history.seen, time.monotonic())
        return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}

    def hear(self, message, in_order=False):
        """Hold a message against all that can be right; ``in_order``: it is sent behind all that was heard before."""
        if "method" not in message:
            self._judge(message, self.pending.pop(message["id"]), in_order)
        elif message["method"] == "notifications/progress":
            self.progress[message["params"]["progressToken"]].append(stamped.stamps(json.dumps(message)))
        else:
            self.heard[message["method"]] += 1

    def _judge(self, answer, asked, in_order):
        expected, text = KINDS[asked.kind][2], json.dumps({**answer, "id": 0})
        found = stamped.stamps(text)
        named = ("server",) if asked.modern and "result" in answer else ()
        quick = asked.kind != "slow"
        since = self.history.seen if in_order and quick else asked.since
        self.history.explain(found, lambda state: expected(state) | _of(*named)(state), since)
        look = stamped.unstamped(text)
        assert self.looks.setdefault((asked.kind, asked.modern, *sorted(found)), look) == look
        if not quick and "slow" in found:
            assert self.progress.pop(answer["id"]) == [{"slow": found["slow"]}] * 2
        elif not quick:
            assert "error" in answer
        self.answered[asked.kind] += 1
        self.slowest = max(self.slowest, time.monotonic() - asked.at) if quick else self.slowest


class Piped(Asking):
    """The one client over stdio. It sends several requests before it reads."""

    def __init__(self, server, history, rng):
        super().__init__(history, rng)
        self.server = server
        server.handshake(LEGACY)

    def turn(self):
        """Some requests, and all that comes until no more than slow answers are missing."""
        self.server.send(*(self.request() for _ in range(self.rng.randint(1, 8))))
        self._read(lambda asked: asked.kind != "slow" or len(self.pending) > 20)
        time.sleep(0.005)

    def finish(self):
        """All that is still to come."""
        self._read(lambda _: True)

    def _read(self, wanted):
        while any(wanted(asked) for asked in self.pending.values()):
            self.hear(self.server.read(), in_order=True)


class OverHttp(Asking):
    """A client over HTTP."""

    def __init__(self, port, history, rng=None):
        super().__init__(history, rng)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        self.reconnected = 0  # after the server had closed the idle connection for another client

    def shake_hands(self):
        """Begin a session; the headers that name it."""
        id_, since = next(self.ids), self.history.seen
        params = {"protocolVersion": LEGACY, "capabilities": {}}
        headers, (answer,) = self.post({"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": params}, {})
        self.history.explain(stamped.stamps(json.dumps(answer)), _of("server"), since)
        self.answered["initialize"] += 1
        named = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, named)
        return named

    def post(self, message, headers):
        """The headers of the response, and the messages that it brings."""
        response = self._response("POST", headers=HEADERS | headers, body=json.dumps(message))
        lines = [line.removeprefix(b"data: ") for line in response.read().splitlines()]
        return response.headers, [json.loads(line) for line in lines if line.startswith(b"{")]

    def _response(self, verb, **request):
        """The response to a request; on a new connection, if the server closes the old one without any answer."""
        while True:
            try:
                self.connection.request(verb, "/mcp", **request)
                return self.connection.getresponse()
            except (BrokenPipeError, ConnectionResetError):  # also http.client.RemoteDisconnected
                self.connection.close()
                self.reconnected += 1


class Sessions(OverHttp):
    """Goes from one session to the next, and asks some things without one."""

    def turn(self):
        """A handshake, some requests, and the end of the session."""
        named = self.shake_hands()
        for _ in range(self.rng.randint(1, 40)):
            request = self.request()
            modern = self.pending[request["id"]].modern
            for message in self.post(request, described(request) if modern else named)[1]:
                self.hear(message)
            assert not self.pending
            time.sleep(0.01)
        assert self._response("DELETE", headers=named).read() == b""

    def finish(self):
        """Hang up."""
        self.connection.close()


class Listener(OverHttp):
    """Only hears of changes, on one stream from the beginning to the end."""

    def __init__(self, port, history, modern):
        super().__init__(port, history)
        response = self._alone() if modern else self._in_a_session()
        self.thread = threading.Thread(target=self._hear, args=(response,), daemon=True)
        self.thread.start()

    def _alone(self):
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
        params = {"notifications": wanted, "_meta": MODERN}
        request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        self.connection.request("POST", "/mcp", json.dumps(request), HEADERS | described(request))
        response = self.connection.getresponse()
        while b"acknowledged" not in response.readline():
            pass
        return response

    def _in_a_session(self):
        named = self.shake_hands()
        self.connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"} | named)
        return self.connection.getresponse()

    def _hear(self, response):
        with contextlib.suppress(OSError, http.client.HTTPException):  # the server has ended
            for line in response:
                if line.startswith(b"data: {") and b'"method"' in line:
                    self.heard[json.loads(line[6:])["method"]] += 1

    def finish(self):
        """The server has ended, and with it the stream."""
        self.thread.join(TIMEOUT)
        self.connection.close()


def described(request):
    """The headers of a request without a session."""
    params = request["params"]
    name = params.get("name") or params.get("uri")
    said = {"MCP-Protocol-Version": MODERN["io.modelcontextprotocol/protocolVersion"], "Mcp-Method": request["method"]}
    return said | ({"Mcp-Name": name} if name else {})

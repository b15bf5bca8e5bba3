"""A real server with a real issuer: tokens in both eras, rotation of keys, an issuer that is down, and bad files."""

import asyncio
import contextlib
import hashlib
import http.client
import json
import socket
import subprocess
import time

import pytest

from tests.support import issuer as issuers
from tests.support.issuer import Issuer, key, public
from tests.support.process import SERVE, TIMEOUT, HttpServer
from tests.transport.test_connections import LIMITED

pytestmark = [
    pytest.mark.process,
    pytest.mark.needs("uvicorn"),
    pytest.mark.needs("jwt"),
    pytest.mark.needs("joserfc"),
]

FILE = """
kind: access
resource: https://tmkb.example/mcp
issuers: [{{issuer: "{issuer}", leeway_seconds: 0}}]
roles:
  reader:
    granted_by: [{{scopes: ["tmkb:read"]}}]
    tools: [greet, "slow_*"]
  admin:
    granted_by: [{{scopes: ["tmkb:admin"]}}]
    tools: ["*"]
    resources: ["*"]
audit: digest
"""
CONFIG = """
kind: config
limits: {keys_retry_seconds: 0.05}
"""
PING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


@pytest.fixture(scope="module")
def issuer():
    with Issuer(key("one"), path="/realms/acme") as made:
        yield made


def started(folder, issuer, *arguments, **more):
    (folder / "access.yaml").write_text(FILE.format(issuer=issuer.name))
    (folder / "config.yaml").write_text(CONFIG)
    options = ("--access", str(folder / "access.yaml"), "--config", str(folder / "config.yaml"))
    return HttpServer("--server", "everything", *options, *arguments, **more)


@pytest.fixture(scope="module")
def server(tmp_path_factory, issuer):
    folder = tmp_path_factory.mktemp("access")
    (folder / "tokens").write_text(hashlib.sha256(b"static").hexdigest() + " admin\n")
    with started(folder, issuer, "--auth-tokens", str(folder / "tokens")) as made:
        yield made


class Client:
    """Sends one request after the other, with the same token."""

    def __init__(self, server, token):
        self.server = server
        self.authorization = [] if token is None else [("authorization", f"Bearer {token}")]
        self.session = None

    def call(self, body, *headers, verb="POST", path="/mcp"):
        """Return status, headers and JSON or text of the response."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=TIMEOUT)) as to:
            to.putrequest(verb, path)
            data = b"" if body is None else json.dumps(body).encode()
            usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
            session = [("mcp-session-id", self.session)] if self.session else []
            for name, value in [*usual, *session, *self.authorization, *headers, ("content-length", str(len(data)))]:
                to.putheader(name, value)
            to.endheaders(data)
            answer = to.getresponse()
            text = answer.read().decode()
        return answer.status, dict(answer.headers), json.loads(text) if text.startswith("{") else text

    def begin(self):
        answer = self.call(PING)
        self.session = answer[1].get("mcp-session-id")
        return answer

    def greet(self, era, tool="greet"):
        """Call a tool, in a session or without."""
        params = {"name": tool, "arguments": {"name": "Ann"}}
        if era == "session":
            if self.session is None and (answer := self.begin())[0] != 200:
                return answer
            self.call({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return self.call({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        return self.alone("tools/call", tool, **params)

    def alone(self, method, about, **params):
        body = {"jsonrpc": "2.0", "id": 2, "method": method, "params": {**params, "_meta": META}}
        headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", about)]
        return self.call(body, *headers)


ERAS = pytest.mark.parametrize("era", ["session", "stateless"])


@ERAS
def test_a_valid_token_is_admitted(server, issuer, era):
    status, _, body = Client(server, issuer.token()).greet(era)

    assert status == 200
    assert "Ann" in str(body)


NOW = int(time.time())
REFUSED = {
    "expired": (lambda issuer: issuer.token(exp=NOW - 60), "The access token has expired"),
    "not valid yet": (lambda issuer: issuer.token(nbf=NOW + 3600), "The access token is not valid yet"),
    "of another audience": (lambda issuer: issuer.token(aud="https://other.example"), "for another resource"),
    "of another issuer": (lambda issuer: issuer.token(issuer=issuers.NAME), "does not accept access tokens of this issuer"),
    "with an unknown key": (lambda issuer: issuer.token(key("unknown")), "has no such key"),
    "with another key": (lambda issuer: issuer.token(key("two"), header={"kid": "one"}), "The signature"),
    "without a signature": (lambda issuer: issuers.unsigned(issuer=issuer.name) + "AA", "is not accepted"),
    "with an HMAC of the public key": (
        lambda issuer: issuers.with_hmac(key("one").as_pem(private=False), issuer=issuer.name),
        "is not accepted",
    ),
}  # fmt: skip


@ERAS
@pytest.mark.parametrize("name", REFUSED)
def test_other_tokens_are_refused(server, issuer, era, name):
    make, reason = REFUSED[name]
    token = make(issuer)
    status, headers, body = Client(server, token).greet(era)

    assert status == 401
    assert headers["www-authenticate"].startswith('Bearer error="invalid_token", error_description="')
    assert "https://tmkb.example/.well-known/oauth-protected-resource/mcp" in headers["www-authenticate"]
    assert reason in body["error"]["message"]
    assert token[-20:] not in "".join(server.log) + str(headers) + str(body)


@ERAS
def test_no_token_gets_a_challenge(server, era):
    status, headers, _ = Client(server, None).greet(era)

    assert status == 401
    assert "error" not in headers["www-authenticate"]
    assert headers["www-authenticate"].endswith('scope="tmkb:read"')


@ERAS
def test_a_missing_scope_is_named(server, issuer, era):
    reader = Client(server, issuer.token())

    assert reader.greet(era)[0] == 200
    status, headers, _ = reader.greet(era, "test_simple_text")
    assert status == 403
    assert 'error="insufficient_scope"' in headers["www-authenticate"]
    assert headers["www-authenticate"].endswith('scope="tmkb:admin"')
    assert Client(server, issuer.token(scope="tmkb:admin")).greet(era, "test_simple_text")[0] == 200
    assert Client(server, issuer.token(scope="openid")).greet(era)[0] == 403


@ERAS
def test_a_static_token_is_admitted_with_its_role(server, era):
    assert Client(server, "static").greet(era, "test_simple_text")[0] == 200


def test_a_rotated_key_is_fetched_when_a_token_names_it(tmp_path):
    with Issuer(key("one")) as issuer, started(tmp_path, issuer) as server:
        for era, old, new in (("session", "one", "two"), ("stateless", "two", "three")):
            assert Client(server, issuer.token(key(old))).greet(era)[0] == 200
            issuer.keys = public(key(new))
            time.sleep(0.06)  # `keys_retry_seconds`
            assert Client(server, issuer.token(key(new))).greet(era)[0] == 200
            assert Client(server, issuer.token(key(old))).greet(era)[0] == 401  # its key is withdrawn


def test_an_issuer_can_be_down(tmp_path):
    with Issuer(key("one")) as issuer:
        issuer.statuses = {path: (500, {}) for path in issuer.documents}
        with started(tmp_path, issuer) as server:
            status, _, body = Client(server, issuer.token()).greet("stateless")
            assert status == 503
            assert "keys of the issuer are not available" in body["error"]["message"]
            issuer.statuses.clear()
            ends = time.monotonic() + TIMEOUT
            while Client(server, issuer.token()).greet("stateless")[0] != 200:
                assert time.monotonic() < ends
                time.sleep(0.02)
            issuer.stop()
            assert Client(server, issuer.token(subject="bob")).greet("session")[0] == 200
            assert Client(server, None).call(None, verb="GET", path="/healthz")[0] == 200
        assert any("cannot be fetched" in line for line in server.log)


def test_the_objects_of_one_subject_are_of_no_use_to_another(server, issuer):
    alice, bob = (Client(server, issuer.token(subject=subject)) for subject in ("alice", "bob"))
    alice.begin()
    bob.session = alice.session
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    task = alice.alone("tools/call", "slow_compute", name="slow_compute", arguments={"seconds": 60})[2]["result"][
        "taskId"
    ]

    assert bob.call(ping)[0] == 404
    assert bob.call(None, verb="DELETE")[0] == 404
    assert bob.alone("tasks/get", task, taskId=task)[2]["error"]
    assert alice.call(ping)[0] == 200
    assert alice.alone("tasks/get", task, taskId=task)[2]["result"]["status"] == "working"
    assert Client(server, issuer.token(subject="alice")).alone("tasks/get", task, taskId=task)[2]["result"]


def test_repeated_headers_are_not_a_choice_of_tokens(server, issuer):
    valid = ("authorization", f"Bearer {issuer.token()}")
    client = Client(server, "x.y.z")

    assert client.call(PING, valid)[0] == 401
    client.authorization.reverse()
    assert Client(server, issuer.token()).call(PING, ("authorization", "Bearer x.y.z"))[0] == 401
    assert Client(server, None).call(PING, ("authorization", f"{valid[1]}, {valid[1]}"))[0] == 401


def test_the_metadata_is_open(server, issuer):
    for path in ("", "/mcp"):
        status, headers, body = Client(server, None).call(
            None, verb="GET", path=f"/.well-known/oauth-protected-resource{path}"
        )
        assert status == 200
        assert headers["content-type"] == "application/json"
        assert body["authorization_servers"] == [issuer.name]
    assert Client(server, issuer.token()).call(PING, path="/mcp?access_token=x")[0] == 400


def test_processes_check_tokens_each(tmp_path):
    with Issuer(key("one")) as issuer, started(tmp_path, issuer, "--workers", "2") as server:
        statuses = [Client(server, issuer.token(jti=str(n))).greet("stateless")[0] for n in range(6)]

    assert statuses == [200] * 6


def refused(*arguments):
    done = subprocess.run([*SERVE, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 2
    return done.stderr


def test_a_bad_access_file_is_explained(tmp_path):
    file = tmp_path / "access.yaml"
    file.write_text("kind: access\nroles: {a: {tools: [tmkb_qery]}}\n")

    assert refused("--http", "127.0.0.1:0", "--access", str(file)) == (
        f"{file}:2:21: The server has no tool that 'tmkb_qery' matches. Did you mean 'tmkb_query'?\n"
    )


class Storage:
    """Keeps what the official client wants to keep."""

    def __init__(self):
        self.tokens = self.info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.info

    async def set_client_info(self, info):
        self.info = info


@pytest.mark.needs("mcp")
def test_the_official_client_signs_on_and_asks_for_another_scope(tmp_path):
    import httpx2
    from mcp import ClientSession
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.client.streamable_http import streamable_http_client

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"

    async def run(issuer):
        provider = ClientCredentialsOAuthProvider(url, Storage(), "client", "secret", issuer=issuer.name)
        async with (
            httpx2.AsyncClient(auth=provider, timeout=TIMEOUT) as http_client,
            streamable_http_client(url, http_client=http_client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            text = (await session.call_tool("test_simple_text", {})).content[0].text
            return names, text

    with Issuer(key("one"), path="/realms/acme") as issuer:
        file = tmp_path / "access.yaml"
        file.write_text(FILE.format(issuer=issuer.name).replace("https://tmkb.example/mcp", url))
        with HttpServer("--server", "everything", "--access", str(file), at=("--http", f"127.0.0.1:{port}")):
            names, text = asyncio.run(run(issuer))

    assert names == ["greet", "slow_compute"]
    assert text
    assert [grant["scope"] for grant in issuer.granted] == ["tmkb:read", "tmkb:read tmkb:admin"]
    assert {grant["resource"] for grant in issuer.granted} == {url}


def test_connections_that_wait_for_keys_keep_nobody_out(tmp_path):
    with (
        Issuer(key("one")) as issuer,
        started(tmp_path, issuer, wrapper=LIMITED) as server,
        contextlib.ExitStack() as stack,
    ):
        known = Client(server, issuer.token())
        assert known.greet("stateless")[0] == 200
        issuer.slow |= set(issuer.documents)
        unknown = issuer.token(key("unknown"))
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {unknown}\r\nContent-Length: 2\r\n\r\n"
        for _ in range(100):  # more than the connections of LIMITED
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), TIMEOUT))
            peer.sendall(head.encode())
        assert known.call(None, verb="GET", path="/healthz")[0] == 200
        assert known.greet("stateless")[0] == 200
        issuer.release.set()

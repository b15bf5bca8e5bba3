"""HTTP servers as processes: malformed requests, workers, options, shutdown."""

import contextlib
import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.support.process import SERVE, TIMEOUT, HttpServer
from tmkb.schema import installation

pytestmark = pytest.mark.process

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
}
HASTY = """
    kind: limits
    extends: packaged
    limits: {request_seconds: 0.5, quiet_seconds: 0.2, streams: 20, message_bytes: 100000}
"""


def alone(method, id=1, **params):
    """Return the body and the headers of a request that describes itself."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(message), {**JSON, **headers}


def ask(server, method, /, token=None, **params):
    """Send a request; return the status and the message of its response."""
    body, headers = alone(method, **params)
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        *_, last = [line for line in response.read().splitlines() if line.strip(b": ")]
        return response.status, json.loads(last.removeprefix(b"data: "))


def raw(server, data):
    """Send ``data``; return everything that arrives until the connection ends."""
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(data)
        return b"".join(iter(lambda: received(peer), b""))


def received(peer):
    try:
        return peer.recv(65536)
    except ConnectionError:
        return b""


def posted(method, more=None, /, **params):
    """Return the bytes of a request that describes itself. ``more``: further headers."""
    body, headers = alone(method, **params)
    lines = [f"{name}: {value}" for name, value in {**headers, **(more or {}), "Content-Length": len(body)}.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", "Host: localhost", *lines, "", body]).encode()


def stream(server, method="subscriptions/listen", **params):
    """Return a connection with an open stream."""
    peer = socket.create_connection(("127.0.0.1", server.port), TIMEOUT)
    peer.sendall(posted(method, **params))
    return peer


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "limits.yaml").write_text("\n".join(line[4:] for line in HASTY.splitlines()))
    with HttpServer("--server", "everything", "--schemas", str(folder)) as server:
        yield server
        assert ask(server, "tools/list")[0] == 200  # after all tests
    assert [line for line in server.log if line.startswith("[ERROR] HTTP") or "Traceback" in line] == []


HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b"403"),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET //mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"GET /mcp%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (HEAD + b"X: " + b"x" * 200_000 + b"\r\n\r\n", b"4"),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n", b"400"),
        (HEAD + b"Content-Length: 200000\r\nConnection: close\r\n\r\n" + b" " * 1000, b"413"),
        (HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + b"4000\r\n" + b" " * 0x4000 + b"\r\n" * 1
         + (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 20, b"413"),
        (HEAD + b"Content-Length: 100\r\n\r\n{", b"408"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", b"400"),
    ],
    ids=["host", "dots", "slashes", "nul", "head", "two-lengths", "lengths-differ", "bad-chunk", "large", "endless",
         "slow-body", "tls"],
)  # fmt: skip
def test_malformed_requests_get_an_error_status(hasty, data, status):
    assert raw(hasty, data).split(b" ")[1].startswith(status)


def test_an_incomplete_head_times_out(hasty):
    began = time.monotonic()

    assert raw(hasty, b"POST /mcp HTTP/1.1\r\nHost: loc") == b""
    assert time.monotonic() - began < TIMEOUT / 2


def test_unread_streams_are_limited_and_do_not_block_calls(hasty):
    notifications = {"toolsListChanged": True}
    streams = [stream(hasty, id=number, notifications=notifications) for number in range(60)]
    statuses = [each.recv(200).split(b" ")[1] for each in streams]

    assert (statuses.count(b"200"), statuses.count(b"503")) == (20, 40)
    assert ask(hasty, "tools/list")[0] == 200
    for each in streams:
        each.close()
    deadline = time.monotonic() + TIMEOUT
    while (again := stream(hasty, id=1, notifications=notifications)).recv(200).split(b" ")[1] == b"503":
        again.close()
        assert time.monotonic() < deadline
    again.close()


def test_an_idle_stream_sends_keep_alive_comments(hasty):
    peer = stream(hasty, id=1, notifications={"toolsListChanged": True})
    seen = b""
    while b"\n:\n\n" not in seen.replace(b"\r\n", b"\n"):
        seen += peer.recv(4096)
    peer.close()

    assert b"notifications/subscriptions/acknowledged" in seen


def test_a_client_that_never_reads_is_disconnected(hasty):
    peer = stream(hasty, id=1, notifications={"toolsListChanged": True})
    for _ in range(50):
        assert ask(hasty, "tools/call", name="test_trigger_tool_change")[0] == 200
    peer.close()


def test_operations_run_concurrently(hasty):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask(hasty, "tools/call", name="test_slow"))) for _ in range(10)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    assert ask(hasty, "tools/list")[0] == 200
    for thread in threads:
        thread.join(TIMEOUT)

    assert [status for status, _ in answers] == [200] * 10
    assert time.monotonic() - began < TIMEOUT / 2


def test_shutdown_finishes_calls_and_ends_subscriptions():
    with HttpServer("--server", "everything") as server:
        listener = stream(server, id="s", notifications={"toolsListChanged": True})
        listener.recv(10)
        slow = stream(server, "tools/call", id=7, name="test_slow")
        time.sleep(0.1)
        assert server.end() == 0
        output = [b"".join(iter(lambda peer=peer: received(peer), b"")) for peer in (listener, slow)]
        for peer in (listener, slow):
            peer.close()

    assert b'"id":"s","result"' in output[0]
    assert b'"id":7,"result"' in output[1]
    assert server.log[-1] == "[INFO] MCP server shutdown"


def test_two_workers_share_a_stateless_conversation():
    with HttpServer("--server", "everything", "--workers", "2") as server:
        for _ in range(20):  # each may reach a different worker
            tool = {"name": "test_input_required_result_multi_round"}
            result, answers = ask(server, "tools/call", **tool)[1]["result"], [{"name": "Ann"}, {"color": "blue"}]
            for content in answers:
                ((key, _),) = result["inputRequests"].items()
                responses = {key: {"action": "accept", "content": content}}
                again = {**tool, "inputResponses": responses, "requestState": result["requestState"]}
                result = ask(server, "tools/call", **again)[1]["result"]
            assert result["resultType"] == "complete"
        assert server.end() == 0


def children(pid):
    """Return the ids of the processes that ``pid`` has started."""
    command = ["ps", "-o", "pid=", "--ppid", str(pid)]
    return [int(line) for line in subprocess.run(command, capture_output=True, check=True).stdout.split()]


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps, of procps")
def test_a_worker_that_dies_is_replaced():
    with HttpServer("--workers", "2") as server:
        assert ask(server, "tools/list")[0] == 200
        time.sleep(1.5)  # a worker that ends sooner is not replaced
        (generation,) = children(server.process.pid)
        os.kill(children(generation)[0], 9)
        assert [ask(server, "tools/list")[0] for _ in range(20)] == [200] * 20
        assert server.end() == 0


def test_requests_without_a_token_are_rejected(tmp_path):
    token = json.loads(subprocess.run([*SERVE[:-1], "token", "--json"], capture_output=True, check=True).stdout)
    assert hashlib.sha256(token["token"].encode()).hexdigest() == token["digest"]
    file = tmp_path / "tokens"
    file.write_text(f"# Ann's laptop\n{token['digest']}\n")
    with HttpServer("--auth-tokens", str(file)) as server:
        assert ask(server, "tools/list")[0] == 401
        assert ask(server, "tools/list", token="x")[0] == 401
        assert ask(server, "tools/list", token=token["token"])[0] == 200


def test_only_the_owner_can_use_the_unix_socket(tmp_path):
    path = str(tmp_path / "s")
    with HttpServer(at=("--uds", path)) as server:
        assert os.stat(path).st_mode & 0o777 == 0o600
        body, headers = alone("tools/list")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            lines = [f"{name}: {value}" for name, value in {**headers, "Content-Length": len(body)}.items()]
            peer.sendall("\r\n".join(["POST /mcp HTTP/1.1", "Host: localhost", *lines, "", body]).encode())
            assert peer.recv(100).startswith(b"HTTP/1.1 200")
        assert refused("--uds", path) == f"{path}: Cannot listen on this address: something is listening there already."
        assert server.end() == 0
    with HttpServer(at=("--uds", path)):  # a stale socket file is replaced
        pass


def refused(*arguments):
    """Return the error message of a server that does not start."""
    done = subprocess.run(
        [*SERVE, *arguments], check=False, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--http", "0.0.0.0:0", "--allow-remote"],
            "--http: Other machines can reach 0.0.0.0, and nobody would have to authenticate. "
            "Use 127.0.0.1, or add --access FILE or --auth-tokens FILE. --insecure serves everyone.",
        ),
        (["--http", "8321"], "--http: '8321' is not an address to listen on. Write HOST:PORT, for example 127.0.0.1:8321."),
        (["--http", "localhost:99999"], "--http: 'localhost:99999' is not an address to listen on. Write HOST:PORT, for example 127.0.0.1:8321."),
        (["--insecure"], "--insecure: This option is for servers over HTTP. Add --http HOST:PORT or --uds PATH."),
        (["--workers", "2"], "--workers: This option is for servers over HTTP. Add --http HOST:PORT or --uds PATH."),
        (["--http", ""], "--http: '' is not an address to listen on. Write HOST:PORT, for example 127.0.0.1:8321."),
        (
            ["--http", "127.0.0.1:0", "--cluster-address", "127.0.0.1"],
            "--cluster-address: Only replicas that share a Redis server need this. Add --cluster URL, or remove this option.",
        ),
        (
            ["--http", "127.0.0.1:0", "--cluster", "redis://127.0.0.1"],
            "--cluster: Replicas need the same key for request states. Set TMKB_STATE_KEY to at least 32 random characters, the same for all.",
        ),
        (["--http", "127.0.0.1:0", "--workers", "0"], "--workers: Cannot run 0 worker processes here. Remove --workers to run one."),
        (["--http", "127.0.0.1:0", "--workers", "100000"], "--workers: Cannot run 100000 worker processes here. Remove --workers to run one."),
        (["--http", "127.0.0.1:0", "--auth-tokens", "none"], "none:1:1: Cannot read this file: No such file or directory."),
    ],
)  # fmt: skip
def test_invalid_http_options_are_reported(arguments, message):
    assert refused(*arguments) == message


def test_an_invalid_token_file_is_reported(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# mine\nsecret\n")
    assert "tokens:2:1: This line is not the SHA-256 digest of a token." in refused(
        "--http", "127.0.0.1:0", "--auth-tokens", str(file)
    )
    file.write_text("# nobody\n")
    assert "The file is empty." in refused("--http", "127.0.0.1:0", "--auth-tokens", str(file))


def test_a_port_in_use_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refused("--http", where) == f"{where}: Cannot listen on this address: Address already in use."


def test_http_without_the_extra_names_the_extra(tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('uvicorn', name='uvicorn')")
    done = subprocess.run(
        [*SERVE, "--http", "127.0.0.1:0"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.stderr == (
        f"--http: This needs the module uvicorn, which is not installed. Install the extra `http`: {installation.command('http')}\n"
    )


def test_stdio_loads_no_http_modules():
    code = "import sys; from tmkb.cli import serve; serve.serve({}); print(*sys.modules, file=sys.stderr)"
    plain = {
        key: value for key, value in os.environ.items() if not key.startswith("COVERAGE")
    }  # coverage imports many modules
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.splitlines()[-1].split())

    assert not loaded & {
        "uvicorn",
        "asyncio",
        "h11",
        "tmkb.protocol.headers",
        "tmkb.transport.http",
        "argparse",
        "base64",
    }

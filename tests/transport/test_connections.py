"""Connections to HTTP servers as processes: what unauthorized or misbehaving clients can cost the others."""

import contextlib
import fcntl
import hashlib
import http.client
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time

import pytest

from tests.support.process import SERVE, TIMEOUT, HttpServer
from tests.transport.test_asgi import HEAD, alone, ask, posted, raw, received, refused, stream
from tmkb.errors import SpecError
from tmkb.transport import sockets

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory and limits of a process are read from Linux")
HEAD_BYTES = 65536  # limits.head_bytes
PRINCIPAL_BYTES = 67108864  # limits.principal_bytes
LIMITED = ["sh", "-c", 'ulimit -n "$0"; exec "$@"', "64"]
FOREIGN = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\n"
TOKEN = "a token for tests"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


@pytest.fixture(scope="module")
def generous(tmp_path_factory):
    """The option for a server that all tests together do not bring to its quota of bytes."""
    file = tmp_path_factory.mktemp("quota") / "config.yaml"
    file.write_text("kind: config\nlimits: {principal_byte_burst: 1000000000000}\n")
    return ["--config", str(file)]


@pytest.fixture(scope="module")
def guarded(generous, tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(hashlib.sha256(TOKEN.encode()).hexdigest() + "\n")
    file.chmod(0o600)
    with HttpServer("--auth-tokens", str(file), "--allow-origin", "https://app.example", *generous) as server:
        yield server
    assert [line for line in server.log if line.startswith("[ERROR]")] == []


@pytest.fixture(scope="module")
def everything(generous):
    with HttpServer("--server", "everything", *generous) as server:
        yield server
    assert [line for line in server.log if line.startswith("[ERROR] HTTP")] == []


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), TIMEOUT)


def healthy(server):
    """Return the seconds of a health check on a new connection."""
    began = time.perf_counter()
    assert raw(server, CLOSING).endswith(b"ok\n")
    return time.perf_counter() - began


def settled(server, limit):
    """Wait until the memory of the server is below ``limit`` or constant, and return it."""
    deadline = time.monotonic() + 3
    while (memory := server.memory()) > limit and time.monotonic() < deadline:
        time.sleep(0.1)
    return memory


def sockets_of(server):
    """The number of open sockets of the server."""
    folder, links = f"/proc/{server.process.pid}/fd", []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(os.path.join(folder, name)))
    return sum(link.startswith("socket:") for link in links)


def until(peer, end):
    """Receive until ``end``, or until the end of the connection."""
    data = b""
    while end not in data and (more := received(peer)):
        data += more
    return data


# --- Latency


@pytest.mark.process
def test_a_call_on_a_reused_connection_is_not_slower(everything):
    body, headers = alone("tools/list")
    reused, fresh = [], []
    connection = http.client.HTTPConnection("127.0.0.1", everything.port, timeout=TIMEOUT)
    for _ in range(30):
        began = time.perf_counter()
        connection.request("POST", "/mcp", body, headers)
        assert connection.getresponse().read()
        reused.append(time.perf_counter() - began)
        began = time.perf_counter()
        assert ask(everything, "tools/list")[0] == 200
        fresh.append(time.perf_counter() - began)
    connection.close()

    assert statistics.median(reused) < 2 * statistics.median(fresh)


@pytest.mark.process
def test_tiny_chunks_of_one_client_do_not_delay_others(everything):
    attack = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + b"1\r\n \r\n" * 200_000 + b"0\r\n\r\n"
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(raw(everything, attack))) for _ in range(20)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    waited = [healthy(everything)]
    while any(thread.is_alive() for thread in threads):
        waited.append(healthy(everything))
    took = time.perf_counter() - began  # much longer than a process waits for a processor

    assert [answer.split(b" ")[1] for answer in answers] == [b"400"] * 20  # a blank body is not a message
    assert max(waited) < took / 2


# --- Memory


@pytest.mark.process
@linux
def test_requests_of_closed_connections_are_freed(guarded):
    count, request = 600, b"GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 60_000 + b"\r\n\r\n"
    before = guarded.memory()
    for _ in range(count):
        with connect(guarded) as peer:
            peer.sendall(request)
            assert peer.recv(12) == b"HTTP/1.1 401"
    assert settled(guarded, before + count * HEAD_BYTES / 4) - before < count * HEAD_BYTES / 4


@pytest.mark.process
@linux
@pytest.mark.parametrize(
    "begun", [b"GET /x HTTP/1.1\r\nX: ", b"GET /x HTTP/1.1\r\n" + b"a:\r\n" * 10], ids=["long", "many"]
)
def test_an_unauthorized_connection_uses_memory_for_one_head_only(guarded, begun):
    count, before = 200, guarded.memory()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(guarded)) for _ in range(count)]
        for peer in peers:
            peer.sendall(begun + b"x" * (HEAD_BYTES - 100 - len(begun)))
        healthy(guarded)
        assert settled(guarded, before + count * HEAD_BYTES) - before < count * HEAD_BYTES * 1.5
    healthy(guarded)


@pytest.mark.process
@linux
def test_an_idle_connection_does_not_store_its_last_request(guarded):
    count, before = 30, guarded.memory()
    many = b"GET /x HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 15_000 + b"\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            peer = stack.enter_context(connect(guarded))
            peer.sendall(many)
            assert peer.recv(12) == b"HTTP/1.1 401"
        assert settled(guarded, before + 8 * count * HEAD_BYTES) - before < 8 * count * HEAD_BYTES


@pytest.mark.process
@linux
def test_the_body_of_an_unauthorized_request_is_not_read(guarded):
    count, size, before = 40, 2_000_000, guarded.memory()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(guarded)) for _ in range(count)]
        for peer in peers:
            peer.sendall(HEAD + b"Content-Length: 9900000\r\n\r\n")
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(b" " * size)
        assert guarded.memory() - before < count * HEAD_BYTES * 2
        assert {peer.recv(12) for peer in peers} == {b"HTTP/1.1 401"}


@pytest.mark.process
@linux
def test_a_client_that_does_not_read_its_response_is_disconnected(tmp_path):
    (tmp_path / "limits.yaml").write_text("kind: limits\nextends: packaged\nlimits: {request_seconds: 0.3}\n")
    one = posted("tools/call", name="test_error_handling", filling="x")
    with HttpServer("--server", "everything", "--schemas", str(tmp_path)) as server:
        healthy(server)  # the server has opened what it keeps
        time.sleep(0.5)  # until the connection of that request is closed
        before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        with connect(server) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            peer.setblocking(False)
            rest, deadline = b"", time.monotonic() + TIMEOUT
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < deadline:
                    rest = rest or one * 100
                    try:
                        rest = rest[peer.send(rest) :]
                    except BlockingIOError:  # the server is slow, or has stopped reading, or is gone
                        if len(os.listdir(f"/proc/{server.process.pid}/fd")) == before:
                            break
                        time.sleep(0.1)
            while len(os.listdir(f"/proc/{server.process.pid}/fd")) > before:
                assert time.monotonic() < deadline
                time.sleep(0.1)


@linux
@pytest.mark.process
def test_unread_responses_are_freed_with_their_connections(everything):
    count, size = 15, 9_000_000
    before = everything.memory()
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            for number in range(count):
                stack.enter_context(
                    stream(everything, "tools/call", id=number, name="greet", arguments={"name": "x" * size})
                )
            healthy(everything)
            assert everything.memory() - before < PRINCIPAL_BYTES + 2 * size
        assert settled(everything, before + size) - before < size


@linux
@pytest.mark.parametrize(
    "token", [b"", b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"], ids=["anonymous", "token"]
)
@pytest.mark.process
def test_incoming_bodies_stay_within_the_budget_of_a_principal(guarded, everything, token):
    server, count, size = guarded if token else everything, 20, 9_000_000
    before = server.memory()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(server)) for _ in range(count)]
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(HEAD + token + b"Content-Length: 9900000\r\n\r\n" + b" " * size)
        healthy(server)
        assert server.memory() - before < PRINCIPAL_BYTES * 1.3
        assert peers[-1].recv(12) == b"HTTP/1.1 503"
    assert settled(server, before + size * 2) - before < size * 2


# --- The share of a principal


@pytest.mark.process
def test_connections_are_limited_per_principal(tmp_path):
    tokens = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("one", "two")}
    file = tmp_path / "tokens"
    file.write_text("\n".join(tokens.values()) + "\n")
    file.chmod(0o600)
    begun = HEAD + b"Authorization: Bearer one\r\nContent-Length: 1000\r\n\r\n{"
    with HttpServer("--auth-tokens", str(file), wrapper=LIMITED) as server, contextlib.ExitStack() as stack:
        peers = []
        for _ in range(60):  # 48 connections in all
            peers.append(stack.enter_context(connect(server)))
            peers[-1].sendall(begun)
        assert ask(server, "tools/list", token="two")[0] == 200
        status, refused = ask(server, "tools/list", token="one")
        assert (status, refused["error"]["message"]) == (503, "Too many connections of one client at once. Limit: 24")
        for peer in peers[:24]:
            peer.close()
        deadline = time.monotonic() + TIMEOUT
        while ask(server, "tools/list", token="one")[0] != 200:
            assert time.monotonic() < deadline


@pytest.mark.process
def test_a_full_server_refuses_requests_and_answers_probes():
    with HttpServer(wrapper=LIMITED) as server, contextlib.ExitStack() as stack:
        peers = []

        def begin():
            peers.append(stack.enter_context(connect(server)))
            peers[-1].sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")

        for _ in range(48):
            begin()
        healthy(server)
        post = HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
        deadline = time.monotonic() + TIMEOUT
        # A connection whose bytes have not arrived yet is idle: the server may have closed it to make room.
        while not (answer := raw(server, post)).startswith(b"HTTP/1.1 503"):
            assert time.monotonic() < deadline, answer
            begin()
        assert b"retry-after: 2" in answer
        assert b"All connections are in use. Limit: 48" in answer
        healthy(server)
        for peer in peers:
            peer.close()
        deadline = time.monotonic() + TIMEOUT
        while ask(server, "tools/list")[0] != 200:
            assert time.monotonic() < deadline


# --- The end


@pytest.mark.process
def test_shutdown_does_not_wait_for_a_body():
    with HttpServer() as server, connect(server) as peer:
        peer.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        healthy(server)
        began = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - began < 1.8  # less than `linger_seconds`
        assert peer.recv(12) == b"HTTP/1.1 503"


@pytest.mark.process
def test_a_request_with_two_lengths_closes_the_connection(everything):
    one = HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    answer = raw(everything, one + GET)

    assert answer.startswith(b"HTTP/1.1 400")
    assert (b"connection: close" in answer.lower(), answer.count(b"HTTP/1.1")) == (True, 1)


# --- What is answered before a body is read


@pytest.mark.process
@pytest.mark.parametrize("more", [b"", b"Expect: 100-continue\r\n"], ids=["plain", "expect"])
@pytest.mark.parametrize(("head", "status"), [(HEAD, b"401"), (FOREIGN, b"403")], ids=["token", "host"])
def test_a_rejection_does_not_wait_for_the_body(guarded, head, status, more):
    answer = raw(guarded, head + more + b"Content-Length: 1000000\r\n\r\n" + b"{")

    assert answer.split(b" ")[1] == status
    assert b"connection: close" in answer.lower()


@pytest.mark.process
def test_a_client_that_sends_its_whole_body_first_can_read_the_rejection(guarded):
    for _ in range(10):
        answer = raw(guarded, HEAD + b"Content-Length: 3000000\r\n\r\n" + b" " * 3_000_000)
        assert answer.startswith(b"HTTP/1.1 401") and answer.endswith(b"}")


@pytest.mark.process
def test_an_authorized_client_gets_100_continue(guarded):
    body, headers = alone("tools/list")
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Authorization": f"Bearer {TOKEN}"}.items())
    with connect(guarded) as peer:
        peer.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        assert peer.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(body.encode())
        assert peer.recv(12) == b"HTTP/1.1 200"


@pytest.mark.process
def test_rejecting_a_request_without_a_body_keeps_the_connection(guarded):
    with connect(guarded) as peer:
        for _ in range(3):
            peer.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert until(peer, b"}").startswith(b"HTTP/1.1 401")


@pytest.mark.process
def test_pipelined_requests_are_answered_in_order(everything):
    answer = raw(everything, posted("tools/list") * 20 + CLOSING)

    assert len(re.findall(rb"HTTP/1.1 200 ", answer)) == 21
    assert answer.endswith(b"ok\n")


# --- Half-closed connections


@pytest.mark.process
@pytest.mark.parametrize("tool", ["test_simple_text", "test_slow"])
def test_a_half_closed_connection_gets_its_response(everything, tool):
    with stream(everything, "tools/call", id=7, name=tool) as peer:
        peer.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: received(peer), b""))

    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"id":7,"result"' in answer


@pytest.mark.process
def test_a_half_closed_connection_gets_the_responses_to_pipelined_requests(everything):
    with connect(everything) as peer:
        peer.sendall(GET * 5)
        peer.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: received(peer), b""))

    assert answer.count(b"\r\n\r\nok\n") == 5


@pytest.mark.process
@linux
@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("subscriptions/listen", b""),
        ("subscriptions/listen", GET),
        ("subscriptions/listen", b" " * 200_000),
        ("tools/call", GET),
        ("tools/call", b" " * 30_000),
    ],
)
def test_the_end_of_a_connection_is_noticed_although_data_follows_its_request(method, more):
    slow = {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}}
    with HttpServer("--server", "everything") as server:
        before = sockets_of(server)
        for _ in range(5):
            params = slow if method == "tools/call" else {"notifications": {"toolsListChanged": True}}
            with stream(server, method, **params) as peer:
                healthy(server)
                peer.sendall(more)
                assert sockets_of(server) > before
        deadline = time.monotonic() + 10  # less than `quiet_seconds`, after which an event would be sent
        while sockets_of(server) > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sockets_of(server) == before


@pytest.mark.process
@pytest.mark.parametrize("behind", [True, False], ids=["behind", "later"])
@pytest.mark.parametrize("last", [{"Connection": "close"}, {}], ids=["close", "draining"])
def test_unread_requests_do_not_cut_off_the_last_response(last, behind):
    """Closing a connection with unread data resets it, and its peer can lose what it has not read yet."""
    drain = [] if last else ["--drain", "9"]
    with HttpServer("--server", "everything", *drain) as server, socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        peer.settimeout(TIMEOUT)
        peer.connect(("127.0.0.1", server.port))
        if not last:
            server.process.terminate()
            while raw(server, CLOSING.replace(b"healthz", b"readyz")).split(b" ")[1] != b"503":
                time.sleep(0.02)
        peer.sendall(posted("tools/call", last, name="greet", arguments={"name": "x" * 4_000_000}) + GET * behind)
        time.sleep(2.5)  # more than `linger_seconds`
        peer.sendall(GET * 1000)
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    assert answer.count(b"x") > 4_000_000 and b"connection: close" in answer


@pytest.mark.process
def test_head_of_a_probe_has_the_length_of_get(everything):
    answer = raw(everything, GET.replace(b"GET", b"HEAD") + CLOSING)

    assert answer.count(b"content-length: 3\r\n") == 2
    assert answer.count(b"\r\n\r\nok\n") == 1


@pytest.mark.process
def test_a_half_closed_connection_does_not_wait_for_the_rest_of_a_body(everything):
    """The second request is parsed after the response to the first, when the end of input is already known."""
    one = posted("tools/call", name="test_slow")
    with connect(everything) as peer:
        peer.sendall(one + one[:-1])
        peer.shutdown(socket.SHUT_WR)
        began = time.monotonic()
        answer = b"".join(iter(lambda: received(peer), b""))

    assert answer.count(b"HTTP/1.1 200") == 1
    assert time.monotonic() - began < 10  # less than `request_seconds`


# --- Descriptors


@pytest.mark.process
@linux
def test_idle_connections_are_closed_for_new_ones_with_one_log_line():
    with HttpServer("--server", "everything", wrapper=LIMITED) as server, contextlib.ExitStack() as stack:
        slow = stack.enter_context(stream(server, "tools/call", id=7, name="test_slow"))
        for _ in range(100):
            with contextlib.suppress(OSError):
                stack.enter_context(connect(server))
        healthy(server)
        assert b'"id":7,"result"' in until(slow, b'"id":7,"result"')
    assert [line for line in server.log if line.startswith("[WARNING]")] == [
        "[WARNING] All 48 connections are in use. Idle ones are closed for new clients; if none is idle, new clients are refused"
    ]


@pytest.mark.process
@linux
def test_the_server_recovers_from_running_out_of_descriptors_with_one_log_line():
    with HttpServer() as server, contextlib.ExitStack() as stack:
        healthy(server)
        open_now = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (open_now + 20, open_now + 20))
        for _ in range(100):
            stack.enter_context(connect(server))
        healthy(server)
        assert server.log[2:] == [
            "[WARNING] No connection can be accepted because too many files are open. New clients wait"
        ]


# --- The log


@pytest.mark.process
@linux
@pytest.mark.parametrize("level", ["info", "debug"])
def test_an_unread_log_does_not_block_the_server(level):
    whole = {**os.environ, "LOG_LEVEL": level}
    with subprocess.Popen([*SERVE, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, env=whole) as process:
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        while not (match := re.search(rb":(\d+)/mcp", os.read(process.stderr.fileno(), 4096))):
            pass
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", int(match[1])), 10) as peer:
                peer.sendall(b"bad\r\n\r\n")
                assert peer.recv(12) == b"HTTP/1.1 400"
        process.kill()
        log = process.stderr.read()
    assert (b"Invalid HTTP request" in log) == (level == "debug")  # a peer cannot fill the log


# --- Unix domain sockets


@pytest.mark.process
@pytest.mark.parametrize("kind", ["file", "link", "dangling", "fifo", "folder"])
def test_a_file_that_is_not_a_socket_is_not_replaced(tmp_path, kind):
    path, other = tmp_path / "s", tmp_path / "other"
    other.write_text("precious")
    {
        "file": lambda: path.write_text("precious"),
        "link": lambda: path.symlink_to(other),
        "dangling": lambda: path.symlink_to(tmp_path / "nothing"),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    before = os.lstat(path)

    assert refused("--uds", str(path)) == (
        f"{path}:1:1: A file that is not a socket already exists at this path. Use another path, or remove the file."
    )
    assert os.path.samestat(os.lstat(path), before)
    assert other.read_text() == "precious"


def test_a_system_without_unix_sockets_is_reported(monkeypatch):
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(SpecError) as caught:
        sockets.bind(None, "s")
    assert [problem.rule for problem in caught.value.problems] == ["no_unix_sockets"]


# --- Pages of other origins


def exchange(server, verb, headers, body=None):
    """Send a request; return the status, the headers and the body of its response."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
        connection.request(verb, "/mcp", body, headers)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


ASKED = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,mcp-method",
}


@pytest.mark.process
def test_a_preflight_permits_the_methods_and_headers_of_mcp(guarded):
    status, headers, body = exchange(guarded, "OPTIONS", {"Origin": "https://app.example", **ASKED})

    assert (status, body) == (204, b"")
    assert headers["access-control-allow-origin"] == "https://app.example"
    assert headers["access-control-allow-headers"] == "authorization,content-type,mcp-method"
    assert headers["access-control-allow-methods"] == "POST, GET, DELETE"
    assert headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in headers
    assert "content-length" not in headers


@pytest.mark.process
def test_a_permitted_page_can_read_responses_and_errors(guarded):
    body, headers = alone("tools/list")
    origin = {**headers, "Origin": "https://app.example"}
    for more, expected in (({"Authorization": f"Bearer {TOKEN}"}, 200), ({}, 401)):
        status, got, _ = exchange(guarded, "POST", {**origin, **more}, body)
        assert (status, got["access-control-allow-origin"], got["vary"]) == (expected, "https://app.example", "Origin")
        assert {"mcp-session-id", "www-authenticate"} <= set(got["access-control-expose-headers"].split(", "))


@pytest.mark.process
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"Origin": "https://evil.example", **ASKED}, 403),
        ({"Origin": "null", **ASKED}, 403),
        ({"Origin": "https://app.example", "Host": "evil.example", **ASKED}, 403),
        ({"Origin": "https://app.example"}, 401),
    ],
    ids=["origin", "null", "host", "no-preflight"],
)
def test_other_origins_are_rejected_without_cors_headers(guarded, more, status):
    got, headers, _ = exchange(guarded, "OPTIONS", more)

    assert got == status
    assert not {name for name in headers if name.startswith("access-control-allow-")} - (
        {"access-control-allow-origin"} if status == 401 else set()
    )

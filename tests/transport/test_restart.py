"""Servers as processes under quotas, and while they drain, reload and restart."""

import asyncio
import contextlib
import hashlib
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.support.process import SERVE, TIMEOUT, HttpServer
from tests.transport.test_asgi import alone, ask, children, received, stream
from tmkb.transport import listener

pytestmark = pytest.mark.process


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)


def call(connection, method="tools/list", token=None, **params):
    """Return the response to a request on an open connection, and its body."""
    body, headers = alone(method, **params)
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    return response, response.read()


def probe(server, path="/readyz"):
    with contextlib.closing(connect(server.port)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("Connection"), response.read().decode()


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def limited(tmp_path, **limits):
    file = tmp_path / "config.yaml"
    file.write_text(f"kind: config\nlimits: {json.dumps(limits)}\n")
    return ["--config", str(file)]


@pytest.mark.parametrize("fault", [OSError(24, "Too many open files"), KeyError("x")])
def test_a_reload_that_fails_unexpectedly_leaves_the_next_one_possible(fault):
    lines, results = [], [fault, lambda _: None]

    def reload():
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    log = SimpleNamespace(write=lambda line, /, **_: lines.append(line), flush=lambda: None)
    server = SimpleNamespace(hangup=asyncio.Event(), application=SimpleNamespace(log=log))

    async def hang_up_twice():
        task = asyncio.create_task(listener.Server._reload(server, reload))
        while results and not task.done():
            server.hangup.set()
            await asyncio.sleep(0.01)
        while "reread" not in lines and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(hang_up_twice())
    assert lines == ["not_reread", "failed", "reread"]


class Load:
    """Clients that call the server all the time, each on a kept-alive connection; `failures` should stay empty."""

    def __init__(self, port, clients=4):
        self.port, self.answered, self.failures, self.ending = port, [0] * clients, [], False
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait()
        return self

    def __exit__(self, *_):
        self.ending = True
        for thread in self.threads:
            thread.join(TIMEOUT)

    def wait(self, count=5):
        """Wait until each client got ``count`` more responses."""
        before = [*self.answered]
        wait_for(
            lambda: self.failures or all(now >= then + count for now, then in zip(self.answered, before, strict=True))
        )

    def _run(self, number):
        connection = connect(self.port)
        while not self.ending:
            try:
                response, body = call(connection)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
            else:
                if response.status != 200:
                    self.failures.append((response.status, body))
                self.answered[number] += 1
        connection.close()


SIGNAL_AT_START = """
import os, signal, socket
from tmkb.server.server import Server
from tmkb.transport import listener

started = listener.Options(started=lambda: os.kill(os.getpid(), signal.SIGTERM))
listener.serve(Server.load("everything").asgi(), socket.create_server(("127.0.0.1", 0)), options=started)
"""


def test_a_signal_at_the_start_ends_the_server():
    assert subprocess.run([sys.executable, "-c", SIGNAL_AT_START], timeout=TIMEOUT, check=False).returncode == 0


def test_a_client_that_waits_as_long_as_it_is_told_gets_all_answers(tmp_path):
    with HttpServer("--server", "everything", *limited(tmp_path, principal_rate=4, principal_burst=3)) as server:
        statuses = []
        for _ in range(6):
            while True:
                with contextlib.closing(connect(server.port)) as connection:
                    response, body = call(connection)
                statuses.append(response.status)
                if response.status == 200:
                    break
                assert json.loads(body)["error"]["data"]["retryAfter"] == int(response.getheader("Retry-After")) == 1
                time.sleep(1)

    assert statuses.count(200) == 6
    assert {*statuses} == {200, 429}


def test_requests_at_once_and_bytes_are_limited(tmp_path):
    limits = {"principal_requests": 1, "principal_byte_rate": 10, "principal_byte_burst": 20_000}
    with HttpServer("--server", "everything", *limited(tmp_path, **limits)) as server:
        slow = stream(server, "tools/call", id=7, name="test_slow")
        time.sleep(0.1)
        status, refused = ask(server, "tools/list")
        assert (status, refused["error"]["message"]) == (429, "Too many requests at once. Limit: 1. Try again in 2 s")
        slow.close()
        listener = stream(server, id="s", notifications={"toolsListChanged": True})
        listener.recv(10)
        wait_for(lambda: ask(server, "ping")[0] != 429)  # a listener is not a running request
        wait_for(lambda: "Too much data" in ask(server, "tools/list")[1].get("error", {}).get("message", ""))
        listener.close()


def test_a_server_that_ends_serves_for_a_while_but_is_not_ready():
    with (
        HttpServer("--server", "everything", "--drain", "1.5") as server,
        contextlib.closing(connect(server.port)) as kept,
    ):
        assert probe(server) == (200, None, '{"ready":true,"conditions":{}}\n')
        assert call(kept)[0].getheader("Connection") is None
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: probe(server)[0] == 503)
        assert probe(server, "/livez") == (200, "close", "ok\n")
        response, _ = call(kept)
        assert (response.status, response.getheader("Connection")) == (200, "close")
        assert ask(server, "tools/list")[0] == 200
        assert server.wait() == 0


def test_a_running_request_is_finished_and_others_are_cut_off_after_the_grace():
    with HttpServer("--server", "everything", "--grace", "0.2") as server:
        stuck = stream(server, "tools/call", id=8, name="test_tool_with_progress", _meta={"progressToken": 1})
        listener = stream(server, id="s", notifications={"toolsListChanged": True})
        listener.recv(10)
        assert server.end() == 0
        stuck.close()
        listener.close()


def test_a_call_that_outlives_the_grace_is_rejected():
    with HttpServer("--server", "everything", "--grace", "0.2") as server:
        arguments = {"seconds": 60, "label": "x"}
        with stream(server, "tools/call", id=8, name="slow_compute", arguments=arguments) as peer:
            wait_for(lambda: ask(server, "tools/list")[0] == 200)
            assert server.end() == 0
            answer = received(peer)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"shutting down" in answer


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_server_at_once(second):
    with HttpServer("--server", "everything", "--drain", "3600", "--grace", "3600") as server:
        listener = stream(server, id="s", notifications={"toolsListChanged": True})
        listener.recv(10)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: probe(server)[0] == 503)
        server.process.send_signal(second)
        assert server.wait() == 0
        listener.close()
    assert server.log[-1] == "[INFO] MCP server shutdown"
    assert not [line for line in server.log if "ERROR" in line]


def token(file, *names):
    file.write_text("".join(f"{hashlib.sha256(name.encode()).hexdigest()}\n" for name in names))


def test_hangup_reads_tokens_and_configuration_again(tmp_path):
    tokens = tmp_path / "tokens"
    token(tokens, "old")
    config = limited(tmp_path, running=7)
    with HttpServer("--server", "everything", "--auth-tokens", str(tokens), *config) as server:

        def status(name):
            return ask(server, "tools/list", token=name)[0]

        def hang_up(line):
            before = len(server.log)
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: any(line in each for each in server.log[before:]))

        assert (status("old"), status("new")) == (200, 401)
        token(tokens, "new")
        hang_up("read again")
        assert (status("old"), status("new")) == (401, 200)
        tokens.write_text("secret\n")
        hang_up("not the SHA-256 digest")
        limited(tmp_path, running="many")
        token(tokens, "newest")
        hang_up("config.yaml:2")
        assert (status("new"), status("newest")) == (200, 401)
        limited(tmp_path, principal_burst=1, principal_rate=0.001)
        hang_up("read again")
        assert [status("newest"), status("newest")] == [200, 429]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo-terminals")
def test_a_server_ends_with_its_terminal():
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [*SERVE, "--server", "everything", "--http", "127.0.0.1:0"])
    output = b""
    while b"communication via" not in output:
        output += os.read(terminal, 1024)
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps, of procps")
def test_processes_are_replaced_without_a_failed_request(tmp_path):
    config = limited(tmp_path, running=7)
    with HttpServer("--server", "everything", "--workers", "2", *config) as server, Load(server.port) as load:
        (before,) = children(server.process.pid)
        server.process.send_signal(signal.SIGHUP)
        wait_for(
            lambda: children(server.process.pid) not in ([before], []) and before not in children(server.process.pid)
        )
        load.wait()
        limited(tmp_path, running="many")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("could not start" in line for line in server.log))
        load.wait()
    assert any("config.yaml:2" in line for line in server.log)
    assert load.failures == []


NGINX = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/a;
  uwsgi_temp_path {folder}/b; scgi_temp_path {folder}/c;
  upstream tmkb {{ server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{two} max_fails=0; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://tmkb; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), TIMEOUT):
        return True


def replica(port):
    # While it drains, nginx uses each of its idle connections once more. A connection that is left could be closed just
    # as nginx sends a request on it.
    return HttpServer(
        "--server", "everything", "--drain", "3", "--allow-host", "tmkb", at=("--http", f"127.0.0.1:{port}")
    )


@pytest.mark.needs("nginx")
def test_replicas_behind_nginx_restart_one_by_one_without_a_failed_request(tmp_path):
    port, *ports = free_ports(3)
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port, one=ports[0], two=ports[1]))
    with contextlib.ExitStack() as stack:
        replicas = [replica(each) for each in ports]
        stack.callback(lambda: [each.process.kill() or each.wait() for each in replicas])
        place = ["-p", str(tmp_path), "-c", f"{tmp_path}/nginx.conf", "-e", f"{tmp_path}/error.log"]
        nginx = subprocess.Popen([shutil.which("nginx"), *place])
        stack.callback(nginx.wait, TIMEOUT)
        stack.callback(nginx.terminate)
        wait_for(lambda: accepts(port))
        with Load(port) as load:
            for number, each in enumerate(ports):
                assert replicas[number].end() == 0
                replicas[number] = replica(each)
                load.wait()
        assert load.failures == [], (tmp_path / "error.log").read_text()

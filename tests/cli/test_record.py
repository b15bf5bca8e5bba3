"""`tmkb record`: nothing changes between client and server, and everything is in the file."""

import contextlib
import functools
import http.client
import http.server
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

import pytest

from tmkb.cli import main
from tmkb.conformance import transcript

pytestmark = pytest.mark.process
RECORD = [sys.executable, "-m", "tmkb", "record"]
TIMEOUT = 60.0  # generous: it bounds a failure

ECHO = """\
import json, sys
def send(value):
    print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "other", "version": "1"}}
        send({"id": m["id"], "result": hello})
    elif "id" in m:
        send({"id": m["id"], "result": {"echo": m.get("params")}})
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id_, **arguments):
    params = {"name": "x", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def lines(*messages):
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "one.transcript.yaml"


@pytest.fixture
def record(file):
    """Run `tmkb record` with ``code`` as the server, ``sent`` as all of its input."""

    def run(code, sent=b"", *options, environment=None):
        command = [*RECORD, "-o", str(file), *options, "--", sys.executable, "-c", code]
        return subprocess.run(
            command,
            input=sent,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture
def server(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(ECHO)
    return shlex.join([sys.executable, str(path)])


def turns(file):
    return [
        (each.get("send", each.get("send_text", each.get("send_bytes"))), each.get("expect", []))
        for each in transcript.read(str(file)).value["exchanges"]
    ]


CAT = "import os\nwhile data := os.read(0, 1 << 16):\n    while data: data = data[os.write(1, data):]"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"no json\n",
        b'{"a": 1}\r\n{"b": 2}\r\n',
        b'{"no": "line end"}',
        b"\x00\xff\xfe\n\n\n \n",
        b"x" * 5_000_000 + b"\n" + b"y" * 70_000,
        b"[" * 100_000 + b"\n",
    ],
    ids=["nothing", "text", "crlf", "no-line-end", "bytes", "long", "deep"],
)
def test_bytes_are_unchanged_in_both_directions(record, file, sent):
    done = record(CAT, sent)

    assert done.stdout == sent
    assert done.returncode == 0
    assert file.exists() == bool(sent)
    if sent:
        transcript.read(str(file))


@pytest.mark.full
def test_a_line_of_50_megabytes(record, file):
    sent = lines(call(1, text="z" * 50_000_000))
    done = record(CAT, sent)

    assert done.stdout == sent
    assert file.stat().st_size > 50_000_000


def test_half_lines_are_not_held_back(file):
    code = "import os\nos.write(1, b'half')\nwhile data := os.read(0, 9): os.write(1, data.upper())"
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as started:
        assert os.read(started.stdout.fileno(), 9) == b"half"
        for piece in (b"a", b"b", b"\n"):
            started.stdin.write(piece)
            assert os.read(started.stdout.fileno(), 9) == piece.upper()
        started.stdin.close()
        assert started.wait(TIMEOUT) == 0


def test_stderr_passes_and_the_report_follows(record, file):
    done = record("import sys; sys.stderr.write('from the server\\n'); print('{}')")

    assert done.stderr.decode() == f"from the server\ntmkb: Recorded 1 messages in {file}.\n"


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_of_the_server_is_that_of_the_recorder(record, status):
    assert record(f"raise SystemExit({status})").returncode == status


def test_death_by_a_signal(record):
    assert record("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_server(file, number):
    code = f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(40))\nprint('ready', flush=True)\ntime.sleep(600)"
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    # Under nohup, signals are ignored, and the recorder leaves that as it is.
    reset = lambda: signal.signal(number, signal.SIG_DFL)  # noqa: E731
    with subprocess.Popen(command, **pipes, preexec_fn=reset) as started:  # noqa: PLW1509 # one thread
        assert started.stdout.readline() == b"ready\n"
        started.send_signal(number)
        assert started.wait(TIMEOUT) == 40
    assert turns(file) == [("", ["ready"])]


def test_the_end_of_the_output_is_passed_on(file):
    code = "import os, time\nos.close(1)\ntime.sleep(600)"
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.read() == b""
        assert started.poll() is None
        started.send_signal(signal.SIGTERM)
        assert started.wait(TIMEOUT) == 128 + signal.SIGTERM


def test_the_server_ends_when_the_recorder_is_killed(file, tmp_path):
    code = f"import sys\nprint('ready', flush=True)\nsys.stdin.read()\nopen({str(tmp_path / 'ended')!r}, 'w').close()"
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline() == b"ready\n"
        started.kill()
        started.stderr.read()  # the server and the recording process have it open
    assert (tmp_path / "ended").exists()
    assert turns(file) == [("", ["ready"])]


def test_what_is_recorded_is_replayed(record, file, server):
    sent = [
        INITIALIZE,
        INITIALIZED,
        call(2, text="a\nb: c\n", schema={"$ref": "#/$defs/x", "$any": "y"}),
        call("3", n=1.0),
    ]
    record(ECHO, lines(*sent))

    assert [each for each, _ in turns(file)][:2] == sent[:2]
    assert main.main(["replay", str(file), "--command", server]) == 0


def test_concurrent_requests_are_recorded_in_their_turns(record, file):
    code = (
        "import sys, json\nfirst, second = (json.loads(sys.stdin.readline()) for _ in '12')\n"
        "def send(**each): print(json.dumps(dict(each, jsonrpc='2.0')), flush=True)\n"
        "send(method='notifications/progress', params={'progressToken': 'p'})\n"
        "send(id=second['id'], result={'n': 2})\nsend(id=first['id'], result={'n': 1})"
    )
    first = {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"_meta": {"progressToken": "p"}}}
    record(code, lines(first, {"jsonrpc": "2.0", "id": 2, "method": "b"}))

    assert [[each.get("id", "progress") for each in expect] for _, expect in turns(file)] == [["progress", 1], [2]]


def test_a_response_after_one_of_the_client_stays(record, file):
    code = (
        "import sys, json\nsys.stdin.readline()\nprint(json.dumps({'id': 'q', 'method': 'ask'}), flush=True)\n"
        "sys.stdin.readline()\nprint(json.dumps({'id': 1, 'result': {}}), flush=True)"
    )
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        started.stdin.write(lines({"id": 1, "method": "a"}))
        started.stdin.flush()
        started.stdout.readline()
        started.communicate(lines({"id": "q", "result": {}}))
    assert [[each["id"] for each in expect] for _, expect in turns(file)] == [["q"], [1]]


def test_a_file_is_never_overwritten(record, file):
    file.write_text("mine")
    done = record(ECHO, lines(call(1)))

    assert file.read_text() == "mine"
    assert b"one-2.transcript.yaml" in done.stderr
    assert len(turns(file.with_name("one-2.transcript.yaml"))) == 1


def test_secrets_reach_no_file_even_while_recording(file, tmp_path):
    secret = "Zq7Xv2Lm9" + "Tn4Rb6Kp8"
    code = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    command = [*RECORD, "-o", str(file), "--redact-env", "MODE", "--", sys.executable, "-c", code, f"--token={secret}1"]
    environment = {**os.environ, "MODE": f"{secret}2", "SOME_TOKEN": f"{secret}3"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as started:
        sent = lines(call(1, password=f"{secret}4", text=f"{secret}2 {secret}3 {secret}4 {secret}1"))
        started.stdin.write(sent + b'{"password": "' + secret.encode())
        started.stdin.flush()
        assert started.stdout.readline() == sent
        until(lambda: b"expect" in file.read_bytes())
        during = file.read_bytes()
        _, errors = started.communicate()
    assert secret.encode() not in during + file.read_bytes() + errors
    assert b"environment 2, name 3" in errors
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_the_file_is_a_transcript_at_any_time(file):
    code = "import sys\nprint('first', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"
    command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline() == b"first\n"
        for number in range(1, 5):
            started.stdin.write(lines(call(number)))
            started.stdin.flush()
            started.stdout.readline()
            until(lambda number=number: file.read_bytes().count(b"tools/call") == 2 * number)
            assert turns(file) == [("", ["first"]), *((call(n), [call(n)]) for n in range(1, number + 1))]
        started.communicate()
    assert turns(file)[0] == (call(1), ["first", call(1)])


def until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name one server"),
        (["--url", "http://127.0.0.1:1/mcp"], "--url needs --listen"),
        (["--listen", "127.0.0.1:0", "--", "x"], "--listen is for --url"),
        (["--url", "http://127.0.0.1:1/mcp", "--listen", "0.0.0.0:0"], "not a loopback address"),
        (["--redact-env", "NO_SUCH_NAME", "--", "x"], "no environment variable NO_SUCH_NAME"),
        (["--redact", "(", "--", "x"], "is not a regular expression"),
        (["--redact", "a*", "--", "x"], "matches an empty text"),
        (["--", "no-such-command-here"], "Cannot start no-such-command-here"),
    ],
)
def test_wrong_use(file, words, message):
    done = subprocess.run(
        [*RECORD, "-o", str(file), *words], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )

    assert done.returncode == 2 and message in done.stderr
    assert not file.exists()


def test_a_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "no").touch()
    done = subprocess.run(
        [*RECORD, "-o", str(tmp_path / "no" / "x.yaml"), "--", "x"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2 and "Cannot write" in done.stderr


@pytest.mark.full
@pytest.mark.needs("hypothesis")
def test_nothing_that_the_client_has_received_is_lost_when_the_recorder_is_killed(tmp_path):
    from hypothesis import settings

    chance = random.Random(7)
    for number in range(2 * settings.default.max_examples):  # 200 in the tier `full`
        file = tmp_path / f"{number}.yaml"
        command = [*RECORD, "-o", str(file), "--", sys.executable, "-c", CAT]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as started:
            sender = threading.Thread(target=send_until_broken, args=(started.stdin,))
            sender.start()
            first = started.stdout.readline()
            threading.Timer(chance.random() * 0.02, started.kill).start()
            received = [line for line in [first, *started.stdout] if line.endswith(b"\n")]
            started.stderr.read()  # the recording process has it open until the file is complete
            sender.join()
            with contextlib.suppress(BrokenPipeError):
                started.stdin.close()
        recorded = [each for _, expect in turns(file) for each in expect]
        assert recorded[: len(received)] == [json.loads(line) for line in received]


def send_until_broken(pipe):
    with contextlib.suppress(BrokenPipeError):
        for number in range(200):
            os.write(pipe.fileno(), lines(call(number, text="x" * (number % 300))))


# --- HTTP


class Handler(http.server.BaseHTTPRequestHandler):
    """A server with sessions, a stream of events as response, a general stream, and other paths."""

    protocol_version = "HTTP/1.1"
    release = None  # an event that lets a stream go on

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.command, self.path, dict(self.headers.items()), body))
        m = json.loads(body)
        if m.get("method") == "stream":
            return self.stream(m)
        if m.get("method") == "garbage":
            return self.wfile.write(b"no HTTP\r\n\r\n")
        if m.get("method") == "deflated":
            return self.deflated(m)
        if "id" not in m:
            return self.respond(202, b"")
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "other", "version": "1"}}
        result = hello if m["method"] == "initialize" else {"echo": m.get("params")}
        text = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}).encode()
        session = {"Mcp-Session-Id": f"s{m['id']}"} if m["method"] == "initialize" else {}
        return self.respond(200, text, {"Content-Type": "application/json", "X-Mine": "Yes", **session})

    def do_GET(self):
        self.server.requests.append((self.command, self.path, dict(self.headers.items()), b""))
        self.stream({"id": None})

    def do_DELETE(self):
        self.server.requests.append((self.command, self.path, dict(self.headers.items()), b""))
        self.respond(204, b"")

    def respond(self, status, body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def deflated(self, m):
        compress = zlib.compressobj(wbits=m["params"]["wbits"])
        text = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {}}).encode()
        body = compress.compress(text) + compress.flush()
        self.respond(200, body, {"Content-Type": "application/json", "Content-Encoding": "deflate"})

    def stream(self, m):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = [
            b": comment\r\n\r\nevent: message\r\nid: 7\r\nda",
            b'ta: {"jsonrpc": "2.0",\r\n',
            b'data: "method": "note"}\r\n\r\n',
        ]
        for piece in events:
            self.chunk(piece)
        self.server.release.wait(TIMEOUT)
        if m["id"] is not None:
            self.chunk(b"data: " + json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {}}).encode() + b"\n\n")
        self.chunk(b"")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_):
        pass


@pytest.fixture
def upstream():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        serving.requests, serving.release = [], threading.Event()
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.release.set()
        serving.shutdown()


@pytest.fixture
def relay(file, upstream):
    """The port of a recorder before ``upstream``; call it to end the recorder and to get its stderr."""
    url = f"http://127.0.0.1:{upstream.server_port}/mcp"
    command = [*RECORD, "-o", str(file), "--url", url, "--listen", "127.0.0.1:0"]
    started = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    first = started.stderr.readline()
    assert first.startswith("tmkb: Connect clients to http://127.0.0.1:"), first

    class Relay:
        port = int(first.split(":")[3].partition("/")[0])

        @staticmethod
        def end(number=signal.SIGTERM):
            started.send_signal(number)
            _, errors = started.communicate(timeout=TIMEOUT)
            return errors

    yield Relay
    if started.poll() is None:
        started.kill()
        started.communicate()
    started.stdout.close()
    started.stderr.close()


@pytest.fixture
def connect(relay):
    """Open connections to the recorder."""
    with contextlib.ExitStack() as opened:

        def new():
            return opened.enter_context(
                contextlib.closing(http.client.HTTPConnection("127.0.0.1", relay.port, timeout=TIMEOUT))
            )

        yield new


def post(connection, message, **headers):
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps(message), sent | {k.replace("_", "-"): v for k, v in headers.items()})
    return connection.getresponse()


def test_http_passes_unchanged_and_is_recorded(relay, connect, upstream, file):
    connection = connect()
    response = post(connection, INITIALIZE, X_Custom="Value", Authorization="Bearer abc")
    assert (response.status, response.headers["X-Mine"], response.headers["Mcp-Session-Id"]) == (200, "Yes", "s1")
    assert json.loads(response.read())["id"] == 1
    response = post(connection, INITIALIZED, Mcp_Session_Id="s1")
    assert (response.status, response.read()) == (202, b"")
    response = post(connection, call(2), Mcp_Session_Id="s1")
    assert json.loads(response.read())["id"] == 2
    connection.request("DELETE", "/mcp", headers={"Mcp-Session-Id": "s1"})
    response = connection.getresponse()
    assert (response.status, response.read()) == (204, b"")
    assert relay.end() == f"tmkb: Recorded 5 messages in {file}.\n"

    method, path, headers, body = upstream.requests[0]
    assert (method, path, json.loads(body)) == ("POST", "/mcp", INITIALIZE)
    assert headers["Host"] == f"127.0.0.1:{upstream.server_port}"
    assert {"X-Custom": "Value", "Authorization": "Bearer abc"}.items() <= headers.items()
    assert [each[0] for each in upstream.requests] == ["POST", "POST", "POST", "DELETE"]
    assert [(sent.get("id"), [each["id"] for each in expect]) for sent, expect in turns(file)] == [
        (1, [1]),
        (None, []),
        (2, [2]),
    ]
    assert transcript.read(str(file)).value["recorded"]["over"] == "http"


def test_events_are_not_held_back(relay, connect, upstream, file):
    response = post(connect(), {"jsonrpc": "2.0", "id": 5, "method": "stream"})
    assert b'"note"' in b"".join(response.readline() for _ in range(7))
    until(lambda: b"note" in file.read_bytes())
    upstream.release.set()
    assert b'"id": 5' in response.read()
    relay.end()

    assert [each.get("id", each.get("method")) for each in turns(file)[0][1]] == ["note", 5]


def test_the_general_stream_belongs_to_the_session(relay, connect, upstream, file):
    one, other = connect(), connect()
    post(one, INITIALIZE).read()
    other.request("GET", "/mcp", headers={"Mcp-Session-Id": "s1", "Accept": "text/event-stream"})
    assert other.getresponse().status == 200
    until(lambda: b"note" in file.read_bytes())
    assert "Recorded 3 messages" in relay.end()


def test_each_session_has_a_file(relay, connect, file):
    one, other = connect(), connect()
    for connection, id_ in ((one, 1), (other, 2)):
        post(connection, {**INITIALIZE, "id": id_}).read()
    for connection, id_ in ((one, 1), (other, 2), (one, 1)):
        post(connection, call(id_ * 10), Mcp_Session_Id=f"s{id_}").read()
    errors = relay.end(signal.SIGINT)

    second = file.with_name("one-2.transcript.yaml")
    assert errors == f"tmkb: Recorded 6 messages in {file}.\ntmkb: Recorded 4 messages in {second}.\n"
    assert [[sent["id"] for sent, _ in turns(each)] for each in (file, second)] == [[1, 10, 10], [2, 20]]


def test_large_bodies_and_pipelined_requests(relay, upstream, file):
    message = json.dumps(call(1, text="x" * 3_000_000)).encode()
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", relay.port), TIMEOUT) as raw:
        raw.sendall((head % len(message) + message) * 2)
        with raw.makefile("rb") as received:
            for _ in range(2):
                assert received.readline() == b"HTTP/1.1 200 OK\r\n"
                length = 0
                while (line := received.readline()) != b"\r\n":
                    length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
                assert len(received.read(length)) > 3_000_000
    assert "Recorded 4 messages" in relay.end()
    assert [each[3] for each in upstream.requests] == [message] * 2


@pytest.mark.parametrize("is_length_known", [True, False])
def test_responses_of_http_1_0(relay, connect, file, monkeypatch, is_length_known):
    monkeypatch.setattr(Handler, "protocol_version", "HTTP/1.0")
    if not is_length_known:
        send_header = Handler.send_header
        monkeypatch.setattr(
            Handler, "send_header", lambda self, name, value: name == "Content-Length" or send_header(self, name, value)
        )
    for number in (1, 2):
        assert json.loads(post(connect(), call(number)).read())["id"] == number

    assert relay.end() == f"tmkb: Recorded 4 messages in {file}.\n"


def test_a_response_that_is_no_http_is_reported(relay, connect):
    assert post(connect(), {"jsonrpc": "2.0", "id": 1, "method": "garbage"}).status == 502
    assert "tmkb: A response could not be relayed: " in relay.end()


@pytest.mark.parametrize("wbits", [15, -15], ids=["zlib", "raw"])
def test_deflated_responses_are_recorded(relay, connect, file, wbits):
    response = post(connect(), {"jsonrpc": "2.0", "id": 1, "method": "deflated", "params": {"wbits": wbits}})
    assert json.loads(zlib.decompress(response.read(), wbits))["id"] == 1

    assert relay.end() == f"tmkb: Recorded 2 messages in {file}.\n"


def test_secrets_in_headers_reach_no_file(relay, connect, file):
    secret = "zebra-77-quokka"
    post(connect(), call(1, text=f"you are {secret}"), X_Api_Key=secret).read()

    assert "Replaced secrets by placeholders: header 1." in relay.end()
    assert secret not in file.read_text() and "you are REDACTED-1" in file.read_text()


def test_secrets_in_the_option_header_reach_no_file(tmp_path, file, upstream):
    (tmp_path / "requests.yaml").write_text("- {method: echo, params: {text: you are zebra-77-quokka}}\n")
    url = f"http://127.0.0.1:{upstream.server_port}/mcp"
    options = ["--send", str(tmp_path / "requests.yaml"), "--header", "X-Api-Key: zebra-77-quokka"]
    main.main(["record", "--url", url, "-o", str(file), *options])

    assert "zebra-77-quokka" not in file.read_text() and "you are REDACTED-1" in file.read_text()


def test_a_foreign_host_is_refused(relay, connect, upstream):
    connection = connect()
    assert post(connection, INITIALIZE, Host="evil.example").status == 403
    assert upstream.requests == []


def test_a_server_that_cannot_be_reached(relay, connect, upstream):
    upstream.shutdown()
    upstream.server_close()
    response = post(connect(), INITIALIZE)

    assert response.status == 502 and b"Cannot reach 127.0.0.1" in response.read()
    errors = relay.end()
    assert errors.startswith("tmkb: Cannot reach 127.0.0.1: Connection refused.\n")


def test_killing_the_relay_loses_nothing(relay, connect, file):
    connection = connect()
    for number in range(1, 30):
        post(connection, call(number)).read()
    assert "Recorded 58 messages" in relay.end(signal.SIGKILL)
    assert len(turns(file)) == 29


# --- Requests from a file, and the check of a recording


CHANGING = """\
import json, sys, time, uuid
def send(value):
    print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)
cursor = uuid.uuid4().hex
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "changing", "version": "1"}}
for line in sys.stdin:
    m = json.loads(line)
    params = m.get("params") or {}
    if m.get("method") == "initialize":
        send({"id": m["id"], "result": hello})
    elif m.get("method") == "list" and "cursor" not in params:
        send({"id": m["id"], "result": {"items": [1], "nextCursor": cursor}})
    elif m.get("method") == "list" and params["cursor"] == cursor:
        send({"id": m["id"], "result": {"items": [2], "at": time.time()}})
    elif m.get("method") == "text":
        texts = [json.dumps({"city": "Oslo", "at": time.time()}), json.dumps({cursor: 1}), f"at {time.time()}"]
        send({"id": m["id"], "result": {"content": [{"type": "text", "text": text} for text in texts]}})
    elif m.get("method") == "shape":
        send({"id": m["id"], "result": {cursor: 1}})
    elif "id" in m:
        send({"id": m["id"], "error": {"code": -32602, "message": "no"}})
"""


@pytest.fixture
def send(tmp_path, file, capfd):
    """Run `tmkb record --send` with a file ``name`` of requests."""

    def run(name, requests, *options, code=CHANGING):
        (tmp_path / name).write_text(requests)
        command = ["--", sys.executable, "-c", code]
        status = main.main(["record", "--send", str(tmp_path / name), "-o", str(file), *options, *command])
        return status, capfd.readouterr().err

    return run


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("a.yaml", "- {method: list}\n- method: no/such\n  params: {a: 1}\n"),
        ("a.json", '[{"method": "list"}, {"method": "no/such", "params": {"a": 1}}]'),
        ("a.jsonl", '{"method": "list"}\n\n{"method": "no/such", "params": {"a": 1}}\n'),
    ],
)
def test_requests_of_a_file_are_sent_after_a_handshake(send, file, name, requests):
    status, errors = send(name, requests)

    assert (status, errors) == (0, f"tmkb: Recorded 7 messages in {file}.\n")
    assert [(sent["method"], len(expect)) for sent, expect in turns(file)] == [
        ("initialize", 1),
        ("notifications/initialized", 0),
        ("list", 1),
        ("no/such", 1),
    ]
    assert turns(file)[3][0]["params"] == {"a": 1}


def test_whole_messages_are_sent_as_they_are(send, file):
    message = {"jsonrpc": "2.0", "id": "mine", "method": "list", "params": {}}

    assert send("a.json", json.dumps([message, {"method": "notifications/x"}]))[0] == 0
    assert [sent for sent, _ in turns(file)][2:] == [message, {"jsonrpc": "2.0", "method": "notifications/x"}]
    assert turns(file)[2][1][0]["id"] == "mine"


@pytest.mark.parametrize(
    ("name", "requests", "message"),
    [
        ("a.yaml", "method: list\n", "a.yaml:1:1: The file must be a list of requests. Write entries such as: - {method"),
        ("a.yaml", "- method: list\n- 3\n", "a.yaml:2:3: This entry is not a request."),
        ("a.yaml", "- {methd: list}\n", "a.yaml:1:3: This entry is not a request."),
        ("a.jsonl", '{"method": "list"}\n{"method"\n', "a.jsonl:2:1: Not valid YAML or JSON"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_list_of_requests(send, file, name, requests, message):
    status, errors = send(name, requests)

    assert status == 2 and message in errors
    assert not file.exists()


def test_a_server_that_leaves_a_request_without_response(send, file):
    code = CHANGING.replace('m.get("method") == "shape"', 'm.get("method") == "mute"').replace(
        'send({"id": m["id"], "result": {cursor: 1}})', "sys.exit(4)"
    )
    status, errors = send("a.yaml", "- {method: list}\n- {method: mute}\n", code=code)

    assert status == 1 and "No response to mute" in errors and "exit status 4" in errors
    assert [sent["method"] for sent, _ in turns(file)][2:] == ["list", "mute"]


def test_a_server_that_dies_at_once_is_described(send):
    status, errors = send("a.yaml", "- {method: list}\n", code="import sys; sys.exit('boom')")

    assert status == 1 and "stderr: boom" in errors and "exit status 1" in errors


def test_a_line_that_is_no_json_is_recorded_as_it_is(send, file):
    code = "print('debug', flush=True)\n" + CHANGING
    status, errors = send("a.yaml", "- {method: list}\n", code=code)

    assert status == 0 and "The server sent 1 line that no client can read" in errors
    assert "debug" in turns(file)[0][1]


def test_the_check_writes_matchers_for_values_that_differ(send, file):
    (file.parent / "first.yaml").touch()
    status, errors = send("a.yaml", "- {method: list}\n", "--check")

    assert status == 0 and errors.endswith(f"{file} replays as recorded.\n")
    assert "result.nextCursor differs from run to run: {$any: string}" in errors
    assert turns(file)[2][1][0]["result"] == {"items": [1], "nextCursor": {"$any": "string"}}


def test_the_check_keeps_what_is_equal_in_a_text_with_json(send, file):
    status, errors = send("a.yaml", "- {method: text}\n", "--check")

    assert status == 0 and errors.endswith(f"{file} replays as recorded.\n")
    assert [each["text"] for each in turns(file)[2][1][0]["result"]["content"]] == [
        {"$json": {"city": "Oslo", "at": {"$any": "number"}}},
        {"$any": "string"},
        {"$any": "string"},
    ]


def answer(started, message):
    """Send a message to a process, and return its answer."""
    started.stdin.write(lines(message))
    started.stdin.flush()
    return json.loads(started.stdout.readline())


def test_the_check_captures_what_a_later_turn_repeats(file, capfd):
    code = CHANGING + "# " + "\n"
    command = ["--check", "--", sys.executable, "-c", code]
    with subprocess.Popen(
        [*RECORD, "-o", str(file), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        ask = functools.partial(answer, started)
        ask(INITIALIZE)
        cursor = ask({"jsonrpc": "2.0", "id": 2, "method": "list"})["result"]["nextCursor"]
        ask({"jsonrpc": "2.0", "id": 3, "method": "list", "params": {"cursor": cursor}})
        _, errors = started.communicate()

    assert started.returncode == 0, errors
    assert b"replays as recorded" in errors
    assert turns(file)[1][1][0]["result"]["nextCursor"] == {"$capture": "nextCursor"}
    assert turns(file)[2][0]["params"] == {"cursor": {"$ref": "nextCursor"}}
    assert turns(file)[2][1][0]["result"] == {"items": [2], "at": {"$any": "number"}}


CHAIN = """\
import json, sys, uuid
last = ""
for line in sys.stdin:
    m = json.loads(line)
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "chain", "version": "1"}}
    if m["method"] == "next" and m["params"]["previous"] == last:
        last = uuid.uuid4().hex
        result = {"id": last}
    elif m["method"] == "next":
        result = {}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""


def test_the_check_captures_a_chain_of_values(file):
    with subprocess.Popen(
        [*RECORD, "-o", str(file), "--check", "--", sys.executable, "-c", CHAIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        ask = functools.partial(answer, started)
        ask(INITIALIZE)
        previous = ""
        for number in range(2, 8):
            next_ = {"jsonrpc": "2.0", "id": number, "method": "next", "params": {"previous": previous}}
            previous = ask(next_)["result"]["id"]
        _, errors = started.communicate()

    assert started.returncode == 0, errors
    assert b"replays as recorded" in errors


def test_lines_that_are_no_messages_replay_as_recorded(send, file, capfd):
    for noise in ("starting up", "42"):
        code = CHANGING.replace("cursor =", f"print({noise!r}, flush=True)\ncursor =")
        (file.parent / "server.py").write_text(code)
        send("a.yaml", "- {method: no/such}\n", code=code)
        command = shlex.join([sys.executable, str(file.parent / "server.py")])

        assert main.main(["replay", str(file), "--command", command]) == 0, capfd.readouterr()
        file.unlink()


def test_a_difference_in_shape_fails_the_check(send, file):
    status, errors = send("a.yaml", "- {method: shape}\n", "--check")

    assert status == 1 and f"{file} does not replay as recorded.\n" in errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of POSIX")
def test_a_file_that_cannot_grow_does_not_disturb_the_conversation(file):
    import resource

    sent = lines(*(call(number, text="x" * 100) for number in range(50)))
    done = subprocess.run(
        [*RECORD, "-o", str(file), "--", sys.executable, "-c", CAT],
        input=sent,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )

    assert done.stdout == sent
    assert done.returncode == 2
    assert b"The recording failed: " in done.stderr and b"File too large" in done.stderr
    assert transcript.read(str(file)).value["exchanges"]

"""`tmkb replay` against other servers, some of which misbehave."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tmkb.cli import main
from tmkb.schema import paths

pytestmark = pytest.mark.process

SERVER = """\
import json, sys, threading, time

def send(value):
    print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)

class Server:
    has_ping = True
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "other", "version": "1"}}

    def handle(self, m):
        if m.get("method") == "initialize":
            send({"id": m["id"], "result": self.hello})
        elif m.get("method") == "ping" and self.has_ping:
            send({"id": m["id"], "result": {}})
        elif m.get("method") == "slow":
            threading.Timer(0.5, send, [{"id": m["id"], "result": {"done": m["method"]}}]).start()
        elif m.get("method") == "echo":
            send({"id": m["id"], "result": {"echo": True}})
        elif m.get("method") == "ask":
            self.asked = m["id"]
            send({"id": "q", "method": "elicit"})
        elif m.get("id") == "q":
            threading.Timer(0.3, send, [{"id": self.asked, "result": {"answer": m["result"]}}]).start()

    def run(self):
        for line in sys.stdin:
            self.handle(json.loads(line))

"""
TRANSCRIPT = """\
kind: transcript
title: Another server
server: other
revisions: ["2025-11-25"]
opening: handshake
exchanges:
"""
ECHO = """\
  - send: {jsonrpc: "2.0", id: 2, method: echo}
    expect:
      - {jsonrpc: "2.0", id: 2, result: {echo: true}}
"""


@pytest.fixture
def command(tmp_path):
    """The command of a server, of which ``code`` makes something else."""

    def write(code="", before=""):
        body = "".join(f"    {line}\n" for line in (code or "pass").splitlines())
        path = tmp_path / "server.py"
        path.write_text(f"{SERVER}class Mine(Server):\n{body}\n{before}\nMine().run()\n")
        return shlex.join([sys.executable, str(path)])

    return write


@pytest.fixture
def transcript(tmp_path):
    """A transcript with these turns, in a folder of its own."""

    def write(turns=ECHO, head=TRANSCRIPT):
        path = tmp_path / "mine" / "one.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(head + turns)
        return path

    return write


@pytest.fixture
def replay(capsys):
    def run(*words):
        status = main.main(["replay", *map(str, words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def expected(path):
    """What each turn of a transcript expects."""
    from tmkb.conformance import transcript

    return [each["expect"] for each in transcript.read(str(path)).value["exchanges"]]


def passes(outcome):
    """Whether a replay of one conversation found no difference and printed nothing else."""
    status, out, err = outcome
    return (status, err) == (0, "") and re.fullmatch(r"1 of 1 conversations are as recorded \(\d+\.\d s\)\.\n", out)


def response(id_, **result):
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def test_a_working_server_passes(replay, command, transcript):
    assert passes(replay(transcript(), "--command", command()))


# --- Writing


def test_update_without_a_path_writes_nothing(tmp_path):
    """In a copy, so that a failure of this test spoils nothing."""
    root = os.path.dirname(paths.CONFORMANCE)
    for folder in ("tmkb", "schemas", "patterns"):
        os.symlink(os.path.join(root, folder), tmp_path / folder)
    os.unlink(tmp_path / "tmkb")
    shutil.copytree(os.path.join(root, "tmkb"), tmp_path / "tmkb", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(os.path.join(paths.CONFORMANCE, "batch"), tmp_path / "conformance" / "batch")
    for name in ("openings", "transcript.schema.yaml", "opening.schema.yaml"):
        os.symlink(os.path.join(paths.CONFORMANCE, name), tmp_path / "conformance" / name)
    files = sorted((tmp_path / "conformance" / "batch").iterdir())
    before = [file.read_bytes() for file in files]
    words = ["replay", "--update", "--timeout", "2", "--command", shlex.join([sys.executable, "-c", "pass"])]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tmkb", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert [file.read_bytes() for file in files] == before
    assert done.returncode == 2
    assert "--update needs PATH" in done.stderr


def test_update_writes_through_no_link(replay, command, transcript, tmp_path):
    outside = transcript(ECHO.replace("echo: true", "echo: false"))
    (tmp_path / "given").mkdir()
    os.symlink(outside, tmp_path / "given" / "link.yaml")
    before = outside.read_bytes()
    status, out, err = replay(tmp_path / "given", "--update", "--command", command())

    assert (status, out) == (1, "0 of 1 files rewritten.\n")
    assert outside.read_bytes() == before
    assert os.path.islink(tmp_path / "given" / "link.yaml")
    assert "link.yaml: not rewritten: is a link" in err


def test_an_empty_expectation_is_recorded_if_ping_is_answered_first(replay, command, transcript):
    file = transcript(
        '  - send: {jsonrpc: "2.0", id: 2, method: slow}\n    expect: []\n'
        '  - send: {jsonrpc: "2.0", method: note}\n    expect: []\n'
        '  - send: {jsonrpc: "2.0", id: 3, method: echo}\n    expect: []\n'
    )

    assert replay(file, "--update", "--command", command())[0] == 0
    assert expected(file) == [[response(2, done="slow")], [], [response(3, echo=True)]]
    assert replay(file, "--command", command())[0] == 0


def test_requests_of_the_server_are_recorded(replay, command, transcript):
    file = transcript(
        '  - send: {jsonrpc: "2.0", id: 2, method: ask}\n    expect: []\n'
        '  - send: {jsonrpc: "2.0", id: q, result: {name: A}}\n    expect: []\n'
    )

    assert replay(file, "--update", "--command", command())[0] == 0
    assert expected(file) == [[{"jsonrpc": "2.0", "id": "q", "method": "elicit"}], [response(2, answer={"name": "A"})]]


def test_responses_that_are_cancelled_later_are_not_awaited(replay, command, transcript):
    file = transcript(
        '  - send: {jsonrpc: "2.0", id: 2, method: never}\n    expect: []\n'
        '  - send: {jsonrpc: "2.0", method: notifications/cancelled, params: {requestId: 2}}\n    expect: []\n'
    )

    assert replay(file, "--update", "--command", command())[:2] == (0, "0 of 1 files rewritten.\n")


@pytest.mark.parametrize("code", ["hello = {'ok': True}", "def run(self): sys.exit(3)"])
def test_nothing_is_written_when_the_server_fails(replay, command, transcript, code):
    file = transcript()
    before = file.read_bytes()
    status, out, err = replay(file, "--update", "--command", command(code))

    assert (status, out) == (1, "0 of 1 files rewritten.\n")
    assert "the opening (2025-11-25) has no response to record" in err
    assert file.read_bytes() == before


def test_nothing_is_written_without_a_response(replay, command, transcript):
    file = transcript(ECHO.replace("echo}", "never}"))
    before = file.read_bytes()
    status, _, err = replay(file, "--update", "--timeout", "1", "--command", command())

    assert status == 1 and "turn 1 (2025-11-25) has no response to record" in err
    assert file.read_bytes() == before


# --- Servers that misbehave


def test_a_server_without_ping_passes(replay, command, transcript):
    file = transcript(ECHO + '  - send: {jsonrpc: "2.0", method: note}\n    expect: []\n' * 4)
    mute = command("has_ping = False")
    begun = time.monotonic()

    assert replay(file, "--command", mute, "--timeout", "60")[0] == 0
    assert time.monotonic() - begun < 60  # one timeout would be more
    assert replay(file, "--command", mute, "--quiet", "0.2")[0] == 0


def test_a_failure_says_that_silence_was_not_observed_with_ping(replay, command, transcript):
    note = '  - send: {jsonrpc: "2.0", method: note}\n    expect: []\n'
    file = transcript(note + ECHO.replace("echo: true", "echo: false"))
    status, out, _ = replay(file, "--command", command("has_ping = False"))

    assert status == 1 and out.count("The server does not answer ping") == 1


def test_a_recorded_conversation_needs_no_ping(replay, command, transcript):
    """A ping would end this server."""
    code = "def handle(self, m):\n    sys.exit(9) if m.get('method') == 'ping' else super().handle(m)"
    hello = '{protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {name: other, version: "1"}}'
    turns = (
        '  - send: {jsonrpc: "2.0", id: 1, method: initialize}\n'
        f'    expect:\n      - {{jsonrpc: "2.0", id: 1, result: {hello}}}\n'
        '  - send: {jsonrpc: "2.0", method: notifications/initialized}\n    expect: []\n'
    )
    head = TRANSCRIPT.replace("opening: handshake", "recorded: {over: stdio}\nopening: none")

    assert replay(transcript(turns + ECHO, head), "--command", command(code))[0] == 0


def test_a_request_of_the_server_may_come_before_its_turn(replay, command, transcript):
    code = (
        "def handle(self, m):\n"
        "    if m.get('method') != 'echo': return super().handle(m)\n"
        "    send({'id': 'q', 'method': 'roots'})\n"
        "    threading.Timer(0.3, super().handle, [m]).start()"
    )
    turns = ECHO + '  - send: {jsonrpc: "2.0", method: note}\n    expect: [{jsonrpc: "2.0", id: q, method: roots}]\n'
    head = TRANSCRIPT.replace("opening: handshake", "recorded: {over: stdio}\nopening: none")

    assert passes(replay(transcript(turns, head), "--command", command(code)))


def test_after_the_end_of_the_server_nothing_is_sent(replay, command, transcript):
    file = transcript(ECHO.replace("echo}", "ask}") + ECHO * 2)
    status, out, _ = replay(
        file,
        "--command",
        command(
            "def handle(self, m):\n    super().handle(m) if 'method' in m and m['method'] != 'ask' else sys.exit(4)"
        ),
    )

    assert status == 1
    assert "The server closed its output." in out and "exit status 4" in out
    assert out.count("not sent: the server had ended") == 2


def test_with_quiet_an_extra_message_is_reported(replay, command, transcript):
    file = transcript('  - send: {jsonrpc: "2.0", id: 2, method: echo}\n    expect: []\n')
    status, out, _ = replay(file, "--command", command("has_ping = False"), "--quiet", "0.5")

    assert status == 1 and "messages: expected 0, got 1" in out


def test_the_timeout_bounds_an_exchange(replay, command, transcript):
    file = transcript(ECHO.replace("echo}", "never}"))
    status, out, _ = replay(file, "--command", command(), "--timeout", "0.5")

    assert status == 1 and "The server took longer than 0.5 s." in out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_an_invalid_timeout(replay, seconds, capsys):
    with pytest.raises(SystemExit) as raised:
        replay("--timeout", seconds)
    assert raised.value.code == 2


def test_a_banner_on_stdout_is_a_failure(replay, command, transcript):
    status, out, _ = replay(transcript(), "--command", command(before='print("Server is starting", flush=True)'))

    assert status == 1
    assert 'The opening failed\n    not a JSON-RPC message: "Server is starting"' in out


@pytest.mark.parametrize(
    ("hello", "fault"),
    [
        ("{'ok': True}", "initialize: result: 'protocolVersion' is a required property"),
        ("{**Server.hello, 'serverInfo': 1}", "initialize: result.serverInfo: 1 is not of type 'object'"),
        ("[]", "initialize: result: [] is not of type 'object'"),
    ],
)
def test_an_answer_to_initialize_of_the_wrong_shape_is_a_failure(replay, command, transcript, hello, fault):
    status, out, _ = replay(transcript(), "--command", command(f"hello = {hello}"))

    assert status == 1 and fault in out


def test_null_is_an_ordinary_line(replay, command, transcript):
    code = "def handle(self, m):\n    if m.get('method') == 'echo': print('null', flush=True)\n    super().handle(m)"
    status, out, _ = replay(transcript(), "--command", command(code), "--timeout", "5")

    assert status == 1 and "messages: expected 1, got 2: [null," in out


def test_stderr_and_exit_status_of_a_server_that_crashes_are_shown(replay, command, transcript):
    code = "def run(self):\n    sys.stderr.write('no \\x1b[31mdatabase\\n')\n    sys.exit(3)"
    status, out, _ = replay(transcript(), "--command", command(code))

    assert status == 1
    assert "The server: exit status 3\n  stderr: no \\u001b[31mdatabase\n" in out
    notes = json.loads(replay(transcript(), "--command", command(code), "--json")[1])[0]["notes"]
    assert notes == ["The server: exit status 3", "stderr: no \\u001b[31mdatabase"]


def test_a_server_that_fills_stderr_is_not_blocked(replay, command, transcript):
    code = "def handle(self, m):\n    sys.stderr.write('x' * 300_000)\n    super().handle(m)"

    assert replay(transcript(), "--command", command(code))[0] == 0


def test_a_server_that_does_not_exit_is_killed(replay, command, transcript):
    code = "def run(self):\n    super().run()\n    time.sleep(600)"
    begun = time.monotonic()
    replay(transcript(), "--command", command(code), "--timeout", "2")

    assert time.monotonic() - begun < 60


# --- A user's own folder


def test_openings_of_the_folder_are_used(replay, command, transcript, tmp_path):
    code = "def handle(self, m):\n    self.key = getattr(self, 'key', None) or m.get('params', {}).get('key')\n"
    code += "    if m.get('method') == 'echo': send({'id': m['id'], 'result': {'echo': self.key}})\n"
    code += "    else: super().handle(m)"
    opening = (
        "kind: opening\nexchanges:\n"
        '  - send: {jsonrpc: "2.0", id: 1, method: initialize, params: {key: open}}\n    expect: [{}]\n'
    )
    head = TRANSCRIPT.replace("opening: handshake", "opening: mine")
    file = transcript(ECHO.replace("echo: true", "echo: open"), head)
    for folder in (tmp_path, tmp_path / "mine"):
        (folder / "openings").mkdir()
        (folder / "openings" / "mine.yaml").write_text(opening)
        assert passes(replay(file, "--command", command(code)))
        shutil.rmtree(folder / "openings")


def test_a_missing_opening_is_reported_in_the_transcript(replay, command, transcript):
    file = transcript(head=TRANSCRIPT.replace("opening: handshake", "opening: handshaken"))
    status, _, err = replay(file, "--command", command())

    assert status == 2
    assert err.startswith(f"{file}:5:10: There is no opening 'handshaken'. Did you mean 'handshake'?")


def test_an_invalid_opening_is_reported_at_its_position(replay, command, transcript, tmp_path):
    file = transcript(head=TRANSCRIPT.replace("opening: handshake", "opening: mine"))
    (tmp_path / "mine" / "openings").mkdir()
    (tmp_path / "mine" / "openings" / "mine.yaml").write_text("kind: opening\n")
    status, _, err = replay(file, "--command", command())

    assert status == 2
    assert err.startswith(f"{tmp_path / 'mine' / 'openings' / 'mine.yaml'}:1:1: Key 'exchanges' is missing")


def test_names_in_json_lead_to_the_file(replay, command, transcript, monkeypatch, tmp_path):
    file = transcript()
    assert json.loads(replay(file, "--command", command(), "--json")[1])[0]["transcript"] == str(file)[: -len(".yaml")]
    monkeypatch.chdir(tmp_path)
    assert json.loads(replay("mine", "--command", command(), "--json")[1])[0]["transcript"] == "mine/one"


def test_an_unclosed_quote_is_a_usage_error(replay, capsys):
    with pytest.raises(SystemExit) as raised:
        replay("--command", "'python")
    assert raised.value.code == 2


# --- Other revisions and transports


RECORDED = """\
kind: transcript
title: A recording
server: other
revisions: ["{revision}"]
recorded: {{over: {over}}}
opening: none
exchanges:
{turns}
"""
HANDSHAKE = """\
  - send: {jsonrpc: "2.0", id: 1, method: initialize, params: {protocolVersion: "2025-11-25"}}
    expect:
      - jsonrpc: "2.0"
        id: 1
        result: {protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {name: other, version: "1"}}
  - send: {jsonrpc: "2.0", method: notifications/initialized}
    expect: []
"""
ERRORS = """\
def handle(self, m):
    if m.get("method") == "server/discover":
        send({"id": m["id"], "error": {"code": -32601, "message": "?"}})
    elif "_meta" in m.get("params", {}):
        sys.exit(7)
    else:
        super().handle(m)
"""
MODERN = """\
def handle(self, m):
    meta = m.get("params", {}).get("_meta", {})
    if "io.modelcontextprotocol/clientCapabilities" not in meta:
        send({"id": m["id"], "error": {"code": -32022, "message": "?", "data": {"supported": ["2026-07-28"]}}})
    else:
        found = {"supportedVersions": ["2026-07-28"], "capabilities": {}} if m["method"] == "server/discover" else {"echo": True}
        send({"id": m["id"], "result": {"resultType": "complete", **found}})
"""


def test_a_recording_replays_on_a_server_of_the_older_era(replay, command, transcript):
    keys = "io.modelcontextprotocol/protocolVersion: '2026-07-28', io.modelcontextprotocol/clientCapabilities: {}"
    discover = f'  - send: {{jsonrpc: "2.0", id: 1, method: server/discover, params: {{_meta: {{{keys}}}}}}}\n'
    discover += '    expect: [{jsonrpc: "2.0", id: 1, result: {resultType: complete, supportedVersions: [], capabilities: {}}}]\n'
    echo = ECHO.replace("method: echo", f"method: echo, params: {{_meta: {{{keys}}}}}").replace(
        "echo: true}", "echo: true, resultType: complete}"
    )
    file = transcript(RECORDED.format(revision="2026-07-28", over="http", turns=discover + echo), "")
    status, out, _ = replay(file, "--command", command(ERRORS))

    assert status == 0, out
    assert "  recorded over http, replayed over stdio\n  recorded under 2026-07-28, translated to 2025-11-25\n" in out
    assert "  turn 1 not sent: 2025-11-25 has no server/discover\n" in out


def test_a_recording_replays_on_a_server_of_the_newer_era(replay, command, transcript):
    file = transcript(RECORDED.format(revision="2025-11-25", over="stdio", turns=HANDSHAKE + ECHO), "")
    status, out, _ = replay(file, "--command", command(MODERN))

    assert status == 0, out
    assert "recorded under 2025-11-25, translated to 2026-07-28" in out
    changed = transcript(
        RECORDED.format(revision="2025-11-25", over="stdio", turns=HANDSHAKE + ECHO.replace("true", "false")), ""
    )
    status, out, _ = replay(changed, "--command", command(MODERN))
    assert status == 1 and "[0].result.echo: expected false, got true" in out


def test_a_server_that_speaks_no_other_revision_fails_as_recorded(replay, command, transcript):
    file = transcript(RECORDED.format(revision="2025-11-25", over="stdio", turns=HANDSHAKE + ECHO), "")
    code = "def handle(self, m):\n    if 'id' in m: send({'id': m['id'], 'error': {'code': 1, 'message': 'no'}})"
    status, out, _ = replay(file, "--command", command(code))

    assert status == 1 and "translated" not in out and "turn 1: initialize\n" in out


@pytest.mark.needs("httpx2")
def test_a_recording_over_stdio_replays_over_http(replay, address, transcript):
    file = transcript(RECORDED.format(revision="2025-11-25", over="stdio", turns=HANDSHAKE + ECHO), "")
    status, out, _ = replay(file, "--url", f"{address}/mcp")

    assert status == 0 and "  recorded over stdio, replayed over http\n" in out


# --- HTTP


@pytest.mark.needs("httpx2")
def test_a_log_level_in_a_request_does_not_leave_the_session(replay, transcript):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            m = json.loads(self.rfile.read(int(self.headers["content-length"])))
            opening = m["method"] in ("initialize", "notifications/initialized")
            known = opening or self.headers["mcp-session-id"] == "s1"
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "other", "version": "1"},
            }
            result = hello if opening else {"echo": True}
            body = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}).encode() if "id" in m else b""
            self.send_response(202 if not body else 200 if known else 400)
            self.send_header("content-type", "application/json")
            self.send_header("mcp-session-id", "s1")
            self.send_header("content-length", str(len(body) if known else 0))
            self.end_headers()
            self.wfile.write(body if known else b"")

        def log_message(self, *_):
            pass

    meta = "params: {_meta: {io.modelcontextprotocol/logLevel: info}}"
    turns = HANDSHAKE + ECHO.replace("method: echo", f"method: echo, {meta}")
    file = transcript(RECORDED.format(revision="2025-11-25", over="http", turns=turns), "")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status, out, _ = replay(file, "--url", f"http://127.0.0.1:{server.server_port}/mcp")
        server.shutdown()

    assert status == 0, out


@pytest.fixture
def address():
    """The URL of an MCP server over HTTP that has no session and no stream."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            m = json.loads(self.rfile.read(int(self.headers["content-length"])))
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "other", "version": "1"},
            }
            found = {"initialize": hello, "echo": {"echo": True}}.get(m["method"])
            if self.path == "/broken":
                self.send_error(502, "No backend")
                return
            body = b"" if "id" not in m else json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": found}).encode()
            self.send_response(200 if body else 202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.needs("httpx2")
def test_any_server_over_http_can_be_replayed(replay, address, transcript):
    assert passes(replay(transcript(), "--url", f"{address}/mcp"))


@pytest.mark.needs("httpx2")
def test_an_empty_expectation_is_recorded_over_http(replay, address, transcript):
    file = transcript('  - send: {jsonrpc: "2.0", id: 2, method: echo}\n    expect: []\n')

    assert replay(file, "--url", f"{address}/mcp", "--update")[0] == 0
    assert expected(file) == [[response(2, echo=True)]]


@pytest.mark.needs("httpx2")
def test_problems_over_http_are_reported(replay, address, transcript):
    status, out, _ = replay(transcript(), "--url", f"{address}/broken")

    assert status == 1 and f"{address}/broken: 502 No backend" in out


# --- A server of the official SDK


FAST = """\
import asyncio
from mcp.server.mcpserver import MCPServer

app = MCPServer("fast")

@app.tool()
async def slow(word: str) -> str:
    await asyncio.sleep(0.3)
    return word

app.run("stdio")
"""


@pytest.mark.needs("mcp")
def test_a_server_of_the_official_sdk_is_recorded_and_replayed(replay, transcript, tmp_path):
    (tmp_path / "fast.py").write_text(FAST)
    fast = shlex.join([sys.executable, str(tmp_path / "fast.py")])
    call = '{jsonrpc: "2.0", id: %d, method: tools/call, params: {name: slow, arguments: {word: %s}}}'
    file = transcript("".join(f"  - send: {call % each}\n    expect: []\n" for each in ((2, "one"), (3, "two"))))

    assert replay(file, "--update", "--command", fast)[:2] == (0, f"{file}: rewritten\n1 of 1 files rewritten.\n")
    ((first,), (second,)) = expected(file)
    assert (first["id"], first["result"]["content"][0]["text"]) == (2, "one")
    assert (second["id"], second["result"]["content"][0]["text"]) == (3, "two")
    assert replay(file, "--command", fast)[0] == 0

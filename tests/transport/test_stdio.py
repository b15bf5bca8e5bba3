"""`tmkb serve` as a process on pipes: framing, signals and the log."""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.support.process import SERVE, TIMEOUT, Server
from tmkb.transport import loop

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIMIT = 10_485_760
MEGABYTE = 1 << 20


@pytest.fixture
def server():
    with Server() as started:
        yield started


def call(id, context):
    arguments = {"context": context}
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": "tmkb_query", "arguments": arguments},
    }


@pytest.mark.process
def test_bom_crlf_and_blank_lines_are_accepted(server):
    server.send(b"\xef\xbb\xbf", PING, b"\r\n", b"\n  \n", b'{"jsonrpc":"2.0","id":2,"method":"ping"}\r\n')
    server.send(b'{"jsonrpc":"2.0","id":3,"method":"ping"}')
    rest, status = server.end()

    assert [answer["id"] for answer in rest] == [1, 2, 3]
    assert status == 0


@pytest.mark.process
def test_nothing_but_messages_reaches_stdout(server):
    server.handshake()
    server.send(
        b"\x00\xff\n", b"hello\n", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2, "celery"), call(3, "")
    )
    rest, _ = server.end()

    assert all(answer["jsonrpc"] == "2.0" for answer in rest)
    assert len(rest) == 5


@pytest.mark.process
def test_a_response_is_flushed_before_waiting_for_input(server):
    for number in range(5):
        assert server.ask("ping", number) == {"jsonrpc": "2.0", "id": number, "result": {}}


@pytest.mark.process
def test_a_line_at_the_limit_is_read_and_one_beyond_is_not(server):
    head, tail = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', b'"}}'
    longest = head + b"x" * (LIMIT - len(head) - len(tail)) + tail
    server.send(longest + b"\n", longest.replace(b'"}}', b'x"}}') + b"\r\n", {**PING, "id": 3})
    rest, status = server.end()

    assert rest[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert rest[1]["error"] == {
        "code": -32600,
        "message": f"Message too large. Limit: {LIMIT} bytes",
        "data": {"limit": LIMIT},
    }
    assert "id" not in rest[1]
    assert (rest[2]["id"], status) == (3, 0)


@pytest.mark.process
def test_a_line_of_60_mb_is_rejected_in_bounded_memory(server):
    server.handshake()
    before = server.peak_memory()
    for _ in range(60):
        server.send(b"x" * MEGABYTE)
    server.send(b"\n", PING)

    assert server.read()["error"]["message"] == f"Message too large. Limit: {LIMIT} bytes"
    assert server.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert server.peak_memory() - before < 40 * MEGABYTE


@pytest.mark.process
def test_a_context_of_9_mb_is_answered(server):
    server.handshake()
    result = server.query(context="background job processing " * 350_000)

    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"])["patterns"][0]["id"] == "TMKB-AUTH-001"


@pytest.mark.process
@pytest.mark.parametrize("line", [b"[" * 200_000, b'{"a":' * 200_000, b'[{"jsonrpc":' + b"[" * 200_000])
def test_deep_nesting_is_a_parse_error(server, line):
    server.handshake("2025-03-26")
    server.send(line + b"\n")

    assert server.read() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    assert server.ask("ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.process
def test_lone_surrogates_survive(server):
    server.send(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', b'{"jsonrpc":"2.0","id":2,"method":"\\udfff"}\n')

    assert server.read() == {"jsonrpc": "2.0", "id": "\ud800", "result": {}}
    assert server.read()["error"]["message"] == "Method not found: \udfff"
    server.end()
    assert server.log[-2] == "[ERROR] [req_id=2] Method not found: \\udfff"


@pytest.mark.process
def test_a_client_may_write_20_000_requests_before_it_reads(tmp_path):
    with Server(read_stdout=False) as server:
        server.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.send(*[call(number, "background job processing") for number in range(1, 20_001)])
        server.start_reading()
        rest, status = server.end()

    assert [answer["id"] for answer in rest] == list(range(20_001))
    assert not any(answer["result"].get("isError") for answer in rest)
    assert status == 0


@pytest.mark.process
def test_reading_pauses_while_too_many_responses_wait(overlay):
    folder = overlay(servers__tmkb__server="kind: server\nextends: packaged\nlimits: {backlog_bytes: 100000}\n")
    count = 30_000
    with Server("--schemas", folder, read_stdout=False) as server:
        os.set_blocking(server.process.stdin.fileno(), False)
        written = 0
        data = b"".join(json.dumps({**PING, "id": number}).encode() + b"\n" for number in range(count))
        stuck = time.monotonic()
        while written < len(data) and time.monotonic() - stuck < 1:
            try:
                written += os.write(server.process.stdin.fileno(), data[written : written + 65536])
                stuck = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        assert written < len(data)

        server.start_reading()
        os.set_blocking(server.process.stdin.fileno(), True)
        server.send(data[written:])
        rest, _ = server.end()

    assert [answer["id"] for answer in rest] == list(range(count))


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_after_all_responses(server, number):
    server.handshake()
    server.interrupt(number)

    assert server.wait() == 0
    assert server.log[-1] == "[INFO] MCP server shutdown"
    assert not any("Traceback" in line for line in server.log)


@pytest.mark.process
def test_an_interrupt_during_startup_prints_one_line():
    interrupted = (_interrupted() for _ in range(5))
    in_time = next(result for result in interrupted if b"Server ready" not in result[2])  # a slow machine can be late

    assert in_time == (130, b"", b"tmkb: interrupted\n")


def _interrupted():
    """Start a server, press Ctrl+C while a child process reads the sources, and return status, output and log."""
    pipe = subprocess.PIPE
    command = [*SERVE, "--no-cache"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        while not _children(process.pid):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        output, log = process.communicate(timeout=TIMEOUT)
    return process.returncode, output, log


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read()


def test_responses_to_one_chunk_stay_within_the_limit(runtime):
    """Requests without room for their responses wait unanswered."""
    conversation = loop.Conversation(runtime, None)
    conversation.feed(json.dumps({**PING, "method": "no/such"}).encode() + b"\n")
    one = len(conversation.respond(1))
    conversation.feed((json.dumps({**PING, "method": "no/such"}).encode() + b"\n") * 1000)
    room = 10 * one - 1
    answers = [conversation.respond(room) for _ in range(100)]

    assert {len(answer) for answer in answers} == {10 * one}
    assert not conversation.unfinished


@pytest.mark.process
def test_a_signal_does_not_wait_for_a_client_that_does_not_read():
    with Server(read_stdout=False) as server:
        server.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.send(*[{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(1000)])
        while "Server ready" not in "".join(server.log):
            time.sleep(0.1)
        time.sleep(0.5)
        server.interrupt()

        assert server.wait() == 0


@pytest.mark.process
def test_requests_read_before_a_signal_are_answered(server):
    server.handshake()
    server.send(*[{**PING, "id": number} for number in range(200)])
    assert server.read()["id"] == 0
    server.interrupt()
    rest = list(iter(server.read, None))

    assert server.wait() == 0
    assert [answer["id"] for answer in rest] == list(range(1, len(rest) + 1))


@pytest.mark.process
def test_a_closed_stdout_ends_an_idle_server_without_a_traceback():
    with Server(read_stdout=False) as server:
        server.send(PING)
        server.process.stdout.close()

        assert server.wait() == 0
        assert not any("Traceback" in line or "Error" in line for line in server.log)


@pytest.mark.process
def test_a_closed_stdout_ends_a_writing_server_without_a_traceback():
    with Server(read_stdout=False) as server:
        server.send(*[{**PING, "id": number} for number in range(5000)])
        server.process.stdout.close()

        assert server.wait() == 0


@pytest.mark.process
def test_the_server_starts_with_closed_standard_descriptors():
    for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = ["sh", "-c", " ".join(SERVE) + " " + redirection]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)

        assert done.returncode == 0, (redirection, done.stderr)


@pytest.mark.process
def test_a_file_as_input_and_output(tmp_path):
    (tmp_path / "in").write_text(json.dumps(PING) + "\n" + json.dumps({**PING, "id": 2}))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        subprocess.run(SERVE, stdin=source, stdout=target, stderr=subprocess.DEVNULL, timeout=TIMEOUT, check=True)

    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_text().splitlines()] == [1, 2]


@pytest.mark.process
def test_a_client_that_never_reads_stderr_is_served():
    with Server("--log-level", "debug", read_stderr=False) as server:
        server.handshake()
        for number in range(2000):
            assert server.ask("tools/list", number)["id"] == number


# Log


@pytest.mark.process
def test_the_log_repeats_the_errors_that_clients_get(server, ids):
    server.handshake()
    server.query(3, context="x", language="java")
    server.query(4, context="background job processing")
    server.query("five", context="", framework="django")
    server.end()

    assert server.log == [
        f"[INFO] Starting MCP server with {len(ids)} patterns loaded",
        "[INFO] Server ready for MCP protocol communication via stdio",
        "[ERROR] [req_id=3] Invalid language 'java'. Supported languages: python",
        "[INFO] [req_id=4] Query executed successfully: 3 patterns returned",
        "[ERROR] [req_id=five] context must be non-empty",
        "[ERROR] [req_id=five] Invalid framework 'django'. Supported frameworks: flask, any",
        "[INFO] MCP server shutdown",
    ]


@pytest.mark.process
def test_a_client_cannot_forge_a_log_line(server):
    server.ask("a\n[INFO] forged\r\x1b[31m\x85\u2028\u202e", "7\n[ERROR] forged")
    server.end()

    assert server.log[2:-1] == [
        "[ERROR] [req_id=7\\u000a[ERROR] forged] Method not found: "
        "a\\u000a[INFO] forged\\u000d\\u001b[31m\\u0085\\u2028\\u202e"
    ]


@pytest.mark.process
def test_a_long_id_is_cut_in_the_log(server):
    server.ask("nope", "x" * 500)
    server.end()

    assert server.log[2] == f"[ERROR] [req_id={'x' * 80}…] Method not found: nope"


@pytest.mark.process
@pytest.mark.parametrize(
    ("environment", "flags", "lines"),
    [
        ({"LOG_LEVEL": "ERROR"}, (), ["[ERROR] Parse error"]),
        ({"LOG_LEVEL": "warning"}, (), ["[ERROR] Parse error"]),
        ({"LOG_LEVEL": "debug"}, ("--log-level", "Error"), ["[ERROR] Parse error"]),
        (
            {"LOG_LEVEL": "loud"},
            (),
            [
                "[WARNING] Unknown log level 'loud', using info. Known levels: debug, info, warning, error",
                "[INFO] Starting MCP server with {patterns} patterns loaded",
                "[INFO] Server ready for MCP protocol communication via stdio",
                "[ERROR] Parse error",
                "[INFO] MCP server shutdown",
            ],
        ),
    ],
)
def test_the_level_decides_what_is_logged(ids, environment, flags, lines):
    with Server(*flags, env=environment) as server:
        server.send(b"{\n")
        server.end()

        assert server.log == [line.format(patterns=len(ids)) for line in lines]


@pytest.mark.process
def test_level_debug_logs_each_step():
    with Server("--log-level=debug") as server:
        server.handshake()
        server.ask("tools/list", 2)
        server.query(3, context="x" * 100, language="java")
        server.query(4, context="celery")
        server.end()
        traced = [line.split(" ", 3) for line in server.log if line.startswith("[DEBUG] [req_id=")]
        kinds = [(id_, kind) for _, id_, kind, _ in traced]
        bodies = [json.loads(body) for *_, body in traced]

    assert kinds == [
        (f"[req_id={id_}]", kind)
        for id_, steps in [
            ("handshake", ["message_in", "handler", "message_out"]),
            ("2", ["message_in", "handler", "tools_discovered", "message_out"]),
            ("3", ["message_in", "handler", "validation_error", "message_out"]),
            ("4", ["message_in", "handler", "timing", "result", "message_out"]),
        ]
        for kind in steps
    ]
    assert bodies[7]["params"]["arguments"]["context"] == "x" * 80 + "…"
    assert bodies[9] == ["Invalid language 'java'. Supported languages: python"]


@pytest.mark.process
def test_an_unknown_log_level_is_a_usage_error():
    done = subprocess.run([*SERVE, "--log-level", "loud"], input=b"", capture_output=True, timeout=TIMEOUT, check=False)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"invalid choice: 'loud'" in done.stderr


# Where patterns come from


@pytest.mark.process
def test_patterns_from_a_folder(patterns):
    folder = patterns("acme_auth_024")
    with Server("--patterns", str(folder)) as server:
        server.handshake()
        answer = json.loads(server.query(context="background job processing")["content"][0]["text"])

    assert [pattern["id"] for pattern in answer["patterns"]] == ["ACME-AUTH-024"]


@pytest.mark.process
def test_patterns_from_the_environment(patterns, ids):
    folder = patterns("acme_auth_026")
    with Server(env={"TMKB_PATTERNS": f"{folder}{os.pathsep}packaged"}) as server:
        server.end()

        assert server.log[0] == f"[INFO] Starting MCP server with {len(ids) + 1} patterns loaded"
    with Server(env={"TMKB_PATTERNS": f"{folder}{os.pathsep}{folder}"}) as server:
        server.end()

        assert server.log[0] == "[INFO] Starting MCP server with 1 patterns loaded"
        assert "already has the id ACME-AUTH-026. This pattern is not loaded." in server.log[1]
    with Server(env={"TMKB_PATTERNS": ""}) as server:
        server.end()

        assert server.log[0] == f"[INFO] Starting MCP server with {len(ids)} patterns loaded"


@pytest.mark.process
def test_a_broken_pattern_is_logged_and_the_others_are_served(patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    file = folder / "acme_auth_024" / "pattern.yaml"
    file.write_text(file.read_text().replace("severity: medium", "severity: huge"))
    with Server("--patterns", str(folder)) as server:
        server.handshake()
        answer = json.loads(server.query(context="background job processing")["content"][0]["text"])
        server.end()

    assert [pattern["id"] for pattern in answer["patterns"]] == ["ACME-AUTH-001"]
    assert server.log[0] == "[INFO] Starting MCP server with 1 patterns loaded"
    assert server.log[1] == (
        f"[WARNING] {file}:12:11: severity cannot be 'huge'. Allowed: critical, high, medium, low."
    )


@pytest.mark.process
def test_the_server_answers_without_patterns(tmp_path):
    with Server("--patterns", str(tmp_path), "--patterns", str(tmp_path / "missing")) as server:
        server.handshake()
        answer = json.loads(server.query(context="background job processing")["content"][0]["text"])
        server.end()

    assert answer["pattern_count"] == 0
    assert server.log[:4] == [
        "[INFO] Starting MCP server with 0 patterns loaded",
        f"[WARNING] Pattern folder {tmp_path / 'missing'} does not exist",
        f"[WARNING] Pattern folder {tmp_path} holds no pattern: expected {tmp_path}/<name>/pattern.yaml",
        "[WARNING] No patterns loaded: every query will be answered without a pattern",
    ]

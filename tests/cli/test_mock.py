"""`tmkb mock`: a recording as a process, over stdio and HTTP."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.process import HttpServer
from tmkb.cli import main
from tmkb.schema import paths

pytestmark = pytest.mark.process
MOCK = [sys.executable, "-m", "tmkb", "mock"]
TIMEOUT = 60.0  # generous: it bounds a failure
RECORDING = """\
kind: transcript
title: A session
server: other
revisions: ["2025-11-25"]
opening: none
recorded: {over: stdio, redacted: {token: 1}}
exchanges:
  - send:
      jsonrpc: "2.0"
      id: 0
      method: initialize
      params: {protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: first, version: "1"}}
    expect:
      - jsonrpc: "2.0"
        id: 0
        result: {protocolVersion: "2025-11-25", capabilities: {tools: {}}, serverInfo: {name: other, version: "1"}}
  - send: {jsonrpc: "2.0", method: notifications/initialized}
    expect: []
  - send: {jsonrpc: "2.0", id: 1, method: tools/call, params: {name: add, arguments: {a: 1, b: 2}}}
    expect:
      - {jsonrpc: "2.0", id: 1, result: {content: [{type: text, text: "3, says REDACTED-1"}]}}
"""


@pytest.fixture
def recording(tmp_path):
    """The path of a recording."""
    file = tmp_path / "session.transcript.yaml"
    file.write_text(RECORDING)
    return str(file)


def call(id_, a, name="add"):
    """A request that calls a tool."""
    params = {"name": name, "arguments": {"a": a, "b": 2}}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def mocked(recording, *messages, options=()):
    """Send messages to a mock, then end its input; gives exit status, lines of stdout, stderr."""
    lines = "".join(f"{json.dumps(message)}\n" for message in messages)
    done = subprocess.run(
        [*MOCK, recording, *options], input=lines, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_recording_is_served_over_stdio(recording):
    status, (line,), stderr = mocked(recording, call("x", 1))

    assert (status, json.loads(line)["result"]["content"][0]["text"]) == (0, "3, says REDACTED-1")
    assert stderr == "tmkb: The recording is redacted. The client gets 1 placeholder (REDACTED-1) instead of secrets.\n"


def test_a_request_that_was_not_recorded_fails_the_mock(recording):
    status, (line,), stderr = mocked(recording, call("x", 5))

    assert (status, json.loads(line)["error"]["code"]) == (1, 404)
    assert f"Nearest: turn 3 of {recording}. params.arguments.a: expected 1, got 5" in stderr
    assert stderr.endswith("tmkb: 1 message of the client is not recorded like this.\n")
    assert mocked(recording, call("x", 5), options=["--lenient"])[0] == 0


def test_the_output_is_closed_instead_of_a_response(recording, tmp_path):
    faults = tmp_path / "faults.yaml"
    faults.write_text("kind: faults\nfaults:\n  - {method: tools/call, nth: 2, close: true}\n")
    process = subprocess.Popen(
        [*MOCK, recording, "--faults", str(faults)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        process.stdin.write(b"".join(json.dumps(call(n, 1)).encode() + b"\n" for n in range(3)))
        process.stdin.flush()
        lines = process.stdout.read().splitlines()  # to the end, though the input is still open

    assert [json.loads(line)["id"] for line in lines] == [0]
    assert process.returncode == 0


def test_a_delayed_response_comes_before_the_end(recording, tmp_path):
    faults = tmp_path / "faults.yaml"
    faults.write_text("kind: faults\nfaults:\n  - {nth: 1, delay: 0.2}\n")
    _, lines, _ = mocked(recording, call(1, 1), call(2, 1), options=["--faults", str(faults)])

    assert [json.loads(line)["id"] for line in lines] == [2, 1]


@pytest.mark.needs("uvicorn", "httpx2")
def test_a_recording_is_served_over_http(recording, capsys):
    with HttpServer(recording, command=MOCK) as server:
        status = main.main(["replay", recording, "--url", server.address])
        again = main.main(["replay", recording, "--url", server.address])

        assert (status, again, server.end()) == (0, 0, 0), capsys.readouterr()


@pytest.mark.needs("uvicorn", "httpx2")
@pytest.mark.parametrize(
    "name", ["elicitation/accepted", "progress/message", "stateless/asked", "stateless/listen", "list-changed/tools"]
)
def test_packaged_recordings_over_http(name, capsys):
    path = os.path.join(paths.CONFORMANCE, f"{name}.yaml")
    with HttpServer(path, command=MOCK) as server:
        assert main.main(["replay", path, "--url", server.address]) == 0, capsys.readouterr()


@pytest.mark.needs("uvicorn", "httpx2")
@pytest.mark.parametrize(
    "fault", ["close: true", "truncated: true", "not_json: '<html>'", "error: {code: 5, message: x}"]
)
def test_faults_over_http(recording, tmp_path, fault, capsys):
    faults = tmp_path / "faults.yaml"
    faults.write_text(f"kind: faults\nfaults:\n  - method: tools/call\n    {fault}\n")
    with HttpServer(recording, "--faults", str(faults), command=MOCK) as server:
        assert main.main(["replay", recording, "--url", server.address, "--timeout", "5"]) == 1
        assert server.end() == 0
    assert "turn 3" in capsys.readouterr().out


def test_wrong_input_is_a_usage_error(run_tmkb, recording, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: transcript\n")
    faults = tmp_path / "faults.yaml"
    faults.write_text("kind: faults\nfaults: [{nth: 0, close: true}]\n")

    assert run_tmkb("mock", tmp_path / "none.yaml") == (
        2,
        "",
        f"tmkb: There is no transcript at {tmp_path}/none.yaml.\n",
    )
    assert run_tmkb("mock", broken)[0] == 2
    assert run_tmkb("mock", recording, "--faults", faults)[2].startswith(f"{faults}:2:")
    assert "serves this machine only" in run_tmkb("mock", recording, "--http", "0.0.0.0:0")[2]
    assert run_tmkb("mock", recording, "--http", "nonsense")[0] == 2

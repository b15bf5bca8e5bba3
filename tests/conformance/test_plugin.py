"""The pytest plugin: transcripts as tests, against scripted and real servers."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.repository import ROOT
from tmkb.conformance import fixtures
from tmkb.conformance.targets import Target

pytest_plugins = ["pytester"]

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w"}},
}
TRANSCRIPT = """\
kind: transcript
title: The weather
server: weather
revisions: ["2025-11-25"]
opening: none
exchanges:
  - send: {jsonrpc: "2.0", id: 1, method: initialize}
    expect: [{$any: object}]
  - about: Says that all is ready.
    send: {jsonrpc: "2.0", method: notifications/initialized}
    expect: []
  - send: {jsonrpc: "2.0", id: 2, method: tools/call, params: {name: forecast}}
    expect:
      - {jsonrpc: "2.0", id: 2, result: {text: sunny, at: {$any: string}}}  # a comment
  - send_text: no message
    expect: []
"""
FORECAST = {"jsonrpc": "2.0", "id": 2, "result": {"text": "sunny", "at": "noon"}}
SERVER = """\
import json, os, sys

for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {"method": line}
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": {}}
    if message["method"] == "initialize":
        hello = {"name": "weather", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": hello}
    if message["method"] == "server/discover":
        answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
    if message["method"] == "tools/call":
        print("looking out of", os.path.basename(os.getcwd()), file=sys.stderr)
        if message["params"]["name"] == "storm":
            sys.exit("no window")
        answer["result"] = {"text": os.environ.get("WEATHER", "sunny"), "at": "noon"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"""


END = []  # instead of messages: the server ends the connection


class Scripted(Target):
    """A server that sends the next list of messages for each line."""

    ordered, ended = True, False

    def __init__(self, *answers):
        self.answers, self.lines, self.closed = [*answers], [], 0

    def exchange(self, line, count, pending=None, silence=True):
        self.lines.append(line)
        answer = self.answers.pop(0)
        self.ended = answer is END
        return answer

    def report(self):
        return ["The server closed its output."] if self.ended else []

    def close(self):
        self.closed += 1
        return []

    def notes(self):
        return ["The server: exit status 3"]


@pytest.fixture(autouse=True)
def plugins(monkeypatch):
    """Only the plugins that a test names, also where an installation of TMKB registers its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "tmkb.conformance.plugin")
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture
def project(pytester):
    """Write the transcript with these replacements, as ``weather.transcript.yaml``."""

    def write(*replacements):
        text = TRANSCRIPT
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (pytester.path / "weather.transcript.yaml").write_text(text)
        return pytester

    return write


@pytest.fixture
def served(monkeypatch):
    """Let all tests of an inner run connect to scripted servers; returns those that were started."""

    def serve(*answers):
        started = []
        monkeypatch.setattr(fixtures, "connect", lambda config: started.append(Scripted(*answers)) or started[-1])
        return started

    return serve


def lines(result):
    return result.stdout.str()


# --- Collection


def test_each_exchange_is_a_test_with_number_and_title(project):
    result = project().runpytest_inprocess("--collect-only", "-q")

    assert lines(result).splitlines()[:4] == [
        "weather.transcript.yaml::turn 1: initialize",
        "weather.transcript.yaml::turn 2: Says that all is ready.",
        "weather.transcript.yaml::turn 3: tools/call forecast",
        "weather.transcript.yaml::turn 4: no message",
    ]


def test_each_revision_has_tests_of_its_own(project):
    result = project(('["2025-11-25"]', '["2025-06-18", "2025-11-25"]')).runpytest_inprocess("--collect-only", "-q")

    assert lines(result).count("[2025-06-18]") == lines(result).count("[2025-11-25]") == 4


def test_titles_are_one_line_that_can_be_selected(project, served):
    served([HELLO], [], [FORECAST], [])
    pytester = project(("Says that all is ready.", r'"a::b\n\e[31mc"'))

    pytester.runpytest_inprocess(r"weather.transcript.yaml::turn 2: a:b\n\u001b[31mc").assert_outcomes(passed=1)


def test_problems_of_a_file_are_errors_with_their_place(project):
    result = project(("opening: none", "opening: nothing")).runpytest_inprocess()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["weather.transcript.yaml:5:10: *'nothing'*"])


def test_files_with_other_names_are_not_read(pytester):
    (pytester.path / "weather.yaml").write_text("kind: [")

    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


# --- Replay


def test_a_server_that_answers_as_recorded_passes(project, served):
    started = served([HELLO], [], [FORECAST], [])
    project().runpytest_inprocess().assert_outcomes(passed=4)

    assert [(len(each.lines), each.closed) for each in started] == [(4, 1)]


def test_differences_are_printed_without_a_traceback(project, served):
    served([HELLO], [], [{**FORECAST, "result": {"text": "rainy\x1b", "at": 12}}], [])
    result = project().runpytest_inprocess()

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            r'[[]0].result.text: expected "sunny", got "rainy\u001b"',
            "[[]0].result.at: expected any string, got 12",
            "weather.transcript.yaml:12: turn 3 of 'The weather' (2025-11-25)",
            "FAILED *::turn 3: tools/call forecast - *",
        ]
    )
    assert "Traceback" not in lines(result) and "plugin.py" not in lines(result)


def test_notes_on_the_server_are_printed_once(project, served, monkeypatch):
    monkeypatch.setattr(Scripted, "stderr", ["Welcome"], raising=False)
    monkeypatch.delenv("CI", raising=False)  # there, pytest repeats whole messages in its summary
    wrong = {**FORECAST, "result": {"text": "rainy", "at": 1.5}}
    served([HELLO], [wrong], [wrong], [])
    result = project().runpytest_inprocess()

    result.assert_outcomes(passed=2, failed=2)
    assert lines(result).count("stderr: Welcome") == 1


def test_the_turns_before_a_selected_one_are_replayed(project, served):
    started = served([HELLO], [], [FORECAST], [])
    project().runpytest_inprocess("-k", "forecast").assert_outcomes(passed=1, deselected=3)

    assert [len(each.lines) for each in started] == [3]
    assert [each.closed for each in started] == [1]


def test_after_the_end_of_a_connection_turns_are_skipped(project, served):
    started = served([HELLO], END)
    result = project().runpytest_inprocess("-rs")

    result.assert_outcomes(passed=1, failed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * weather.transcript.yaml:12: the connection ended in turn 2"])
    assert started[0].closed == 1


def test_a_selected_turn_fails_if_the_connection_ended_before_it(project, served):
    served([HELLO], END)
    result = project().runpytest_inprocess("-k", "forecast")

    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(["weather.transcript.yaml:9: turn 2 of *", "The server: exit status 3"])


def test_an_opening_that_fails_is_reported_once(project, served):
    served([HELLO])
    result = project(("opening: none", "opening: handshake")).runpytest_inprocess("-rs")

    result.assert_outcomes(failed=1, skipped=3)
    result.stdout.fnmatch_lines(
        ["initialize: expected one response, got 0", "weather.transcript.yaml:1: the opening of *"]
    )


def test_without_a_server_the_first_test_says_what_to_configure(project):
    result = project().runpytest_inprocess()

    result.assert_outcomes(failed=1, skipped=3)
    result.stdout.fnmatch_lines(["No server is configured.*--mcp-command CMD*"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--mcp-command", "a", "--mcp-url", "b"], "Both a command and a URL*"),
        (["--mcp-command", "'a"], "Cannot start 'a: No closing quotation."),
    ],
)
def test_a_bad_choice_of_a_server_is_reported(project, options, sentence):
    result = project().runpytest_inprocess(*options)

    result.assert_outcomes(failed=1, skipped=3)
    result.stdout.fnmatch_lines([sentence])


# --- Updates

CONFTEST = """\
def pytest_addoption(parser):
    parser.addoption("--snapshot-update", action="store_true", dest="update_snapshots")
"""


def test_an_update_rewrites_what_differs(project, served):
    served([HELLO], [], [{**FORECAST, "result": {"text": "rainy", "at": "noon"}}], [])
    pytester = project()
    pytester.makeconftest(CONFTEST)
    result = pytester.runpytest_inprocess("--snapshot-update")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*weather.transcript.yaml: rewritten"])
    text = (pytester.path / "weather.transcript.yaml").read_text()
    assert text == TRANSCRIPT.replace("sunny", "rainy")


def test_an_update_writes_nothing_if_a_response_is_missing(project, served):
    served([HELLO], [], [{"jsonrpc": "2.0", "method": "other"}], [])
    pytester = project()
    pytester.makeconftest(CONFTEST)
    result = pytester.runpytest_inprocess("--snapshot-update")

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*: not rewritten: turn 3 (2025-11-25) has no response to record."])
    assert (pytester.path / "weather.transcript.yaml").read_text() == TRANSCRIPT


def test_an_update_writes_no_number_that_is_not_finite(project, served):
    served([HELLO], [], [{**FORECAST, "result": {"text": float("nan"), "at": "noon"}}], [])
    pytester = project()
    pytester.makeconftest(CONFTEST)
    result = pytester.runpytest_inprocess("--snapshot-update")

    result.stdout.fnmatch_lines(["*: not rewritten: the messages of turn 3 (2025-11-25) *numbers that are not finite."])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (pytester.path / "weather.transcript.yaml").read_text() == TRANSCRIPT


# --- Processes


@pytest.fixture
def server(project):
    """A project with a server, configured in a file."""
    pytester = project()
    (pytester.path / "server.py").write_text(SERVER)
    pytester.makeini("[pytest]\nmcp_command = python server.py\nmarkers = slow\n")
    return pytester


@pytest.mark.process
def test_the_command_starts_in_the_folder_of_the_configuration(server, monkeypatch):
    below = server.mkdir("below")
    (server.path / "weather.transcript.yaml").rename(below / "weather.transcript.yaml")
    monkeypatch.chdir(below)
    monkeypatch.setenv("PATH", os.defpath)  # `python` is that of the tests

    server.runpytest_inprocess().assert_outcomes(passed=4)


@pytest.mark.process
def test_stderr_and_exit_status_of_the_server_are_shown(server):
    path = server.path / "weather.transcript.yaml"
    path.write_text(TRANSCRIPT.replace("forecast", "storm"))
    result = server.runpytest_inprocess()

    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["The server: exit status 1", "stderr: looking out of *", "stderr: no window"])


USES_SERVER = """\
def test_forecast(mcp_server):
    assert mcp_server.opened.server_info["name"] == "weather"
    assert mcp_server.request("tools/call", {"name": "forecast"})["text"] == "sunny"

def test_storm(mcp_server):
    mcp_server.request("tools/call", {"name": "storm"})
"""


@pytest.mark.process
def test_a_test_gets_a_client_of_the_server(server):
    server.makepyfile(USES_SERVER)
    result = server.runpytest_inprocess("-k", "test_")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*ClientError: No response to tools/call. The server closed its output.", "*no window"]
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("nosuch", "Cannot start nosuch: No such file or directory."),
        ("python -V", "No response to *. The server closed its output.*"),
    ],
)
def test_a_server_that_does_not_start_is_an_error_without_a_traceback(server, command, sentence):
    server.makepyfile(USES_SERVER)
    result = server.runpytest_inprocess("-k", "forecast and test_", "--mcp-command", command)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([sentence])
    assert "plugin.py" not in lines(result)


USES_MOCK = """\
import json
import subprocess

LINES = [json.dumps({"jsonrpc": "2.0", **each}) for each in (
    {"id": 7, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 8, "method": "tools/call", "params": {"name": "forecast"}},
)]

def test_stdio(mcp_mock):
    mock = mcp_mock("forecast.transcript.yaml")
    done = subprocess.run(mock.command, input="\\n".join(LINES), capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["result"]["text"] == "sunny"

def test_http(mcp_mock):
    from tmkb.conformance import fixtures
    from tmkb.conformance.client import Client
    from tmkb.conformance.http import Http

    with Client(Http(mcp_mock("forecast.transcript.yaml").url, fixtures.spec()), fixtures.spec()) as client:
        client.open()
        assert client.request("tools/call", {"name": "forecast"})["text"] == "sunny"

def test_unmatched(mcp_mock):
    from tmkb.conformance import fixtures
    from tmkb.conformance.client import Client, ClientError
    from tmkb.conformance.http import Http

    with Client(Http(mcp_mock("forecast.transcript.yaml").url, fixtures.spec()), fixtures.spec()) as client:
        client.open()
        try:
            client.request("tools/call", {"name": "storm"})
        except ClientError:
            pass
"""


@pytest.mark.process
@pytest.mark.needs("uvicorn", "httpx2")
def test_a_test_gets_a_mock_of_a_recording(project):
    pytester = project(
        ("expect: [{$any: object}]", f"expect: [{json.dumps(HELLO)}]"), ("at: {$any: string}", "at: noon")
    )
    (pytester.path / "weather.transcript.yaml").rename(pytester.path / "forecast.transcript.yaml")
    pytester.makepyfile(USES_MOCK)
    result = pytester.runpytest_inprocess("-k", "test_")

    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_unmatched*", "*storm*"])


@pytest.mark.process
@pytest.mark.needs("uvicorn", "httpx2")
def test_transcripts_are_replayed_over_http(project):
    exact = f"expect: [{json.dumps(HELLO)}]"
    last = "  - send_text: no message\n    expect: []\n"
    pytester = project(("expect: [{$any: object}]", exact), ("at: {$any: string}", "at: noon"), (last, ""))
    mock = fixtures.Mock(str(pytester.path), "weather.transcript.yaml")
    try:
        pytester.runpytest_inprocess("--mcp-url", mock.url).assert_outcomes(passed=3)
    finally:
        assert mock.stop() == ""
    result = pytester.runpytest_inprocess("--mcp-url", mock.url)

    result.assert_outcomes(failed=1, skipped=2)
    result.stdout.fnmatch_lines(["Cannot reach http://127.0.0.1:*: Connection refused."])


@pytest.mark.process
def test_the_plugin_imports_nothing_else_of_tmkb():
    code = "import sys, pytest, tmkb.conformance.plugin; print(*sorted(n for n in sys.modules if n.startswith('tmkb')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["tmkb", "tmkb.conformance", "tmkb.conformance.plugin"]


@pytest.mark.full
@pytest.mark.needs("syrupy", "xdist")
def test_workers_and_syrupy(server, monkeypatch):
    monkeypatch.setenv("WEATHER", "rainy")
    options = ["-p", "syrupy", "-p", "xdist.plugin", "-n", "2"]

    server.runpytest_subprocess(*options, "--snapshot-update").assert_outcomes(passed=4)
    assert (server.path / "weather.transcript.yaml").read_text() == TRANSCRIPT.replace("sunny", "rainy")
    server.runpytest_subprocess(*options).assert_outcomes(passed=4)

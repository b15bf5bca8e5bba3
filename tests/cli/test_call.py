"""`tmkb call`, `tools`, `prompts` and `resources`, with our own servers and with another one over stdio."""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support.process import HttpServer
from tests.support.repository import ROOT
from tmkb.cli import connection
from tmkb.conformance.client import ClientError

pytestmark = pytest.mark.process

NOTES = [sys.executable, os.path.join(ROOT, "tests", "data", "servers", "notes.py")]


@pytest.fixture
def notes(run_tmkb):
    """Run a command with the server of notes; gives exit status, stdout, stderr."""

    def run(*words, mode=""):
        return run_tmkb(*words, "--command", shlex.join([*NOTES, mode]))

    return run


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["text=5"], {"text": "5"}),
        (["text=a=b", "stars=5", "weight=1.5"], {"text": "a=b", "stars": 5, "weight": 1.5}),
        (
            ["text=", "stars=2.0", "weight=null", "pinned=True"],
            {"text": "", "stars": 2, "weight": None, "pinned": True},
        ),
        (["text=x", "tags=a", "tags=b"], {"text": "x", "tags": ["a", "b"]}),
        (["text=x", 'tags=["a"]', 'place={"x": [1]}'], {"text": "x", "tags": ["a"], "place": {"x": [1]}}),
        (["text=x", "colour=red"], {"text": "x", "colour": "red"}),
        (['text:="@x"', "unknown:=[1]"], {"text": "@x", "unknown": [1]}),
    ],
)
def test_values_are_read_by_the_schema(notes, words, arguments):
    status, out, err = notes("call", "add", *words)

    assert (status, json.loads(out), err) == (0, arguments, "")


def test_a_value_is_read_from_a_file(notes, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear\nall")

    assert json.loads(notes("call", "add", f"text=@{tmp_path}/letter.txt")[1]) == {"text": "Dear\nall"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["txt=x"], "There is no argument txt. Did you mean text? To send it anyway, write txt:=JSON."),
        (["text"], "'text' is not an argument. Write it as KEY=VALUE."),
        (["=x"], "'=x' is not an argument."),
        (["text=x", "text=y"], "text is given twice."),
        (["text=x", "stars=many"], "stars must be integer, got 'many'."),
        (["text=x", "stars=1.5"], "stars must be integer, got '1.5'."),
        (["text=x", "pinned=maybe"], "pinned must be boolean, got 'maybe'. Write true or false."),
        (["text=x", "place=here"], "place must be object, got 'here'. Write it as JSON"),
        (["text:=x"], "text: 'x' is not JSON. A text needs quotes: text:='\"text\"'."),
        (["text:=NaN"], "text: 'NaN' is not JSON."),
        (["text=@/no/file"], "text: cannot read /no/file: No such file or directory."),
        (["stars=1"], "add needs this argument:\n  text (string): The words of the note\n"),
    ],
)
def test_wrong_arguments_are_usage_errors(notes, words, sentence):
    status, out, err = notes("call", "add", *words)

    assert (status, out) == (2, "")
    assert err.startswith(f"tmkb: {sentence}")


def test_arguments_may_follow_options(run_tmkb):
    command = ["--command", shlex.join(NOTES)]

    assert json.loads(run_tmkb("call", "add", *command, "text=x", "--json", "stars=1")[1])["structuredContent"] == {
        "count": 1
    }
    assert "There is no option --sars." in run_tmkb("call", "add", *command, "--sars", "text=x")[2]


def test_an_unknown_tool(notes):
    assert notes("call", "ad") == (1, "", "tmkb: There is no tool ad. Did you mean add?\n")


def test_a_tool_that_fails(notes):
    out = "It \\u001b[31mfailed\\u001b[0m.\n"  # a terminal would execute it

    assert notes("call", "fail") == (1, out, "tmkb: fail reports an error.\n")


def test_questions_of_the_server_are_declined(notes):
    status, out, err = notes("call", "ask")

    assert status == 0 and "does not support elicitation/create" in json.loads(out)["message"]
    assert err == (
        "tmkb: The server asked for elicitation/create (Which note?); declined, because this command answers no "
        "questions.\n"
    )


QUIETLY = argparse.Namespace(verbose=True)  # without a line for progress


class Rounds:
    """A client whose server wants a request repeated until its rounds are over; it notes the params."""

    def __init__(self, *rounds):
        self.rounds, self.params = [*rounds], []

    def method(self, handler):
        return handler

    def request(self, method, params):
        self.params.append(params)
        return {"resultType": "input_required", **self.rounds.pop(0)} if self.rounds else {"resultType": "complete"}


def test_a_request_without_questions_is_repeated_with_its_state():
    client = Rounds({"requestState": "a"}, {"requestState": "b", "inputRequests": {}})

    assert connection.complete(QUIETLY, client, "m", {"name": "x"}) == {"resultType": "complete"}
    assert client.params == [{"name": "x"}, {"name": "x", "requestState": "a"}, {"name": "x", "requestState": "b"}]


def test_questions_in_a_result_are_declined_in_the_same_words():
    question = {"method": "elicitation/create", "params": {"message": "Which note?"}}

    with pytest.raises(ClientError, match=r"asked for elicitation/create \(Which note\?\); declined, because"):
        connection.complete(QUIETLY, Rounds({"inputRequests": {"q": question}}), "m", {})


def test_a_request_is_not_repeated_without_end():
    with pytest.raises(ClientError, match="repeated again and again"):
        connection.complete(QUIETLY, Rounds(*[{"requestState": "a"}] * 100), "m", {})


def test_images_and_links_are_named(notes):
    assert notes("call", "show")[1] == "[image  image/png  5 bytes]\nnote://1  first\n"


def test_all_pages_of_tools_are_listed(notes):
    out = notes("tools")[1]

    assert [line.split()[0] for line in out.splitlines()] == ["tool", "add", "fail", "ask", "wait", "show", "sleep"]
    assert "add    Adds a note.\n" in out


def test_one_tool_is_described(notes):
    out = notes("tools", "add")[1]

    assert out.startswith("add  Add a note\nAdds a note.\nIt is kept until the server ends.\n\nArguments\n")
    assert "  text  string, required\n    The words of the note\n" in out
    assert "  tags  array of string\n" in out and "  colour  red | green\n" in out
    assert "Structured result\n  count  integer\n" in out


def test_a_server_without_prompts_and_resources(notes):
    assert notes("prompts")[:2] == (0, "This server has no prompts.\n")
    assert notes("resources")[:2] == (0, "This server has no resources.\n")
    assert notes("resources", "a:b") == (
        1,
        "",
        "tmkb: The server answers with the error -32601: Method not found: resources/read\n",
    )


def test_messages_are_shown(notes):
    _, _, err = notes("call", "wait", "--verbose", "--revision", "2025-06-18")

    methods = [json.loads(line[2:]).get("method") for line in err.splitlines() if line[0] == "→"]
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/list", "tools/call"]
    assert err.splitlines()[-1].startswith("← ")


def test_a_server_that_writes_no_json(notes):
    status, out, err = notes("tools", "--timeout", "1", mode="broken")

    assert (status, out) == (1, "")
    assert 'It sent "Server is listening…", which is not a JSON-RPC message.' in err
    assert "stderr: notes: ready" in err


def test_a_server_that_never_answers(notes):
    assert "took longer than 0.5 s" in notes("tools", "--timeout", "0.5", mode="mute")[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--command", "/no/command"], "Cannot reach /no/command: No such file or directory."),
        (["--url", "http://127.0.0.1:1/mcp"], "Cannot reach http://127.0.0.1:1/mcp: Connection refused."),
        (["--url", "http://127.0.0.1:1/mcp", "--server", "tmkb"], "--server names one of our own servers"),
        (["--header", "secret"], "write it like 'Authorization: Bearer TOKEN'"),
    ],
)
def test_a_server_that_cannot_be_reached(run_tmkb, words, sentence):
    status, out, err = run_tmkb("tools", *words)

    assert (status, out) == (2, "")
    assert sentence in err


def test_a_server_that_ends(run_tmkb):
    assert run_tmkb("tools", "--command", "false")[::2] == (
        1,
        "tmkb: No response to server/discover. The server closed its output.\nThe server: exit status 1\n",
    )


def test_our_own_server_without_options(run_tmkb):
    status, out, err = run_tmkb("call", "tmkb_query", "context=background job that deletes accounts", "--json")

    assert (status, err) == (0, "")
    assert json.loads(out)["content"][0]["type"] == "text"


def test_prompts_and_resources(run_tmkb):
    of = ["--server", "everything"]
    assert "test_prompt_with_arguments          arg1 arg2" in run_tmkb("prompts", *of)[1]
    assert run_tmkb("prompts", "test_prompt_with_arguments", *of, "arg1=a", "arg2=b")[1] == (
        "user:\n  Prompt with arguments: arg1='a', arg2='b'\n"
    )
    assert run_tmkb("prompts", "test_prompt_with_arguments", *of, "arg1=a")[2].endswith(
        "needs this argument:\n  arg2 (string): Second\n"
    )
    assert "test://template/{id}/data" in run_tmkb("resources", *of)[1]
    assert run_tmkb("resources", "test://static-binary", *of)[1] == "[test://static-binary  image/png  70 bytes]\n"
    assert "Did you mean test://static-text?" in run_tmkb("resources", "test://static-txt", *of)[2]


def test_an_interrupt_ends_the_server(tmp_path):
    """The server would notice the end of its input only after its tool; the command does not wait for it."""
    command = f"exec {shlex.join(NOTES)} 2>{tmp_path}/ready"
    words = [sys.executable, "-m", "tmkb", "call", "sleep", "--command", shlex.join(["sh", "-c", command])]
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True, cwd=ROOT) as process:
        while not (os.path.exists(tmp_path / "ready") and os.path.getsize(tmp_path / "ready")):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"Traceback" not in process.stderr.read()
    with pytest.raises(ProcessLookupError):  # nothing of the session is left
        os.killpg(process.pid, 0)


@pytest.mark.needs("httpx2", "uvicorn")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_a_server_over_http(run_tmkb, revision):
    with HttpServer("--server", "everything") as server:
        of = ["--url", server.address, "--revision", revision, "--header", "X-Trace: 1"]

        assert run_tmkb("call", "test_simple_text", *of)[:2] == (0, "This is a simple text response for testing.\n")
        assert run_tmkb("call", "test_x_mcp_header", "region=eu", *of)[:2] == (0, "region=eu\n")


class Unauthorized(BaseHTTPRequestHandler):
    """A server that wants a token and answers without a message of JSON-RPC."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = b'{"error": "invalid_token"}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.needs("httpx2")
def test_a_server_that_wants_a_token(run_tmkb):
    with HTTPServer(("127.0.0.1", 0), Unauthorized) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status, out, err = run_tmkb("tools", "--url", f"http://127.0.0.1:{server.server_port}/mcp", "--timeout", "5")
        server.shutdown()

    assert (status, out) == (1, "")
    assert "/mcp: 401 Unauthorized" in err and "Use --header 'Authorization: Bearer TOKEN'." in err

"""`tmkb check` against servers as processes."""

import json
import shlex
import sys
from xml.etree import ElementTree

import pytest

from tests.support.process import SERVE, HttpServer
from tmkb.cli import main

pytestmark = pytest.mark.process

SERVER = """\
import json, sys
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "other", "version": "1"}},
    "ping": {},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        known = RESULTS.get(message["method"])
        answer = {"result": known} if known is not None else {"error": {"code": CODE, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.fixture
def command(tmp_path):
    """Write a server and return its command."""

    def write(source):
        (tmp_path / "server.py").write_text(source)
        return shlex.join([sys.executable, str(tmp_path / "server.py")])

    return write


def run(capsys, *arguments):
    """The exit status, stdout and stderr of a command."""
    status = main.main(["check", *arguments])
    return status, *capsys.readouterr()


def failed(out):
    return [each for each in json.loads(out) if each["status"] == "fail"]


@pytest.mark.parametrize("server", ["tmkb", "everything"])
def test_our_server_meets_every_requirement_over_stdio(capsys, server):
    command = shlex.join([*SERVE, "--server", server])
    status, out, _ = run(capsys, "--json", "--command", command, "--fail-on", "SHOULD", "--timeout", "60")

    assert failed(out) == []
    assert status == 0


@pytest.mark.needs("httpx2", "uvicorn")
@pytest.mark.parametrize("server", ["tmkb", "everything"])
def test_our_server_meets_every_requirement_over_http(capsys, server):
    with HttpServer("--server", server) as running:
        status, out, _ = run(capsys, "--json", "--url", running.address, "--fail-on", "SHOULD", "--timeout", "60")

    assert failed(out) == []
    assert status == 0
    assert {each["revision"] for each in json.loads(out)} == {"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}


def test_a_server_that_meets_all_it_declares(capsys, command):
    status, out, _ = run(capsys, "--command", command(SERVER.replace("CODE", "-32601")))

    assert status == 0
    assert "FAIL" not in out
    assert "MUST over stdio" in out


def test_a_should_fails_the_command_only_if_the_user_says_so(capsys, command, tmp_path):
    server = command(SERVER.replace("CODE", "-32000"))
    assert run(capsys, "--command", server)[0] == 0

    files = [f"--{name}={tmp_path / name}" for name in ("junit", "html", "badge")]
    status, out, err = run(capsys, "--command", server, "--fail-on", "SHOULD", *files)

    assert status == 1
    assert out.startswith("FAIL SHOULD base.unknown_method\n")
    assert "  clause https://www.jsonrpc.org/specification#error_object\n" in out
    assert err.count(": written\n") == 3
    assert len(ElementTree.parse(tmp_path / "junit").findall(".//failure")) == 1
    assert "base.unknown_method" in (tmp_path / "html").read_text()
    assert ElementTree.parse(tmp_path / "badge").getroot().tag.endswith("svg")


def test_a_report_that_cannot_be_written_is_named_after_the_results(capsys, command, tmp_path):
    server = command(SERVER.replace("CODE", "-32601"))
    status, out, err = run(capsys, "--command", server, f"--html={tmp_path}")

    assert status == 2
    assert "MUST over stdio" in out
    assert err.endswith(f"tmkb: Cannot write {tmp_path}: Is a directory.\n")


def test_a_failure_can_be_accepted(capsys, command, tmp_path):
    server = command("print('Welcome', flush=True)\n" + SERVER.replace("CODE", "-32601"))
    badge = tmp_path / "badge.svg"
    words = ["--accept", "stdio.messages_only", "--accept", "base.unknown_method", f"--badge={badge}"]
    status, out, err = run(capsys, "--command", server, *words)

    assert status == 0
    assert "FAIL" not in out and " (fail)" in out and " accepted" in out
    assert "base.unknown_method does not fail. Remove --accept base.unknown_method." in err
    assert "#b3261e" in badge.read_text()


def test_an_accepted_requirement_has_to_exist(capsys, command):
    status, out, err = run(capsys, "--command", command("raise SystemExit"), "--accept", "stdio.message_only")

    assert (status, out) == (2, "")
    assert err == "tmkb: There is no requirement stdio.message_only. Did you mean stdio.messages_only?\n"


def test_a_server_that_prints_to_its_output(capsys, command):
    server = command("print('Welcome', flush=True)\n" + SERVER.replace("CODE", "-32601"))
    status, out, _ = run(capsys, "--json", "--command", server)

    assert status == 1
    assert [each["requirement"] for each in failed(out)] == ["stdio.messages_only"]
    assert failed(out)[0]["received"] == "Welcome"


HOSTILE = """\
import json, sys
CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}}
RESULTS = {
    "initialize": json.dumps({
        "protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": {"name": "\x1b[2J", "version": "1"},
    }),
    "ping": "{}",
    "tools/list": '{"tools": [{"name": [], "inputSchema": {"type": "object", "$schema": 5, "pattern": "((("}}, 5]}',
    "prompts/list": '{"prompts": [{"name": "\\\\ud800", "arguments": [{"name": "\\\\udfff", "required": true}]}]}',
    "resources/list": '{"resources": [{"uri": "\\\\ud800", "name": "\\\\u0000"}]}',
    "resources/read": "[" * 100_000 + "]" * 100_000,
    "completion/complete": '{"completion": {"values": NaN}}',
    "logging/setLevel": "1" * 5000,
}
for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, dict) and "id" in message:
        result = RESULTS.get(message["method"], 'null}\\n[[[{}]], 5, null]\\n{"id": {}, "method": "ping"}\\n{"method": 5')
        print('{"jsonrpc": "2.0", "id": ' + json.dumps(message["id"]) + ', "result": ' + result + "}", flush=True)
"""


def test_a_server_that_sends_anything(capsys, command, tmp_path):
    files = [f"--{name}={tmp_path / name}" for name in ("junit", "html")]
    status, out, _ = run(capsys, "--command", command(HOSTILE), "--timeout", "1", *files)

    assert status == 1
    assert "\x1b" not in out
    assert "FAIL MUST tools.valid_schemas" in out
    assert "FAIL MUST stdio.messages_only" in out
    ElementTree.parse(tmp_path / "junit")


def test_a_server_that_ends(capsys, command):
    status, _, err = run(capsys, "--command", command("import sys; sys.exit('no settings')"))

    assert status == 2
    assert "The server answers no handshake. The server closed its output.\n" in err
    assert "  stderr: no settings\n" in err


def test_a_report_into_a_folder_that_does_not_exist(capsys, command, tmp_path):
    path = tmp_path / "nowhere" / "page.html"
    status, _, err = run(capsys, "--command", command("import sys; sys.exit(1)"), "--html", str(path))

    assert (status, err) == (2, f"tmkb: Cannot write {path}: there is no folder {path.parent}.\n")


def test_a_command_that_does_not_exist(capsys):
    assert run(capsys, "--command", "no-such-program")[0] == 2
    assert (
        run(capsys, "--revision", "2025-11-26")[2]
        == "tmkb: There is no revision 2025-11-26. Did you mean 2025-11-25?\n"
    )


@pytest.mark.needs("httpx2")
def test_a_url_without_a_server(capsys):
    status, _, err = run(capsys, "--url", "http://127.0.0.1:9/mcp")

    assert status == 2
    assert "answers no handshake" in err


def test_a_call_that_is_not_written_well(capsys):
    with pytest.raises(SystemExit):
        main.main(["check", "--call", "add [1]"])

    assert "Write it like" in capsys.readouterr().err

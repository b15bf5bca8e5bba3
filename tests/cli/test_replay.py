"""`tmkb replay`: reports and updates."""

import json
import os
import re
import shlex
import shutil
import sys
from xml.etree import ElementTree

import pytest

from tmkb.cli import main
from tmkb.schema import paths

CONVERSATION = """\
# A comment that stays.
kind: transcript
title: A made-up conversation
requirement: tools.unknown
server: tmkb
revisions: ["2025-06-18", "2025-11-25"]
opening: handshake

exchanges:
  - about: Unknown.   # this one too
    send: {jsonrpc: "2.0", id: 2, method: tools/call, params: {name: nope}}
    expect:
      - {jsonrpc: "2.0", id: 2, error: {code: -32602, message: {$any: string}}}   # and this
  - send: {jsonrpc: "2.0", id: 3, method: ping}
    expect: []
"""


@pytest.fixture
def replay(capsys):
    def run(*words):
        status = main.main(["replay", *map(str, words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "conversation.yaml"
    path.write_text(CONVERSATION)
    return path


def test_packaged_transcripts_are_as_recorded(replay):
    status, out, err = replay("--revision", "2025-03-26", os.path.join(paths.CONFORMANCE, "logging"))

    assert (status, err) == (0, "")
    assert re.search(r"(\d+) of \1 conversations are as recorded \(\d+\.\d s\)\.\n$", out)


def test_a_difference_is_printed_as_text(replay, file):
    status, out, err = replay(file, "--revision", "2025-11-25")

    assert (status, err) == (1, "")
    assert out.startswith(
        f"{file} (2025-11-25): A made-up conversation\n"
        "  turn 2: ping\n"
        '    messages: expected 0, got 1: [{"jsonrpc":"2.0","id":3,"result":{}}]\n'
        "0 of 1 conversations are as recorded ("
    )


def test_a_difference_is_printed_as_json(replay, file):
    status, out, _ = replay(file, "--json")

    assert status == 1
    assert [(each["revision"], list(each["differences"])) for each in json.loads(out)] == [
        ("2025-06-18", ["2"]),
        ("2025-11-25", ["2"]),
    ]


def test_update_writes_actual_messages_only(replay, file):
    status, _, _ = replay(file, "--update")

    assert status == 0
    assert file.read_text() == CONVERSATION.replace(
        "expect: []", 'expect:\n      - {jsonrpc: "2.0", id: 3, result: {}}'
    )
    assert replay(file)[0] == 0


def test_update_writes_an_expectation_that_is_absent(replay, file):
    file.write_text(CONVERSATION.replace("    expect: []\n", ""))

    assert replay(file, "--update")[0] == 0
    assert file.read_text().endswith('ping}\n    expect:\n      - {jsonrpc: "2.0", id: 3, result: {}}\n')
    assert replay(file)[0] == 0


def test_update_refuses_differing_revisions(replay, file):
    text = CONVERSATION.replace('send: {jsonrpc: "2.0", id: 3, method: ping}', 'send_text: "{"')
    file.write_text(text)
    status, _, err = replay(file, "--update")

    assert status == 1
    assert err == f"tmkb: {file}: revisions differ in turn 2: use separate transcripts.\n"
    assert file.read_text() == text


@pytest.mark.process
def test_another_server_is_started_for_each_conversation(replay, tmp_path):
    script = tmp_path / "server.py"
    script.write_text(
        "import json, sys\n"
        "hello = {'protocolVersion': 'x', 'capabilities': {}, 'serverInfo': {'name': 'a', 'version': '1'}}\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    result = hello if m['method'] == 'initialize' else {}\n"
        "    if 'id' in m: print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': result}), flush=True)\n"
        "print('not json', flush=True)\n"
    )
    file = os.path.join(paths.CONFORMANCE, "tools", "unknown-tool.yaml")
    status, out, _ = replay(file, "--command", shlex.join([sys.executable, str(script)]), "--revision", "2025-11-25")

    assert status == 1
    assert "[0].error: missing, expected" in out
    assert '  turn 7: After the end of input\n    not expected: "not json"' in out


@pytest.mark.process
def test_a_server_that_does_not_start_is_reported(replay, file):
    command = shlex.join([sys.executable, "-c", "pass"])
    status, out, _ = replay(file, "--command", command, "--revision", "2025-11-25")

    assert status == 1
    assert "initialize: expected one response, got 0" in out and "exit status 0" in out
    assert replay(file, "--command", "no-such-command")[0] == 2


@pytest.mark.process
def test_our_own_server_as_a_command(replay):
    folder = os.path.join(paths.CONFORMANCE, "lifecycle")
    command = shlex.join([sys.executable, "-m", "tmkb", "serve"])

    assert replay(folder, "--command", command, "--revision", "2025-11-25")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("send:", "sends:", "Unknown key 'sends'"),
        ("expect: []", "expected: []", "Unknown key 'expected' in exchanges[1]. Did you mean 'expect'?"),
        ("kind: transcript", "kind: [transcript", "The bracket [ that begins here is not closed"),
    ],
)
def test_an_invalid_transcript_is_exit_status_2(replay, file, old, new, message):
    file.write_text(CONVERSATION.replace(old, new, 1))
    status, out, err = replay(file)

    assert (status, out) == (2, "")
    assert message in err


def test_nothing_to_replay_is_exit_status_2(replay, tmp_path, file):
    assert replay(tmp_path / "missing")[0] == 2
    assert replay(file, "--revision", "1999-01-01")[0] == 2


def test_a_missing_transcript_is_an_error_beside_others(replay, tmp_path):
    logged = os.path.join(paths.CONFORMANCE, "logging")
    missing = f"tmkb: There is no transcript at {tmp_path}/missing.\n"

    assert replay(logged, tmp_path / "missing") == (2, "", missing)


def test_all_transcripts_of_a_folder_are_replayed(replay, tmp_path):
    shutil.copytree(os.path.join(paths.CONFORMANCE, "batch"), tmp_path / "batch")

    assert replay(tmp_path)[1].startswith("5 of 5 conversations are as recorded (")


def test_transcripts_that_need_a_missing_module_are_skipped(tmp_path, capsys):
    path = tmp_path / "made-up.yaml"
    path.write_text(CONVERSATION.replace("opening:", "needs: [no_such_module]\nopening:"))

    assert main.main(["replay", str(path), os.path.join(paths.CONFORMANCE, "tmkb", "no-match.yaml")]) == 0
    message = capsys.readouterr()
    assert "made-up is skipped: it needs no_such_module, which is not installed." in message.err
    assert " conversations are as recorded (" in message.out and "[" not in message.out


@pytest.mark.parametrize("url", ["", "127.0.0.1:1", "foo", "http://", "ftp://127.0.0.1/", "http://[", "http://a:b/"])
def test_an_invalid_url_is_a_usage_error(capsys, url):
    with pytest.raises(SystemExit) as exit_:
        main.main(["replay", "--url", url])

    assert exit_.value.code == 2
    assert f"'{url}' is not the URL of an HTTP server" in capsys.readouterr().err


@pytest.mark.needs("httpx2")
def test_a_server_that_refuses_connections_is_named_with_the_cause(capsys):
    assert main.main(["replay", "--url", "http://127.0.0.1:1/mcp"]) == 2
    assert capsys.readouterr().err == "tmkb: Cannot reach http://127.0.0.1:1/mcp: Connection refused.\n"


def test_http_without_the_extra_names_the_extra(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "tmkb.conformance.http", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)

    assert main.main(["replay", "--url", "http://127.0.0.1:1/mcp"]) == 2
    assert capsys.readouterr().err.startswith("--url: This needs the module httpx2, which is not installed.")


# --- Files of a server that is not ours


OTHER = """\
kind: transcript
title: Of another server
server: other
revisions: ["2025-11-25"]
{more}opening: none
exchanges:
  - send: {{jsonrpc: "2.0", id: 2, method: ping}}
    expect: []
"""


@pytest.mark.parametrize(
    ("more", "proposal"),
    [
        ("", "Add --command COMMAND or --url URL."),
        ("recorded: {command: python my server.py}\n", "Add --command 'python my server.py'."),
        ("recorded: {url: 'https://x/mcp'}\n", "Add --url https://x/mcp."),
    ],
)
def test_a_transcript_of_another_server_says_what_it_needs(replay, tmp_path, more, proposal):
    file = tmp_path / "mine.transcript.yaml"
    file.write_text(OTHER.format(more=more))

    assert replay(file) == (2, "", f"tmkb: {file} was recorded with the server 'other'. {proposal}\n")


def test_a_recording_has_no_translation_to_an_unknown_revision(replay, file):
    file.write_text(file.read_text() + "recorded: {over: stdio}\n")
    status, _, err = replay(file, "--revision", "2025-11-26")

    assert (status, err) == (2, "tmkb: There is no revision 2025-11-26. Did you mean 2025-11-25?\n")


# --- Reports


def test_reports_are_written(replay, file, tmp_path):
    status, out, _ = replay(file, "--junit", tmp_path / "j.xml", "--html", tmp_path / "h.html", "--github")
    root = ElementTree.parse(tmp_path / "j.xml").getroot()

    assert status == 1
    assert [root.get(name) for name in ("tests", "failures", "skipped")] == ["4", "2", "0"]
    assert [each.get("name") for each in root.iter("testcase")] == ["turn 1: Unknown.", "turn 2: ping"] * 2
    assert (
        out.count("::error file=") == 2 and ",line=14,title=A made-up conversation%2C turn 2%3A ping::messages" in out
    )
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert page.count('<details class="failed" open>') == 2 and "<h3>Expected</h3>" in page


def test_a_report_that_cannot_be_written_is_exit_status_2(replay, file, tmp_path):
    status, out, err = replay(file, "--junit", tmp_path / "no" / "j.xml")

    assert status == 2 and "0 of 2 conversations" in out
    assert err == f"tmkb: Cannot write {tmp_path / 'no' / 'j.xml'}: No such file or directory.\n"


# --- Translation


RECORDED = """\
kind: transcript
title: A recording
server: tmkb
revisions: ["2025-11-25"]
recorded: {over: http}
opening: none
exchanges:
  - send: {jsonrpc: "2.0", id: 1, method: initialize, params: {protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: c, version: "1"}}}
    expect:
      - jsonrpc: "2.0"
        id: 1
        result: {protocolVersion: "2025-11-25", capabilities: {$any: object}, serverInfo: {$ignore: true}, instructions: {$ignore: true}}
  - send: {jsonrpc: "2.0", method: notifications/initialized}
    expect: []
  - send: {jsonrpc: "2.0", id: 2, method: tools/call, params: {name: nope}}
    expect:
      - {jsonrpc: "2.0", id: 2, error: {code: -32602, message: "Unknown tool: nope"}}
"""


def test_a_recording_is_translated_to_another_revision(replay, tmp_path):
    file = tmp_path / "mine.transcript.yaml"
    file.write_text(RECORDED)

    assert replay(file)[0] == 0
    status, out, _ = replay(file, "--revision", "2026-07-28")
    assert status == 0
    assert out.splitlines()[:2] == [
        f"{file} (2026-07-28): A recording",
        "  recorded under 2025-11-25, translated to 2026-07-28",
    ]
    assert json.loads(replay(file, "--revision", "2024-11-05", "--json")[1])[0]["remarks"] == [
        "recorded under 2025-11-25, translated to 2024-11-05"
    ]


def test_an_update_writes_no_translated_messages(replay, tmp_path):
    file = tmp_path / "mine.transcript.yaml"
    file.write_text(RECORDED)
    status, _, err = replay(file, "--revision", "2026-07-28", "--update")

    assert status == 1 and "not rewritten: it does not list the revision 2026-07-28." in err
    assert file.read_text() == RECORDED


def test_a_transcript_that_was_not_recorded_is_not_translated(replay, file):
    assert replay(file, "--revision", "2026-07-28")[0] == 2

"""`tmkb replay`: reports and updates."""

import json
import os
import shlex
import shutil
import sys

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
    assert out.endswith("conversations are as recorded.\n")


def test_a_difference_is_printed_as_text(replay, file):
    assert replay(file, "--revision", "2025-11-25") == (
        1,
        f"{file} (2025-11-25): A made-up conversation\n"
        "  turn 2\n"
        '    messages: expected 0, got 1: [{"jsonrpc":"2.0","id":3,"result":{}}]\n'
        "0 of 1 conversations are as recorded.\n",
        "",
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
        ("expect: []", "expected: []", "Key 'expect' is missing"),
        ("kind: transcript", "kind: [transcript", "Not valid YAML"),
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


def test_all_transcripts_of_a_folder_are_replayed(replay, tmp_path):
    shutil.copytree(os.path.join(paths.CONFORMANCE, "batch"), tmp_path / "batch")

    assert replay(tmp_path)[1] == "5 of 5 conversations are as recorded.\n"


def test_transcripts_that_need_a_missing_module_are_skipped(tmp_path, capsys):
    path = tmp_path / "made-up.yaml"
    path.write_text(CONVERSATION.replace("opening:", "needs: [no_such_module]\nopening:"))

    assert main.main(["replay", str(path), os.path.join(paths.CONFORMANCE, "tmkb", "no-match.yaml")]) == 0
    message = capsys.readouterr()
    assert "made-up is skipped: it needs no_such_module, which is not installed." in message.err
    assert " conversations are as recorded." in message.out and "[" not in message.out


@pytest.mark.parametrize("url", ["", "127.0.0.1:1", "foo", "http://", "ftp://127.0.0.1/", "http://[", "http://a:b/"])
def test_an_invalid_url_is_a_usage_error(capsys, url):
    with pytest.raises(SystemExit) as exit_:
        main.main(["replay", "--http", url])

    assert exit_.value.code == 2
    assert f"'{url}' is not the URL of an HTTP server" in capsys.readouterr().err


@pytest.mark.needs("httpx2")
def test_a_server_that_refuses_connections_is_named_with_the_cause(capsys):
    assert main.main(["replay", "--http", "http://127.0.0.1:1/mcp"]) == 2
    assert capsys.readouterr().err == "tmkb: Cannot reach http://127.0.0.1:1/mcp: Connection refused.\n"


def test_http_without_the_extra_names_the_extra(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "tmkb.conformance.http", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)

    assert main.main(["replay", "--http", "http://127.0.0.1:1/mcp"]) == 2
    assert capsys.readouterr().err.startswith("--http: This needs the module httpx2, which is not installed.")

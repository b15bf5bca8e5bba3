"""A server that runs takes what a person changes on disk, when it is good, and says so when it is not."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.process import TIMEOUT, HttpServer, Server
from tests.transport.test_asgi import alone, ask
from tmkb.server import reload

pytestmark = [pytest.mark.process, pytest.mark.needs("watchfiles")]


MOTTO = """
kind: tool
name: motto
description: Says our motto.
provider: script.answer
answer: Deny by default.
input: {type: object}
"""
ERRORS = 'kind: errors\nextends: packaged\nerrors: {{unknown_tool: {{message: "{}"}}}}\n'
PROMISING = "kind: server\nextends: packaged\ncapabilities: {tools: {listChanged: true}}\n"
CHANGED = "notifications/tools/list_changed"
PATIENCE = TIMEOUT / 2
procfs = pytest.mark.skipif(not os.path.isdir("/proc"), reason="children are looked up in /proc")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(("platform", "forks"), [("linux", 1), ("darwin", 0)])
def test_the_watcher_forks_only_where_threads_allow_it(found, monkeypatch, platform, forks):
    outlet, inlet = os.pipe()
    watcher = reload.Watcher(found, False, inlet)
    update = reload.Update([["not_reloaded", {}]])
    forked = []
    real = os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(1) or real())
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(watcher, "_build", lambda selection: update)
    watcher._update()
    handed = os.read(outlet, 100)
    os.close(outlet)
    os.close(inlet)

    assert handed.endswith(update.pack())
    assert len(forked) == forks


class Folder:
    """A folder of schemas that a person edits."""

    def __init__(self, root):
        self.path = root / "edited"
        self.empty = root / "empty"
        self.path.mkdir()
        self.empty.mkdir()

    def write(self, place, text):
        target = self.path / f"{place}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text), encoding="utf-8")

    def remove(self, place):
        (self.path / f"{place}.yaml").unlink()


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def watched(folder, serving=Server):
    """A server of that folder, without a pattern: there is less to check when something changes."""
    return serving("--watch", "--schemas", str(folder.path), "--patterns", str(folder.empty))


@pytest.fixture
def watching(folder):
    with watched(folder) as server:
        assert server.ask("ping")["result"] == {}  # it has begun
        yield server


def until(server, text, count=1):
    """Wait for so many lines of its log that hold ``text``."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if sum(text in line for line in list(server.log)) >= count:
            return
        time.sleep(0.02)
    raise AssertionError((text, server.log))


def eventually(holds):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def children(process):
    with open(f"/proc/{process}/task/{process}/children") as file:
        return file.read().split()


def alive(process):
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as file:
        return ") Z " not in file.read()
    return False


def reloaded(server, count=1):
    until(server, "Schemas and patterns reloaded", count)


def refused(server, name="nope"):
    return server.ask("tools/call", name=name)["error"]["message"]


def test_edits_take_effect_one_after_the_other(folder, watching):
    watching.handshake()
    assert refused(watching) == "Unknown tool: nope"

    folder.write("errors", ERRORS.format("No tool is called {tool}."))
    reloaded(watching)
    assert refused(watching) == "No tool is called nope."

    folder.write("servers/tmkb/tools/tmkb_query", "kind: tool\nextends: packaged\ndescription: Ask.\n")
    reloaded(watching, 2)
    assert [tool["description"] for tool in watching.ask("tools/list")["result"]["tools"]] == ["Ask."]

    folder.write("servers/tmkb/tools/motto", MOTTO)
    reloaded(watching, 3)
    assert [tool["name"] for tool in watching.ask("tools/list")["result"]["tools"]] == ["motto", "tmkb_query"]
    assert watching.ask("tools/call", name="motto")["result"]["content"][0]["text"] == "Deny by default."

    folder.remove("servers/tmkb/tools/motto")
    reloaded(watching, 4)
    assert refused(watching, "motto") == "No tool is called motto."

    assert watching.end() == ([], 0)


def test_a_text_that_an_answer_names(folder, watching):
    watching.handshake()
    text = folder.path / "servers" / "tmkb" / "tools" / "motto.txt"
    text.parent.mkdir(parents=True)
    for count, motto in enumerate(["Deny by default.", "Ask first."], 1):
        text.write_text(motto, encoding="utf-8")
        folder.write("servers/tmkb/tools/motto", MOTTO.replace("Deny by default.", "{$file: motto.txt}"))
        reloaded(watching, count)
        assert watching.ask("tools/call", name="motto")["result"]["content"][0]["text"] == motto


def test_a_transition_and_a_limit(folder, watching):
    folder.write(
        "lifecycle/handshake",
        "kind: lifecycle\nextends: packaged\nstates: {not_initialized: {accepts: {ping: null}}}\n",
    )
    reloaded(watching)
    assert watching.ask("ping")["error"]["message"] == "Server not initialized. Send initialized notification first."

    folder.write("limits", "kind: limits\nextends: packaged\nlimits: {message_bytes: 1000}\n")
    reloaded(watching, 2)
    assert "Limit: 1000 bytes" in watching.ask("ping", x="x" * 1000)["error"]["message"]


def test_a_problem_is_logged_once_and_the_last_valid_version_stays_live(folder, watching):
    watching.handshake()
    folder.write("errors", ERRORS.format("First: {tool}"))
    reloaded(watching)

    folder.write("errors", ERRORS.format("Second: {name}"))
    until(watching, "Schemas and patterns not reloaded")
    assert refused(watching) == "First: nope"
    logged = [line for line in watching.log if "The field 'name' does not exist here" in line]
    assert len(logged) == 1 and "edited/errors.yaml:3:34: " in logged[0]

    folder.write("errors", ERRORS.format("Third: {tool}"))
    reloaded(watching, 2)
    assert refused(watching) == "Third: nope"
    assert sum("Schemas and patterns not reloaded" in line for line in watching.log) == 1


@procfs
def test_the_same_problem_is_not_logged_twice(folder, watching):
    (watcher,) = children(watching.process.pid)
    folder.write("errors", ERRORS.format("Wrong: {name}"))
    until(watching, "Schemas and patterns not reloaded")

    def checked_again():
        folder.write("errors", ERRORS.format("Wrong: {name}"))
        return children(watcher)

    eventually(checked_again)
    eventually(lambda: not children(watcher))
    folder.write("errors", ERRORS.format("Right: {tool}"))
    reloaded(watching)
    assert sum("Schemas and patterns not reloaded" in line for line in watching.log) == 1


def test_a_folder_that_is_removed_and_restored(folder, watching, tmp_path):
    watching.handshake()
    folder.path.rename(tmp_path / "elsewhere")
    until(watching, "does not exist")
    assert refused(watching) == "Unknown tool: nope"

    folder.write("errors", ERRORS.format("Back: {tool}"))
    reloaded(watching)
    assert refused(watching) == "Back: nope"


def test_a_folder_that_is_recreated_at_once(folder, watching):
    watching.handshake()
    for number in (1, 3, 5):  # the new folder often has the inode of the old one
        shutil.rmtree(folder.path)
        folder.write("errors", ERRORS.format(f"Made again {number}: {{tool}}"))
        reloaded(watching, number)
        folder.write("errors", ERRORS.format("Changed: {tool}"))
        reloaded(watching, number + 1)
        assert refused(watching) == "Changed: nope"


def test_patterns_are_reloaded_and_an_invalid_one_rejects_the_reload(patterns, tmp_path):
    source = patterns("acme_auth_026") / "acme_auth_026"
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copytree(source, folder / source.name)
    file = folder / source.name / "pattern.yaml"
    text = file.read_text()
    with Server("--watch", "--patterns", str(folder)) as server:
        server.handshake()
        question = {"context": "role claim in a jwt", "verbosity": "human"}
        before = server.query(**question)
        assert server.query(**question) == before  # kept

        file.write_text(text.replace("name: ", "nam: ", 1))
        until(server, "Schemas and patterns not reloaded")
        assert server.query(**question) == before

        file.write_text(text.replace("\nname: ", "\nname: Really ", 1))
        reloaded(server)
        assert "Really" in server.query(**question)["content"][0]["text"]


def test_clients_with_the_capability_are_notified_of_changed_lists(folder):
    folder.write("servers/tmkb/server", PROMISING)
    with watched(folder) as server:
        server.handshake()
        folder.write("errors", ERRORS.format("No {tool}"))  # which is in no list
        reloaded(server)
        folder.write("servers/tmkb/tools/motto", MOTTO)

        assert server.read() == {"jsonrpc": "2.0", "method": CHANGED}
        assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == ["motto", "tmkb_query"]


def test_clients_without_the_capability_are_not_notified(folder, watching):
    watching.handshake()
    folder.write("servers/tmkb/server", PROMISING)
    reloaded(watching)
    folder.write("servers/tmkb/tools/motto", MOTTO)
    reloaded(watching, 2)

    assert watching.ask("ping")["result"] == {}


def test_a_client_whose_revision_was_removed_keeps_its_snapshot(folder, watching):
    watching.handshake("2024-11-05")
    folder.write("servers/tmkb/server", 'kind: server\nextends: packaged\nrevisions: ["2025-11-25"]\n')
    folder.write("errors", ERRORS.format("Newer: {tool}"))
    until(watching, "A client stays on the previous configuration")

    assert refused(watching) == "Unknown tool: nope"
    assert watching.query(context="celery task")["isError"] is False


def test_a_running_operation_keeps_its_snapshot(folder):
    tool = """
        kind: tool
        name: patient
        description: Waits for an answer.
        provider: script.steps
        steps:
          - ask:
              as: user
              method: elicitation/create
              params: {{message: Now?, requestedSchema: {{type: object, properties: {{}}}}}}
          - return: {text}
        input: {{type: object}}
        log: {{fields: [], message: "{text} was said"}}
        """
    folder.write("servers/tmkb/tools/patient", tool.format(text="Old"))
    with watched(folder) as server:
        server.ask("initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {}})
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        asked = server.ask("tools/call", "patient", name="patient")
        folder.write("servers/tmkb/tools/patient", tool.format(text="New"))
        reloaded(server)
        assert server.ask("ping", "ping")["id"] == "ping"

        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
        assert server.read()["result"]["content"][0]["text"] == "Old"
        until(server, "[req_id=patient] Old was said")


@pytest.mark.needs("uvicorn")
def test_streams_over_http_are_notified(folder):
    folder.write("servers/tmkb/server", PROMISING)
    with watched(folder, HttpServer) as server:
        body, headers = alone("subscriptions/listen", notifications={"toolsListChanged": True})
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as listener:
            listener.request("POST", "/mcp", body, headers)
            events = (json.loads(line[6:]) for line in listener.getresponse() if line.startswith(b"data: {"))
            assert next(events)["method"] == "notifications/subscriptions/acknowledged"
            folder.write("servers/tmkb/server", PROMISING + 'version: "2"\n')  # which each result names, in `_meta`
            reloaded(server)
            folder.write("servers/tmkb/tools/motto", MOTTO)
            assert next(events)["method"] == CHANGED
            names = [tool["name"] for tool in ask(server, "tools/list")[1]["result"]["tools"]]
            assert names == ["motto", "tmkb_query"]
            assert server.end() == 0
            assert "result" in next(events)  # and nothing before it


def test_without_watchfiles_the_error_names_the_extra():
    hidden = "import sys; sys.modules['watchfiles'] = None; from tmkb.cli import main; main.main(['serve', '--watch'])"
    done = subprocess.run([sys.executable, "-c", hidden], input=b"", capture_output=True, timeout=TIMEOUT, check=False)

    assert b"-m pip install -e" in done.stderr and b"[watch]" in done.stderr


@procfs
@pytest.mark.parametrize("go", [Server.end, lambda server: server.process.kill()], ids=["ends", "is killed"])
def test_watcher_and_builds_end_with_the_server(folder, watching, go):
    (watcher,) = children(watching.process.pid)
    folder.write("errors", ERRORS.format("Checked when the server goes: {tool}"))
    eventually(lambda: children(watcher))
    checking = children(watcher)
    go(watching)
    watching.wait()

    eventually(lambda: not any(alive(process) for process in [watcher, *checking]))

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

from tests.support.process import SERVE, TIMEOUT, HttpServer, Server
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
    forked = []
    real = os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(1) or real())
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(watcher, "_made", lambda: (False, b"[]"))
    watcher._check()
    handed = os.read(outlet, 100)
    os.close(outlet)
    os.close(inlet)

    assert handed.endswith(b"[]")
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


def taken(server, count=1):
    until(server, "is served from now on", count)


def refused(server, name="nope"):
    return server.ask("tools/call", name=name)["error"]["message"]


def test_edits_take_effect_one_after_the_other(folder, watching):
    watching.handshake()
    assert refused(watching) == "Unknown tool: nope"

    folder.write("errors", ERRORS.format("No tool is called {tool}."))
    taken(watching)
    assert refused(watching) == "No tool is called nope."

    folder.write("servers/tmkb/tools/tmkb_query", "kind: tool\nextends: packaged\ndescription: Ask.\n")
    taken(watching, 2)
    assert [tool["description"] for tool in watching.ask("tools/list")["result"]["tools"]] == ["Ask."]

    folder.write("servers/tmkb/tools/motto", MOTTO)
    taken(watching, 3)
    assert [tool["name"] for tool in watching.ask("tools/list")["result"]["tools"]] == ["motto", "tmkb_query"]
    assert watching.ask("tools/call", name="motto")["result"]["content"][0]["text"] == "Deny by default."

    folder.remove("servers/tmkb/tools/motto")
    taken(watching, 4)
    assert refused(watching, "motto") == "No tool is called motto."

    assert watching.end() == ([], 0)


def test_a_transition_and_a_limit(folder, watching):
    folder.write(
        "lifecycle/handshake",
        "kind: lifecycle\nextends: packaged\nstates: {not_initialized: {accepts: {ping: null}}}\n",
    )
    taken(watching)
    assert watching.ask("ping")["error"]["message"] == "Server not initialized. Send initialized notification first."

    folder.write("limits", "kind: limits\nextends: packaged\nlimits: {message_bytes: 1000}\n")
    taken(watching, 2)
    assert "Limit: 1000 bytes" in watching.ask("ping", x="x" * 1000)["error"]["message"]


def test_what_is_broken_is_told_once_and_the_old_is_served_until_it_is_mended(folder, watching):
    watching.handshake()
    folder.write("errors", ERRORS.format("First: {tool}"))
    taken(watching)

    folder.write("errors", ERRORS.format("Second: {name}"))
    until(watching, "is not served")
    assert refused(watching) == "First: nope"
    told = [line for line in watching.log if "The field 'name' is not supplied here" in line]
    assert len(told) == 1 and "edited/errors.yaml:3:34: " in told[0]

    folder.write("errors", ERRORS.format("Third: {tool}"))
    taken(watching, 2)
    assert refused(watching) == "Third: nope"
    assert sum("is not served" in line for line in watching.log) == 1


@procfs
def test_the_same_mistake_again_is_not_told_again(folder, watching):
    (watcher,) = children(watching.process.pid)
    folder.write("errors", ERRORS.format("Wrong: {name}"))
    until(watching, "is not served")

    def checked_again():
        folder.write("errors", ERRORS.format("Wrong: {name}"))
        return children(watcher)

    eventually(checked_again)
    eventually(lambda: not children(watcher))
    folder.write("errors", ERRORS.format("Right: {tool}"))
    taken(watching)
    assert sum("is not served" in line for line in watching.log) == 1


def test_a_folder_that_goes_and_comes_back(folder, watching, tmp_path):
    watching.handshake()
    folder.path.rename(tmp_path / "elsewhere")
    until(watching, "There is no folder")
    assert refused(watching) == "Unknown tool: nope"

    folder.write("errors", ERRORS.format("Back: {tool}"))
    taken(watching)
    assert refused(watching) == "Back: nope"


def test_a_folder_that_is_made_again_at_once(folder, watching):
    watching.handshake()
    for number in (1, 3, 5):  # the new folder often has the inode of the old one
        shutil.rmtree(folder.path)
        folder.write("errors", ERRORS.format(f"Made again {number}: {{tool}}"))
        taken(watching, number)
        folder.write("errors", ERRORS.format("Changed: {tool}"))
        taken(watching, number + 1)
        assert refused(watching) == "Changed: nope"


def test_patterns_are_read_anew_and_one_that_is_broken_is_not_left_out(patterns, tmp_path):
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
        until(server, "is not served")
        assert server.query(**question) == before

        file.write_text(text.replace("\nname: ", "\nname: Really ", 1))
        taken(server)
        assert "Really" in server.query(**question)["content"][0]["text"]


def test_clients_that_were_promised_it_hear_that_a_list_has_changed(folder):
    folder.write("servers/tmkb/server", PROMISING)
    with watched(folder) as server:
        server.handshake()
        folder.write("errors", ERRORS.format("No {tool}"))  # which is in no list
        taken(server)
        folder.write("servers/tmkb/tools/motto", MOTTO)

        assert server.read() == {"jsonrpc": "2.0", "method": CHANGED}
        assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == ["motto", "tmkb_query"]


def test_clients_that_were_not_promised_it_do_not(folder, watching):
    watching.handshake()
    folder.write("servers/tmkb/server", PROMISING)
    taken(watching)
    folder.write("servers/tmkb/tools/motto", MOTTO)
    taken(watching, 2)

    assert watching.ask("ping")["result"] == {}


def test_a_client_whose_revision_is_gone_keeps_all_it_had(folder, watching):
    watching.handshake("2024-11-05")
    folder.write("servers/tmkb/server", 'kind: server\nextends: packaged\nrevisions: ["2025-11-25"]\n')
    folder.write("errors", ERRORS.format("Newer: {tool}"))
    until(watching, "A client stays on the previous configuration")

    assert refused(watching) == "Unknown tool: nope"
    assert watching.query(context="celery task")["isError"] is False


def test_an_operation_that_runs_ends_with_what_it_began_with(folder):
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
        taken(server)
        assert server.ask("ping", "ping")["id"] == "ping"

        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
        assert server.read()["result"]["content"][0]["text"] == "Old"
        until(server, "[req_id=patient] Old was said")


@pytest.mark.needs("uvicorn")
def test_over_http_streams_hear_of_it(folder):
    folder.write("servers/tmkb/server", PROMISING)
    with watched(folder, HttpServer) as server:
        body, headers = alone("subscriptions/listen", notifications={"toolsListChanged": True})
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as listener:
            listener.request("POST", "/mcp", body, headers)
            events = (json.loads(line[6:]) for line in listener.getresponse() if line.startswith(b"data: {"))
            assert next(events)["method"] == "notifications/subscriptions/acknowledged"
            folder.write("servers/tmkb/server", PROMISING + 'version: "2"\n')  # which each result names, in `_meta`
            taken(server)
            folder.write("servers/tmkb/tools/motto", MOTTO)
            assert next(events)["method"] == CHANGED
            names = [tool["name"] for tool in ask(server, "tools/list")[1]["result"]["tools"]]
            assert names == ["motto", "tmkb_query"]
            assert server.end() == 0
            assert "result" in next(events)  # and nothing before it


def test_it_watches_alone():
    done = subprocess.run(
        [*SERVE, "--http", "127.0.0.1:0", "--watch", "--workers", "2"],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )

    assert done.returncode == 2
    assert b"--watch cannot be combined with several workers" in done.stderr


def test_without_watchfiles_it_says_what_to_install():
    hidden = "import sys; sys.modules['watchfiles'] = None; from tmkb.cli import main; main.main(['serve', '--watch'])"
    done = subprocess.run([sys.executable, "-c", hidden], input=b"", capture_output=True, timeout=TIMEOUT, check=False)

    assert b"install '.[watch]'" in done.stderr


@procfs
@pytest.mark.parametrize("go", [Server.end, lambda server: server.process.kill()], ids=["ends", "is killed"])
def test_nobody_watches_or_checks_when_the_server_has_gone(folder, watching, go):
    (watcher,) = children(watching.process.pid)
    folder.write("errors", ERRORS.format("Checked when the server goes: {tool}"))
    eventually(lambda: children(watcher))
    checking = children(watcher)
    go(watching)
    watching.wait()

    eventually(lambda: not any(alive(process) for process in [watcher, *checking]))

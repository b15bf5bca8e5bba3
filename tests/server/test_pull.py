"""A server takes what is committed to a Git repository, when it is good, and says so when it is not."""

import contextlib
import http.client
import json
import os
import shutil
import sys

import pytest

from tests.server.test_reload import eventually, until
from tests.support.git import Repository
from tests.support.process import HttpServer, Server
from tests.transport.test_hook import hub
from tmkb.server import reload, repository, selection

FILE = "acme_auth_001/pattern.yaml"
QUESTION = "publish a document in a background job"
SECRET = "s" * 32


class Recorder(reload.Watcher):
    """A watcher that records its updates, and whose builds give what it serves."""

    def __init__(self, found, source):
        super().__init__(found, False, -1)
        self.updates = []
        self.selection = selection.Selection({}, {source.text: source}, {source.text: version(source, "1")})

    def _build_apart(self, _):
        return reload.Update([], {"": b"built"}, bool(self.failures))

    def _send(self, update):
        self.updates.append(([line for line, _ in update.lines], update.failed))


def version(source, digit):
    return repository.Version(source, digit * 40, "2026-01-01T00:00:00Z", "/files")


@pytest.fixture
def source(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return repository.parse("git+https://example.com/patterns#main")


@pytest.fixture
def watcher(found, source, monkeypatch):
    monkeypatch.setattr(reload, "_unpacked", lambda _: {})
    return Recorder(found, source)


def answers(monkeypatch, *versions_or_reasons):
    """Let the next pulls have these results; the list of those that did not happen yet."""
    results = [*versions_or_reasons]

    def fetch(source):
        result = results.pop(0)
        if isinstance(result, str):
            raise repository.failure(source, result)
        return result

    monkeypatch.setattr(repository, "fetch", fetch)
    return results


def test_a_source_that_failed_is_ready_after_an_edit_and_a_pull(watcher, source, monkeypatch):
    answers(monkeypatch, "no route", version(source, "1"))
    watcher._pull(source.text)
    watcher._update()
    watcher._pull(source.text)

    assert watcher.updates == [(["pull_failed"], True), ([], True), (["pulled"], False)]


def test_a_host_that_stays_unreachable_is_one_failure_whatever_the_reasons(watcher, source, monkeypatch):
    answers(monkeypatch, "failed after 21 ms", "failed after 22 ms", version(source, "1"), "failed after 23 ms")
    for _ in range(4):
        watcher._pull(source.text)

    assert watcher.updates == [(["pull_failed"], True), (["pulled"], False), (["pull_failed"], True)]


def test_a_commit_that_another_process_has_just_pulled_is_not_pulled_again(watcher, source, monkeypatch):
    """Unless a webhook asks. What is taken from the other process does not count as a pull."""
    accepted = []
    pulls = answers(monkeypatch, version(source, "1"), version(source, "1"))
    monkeypatch.setattr(repository, "accept", accepted.append)
    monkeypatch.setattr(repository, "current", lambda source: version(source, "1"))
    monkeypatch.setattr(repository, "age", lambda _: 29.0)
    watcher.interval = 30.0

    watcher._pull(source.text)
    assert (len(pulls), accepted) == (2, [])
    watcher._pull(source.text, asked=True)
    assert (len(pulls), len(accepted)) == (1, 1)
    monkeypatch.setattr(repository, "age", lambda _: 31.0)
    watcher._pull(source.text)
    assert (len(pulls), len(accepted)) == (0, 2)


@pytest.fixture
def environment(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def origin(patterns, tmp_path):
    made = Repository(tmp_path / "origin")
    shutil.copytree(patterns("acme_auth_001") / "acme_auth_001", made.path / "acme_auth_001")
    made.commit()
    return made


def serving(origin, environment, *options, kind=Server):
    return kind("--server", "tmkb-full", "--patterns", origin.source(), *options, env=environment)


def answer(server):
    """The severity in an answer, and the commit that it was made from."""
    result = server.query(context=QUESTION)
    (version,) = result["_meta"]["tmkb/patterns"]["sources"]
    return json.loads(result["content"][0]["text"])["patterns"][0]["severity"], version["commit"]


@pytest.mark.process
def test_what_is_pushed_is_served_if_it_has_no_problems(origin, environment):
    first = origin.git("rev-parse", "HEAD")
    with serving(origin, environment, "--pull", "0.2") as server:
        assert server.handshake()["serverInfo"]["version"] == f"0.1.0+{first[:7]}"
        assert answer(server) == ("high", first)

        second = origin.replace(FILE, "severity: high", "severity: critical")
        until(server, f"Pulled {origin.source()}: commit {second[:7]}")
        assert answer(server) == ("critical", second)

        broken = origin.replace(FILE, "severity: critical", "severity: enormous")
        until(server, f"stay at commit {second[:7]} of")
        until(server, f"[WARNING] {origin.source()}/{FILE}:12:11: ")
        assert any(f"because commit {broken[:7]} has problems" in line for line in server.log)
        assert answer(server) == ("critical", second)

        origin.git("reset", "--quiet", "--hard", first)
        third = origin.replace(FILE, "severity: high", "severity: low")  # a forced push
        until(server, f"Pulled {origin.source()}: commit {third[:7]}")
        assert answer(server) == ("low", third)

        origin.git("branch", "--move", "main", "other")
        until(server, "Cannot pull: the repository has no branch and no tag main.")
        assert answer(server) == ("low", third)
        origin.git("branch", "--move", "other", "main")
        until(server, f"Pulled {origin.source()}: commit {third[:7]}", 2)
        assert sum("Cannot pull" in line for line in server.log) == 1


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="a thread pulls")
@pytest.mark.parametrize("watching", [[], ["--watch"]])
def test_no_git_command_and_no_folder_of_one_outlives_the_server(origin, environment, tmp_path, watching):
    programs, started = tmp_path / "programs", tmp_path / "started"
    with serving(origin, environment) as server:
        server.handshake()
        server.end()
    programs.mkdir()
    script = f"#!/bin/sh\necho $$ >{started}.new; mv {started}.new {started}; exec sleep 5\n"
    (programs / "git").write_text(script)
    (programs / "git").chmod(0o755)
    slow = environment | {"PATH": f"{programs}:{os.environ['PATH']}"}
    with serving(origin, slow, "--pull", "0.2", *watching) as server:
        server.handshake()
        eventually(started.exists)
        server.end()

    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    assert [*tmp_path.glob("cache/**/tmp-*")] == []


@pytest.mark.process
def test_the_last_good_version_survives_a_restart(origin, environment):
    good = origin.git("rev-parse", "HEAD")
    with serving(origin, environment) as server:
        server.handshake()
        assert answer(server) == ("high", good)
        server.end()
    origin.replace(FILE, "severity: high", "severity: enormous")
    with serving(origin, environment, "--pull", "0") as server:
        server.handshake()
        assert answer(server) == ("high", good)
        assert any("has problems" in line for line in server.log)
        server.end()
    shutil.rmtree(origin.path)
    with serving(origin, environment, "--pull", "0.2") as server:
        server.handshake()
        assert answer(server) == ("high", good)
        until(server, f"Patterns of {origin.source()} stay at commit {good[:7]} of")
        server.end()


@pytest.mark.process
def test_a_source_that_was_never_pulled_must_exist(origin, environment):
    shutil.rmtree(origin.path)
    with serving(origin, environment) as server:
        assert server.end() == ([], 2)
        assert server.log[0].startswith(f"{origin.source()}: Cannot pull: ")


def post(server, body=b"{}", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", "/hooks/patterns", body, headers or {})
        return connection.getresponse().status


@pytest.mark.process
def test_a_webhook_with_the_right_signature_pulls(origin, environment):
    with serving(origin, environment | {"TMKB_WEBHOOK_SECRET": SECRET}, "--pull", "0", kind=HttpServer) as server:
        commit = origin.replace(FILE, "severity: high", "severity: low")

        assert post(server) == 401
        assert post(server, headers=hub(b"{}", "t" * 32)) == 401
        assert post(server, b"{} ", hub(b"{}", SECRET)) == 401
        assert not any("A webhook has asked" in line for line in server.log)
        assert post(server, headers=hub(b"{}", SECRET)) == 202
        until(server, f"Pulled {origin.source()}: commit {commit[:7]}")
    with serving(origin, environment, "--pull", "0", kind=HttpServer) as server:
        assert post(server, headers=hub(b"{}", SECRET)) == 404

"""Views: each caller gets answers from the patterns of its view, and all views reload together."""

import json
import os
import shutil
import time

import pytest

from tests.support.git import Repository
from tests.support.process import TIMEOUT
from tmkb.protocol.caller import Caller
from tmkb.server import reload
from tmkb.server.log import Log
from tmkb.server.server import Server

QUESTION = "publish a document in a background job"


@pytest.fixture
def severities(patterns, tmp_path):
    """Make a folder with one pattern, whose severity is the given one."""

    original = patterns("acme_auth_001")

    def make(severity):
        folder = shutil.copytree(original, tmp_path / severity)
        change(folder, severity)
        return folder

    return make


def change(folder, severity, before="high"):
    path = folder / "acme_auth_001" / "pattern.yaml"
    path.write_text(path.read_text().replace(f"severity: {before}", f"severity: {severity}"))


def runtime_of(server):
    return server.runtime(Log(server.spec["server"]["log"], "error"))


def connect(runtime, view=""):
    """A connection after the handshake; a function that asks for the severity in an answer."""
    connection = runtime.connect(caller=Caller(principal="alice", view=view))

    def send(method, **params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sent = runtime.handle(connection, json.dumps(message).encode())
        return json.loads(sent[0].message)["result"]

    def ask():
        result = send("tools/call", name="tmkb_query", arguments={"context": QUESTION})
        return json.loads(result["content"][0]["text"])["patterns"][0]["severity"]

    send("initialize", protocolVersion="2025-11-25", capabilities={})
    runtime.handle(connection, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    return ask


def test_a_caller_gets_the_patterns_of_its_view(severities):
    server = Server.load(patterns=[severities("low")], views={"team": [severities("critical")]}, caching=False)
    runtime = runtime_of(server)
    everyone, team = connect(runtime), connect(runtime, "team")

    assert [everyone(), team(), everyone(), team()] == ["low", "critical", "low", "critical"]
    assert [
        server.spec["server"]["cache"]["cacheScope"],
        server.views["team"].spec["server"]["cache"]["cacheScope"],
    ] == [
        "private",
        "private",
    ]
    with pytest.raises(KeyError):
        runtime.connect(caller=Caller(view="nobody"))


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_all_views_take_a_commit_together(severities, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    origin = Repository(tmp_path / "origin")
    shutil.copytree(severities("high") / "acme_auth_001", origin.path / "acme_auth_001")
    origin.commit()
    source, other = origin.source(), severities("low")
    server = Server.load(patterns=[source], views={"team": [source], "other": [other]})
    runtime = runtime_of(server)
    spec, provider, views = server.snapshots()
    reread = views | {"late": views["other"]}  # from an access file that was read again meanwhile
    runtime.replace(spec, provider, reread)
    callers = [connect(runtime, view) for view in ("", "team", "other", "late")]
    assert [ask() for ask in callers] == ["high", "high", "low", "low"]

    reloader = reload.Reloader(runtime, server, time.time(), True, watching=False, interval=0.1)
    try:
        change(origin.path, "critical")
        origin.commit()
        deadline = time.monotonic() + TIMEOUT
        before, after = ("high", "high", "low", "low"), ("critical", "critical", "low", "low")
        answers = {before}
        while after not in answers and time.monotonic() < deadline:
            reloader.feed(os.read(reloader.fd, 65536))
            answers.add(tuple(ask() for ask in callers))
    finally:
        reloader.close()

    assert answers == {before, after}

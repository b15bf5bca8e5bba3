"""Searches among files as a client of SysMCP sees them: envelopes, and nothing of this machine in them."""

import json
import os

import pytest

from tests.sysmcp.trees import plant
from tmkb.sysmcp.files import beneath

pytestmark = pytest.mark.skipif(not beneath.IS_SUPPORTED, reason="files are served on Linux only")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "docs"
    plant(folder, "a.txt", b"\xff.txt", "b\nc.txt")
    plant(folder.parent, "outside")
    return folder


@pytest.fixture(scope="module")
def call(runtimes, root):
    """Call a tool; the result, and the bytes that were sent."""
    config = root.parent / "config.yaml"
    config.write_text("kind: config\nproviders: {files: {roots: {docs: docs}}}\n", encoding="utf-8")
    runtime = runtimes("sysmcp", str(config))
    connection = runtime.connect()

    def send(method, **params):
        line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sent = runtime.handle(connection, json.dumps(line).encode())
        while not sent:
            sent = runtime.work()
        return json.loads(sent[0].message)["result"], sent[0].message

    send("initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo={"name": "test"})
    return lambda tool, **arguments: send("tools/call", name=tool, arguments=arguments)


def test_every_returned_path_is_a_valid_argument(call):
    result, _ = call("fs_search", pattern="*.txt")
    paths = [file["path"] for file in result["data"]["files"]]

    assert result["success"] and not result["isError"]
    assert paths == ["a.txt", r"b\x0ac.txt", r"\xff.txt"]
    for path in paths:
        assert call("fs_stat", path=path)[0]["data"]["path"] == path


def test_the_cursor_of_a_long_path_is_taken_back(call, root):
    def make(folder, left):
        os.mkdir('"' * 250, dir_fd=folder)
        inner = os.open('"' * 250, os.O_RDONLY, dir_fd=folder)
        if left:
            make(inner, left - 1)
        os.close(inner)

    (root / "deep").mkdir()
    folder = os.open(root / "deep", os.O_RDONLY)
    make(folder, 16)
    os.close(folder)
    found, cursor = [], {}
    while cursor is not None:
        data = call("fs_search", path="deep", pattern="*", type="dir", limit=1, **cursor)[0]["data"]
        found += data["files"]
        cursor = {"cursor": data["nextCursor"]} if "nextCursor" in data else None

    assert len(found) == 17


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "reason"),
    [
        ("fs_stat", {"path": "../outside"}, "ToolExecutionError", "NotPermitted"),
        ("fs_stat", {"path": "none"}, "ToolExecutionError", "NotFound"),
        ("fs_stat", {"path": "a//b"}, "ValidationError", "BadPath"),
        ("fs_stat", {"path": "\ud800"}, "ValidationError", "BadPath"),
        ("fs_stat", {"path": "a", "root": "etc"}, "ToolExecutionError", "NotPermitted"),
        ("fs_stat", {"path": ""}, "InvalidParams", None),
        ("fs_search", {"pattern": "*", "cursor": "x"}, "ValidationError", "BadCursor"),
        ("fs_search", {"pattern": "*", "minSize": 2, "maxSize": 1}, "ValidationError", "EmptyRange"),
        ("fs_search", {"pattern": "*", "modifiedAfter": "x"}, "ValidationError", "BadTime"),
        ("fs_search", {"pattern": "/a"}, "ValidationError", "BadPattern"),
        ("fs_search", {}, "InvalidParams", None),
    ],
)
def test_errors(call, root, tool, arguments, code, reason):
    result, sent = call(tool, **arguments)

    assert (result["success"], result["isError"], result["error"]["code"]) == (False, True, code)
    assert result["error"]["details"].get("reason") == reason
    assert not [word for word in (os.fsencode(root.parent), b"Traceback", b"Errno", b"Error:") if word in sent]


def test_the_response_does_not_reveal_whether_an_outer_file_exists(call):
    sent = {call("fs_stat", path=path)[1] for path in ("../outside", "../nothing", "/etc/passwd", "/none")}

    assert len(sent) == 1

"""The server sysmcp as a process: what its clients see, what its log says, and what it never does."""

import ast
import contextlib
import glob
import json
import os
import subprocess
import sys
import textwrap

import pytest

import tmkb
from tests.support.process import TIMEOUT, Server
from tests.sysmcp import evtxfile
from tmkb.errors import SpecError
from tmkb.schema import load, paths, problems, template
from tmkb.server import sources

FIXTURES = os.path.join(paths.CONFORMANCE, "sysmcp", "fixtures")
CONFIG = os.path.join(FIXTURES, "config.yaml")
SERVICES = glob.glob(os.path.join(paths.SCHEMAS, "servers", "sysmcp", "services", "*.yaml"))
CLIENT = {"clientInfo": {"name": "Claude", "version": "1.0.0"}, "protocolVersion": "2024-11-05"}


@contextlib.contextmanager
def session(*arguments, **more):
    """A server that has shaken hands; `call` gives the result of a tool, `data` that of one that succeeds."""
    with Server("--server", "sysmcp", *arguments, **more) as server:
        server.ask("initialize", "init", **CLIENT)
        yield server


def call(server, tool, **arguments):
    return server.ask("tools/call", "call", name=tool, arguments=arguments)["result"]


def data(server, tool, **arguments):
    result = call(server, tool, **arguments)
    assert result["success"], result
    return result["data"]


def config(folder, text):
    path = folder / "config.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


@pytest.fixture
def machine(tmp_path):
    """A configuration that serves an event log of 2000 records, a corrupt one, a folder and a hive that is no hive."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "System.evtx").write_bytes(evtxfile.file(evtxfile.chunks(evtxfile.events(2000))))
    whole = (tmp_path / "logs" / "System.evtx").read_bytes()
    (tmp_path / "logs" / "Broken.evtx").write_bytes(whole[:4096] + b"\xff" * 70000)
    (tmp_path / "secret-folder").mkdir()
    (tmp_path / "secret-folder" / "a.txt").write_text("a")
    (tmp_path / "broken.hive").write_bytes(b"regf" + b"\0" * 9000)
    (tmp_path / "gone.hive").touch()
    return config(
        tmp_path,
        r"""
        kind: config
        providers:
          eventlog: {sources: [{kind: evtx, folder: logs}]}
          files: {roots: {docs: secret-folder}}
          hives: {mounts: {'HKLM\SYSTEM': broken.hive, 'HKLM\SOFTWARE': gone.hive}}
        """,
    )


@pytest.mark.process
def test_a_page_of_many(machine):
    with session("--config", machine) as server:
        result = call(server, "eventlog_query", logName="System", limit=100)
        entries, following = result["data"]["entries"], {"offset": 0}
        seen = []
        while following:
            page = data(server, "eventlog_query", logName="System", limit=300, **following)
            seen += page["entries"]
            following = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

    assert (result["success"], result["isError"]) == (True, False)
    assert {key: result["data"][key] for key in ("page", "pageSize", "nextOffset", "totalCount")} == {
        "page": 1, "pageSize": 100, "nextOffset": 100, "totalCount": 2000,
    }  # fmt: skip
    assert {"id", "logName", "level", "source", "eventId", "message", "timestamp"} <= set(entries[0])
    assert json.loads(result["content"][0]["text"]) == {"success": True, "data": result["data"]}
    assert [entry["id"] for entry in seen] == [*range(2000, 0, -1)]


@pytest.mark.process
def test_nothing_of_the_machine_is_told(machine, tmp_path):
    with session("--config", machine) as server:
        (tmp_path / "gone.hive").unlink()
        answers = [
            call(server, "eventlog_query", logName="Broken"),
            call(server, "eventlog_query", logName="../System"),
            call(server, "eventlog_list_logs"),
            call(server, "fs_stat", path="../broken.hive"),
            call(server, "fs_stat", path="none"),
            call(server, "fs_stat", path=str(tmp_path)[1:]),
            call(server, "fs_search", pattern="*", root="none"),
            call(server, "fs_search", pattern="*"),
            call(server, "reg_read", path="HKLM\\SYSTEM\\Select"),
            call(server, "reg_read", path="HKLM\\SOFTWARE"),
            call(server, "reg_write", path="HKLM\\SYSTEM\\Select", valueName="x", type="REG_SZ", data="x"),
        ]
        assert server.end()[1] == 0
        log = server.log
    text = json.dumps(answers)

    assert [
        word for word in (str(tmp_path), "secret-folder", "Traceback", "Error:", ".py", "Exception") if word in text
    ] == []
    assert not [line for line in log if "Traceback" in line]
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes.count("ToolExecutionError") >= 8 and "InternalError" not in codes


@pytest.mark.process
def test_what_no_tool_takes_is_refused_before_anything_is_done(machine):
    with session("--config", machine) as server:
        for tool in ("eventlog_query", "eventlog_list_logs", "fs_search", "fs_stat", "reg_read", "reg_write"):
            result = call(server, tool, self="x")
            assert result["error"]["code"] == "InvalidParams", tool


@pytest.mark.process
def test_the_static_profile_sends_nothing_unasked(machine):
    with session("--config", machine) as server:
        for number in range(3):
            server.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
            assert server.read()["id"] == number
        assert server.end() == ([], 0)


@pytest.mark.process
def test_no_services_no_tools(tmp_path):
    with session("--config", config(tmp_path, "kind: config\nwithout: [eventlog, fs, reg]\n")) as server:
        assert server.ask("tools/list")["result"] == {"tools": []}
        assert call(server, "fs_stat", path="x")["error"]["code"] == "ToolNotFound"


@pytest.mark.process
def test_without_a_configuration_it_serves_event_logs_alone():
    with session() as server:
        assert isinstance(data(server, "eventlog_list_logs")["logs"], list)
        assert call(server, "fs_search", pattern="*")["error"]["details"]["reason"] == "NotPermitted"
        assert call(server, "reg_read", path="HKLM\\SYSTEM")["error"]["details"]["reason"] == "NotPermitted"
        server.end()
        said = [line for line in server.log if "Serving" in line]

    assert len(said) == 3
    assert any("no files" in line for line in said) and any("no registry" in line for line in said)


@pytest.mark.process
def test_the_debug_log_has_every_kind_of_line(machine):
    with session("--config", machine, env={"LOG_LEVEL": "debug"}) as server:
        server.ask("tools/list")
        call(server, "fs_stat", path="a.txt")
        call(server, "fs_stat")
        server.end()
        log = "\n".join(server.log)

    for kind in ("message_in", "message_out", "handler", "tools_discovered", "result", "validation_error", "timing"):
        assert f"[DEBUG] [req_id=call] {kind}" in log or f"{kind} " in log, kind


WATCHED = """
import json, os, sys
from tmkb.cli.main import main
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "pty.spawn") \
       or event.startswith("socket."):
        os.write(2, f"FORBIDDEN {event}\\n".encode())
        os._exit(99)
sys.addaudithook(watch)
sys.exit(main(["serve", "--server", "sysmcp", *sys.argv[1:]]))
"""


@pytest.mark.process
def test_no_process_is_started_and_no_socket_opened(machine):
    with session("--config", machine) as server:  # now there is a cache: making one is a process of its own
        server.end()
    with Server("--config", machine, argv=[sys.executable, "-c", WATCHED]) as server:
        server.ask("initialize", "init", **CLIENT)
        data(server, "eventlog_list_logs")
        data(server, "eventlog_query", logName="System", minLevel="ERROR", text="value")
        data(server, "fs_search", pattern="*", content="a")
        data(server, "fs_stat", path="a.txt", hash="sha256")
        call(server, "reg_read", path="HKLM\\SYSTEM")
        call(server, "reg_write", path="HKLM\\SYSTEM", action="createKey")
        with open("/proc/net/tcp") as table:
            inodes = {line.split()[9] for line in table.readlines()[1:]}
        links = [os.readlink(link) for link in glob.glob(f"/proc/{server.process.pid}/fd/*")]
        assert server.end()[1] == 0

    assert not [link for link in links if link.startswith("socket:")] and not inodes & set(links)


@pytest.mark.process
def test_the_watch_would_notice():
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("sys.exit(main", "import subprocess; subprocess.run(['true'])\nsys.exit(main")],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (99, "FORBIDDEN subprocess.Popen\n")


@pytest.mark.parametrize(
    ("settings", "at", "said"),
    [
        ("files: {roots: {a: none}}", "none", "does not exist"),
        ("files: {roots: {a: file}}", "file}", "does not exist"),
        ('files: {roots: {a: "x\\0y"}}', '"x', "does not exist"),
        ("files: {roots: {'': folder}}", "''", "A root has a name"),
        ('files: {audit: "x\\0y"}', '"x', "Cannot append to the log file"),
        ('eventlog: {sources: [{kind: textlog, files: {a: "x\\0y"}}]}', '"x', "is not a valid path"),
        ("files: {audit: none/audit}", "none", "Cannot append to the log file"),
        ("files: {audit: folder}", "folder", "Cannot append to the log file"),
        ("files: {audit: link}", "link", "Cannot append to the log file"),
        ("eventlog: {sources: [{kind: evtx, folder: none}]}", "none", "does not exist"),
        ("hives: {mounts: {'HKLM\\A': none}}", "none", "is not a regular file"),
        ("hives: {mounts: {'HKLM\\A': folder}}", "folder", "is not a regular file"),
        ("hives: {mounts: {'HKLM\\A': link}}", "link", "is not a regular file"),
        ("hives: {mounts: {'HKLM/A': file}}", "'HKLM", "one backslash"),
        ("hives: {mounts: dead}", "dead", "Allowed: live"),
        ("hives: {deny: ['HKLM\\A\\']}", "'HKLM", "one backslash"),
        ("hives: {audit: log, backups: {folder: none, keep: 1}}", "none", "is not a writable folder"),
        ("hives: {audit: log, backups: {folder: folder-link, keep: 1}}", "folder-link", "is not a writable folder"),
        ("hivez: {}", "hivez", "Did you mean 'hives'?"),
    ],
)
def test_a_wrong_setting_is_told_where_it_stands(tmp_path, settings, at, said):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder-link").symlink_to("folder")
    file = config(tmp_path, f"kind: config\nproviders: {{{settings}}}\n")

    with pytest.raises(SpecError) as caught:
        tmkb.Server.load("sysmcp", config=file, caching=False)
    line = problems.line(caught.value.problems[0])
    assert line.startswith(f"{paths.shown(file)}:2:{f'providers: {{{settings}'.index(at) + 1}: ") and said in line


@pytest.mark.process
def test_it_listens_on_this_machine_alone():
    command = [sys.executable, "-m", "tmkb", "serve", "--server", "sysmcp", "--http", "0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)

    assert done.returncode == 2
    assert "can be reached from other machines" in done.stderr


def raised():
    """(error id, its fields) of everything that the providers raise."""
    folders = [os.path.join(paths.ROOT, "tmkb", *below) for below in (("providers", "sysmcp"), ("system", "**"))]
    for file in [file for folder in folders for file in glob.glob(os.path.join(folder, "*.py"), recursive=True)]:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "ToolError"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield node.args[0].value, {keyword.arg for keyword in node.keywords}


@pytest.mark.parametrize(("error", "fields"), sorted({(e, tuple(sorted(f, key=str))) for e, f in raised()}), ids=str)
def test_every_error_is_raised_with_the_fields_that_its_words_ask_for(error, fields):
    found = tmkb.Server.load("sysmcp").spec["revisions"]["2024-11-05"]["errors"][error]
    said = {*template.names(found["message"]), *template.tree_names(found.get("data", {}))}

    assert found["surface"] == "tool" and isinstance(found["code"], str)
    assert (
        said <= set(found.get("fields", [])) <= set(fields) | ({*found.get("fields", [])} if None in fields else set())
    )


def test_no_error_is_kept_that_nobody_raises():
    specs = [load.load(name, [], sources.names()) for name in ("sysmcp", "tmkb")]
    own, general = (spec["revisions"]["2024-11-05"]["errors"] for spec in specs)
    text = ""
    for file in [*glob.glob(os.path.join(paths.ROOT, "tmkb", "**", "*.py"), recursive=True), *SERVICES]:
        with open(file, encoding="utf-8") as source:
            text += source.read()

    assert [id_ for id_ in own.keys() - general.keys() if "keyword" not in own[id_] and id_ not in text] == []

"""The public API: docs/embedding.md runs as it is written, and a provider of another package is served."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

import tmkb
from tests.test_house import ROOT, source
from tmkb.providers.operation import Pause
from tmkb.server.server import Server

EXAMPLE = os.path.join(ROOT, "docs", "examples", "provider")
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def blocks(wanted):
    """The Python of the page's sections, as far as their titles match ``wanted``."""
    page = source(os.path.join(ROOT, "docs", "embedding.md"))
    sections = re.split(r"^## ", page, flags=re.M)[1:]
    chosen = [section for section in sections if re.match(wanted, section)]
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", "\n".join(chosen), re.M | re.S))


def call(connection, number, method, **params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return [json.loads(each) for each in connection.receive(json.dumps(message).encode())]


def opened(server, **options):
    connection = server.connect(**options)
    call(connection, 0, "initialize", **CLIENT)
    connection.receive(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    return connection


def test_the_page_runs(capsys):
    exec(compile(blocks("Load|Query|Talk"), "embedding.md", "exec"), {})

    problem, ids, *code, initialized, listed = capsys.readouterr().out.splitlines()
    assert problem.startswith("--server: There is no server 'no-such-server'.")
    assert ids.startswith("['TMKB-AUTH-")
    assert "current_user.visible_invoices" in "".join(code)
    assert "'serverInfo': {'name': 'tmkb'" in initialized
    assert "tmkb_query" in listed


def test_the_mount_answers():
    pytest.importorskip("starlette", reason="needs starlette")
    names = {}
    exec(compile(blocks("Load|Mount"), "embedding.md", "exec"), names)

    status, _, body = asyncio.run(post(names["app"], "/kb/mcp", host="localhost:8000"))
    assert status == 200
    assert json.loads(body)["result"]["serverInfo"]["name"] == "tmkb"
    assert asyncio.run(post(names["app"], "/kb/mcp", host="evil.example"))[0] == 403
    assert asyncio.run(post(names["app"], "/kb/other", host="localhost"))[0] == 404


async def post(app, path, host):
    """Send ``initialize`` without a server between; return status, headers and body."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}).encode()
    headers = {"host": host, "content-type": "application/json", "accept": "application/json, text/event-stream"}
    headers["content-length"] = str(len(body))
    sent = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }
    incoming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if not incoming:
            await asyncio.Event().wait()
        return incoming.pop()

    async def send(event):
        sent.append(event)

    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(event.get("body", b"") for event in sent[1:])


@pytest.mark.process
def test_importing_it_loads_nothing_else():
    code = "import sys, tmkb; print(tmkb.__version__, [m for m in sys.modules if m.startswith('tmkb.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"{tmkb.__version__} []\n"
    assert {name for name in tmkb.__all__ if not hasattr(tmkb, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'Sever'"):
        tmkb.Sever  # noqa: B018


def test_arguments_of_a_query_are_checked(found):
    with pytest.raises(tmkb.InvalidArguments) as caught:
        found.query(" ", framework="django")

    assert caught.value.sentences == [
        "context must be non-empty",
        "Invalid framework 'django'. Supported frameworks: flask, any",
    ]
    assert found.query("background job", limit=1, verbosity="human")["pattern_count"] == 1
    with pytest.raises(LookupError, match=r"knowledge\.query"):
        tmkb.Server.load("everything").query("background job")


def test_operations_that_take_time_are_continued_by_work():
    connection = opened(tmkb.Server.load("everything"))
    replies = call(connection, 1, "tools/call", name="test_tool_with_progress", arguments={})
    while not replies:
        seconds = connection.due()
        assert seconds is not None
        threading.Event().wait(seconds)
        replies += [json.loads(each) for each in connection.work()]

    assert replies[-1]["id"] == 1
    assert connection.due() is None
    connection.close()


def test_what_one_connection_causes_waits_for_the_other():
    woken = threading.Event()
    server = tmkb.Server.load("everything")
    one, other = opened(server), opened(server, on_output=woken.set)
    state = other._embedding.connections
    assert len(state) == 2
    other._embedding.run(
        one, lambda: other._embedding.runtime.handle(other._state, b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
    )

    assert woken.is_set()
    assert other.due() == 0.0
    assert [json.loads(each)["id"] for each in other.work()] == [7]
    assert other.due() is None
    other.close()
    assert len(state) == 1


def test_threads_may_share_a_server(found):
    connections = [opened(found) for _ in range(4)]
    answers = {}

    def talk(number, connection):
        answers[number] = [call(connection, each, "ping")[0]["id"] for each in range(50)]

    threads = [threading.Thread(target=talk, args=each) for each in enumerate(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert list(answers.values()) == [[*range(50)]] * 4


def test_too_large_and_malformed_messages_are_answered(found):
    connection = found.connect()
    limit = found.spec["server"]["limits"]["message_bytes"]

    assert json.loads(connection.receive(b" " * (limit + 1))[0])["error"]["message"].startswith("Message too large")
    assert json.loads(connection.receive(b"{")[0])["error"]["message"] == "Parse error"


class Slow(tmkb.Provider):
    """A provider of these tests that no package registers."""

    operations: ClassVar = {"nap": ()}

    def nap(self):
        yield Pause(0)
        return "rested"


SERVER = """\
kind: server
name: naps
version: "1"
revisions: ["2025-11-25"]
capabilities: {{tools: {{}}}}
providers: {{slow: {settings}}}
log: {{starting: {{message: "Starting"}}}}
"""
TOOL = "kind: tool\nname: nap\ndescription: Rests.\nprovider: slow.%s\ninput: {type: object}\n"


@pytest.fixture
def naps(overlay):
    """Write a server whose provider has ``settings``, and a tool with ``operation``; gives the folder."""

    def write(settings='{provider: "tests.test_embedding:Slow"}', operation="nap"):
        return overlay(
            servers__naps__server=SERVER.format(settings=settings), servers__naps__tools__nap=TOOL % operation
        )

    return write


NOTING = """\
import tmkb

NOTES = open({path!r}, "a")


class Slow(tmkb.Provider):
    operations = {{"nap": ()}}

    def nap(self):
        NOTES.write("nap\\n")
        return "rested"
"""


@pytest.mark.process
def test_what_a_provider_has_not_flushed_is_written_at_the_end(naps, tmp_path):
    (tmp_path / "noting.py").write_text(NOTING.format(path=str(tmp_path / "notes")))
    folder = naps('{provider: "noting:Slow"}')
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nap", "arguments": {}}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for start in (1, 2):  # the second one from the cache
        done = subprocess.run(
            [sys.executable, "-m", "tmkb", "serve", "--server", "naps", "--schemas", str(folder), "--allow-python"],
            input="".join(json.dumps(each) + "\n" for each in (first, ready, call)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), ROOT])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "rested" in done.stdout, done.stderr
        assert (tmp_path / "notes").read_text() == "nap\n" * start


def refusal(folder, allow_python=True):
    """The first problem of the server ``naps``."""
    with pytest.raises(tmkb.SpecError) as caught:
        Server.load("naps", schemas=[folder], allow_python=allow_python, caching=False)
    return tmkb.describe(caught.value.problems[0]).partition("servers/")[2]


def test_yaml_names_a_class_only_where_python_is_allowed(naps):
    folder = naps()
    assert refusal(folder, allow_python=False) == (
        "naps/server.yaml:6:30: 'tests.test_embedding:Slow' is Python code, which is not allowed here. "
        "Allow it with --allow-python, or install the provider as a package with an entry point."
    )

    connection = opened(Server.load("naps", schemas=[folder], allow_python=True))
    replies = call(connection, 1, "tools/call", name="nap", arguments={})
    while connection.due() is not None:
        replies += map(json.loads, connection.work())
    assert replies[0]["result"]["content"][0]["text"] == "rested"
    assert "not allowed here" in refusal(folder, allow_python=False)  # although the cache holds it


@pytest.mark.parametrize(
    ("settings", "operation", "expected"),
    [
        (
            '{provider: "tests.test_embedding:Slow"}',
            "nup",
            "There is no operation 'slow.nup'. Did you mean 'slow.nap'?",
        ),
        (
            '{provider: "tests.test_embedding:None"}',
            "nap",
            "tests.test_embedding:None is not a subclass of tmkb.Provider",
        ),
        ('{provider: "no_such_module:Slow"}', "nap", "No module named 'no_such_module'"),
        (
            '{provider: "tests.test_embedding:Slow", pace: 1}',
            "nap",
            "The provider 'slow' has no settings, and so no 'pace'.",
        ),
        ("{provider: slow}", "nap", "No module named 'slow'"),
    ],
)
def test_what_is_wrong_with_a_class_is_located(naps, settings, operation, expected):
    assert expected in refusal(naps(settings, operation))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A fresh environment with the wheels of tmkb and of the example; dependencies come from this one."""
    folder = tmp_path_factory.mktemp("provider")
    shutil.copytree(EXAMPLE, folder / "source")
    for where in (ROOT, folder / "source"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
        subprocess.run(build, cwd=where, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages") or [folder / "venv" / "Lib" / "site-packages"]
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*pip, *map(str, (folder / "dist").iterdir())], check=True, capture_output=True)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others) + "\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COVERAGE", "PYTHON"))}

    def run(*words, **options):
        return subprocess.run(
            [str(python), *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, **options
        )

    run.site = site
    return run


LINES = "".join(
    json.dumps(each) + "\n"
    for each in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {
                "jsonrpc": "2.0",
                "id": item,
                "method": "tools/call",
                "params": {"name": "inventory_count", "arguments": {"item": item}},
            }
            for item in ("screw", "nail")
        ),
    )
)
SERVE = ("-m", "tmkb", "serve", "--server", "inventory", "--schemas", os.path.join(EXAMPLE, "schemas"))


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="builds an environment of a POSIX layout")
def test_a_provider_of_another_package_is_served(installed):
    checked = installed("-m", "tmkb", "schema", "check", os.path.join(EXAMPLE, "schemas"))
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout

    for _ in range(2):  # the second start is from the cache
        done = installed(*SERVE, input=LINES)
        answers = {each["id"]: each["result"] for each in map(json.loads, done.stdout.splitlines())}
        assert answers["screw"]["content"][0]["text"] == '{"item": "screw", "count": 400}'
        assert answers["nail"] == {
            "content": [{"type": "text", "text": "There is no item 'nail' in stock"}],
            "isError": True,
        }
        assert "[INFO] [req_id=screw] Counted screw" in done.stderr

    timed = installed("-X", "importtime", *SERVE, input="").stderr
    assert "importlib.metadata" not in timed and "tmkb.server.build" not in timed

    package = installed.site / "tmkb_inventory" / "__init__.py"
    package.write_text(package.read_text().replace('"count": self', '"number": self'))
    assert '\\"number\\": 400' in installed(*SERVE, input=LINES).stdout

    package.write_text("raise OSError('broken')\n")
    done = installed(*SERVE, input=LINES)
    assert done.returncode == 2
    assert "The provider 'inventory' cannot be imported: OSError: broken." in done.stderr
    assert installed("-m", "tmkb", "serve", input="").returncode == 0  # it does not use that provider


@pytest.mark.process
def test_a_start_from_the_cache_looks_up_no_entry_points():
    words = [sys.executable, "-X", "importtime", "-m", "tmkb", "serve"]
    for _ in range(2):
        done = subprocess.run(words, input="", capture_output=True, text=True, check=True)

    assert "importlib.metadata" not in done.stderr
    assert "tmkb.server.build" not in done.stderr

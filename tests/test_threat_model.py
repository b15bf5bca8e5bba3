"""What `docs/threat-model.md` says that TMKB never does: audit events of Python show files, processes and connections."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

# Prints each event of interest as a line of JSON on stderr, and runs the command.
WATCHED = """
import json, os, sys

NAMES = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec",
         "os.posix_spawn", "os.remove", "os.rename", "os.mkdir")

def hook(name, arguments):
    if name in NAMES:
        os.write(2, json.dumps([name, str(arguments)]).encode() + b"\\n")
    elif name == "open" and isinstance(arguments[0], (str, bytes)):
        os.write(2, json.dumps([name, os.path.abspath(os.fsdecode(arguments[0])), arguments[2]]).encode() + b"\\n")

from tmkb.cli import main
sys.addaudithook(hook)
sys.exit(main.main(sys.argv[1:]))
"""
QUESTION = "the secret question about invoices of other tenants"
MESSAGES = [
    {"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "notifications/initialized"},
    {"method": "tools/call", "id": 2, "params": {"name": "tmkb_query", "arguments": {"context": QUESTION}}},
]
EDIT = {
    "cwd": "/project",
    "tool_response": {
        "type": "create",
        "filePath": "/project/a.py",
        "content": "def f(id):\n    return Order.get(id)\n",
    },
}
COMMANDS = {
    "serve": (["serve", "--no-cache"], "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in MESSAGES)),
    "query": (["query", QUESTION], ""),
    "hook": (["review", "--hook"], json.dumps(EDIT)),
    "get": (["get", "7"], ""),
    "validate": (["validate"], ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_starts_nothing_connects_to_nothing_and_leaves_the_project_alone(tmp_path, name):
    words, stdin = COMMANDS[name]
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    (project / "app.py").write_text("secret = 1\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL", "COV"))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", WATCHED, *words],
        input=stdin,
        cwd=project,
        env={**kept, "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    opened = [event for event in events if event[0] == "open"]

    assert done.returncode == 0 and len(opened) > 10, done.stderr
    assert [event for event in opened if event[1].startswith(str(project))] == []
    written = [path for _, path, flags in opened if flags & (os.O_WRONLY | os.O_RDWR)]
    own = (os.devnull, str(cache))
    assert [path for path in written if not path.startswith(own)] == []
    others = [event for event in events if event[0] != "open" and str(cache) not in event[1]]
    assert others == []
    for folder, _, files in os.walk(cache):
        for file in files:
            assert QUESTION.encode() not in (tmp_path / folder / file).read_bytes()
    assert QUESTION not in "".join(line for line in done.stderr.splitlines() if not line.startswith('["'))

"""Ten edits while a server runs: each by hand in a file, and by command, without Python and without a restart."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from tests.support.process import TIMEOUT, HttpServer

pytestmark = [pytest.mark.process, pytest.mark.needs("watchfiles", "uvicorn")]


HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
REVISION = "2025-11-25"


class Edit(NamedTuple):
    """What is asked, what then stands in the answer and did not before (or, ``gone``, the other way round), and how.

    ``files``: the place of each file and its whole text, None where it goes; ``commands``: of `tmkb schema`.
    """

    files: dict
    commands: list
    ask: tuple
    shows: str
    gone: bool = False
    given: dict = {}  # noqa: RUF012 # files that are there before
    within: str = "session"  # that lasts; or "handshake", a new one; or "nothing"


def initialize(revision=REVISION):
    return "initialize", {"protocolVersion": revision, "capabilities": {}}


def call(tool, **arguments):
    return "tools/call", {"name": tool, "arguments": arguments}


SERVER = "servers/everything"
TOOL = "kind: tool\nextends: packaged\n"
MOTTO = """\
kind: prompt
name: motto
description: Our motto.
provider: script.answer
answer: Deny by default.
"""
EDITS = {
    "a tool's description": Edit(
        {f"{SERVER}/tools/greet": TOOL + "description: Says hello.\n"},
        [["set", "greet:description", "Says hello."]],
        ("tools/list", {}),
        '"description":"Says hello."',
    ),
    "a value more in an enum": Edit(
        {
            f"{SERVER}/tools/json_schema_2020_12_tool": TOOL
            + "input: {properties: {contactMethod: {enum: [phone, email, pigeon]}}}\n"
        },
        [["add", "json_schema_2020_12_tool:input.properties.contactMethod.enum", "pigeon"]],
        ("tools/list", {}),
        '["phone","email","pigeon"]',
    ),
    "an optional argument": Edit(
        {
            f"{SERVER}/tools/greet": TOOL
            + 'answer: "{word}, {name}!"\ninput: {properties: {word: {type: string, default: Hello}}}\n'
        },
        [
            ["add", "greet:input.properties.word", "{type: string, default: Hello}"],
            ["set", "greet:answer", "{word}, {name}!"],
        ],
        call("greet", name="Ada", word="Welcome"),
        "Welcome, Ada!",
    ),
    "an error's sentence": Edit(
        {"errors": 'kind: errors\nextends: packaged\nerrors: {unknown_tool: {message: "No {tool} here"}}\n'},
        [["set", "errors:errors.unknown_tool.message", "No {tool} here"]],
        call("nope"),
        "No nope here",
    ),
    "an error's code": Edit(
        {"errors": "kind: errors\nextends: packaged\nerrors:\n  unknown_tool:\n    code: -32001\n"},
        [["set", "errors:errors.unknown_tool.code", "-32001"]],
        call("nope"),
        '"code":-32001',
    ),
    "a transition less": Edit(
        {
            "lifecycle/handshake": "kind: lifecycle\nextends: packaged\nstates: {not_initialized: {accepts: {ping: null}}}\n"
        },
        [["remove", "handshake:states.not_initialized.accepts.ping"]],
        ("ping", {}),
        "Server not initialized",
        within="nothing",
    ),
    "a transition more": Edit(
        {
            "lifecycle/handshake": "kind: lifecycle\nextends: packaged\n"
            "states: {not_initialized: {accepts: {tools/call: not_initialized}}}\n"
        },
        [["add", "handshake:states.not_initialized.accepts.tools/call", "not_initialized"]],
        call("greet", name="Ada"),
        "Hello, Ada!",
        within="nothing",
    ),
    "what is declared": Edit(
        {f"{SERVER}/server": "kind: server\nextends: packaged\ncapabilities: {tools: {listChanged: false}}\n"},
        [["set", "everything:capabilities.tools.listChanged", "false"]],
        initialize(),
        '"tools":{"listChanged":false}',
        within="handshake",
    ),
    "a whole tool": Edit(
        {
            f"{SERVER}/tools/rules": """\
# What the command `new` begins, by hand.
kind: tool
name: rules
description: Our rules.
annotations: {readOnlyHint: true}
provider: script.answer
answer: "{who}: deny by default."
input:
  type: object
  properties: {who: {type: string, description: Whom to greet, minLength: 1}}
  required: [who]
  additionalProperties: false
"""
        },
        [
            ["new", "tool", "rules", "--server", "everything"],
            ["set", "rules:description", "Our rules."],
            ["set", "rules:answer", "{who}: deny by default."],
        ],
        call("rules", who="Ada"),
        "Ada: deny by default.",
    ),
    "a prompt less": Edit(
        {f"{SERVER}/prompts/motto": None},
        [["remove", "motto"]],
        ("prompts/list", {}),
        '"name":"motto"',
        gone=True,
        given={f"{SERVER}/prompts/motto": MOTTO},
    ),
    "a resource more": Edit(
        {
            f"{SERVER}/resources/wiki": """\
kind: resource
name: wiki
title: A name for people
uri: note://wiki
description: Write here what it holds.
mimeType: text/plain
provider: script.answer
answer: Read it first.
"""
        },
        [
            ["new", "resource", "wiki", "--server", "everything"],
            ["set", "wiki:answer", "Read it first."],
        ],
        ("resources/read", {"uri": "note://wiki"}),
        "Read it first.",
    ),
    "a revision more": Edit(
        {
            "protocol/2099-01-01": """\
kind: revision
revision: "2099-01-01"
extends: "2025-11-25"
specification: https://modelcontextprotocol.io/specification/draft
""",
            f"{SERVER}/server": """\
kind: server
extends: packaged
revisions: ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2026-07-28", "2099-01-01"]
""",
        },
        [
            ["new", "revision", "2099-01-01"],
            ["add", "everything:revisions", "2099-01-01"],
        ],
        initialize("2099-01-01"),
        '"protocolVersion":"2099-01-01"',
        within="handshake",
    ),
    "a limit": Edit(
        {"limits": "kind: limits\nextends: packaged\nlimits: {message_bytes: 1000}\n"},
        [["set", "limits:limits.message_bytes", "1000"]],
        call("greet", name="x" * 1000),
        "Message too large. Limit: 1000 bytes",
    ),
    "a line of the log": Edit(
        {"log": "kind: log\nextends: packaged\nlines:\n  called:\n    message: Ran {tool}\n"},
        [["set", "log:lines.called.message", "Ran {tool}"]],
        call("greet", name="Ada"),
        "Ran greet",
        within="log",
    ),
}


class Person:
    """Somebody with a folder of schemas, a server that watches it, and a client of that server."""

    def __init__(self, folder, server):
        self.folder = folder
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        self.named = self._shake_hands()

    def write(self, files):
        """Write, or take away, files by hand."""
        for place, text in files.items():
            file = os.path.join(self.folder, f"{place}.yaml")
            os.makedirs(os.path.dirname(file), exist_ok=True)
            if text is None:
                os.unlink(file)
            else:
                with open(file, "w", encoding="utf-8") as target:
                    target.write(text)

    def run(self, *words):
        """`tmkb schema` as a process of its own."""
        command = [sys.executable, "-m", "tmkb", "schema", *words, "--schemas", self.folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 0, done.stderr

    def undo(self, given):
        """Back to ``given`` alone."""
        for root, _, files in os.walk(self.folder):
            for file in files:
                if os.path.relpath(os.path.join(root, file), self.folder)[:-5] not in given:
                    os.unlink(os.path.join(root, file))
        self.write(given)

    def ask(self, edit):
        """The bytes of the answer, or what has been logged because of the question."""
        method, params = edit.ask
        seen = len(self.server.log)
        _, answer = self._post(method, params, self.named if edit.within in ("session", "log") else {})
        if edit.within != "log":
            return answer
        deadline = time.monotonic() + 1  # `until` asks again
        while not (lines := [line for line in self.server.log[seen:] if "greet" in line]):
            if time.monotonic() > deadline:
                return b""
            time.sleep(0.005)
        return lines[0].encode()

    def until(self, edit, holds):
        """Ask until the answer is as it has to be; the answer."""
        deadline = time.monotonic() + TIMEOUT
        while not holds(answer := self.ask(edit)):
            assert time.monotonic() < deadline, (answer, self.server.log[-5:])
            time.sleep(0.05)  # each question takes the server time that it needs to read the files
        return answer

    def _shake_hands(self):
        headers, _ = self._post(*initialize(), {})
        named = {"Mcp-Session-Id": headers["mcp-session-id"]}
        self._post("notifications/initialized", {}, named, id=None)
        return named

    def _post(self, method, params, headers, id=1):
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        self.connection.request("POST", "/mcp", json.dumps(message), HEADERS | headers)
        with contextlib.closing(self.connection):  # which is opened again when it is needed
            response = self.connection.getresponse()
            return response.headers, response.read()


@pytest.fixture(scope="module")
def person(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("edited"))
    with HttpServer("--watch", "--server", "everything", "--schemas", folder) as server:
        yield Person(folder, server)
        assert not [line for line in server.log if "Traceback" in line]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_by_hand_and_by_command(person, edit):
    def done(answer):
        return (edit.shows in answer.decode()) != edit.gone

    person.write(edit.given)
    before = person.until(edit, lambda answer: not done(answer))
    person.write(edit.files)
    by_hand = person.until(edit, done)
    person.undo(edit.given)
    person.until(edit, before.__eq__)

    for words in edit.commands:
        person.run(*words)
    person.until(edit, by_hand.__eq__)
    person.undo(edit.given)
    person.until(edit, before.__eq__)
    person.undo({})

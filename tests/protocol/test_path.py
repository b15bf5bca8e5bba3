"""The files that a `tools/call` over stdio passes, and the diagrams of both lifecycles, as the documents show them.

To write the diagrams anew: `python tests/protocol/test_path.py`.
"""

import json
import os
import re
import sys

import tmkb
from tmkb.server import log
from tmkb.transport import loop

ROOT = os.path.dirname(os.path.abspath(tmkb.__file__))
DOCUMENT = os.path.join(os.path.dirname(ROOT), "docs", "architecture.md")
MOST = 12
OPERATION = os.path.join("knowledge", "provider.py"), "query"  # what it does with a call is no part of the path


def files(lines):
    """The files of the package that the last of ``lines`` passes from bytes to bytes, in their order."""
    server = tmkb.Server.load("tmkb", patterns=["packaged"])
    with open(os.devnull, "wb") as sink:
        runtime = server.runtime(log.Log(server.spec["server"]["log"], fd=sink.fileno()))
        conversation = loop.Conversation(runtime, None)
        for line in lines[:-1]:
            conversation.feed(line)
            conversation.respond(1 << 20)
        passed, inside = {}, []

        def profile(frame, event, _):
            file = os.path.relpath(frame.f_code.co_filename, ROOT)
            if event == "call" and not inside and not file.startswith(os.pardir) and os.sep in file:
                passed[file.replace(os.sep, "/")] = None
            if (file, frame.f_code.co_name) == OPERATION and event in ("call", "return"):
                inside.append(frame) if event == "call" else inside.pop()

        sys.setprofile(profile)
        try:
            conversation.feed(lines[-1])
            answer = conversation.respond(1 << 20)
        finally:
            sys.setprofile(None)
    assert json.loads(answer)["result"]["isError"] is False
    return list(passed)


def calls():
    """A handshake, a call that loads what the first call needs, and another call."""

    def message(method, id_=None, **params):
        identified = {} if id_ is None else {"id": id_}
        return json.dumps({"jsonrpc": "2.0", **identified, "method": method, "params": params}).encode() + b"\n"

    yield message("initialize", 0, protocolVersion="2025-11-25", capabilities={})
    yield message("notifications/initialized")
    for id_, context in enumerate(("background jobs", "multi-tenant isolation"), 1):
        yield message("tools/call", id_, name="tmkb_query", arguments={"context": context})


def diagram(table):
    """A lifecycle as Mermaid draws it."""
    states = table["states"]
    lines = [f"[*] --> {table['start']}"]
    lines += [
        f"{name} --> {after}: {event}"
        for name, row in states.items()
        for event, after in row.get("accepts", {}).items()
    ]
    for event, after in table.get("events", {}).items():
        lines += [f"{name} --> {after}: {event}" for name in states if name != after]
    lines += [f"{name} --> [*]" for name, row in states.items() if not row.get("accepts")]
    return "```mermaid\nstateDiagram-v2\n" + "".join(f"    {line}\n" for line in lines) + "```\n"


def parts():
    """Name of a generated part → its text."""
    lifecycles = tmkb.Server.load("tmkb", patterns=["packaged"]).spec["lifecycles"]
    return {f"lifecycle {name}": diagram(lifecycles[name]) for name in ("handshake", "request")}


def place(name):
    """Matches a generated part of the document: its two markers, and what is between them."""
    return re.compile(rf"(<!-- generated: {name} -->\n\n?)(.*?)(<!-- end -->)", re.S)


def test_the_document_lists_the_files_that_a_call_passes():
    with open(DOCUMENT, encoding="utf-8") as file:
        section = file.read().partition("## The path of a message")[2].partition("\n## ")[0]

    assert re.findall(r"^\d+\. `(.*?)`", section, re.M) == files([*calls()])


def test_the_document_shows_both_lifecycles():
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()

    made = parts()

    assert {name: place(name).search(text).group(2) for name in made} == made


def test_a_call_passes_few_files():
    assert len(files([*calls()])) <= MOST


if __name__ == "__main__":
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    for name, part in parts().items():
        text = place(name).sub(lambda found, part=part: found[1] + part + found[3], text)
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(text)

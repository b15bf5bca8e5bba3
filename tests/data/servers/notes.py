"""A server of notes over stdio, as an author might write it by hand: no ping, no discovery, newest revision 2025-06-18.

Words of the command line change it: ``renamed`` renames a tool, ``mute`` never answers, ``broken`` writes no JSON,
``choosy`` offers its tools to clients that declare roots.
"""

import json
import sys
import time

TOOLS = [
    {
        "name": "add",
        "title": "Add a note",
        "description": "Adds a note.\nIt is kept until the server ends.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The words of the note"},
                "stars": {"type": "integer"},
                "weight": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
                "pinned": {"type": "boolean"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
                "place": {"type": "object"},
                "colour": {"enum": ["red", "green"]},
            },
            "required": ["text"],
            "$defs": {"tag": {"type": "string"}},
        },
        "outputSchema": {"type": "object", "properties": {"count": {"type": "integer", "description": "How many"}}},
        "annotations": {"destructiveHint": False},
    },
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "Reports progress.", "inputSchema": {"type": "object"}},
    {"name": "show", "description": "Returns an image and a link.", "inputSchema": {"type": "object"}},
    {"name": "sleep", "description": "Never returns.", "inputSchema": {"type": "object"}},
]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "notes", "version": "1.0"},
    "instructions": "Keep notes short.",
}
notes = []


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(id_, name, arguments, params):
    if name == "add":
        notes.append(arguments)
        return text(json.dumps(arguments), structuredContent={"count": len(notes)})
    if name == "fail":
        return text("It \x1b[31mfailed\x1b[0m.", isError=True)
    if name == "ask":
        send(id="q1", method="elicitation/create", params={"message": "Which note?", "requestedSchema": {}})
        answer = json.loads(sys.stdin.readline())
        return text(json.dumps(answer["error"]))
    if name == "wait":
        token = params.get("_meta", {}).get("progressToken")
        for step in (1, 2) if token is not None else ():
            send(method="notifications/progress", params={"progressToken": token, "progress": step, "total": 2})
            time.sleep(0.1)
        return text("Done.")
    if name == "show":
        image = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}
        return {"content": [image, {"type": "resource_link", "uri": "note://1", "name": "first"}]}
    return None


def respond(message):
    method, id_, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        if "choosy" in sys.argv and "roots" not in params["capabilities"]:
            TOOLS.clear()
        return {"result": HELLO}
    if method == "tools/list":
        start = int(params.get("cursor", 0))
        more = {"nextCursor": str(start + 4)} if start + 4 < len(TOOLS) else {}
        return {"result": {"tools": TOOLS[start : start + 4], **more}}
    if method == "tools/call":
        result = call(id_, params["name"], params.get("arguments", {}), params)
        return {} if result is None else {"result": result}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


if "renamed" in sys.argv:
    TOOLS[0]["name"] = "append"
sys.stderr.write("notes: ready\n")
for line in sys.stdin:
    if "broken" in sys.argv:
        sys.stdout.write("Server is listening…\n")
        sys.stdout.flush()
    elif "mute" not in sys.argv:
        received = json.loads(line)
        if "id" in received and (answer := respond(received)):
            send(id=received["id"], **answer)

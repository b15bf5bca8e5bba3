"""The floor: a line in, a line out, with nothing of the protocol but its ids. Runs under ``python -I -S``."""

import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "answer.json"), encoding="utf-8") as file:
    ANSWER = file.read()

for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        result = {"content": [{"type": "text", "text": ANSWER}]} if message["method"] == "tools/call" else {}
        response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
        sys.stdout.buffer.flush()

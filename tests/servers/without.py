"""``without.py TOOL COMMAND…``: the server COMMAND without one tool, as a later release might be."""

import json
import subprocess
import sys
import threading


def main(tool, *command):
    """Pass everything on, but for the tool in lists of tools."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:

        def forward():
            for line in sys.stdin.buffer:
                server.stdin.write(line)
                server.stdin.flush()
            server.stdin.close()

        threading.Thread(target=forward, daemon=True).start()
        for line in server.stdout:
            message = json.loads(line)
            result = message.get("result")
            if isinstance(result, dict) and "tools" in result:
                result["tools"] = [each for each in result["tools"] if each["name"] != tool]
            sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

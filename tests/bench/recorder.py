"""Round trips to a server over stdio: alone, and behind `tmkb record`, in turns within one run.

    python tests/bench/recorder.py [--rounds 10] [--calls 500]

Prints both times, their difference and their ratio. A round trip is two messages. The server answers at once, so that
the ratio is the worst there is.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SERVER = """\
import json, sys
for line in sys.stdin.buffer:
    m = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": m["id"], "result": {"content": [{"type": "text", "text": "x" * 200}]}}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""
SERVE = [sys.executable, "-c", SERVER]


class Client:
    """One process, with a call at a time."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self.reader = self.process.stdout

    def call(self, id):
        """Seconds of one round trip."""
        params = {"name": "x", "arguments": {"text": "some words to send"}}
        line = json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"
        began = time.perf_counter()
        self.process.stdin.write(line)
        answer = b""
        while not answer.endswith(b"\n"):
            answer += os.read(self.reader.fileno(), 1 << 16)
        return time.perf_counter() - began

    def close(self):
        """End the server."""
        self.process.stdin.close()
        self.process.wait()
        self.reader.close()


def measure(rounds, calls):
    """The median seconds of a round trip in each round, by name."""
    took = {"bare": [], "recorded": []}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        record = [sys.executable, "-m", "tmkb", "record", "-o", os.path.join(folder, "a.yaml"), "--", *SERVE]
        clients = {"bare": Client(SERVE), "recorded": Client(record)}
        for client in clients.values():
            opened.callback(client.close)
            for number in range(20):
                client.call(number)
        for _ in range(rounds):
            for name, client in clients.items():
                took[name].append(statistics.median(client.call(n) for n in range(calls)))
    return took


def main():
    """Print one line for each, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=500)
    args = parser.parse_args()
    took = {name: statistics.median(each) for name, each in measure(args.rounds, args.calls).items()}
    for name, seconds in took.items():
        print(f"{name:9} {seconds * 1e6:7.1f} µs a round trip")
    added = (took["recorded"] - took["bare"]) * 1e6 / 2
    print(f"added     {added:7.1f} µs a message; {took['recorded'] / took['bare']:.2f} times the bare server")


if __name__ == "__main__":
    main()

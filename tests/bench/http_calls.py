"""Calls one after the other on one kept-alive HTTP connection, of our server and of the Python SDK's beside it.

    python tests/bench/http_calls.py [--rounds 10] [--calls 100]

The servers take turns within one run. Compare ratios only. The SDK is the package ``mcp`` of this environment.
"""

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COMMANDS = {  # what a port is added to
    "tmkb": lambda port: [sys.executable, "-m", "tmkb", "serve", "--http", f"127.0.0.1:{port}"],
    "python-sdk": lambda port: [sys.executable, os.path.join(HERE, "peers", "mcp_http.py"), str(port)],
}
REVISION = "2025-11-25"
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": REVISION,
}
START = 60  # seconds; bounds a failure, not a measurement


class Client:
    """One connection with one session."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START)
        self.headers = HEADERS
        client = {"name": "bench", "version": "1.0"}
        head, _ = self.send("initialize", 0, protocolVersion=REVISION, capabilities={}, clientInfo=client)
        self.headers = {**HEADERS, "Mcp-Session-Id": head["mcp-session-id"]}
        self.send("notifications/initialized")

    def send(self, method, id=None, **params):
        """Send one message; the headers and the body of the response."""
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = self.connection.getresponse()
        return response.headers, response.read()

    def call(self, id):
        """Seconds that one call takes."""
        began = time.perf_counter()
        _, body = self.send("tools/call", id, name="tmkb_query", arguments={"context": "background job processing"})
        took = time.perf_counter() - began
        if b'"result"' not in body or b'"isError":true' in body:
            raise RuntimeError(f"no result: {body[:500]!r}")
        return took


@contextlib.contextmanager
def running(name):
    """Start a server; its client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(COMMANDS[name](port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Client(reachable(port, process))
    finally:
        process.kill()
        process.wait()


def reachable(port, process):
    """Wait until somebody listens on ``port``."""
    deadline = time.monotonic() + START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return port
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def measure(rounds, calls):
    """Seconds of each call, by server; the first tenth of each turn is left out."""
    with contextlib.ExitStack() as stack:
        clients = {name: stack.enter_context(running(name)) for name in COMMANDS}
        took = {name: [] for name in clients}
        for number in range(rounds):
            for name, client in clients.items():
                took[name] += [client.call(number * calls + each + 1) for each in range(calls)][calls // 10 :]
        for client in clients.values():
            client.connection.close()
    return took


def main():
    """Measure and print; exit status 1 if ours is slower than the SDK's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=100)
    arguments = parser.parse_args()
    took = measure(arguments.rounds, arguments.calls)
    middle = {name: statistics.median(each) for name, each in took.items()}
    for name, each in took.items():
        p95 = statistics.quantiles(each, n=20)[-1]
        rate, ratio = len(each) / sum(each), middle[name] / middle["tmkb"]
        print(
            f"{name:12} {rate:7.0f} calls/s  p50 {middle[name] * 1e3:6.2f} ms  p95 {p95 * 1e3:6.2f} ms  {ratio:5.2f} of ours"
        )
    return 0 if middle["tmkb"] <= middle["python-sdk"] else 1


if __name__ == "__main__":
    sys.exit(main())

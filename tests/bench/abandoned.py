"""Clients over HTTP that open a stream and then only keep their connection: what they cost, and whether others are served.

    python tests/bench/abandoned.py [--streams 5000]

Prints the memory of the server before, during and after, and how long a call takes beside them (the median of 200).
"""

import argparse
import http.client
import json
import re
import resource
import socket
import statistics
import subprocess
import sys
import time

SERVE = [sys.executable, "-m", "tmkb", "serve", "--server", "everything", "--http", "127.0.0.1:0"]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
SAID = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
}


def request(method, **params):
    """The body and the headers of a request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
    return body, {**SAID, "Mcp-Method": method}


def memory(process):
    """What the process holds, in MB."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def call(port):
    """Milliseconds that a call takes, on a connection of its own."""
    body, headers = request("tools/list")
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/mcp", body, headers)
    assert connection.getresponse().read()
    connection.close()
    return (time.perf_counter() - began) * 1000


def opened(port):
    """A connection that has asked for a stream, and the status that it got."""
    body, headers = request("subscriptions/listen", notifications={"toolsListChanged": True})
    lines = [f"{name}: {value}" for name, value in {**headers, "Content-Length": len(body)}.items()]
    peer = socket.create_connection(("127.0.0.1", port), 30)
    peer.sendall("\r\n".join(["POST /mcp HTTP/1.1", "Host: localhost", *lines, "", body]).encode())
    return peer, peer.recv(12)[-3:].decode()


def main():
    """Open them, call beside them, close them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=5000)
    count = parser.parse_args().streams
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 1000), most))
    with subprocess.Popen(SERVE, stderr=subprocess.PIPE, text=True) as process:
        port = int(next(filter(None, (re.search(r":(\d+)/mcp", line) for line in process.stderr)))[1])
        rows = []

        def row(about):
            rows.append((about, memory(process), statistics.median(call(port) for _ in range(200))))

        row("before")
        peers = [opened(port) for _ in range(count)]
        statuses = [status for _, status in peers]
        row("beside them")
        for peer, _ in peers:
            peer.close()
        time.sleep(1)
        row("afterwards")
        process.terminate()
    print(f"{count} streams asked for: {statuses.count('200')} opened, {statuses.count('503')} refused with 503")
    for about, held, took in rows:
        print(f"{about:12} {held:7.1f} MB {took:7.2f} ms")


if __name__ == "__main__":
    main()

"""Calls over HTTP on kept-alive connections: our server beside those of the Python and the TypeScript SDK.

    python tests/bench/http_calls.py [--rounds 5] [--calls 400] [--connections 1 10 100] [--json FILE] [--document]

A connection has a session and makes one call after the other; all connections call at once. The servers take turns,
and answer with JSON instead of a stream, which is the faster form. The peers return a fixed text. Compare ratios only.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import install
import report

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = "tmkb"
REVISION = "2025-11-25"
START = 60  # seconds; bounds a failure, not a measurement
CONNECTIONS = (1, 10, 100)
WARMING = 20  # calls before each turn


class Row(NamedTuple):
    """What was measured on one server with a number of connections in a round; seconds."""

    rate: float
    p50: float
    p95: float


class Client:
    """One connection with one session."""

    def __init__(self, port, reader, writer):
        self.port, self.reader, self.writer = port, reader, writer
        self.session = ""

    @classmethod
    async def open(cls, port):
        """Connect and shake hands."""
        self = cls(port, *await asyncio.open_connection("127.0.0.1", port))
        client = {"name": "bench", "version": "1.0"}
        head, body = await self.send("initialize", 0, protocolVersion=REVISION, capabilities={}, clientInfo=client)
        if "mcp-session-id" not in head:
            raise RuntimeError(f"no session: {head} {body[:500]!r}")
        self.session = f"Mcp-Session-Id: {head['mcp-session-id']}\r\n"
        await self.send("notifications/initialized")
        return self

    async def send(self, method, id=None, **params):
        """Send one message; the headers and the body of the response."""
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"{self.session}Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        return await self._response()

    async def _response(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if headers.get("transfer-encoding") != "chunked":
            return headers, await self.reader.readexactly(int(headers.get("content-length", 0)))
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return headers, body

    async def call(self, id):
        """Seconds that one call takes."""
        began = time.perf_counter()
        _, body = await self.send(
            "tools/call", id, name="tmkb_query", arguments={"context": "background job processing"}
        )
        took = time.perf_counter() - began
        if b'"result"' not in body or b'"isError":true' in body:
            raise RuntimeError(f"no result: {body[:500]!r}")
        return took

    async def calls(self, count):
        """Seconds of each of so many calls, one after the other."""
        return [await self.call(number + 1) for number in range(count)]


def commands():
    """The servers: name → a function of the port that returns the command."""
    peers = os.path.join(install.CACHE, "peers")
    return {
        **here(),
        "python-sdk": lambda port: [install.python("mcp"), os.path.join(peers, "mcp_http.py"), str(port)],
        "ts-sdk": lambda port: [install.node(), os.path.join(peers, "ts_http.mjs"), str(port)],
    }


def here():
    """The servers whose packages are in this environment: ours, and that of the Python SDK."""
    return {
        OURS: lambda port: [sys.executable, "-m", "tmkb", "serve", "--http", f"127.0.0.1:{port}"],
        "python-sdk": lambda port: [sys.executable, os.path.join(HERE, "peers", "mcp_http.py"), str(port)],
    }


@contextlib.contextmanager
def running(command):
    """Start a server; its port, as soon as it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield reachable(port, process)
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


def measure(servers, connections, rounds, calls):
    """The rows of each server (name → command by port) by the number of connections; ``calls``: of all connections."""
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(running(command)) for name, command in servers.items()}
        return {count: asyncio.run(_measure(ports, count, rounds, calls)) for count in connections}


async def _measure(ports, connections, rounds, calls):
    samples = {name: [] for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():  # servers close connections that are idle, so each turn has its own
            first = await Client.open(port)
            await first.calls(WARMING)
            clients = [first, *await asyncio.gather(*(Client.open(port) for _ in range(connections - 1)))]
            began = time.perf_counter()
            parts = await asyncio.gather(*(client.calls(max(1, calls // connections)) for client in clients))
            took = [seconds for part in parts for seconds in part]
            p95 = statistics.quantiles(took, n=20)[-1]
            samples[name].append(Row(len(took) / (time.perf_counter() - began), statistics.median(took), p95))
            for client in clients:
                client.writer.close()
    return samples


def table(measured):
    """The rows as a table, with the ratios to ours (more than 1: worse)."""
    rows = [["server, connections", "calls/s", "p50, ms", "p95, ms", "calls/s / tmkb", "p50 / tmkb", "p95 / tmkb"]]
    for (name, connections), ratios in worse(measured).items():
        row = Row(*map(statistics.median, zip(*measured[connections][name], strict=True)))
        cells = [f"{row.rate:.0f}", f"{row.p50 * 1e3:.2f}", f"{row.p95 * 1e3:.2f}"]
        rows.append([f"{name}, {connections}", *cells, *map(report.number, ratios)])
    return rows


def worse(measured):
    """How many times worse than ours each is: (name, connections) → rate, p50, p95."""
    ratios = rounds(
        measured, lambda ours, theirs: (ours.rate / theirs.rate, theirs.p50 / ours.p50, theirs.p95 / ours.p95)
    )
    return {key: [*map(statistics.median, zip(*each, strict=True))] for key, each in ratios.items()}


def rounds(measured, compared):
    """What ``compared`` returns for our row and that of each server, by server and connections, for each round."""
    return {
        (name, connections): [compared(*pair) for pair in zip(samples[OURS], rows, strict=True)]
        for connections, samples in measured.items()
        for name, rows in samples.items()
    }


def beside_sdk(measured):
    """Our rates and latencies in each round beside those of the Python SDK, more being worse. For compare.py."""
    pairs = rounds(
        measured, lambda ours, theirs: (theirs.rate / ours.rate, ours.p50 / theirs.p50, ours.p95 / theirs.p95)
    )
    return {
        f"http, {connections} connections: {figure}": [ratios[number] for ratios in each]
        for (name, connections), each in pairs.items()
        for number, figure in enumerate(Row._fields)
        if name == "python-sdk"
    }


def main():
    """Measure and print; exit status 1 if a peer is better than ours in any row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="in each round, of all connections")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    parser.add_argument("--json", metavar="FILE", help="write our ratios, for compare.py")
    parser.add_argument("--document", action="store_true", help="write the table of docs/performance.md")
    arguments = parser.parse_args()
    install.install({**os.environ})
    measured = measure(commands(), arguments.connections, arguments.rounds, arguments.calls)
    print(report.table(table(measured), True))
    if arguments.json:
        report.write(arguments.json, beside_sdk(measured))
    if arguments.document:
        report.document("http", report.table(table(measured), True))
    return 0 if all(ratio >= 1 for ratios in worse(measured).values() for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())

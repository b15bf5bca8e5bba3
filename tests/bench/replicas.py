"""One server for many clients: throughput of several processes, latency at 100 connections, growth with sessions and streams.

    python tests/bench/replicas.py [--rounds 3] [--seconds 3] [--document]

`wrk` makes calls on 100 kept-alive connections, to 1, 2 and 4 processes of ours and to the server of the Python SDK in turn,
without sessions (2026-07-28) and with one session for each connection (2025-11-25). Then the latency and the memory of one
server are measured with more and more sessions, and with more and more clients that listen. Compare ratios only. Needs the
Debian package wrk, and redis-server for sessions on several processes.
"""

import argparse
import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import growth
import http_calls
import report

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = "python-sdk"
CONNECTIONS = 100
PROCESSES = (1, 2, 4)
SIZES = [50, 100, 200, 400, 800]  # of sessions, and of listening clients
PRINCIPAL = 200  # sessions that one principal may have
PLOTS = {name: os.path.join(report.ROOT, "docs", "images", f"{name}.svg") for name in ("latency", "memory")}
WATCHED = "test://watched-resource"


class Row(NamedTuple):
    """What wrk measured on one server in a round; seconds. ``refused``: the part of the calls that got 503."""

    rate: float
    p50: float
    p95: float
    p99: float
    refused: float


class Client(http_calls.Client):
    """A connection with a session, for one of several principals."""

    @classmethod
    async def open(cls, port, token=""):
        """Connect and shake hands."""
        self = cls(port, *await asyncio.open_connection("127.0.0.1", port))
        self.session = f"Authorization: Bearer {token}\r\n" if token else ""
        client = {"name": "bench", "version": "1.0"}
        head, body = await self.send(
            "initialize", 0, protocolVersion=http_calls.REVISION, capabilities={}, clientInfo=client
        )
        if "mcp-session-id" not in head:
            raise RuntimeError(f"no session: {head} {body[:500]!r}")
        self.id = head["mcp-session-id"]
        self.session += f"Mcp-Session-Id: {self.id}\r\n"
        await self.send("notifications/initialized")
        return self

    async def listen(self):
        """Open the stream of the session on this connection."""
        head = f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: text/event-stream\r\n"
        self.writer.write((head + self.session + "\r\n").encode())
        await self.reader.readuntil(b"\r\n\r\n")

    async def hear(self, text):
        """Read until ``text`` arrives."""
        await self.reader.readuntil(text)


# --- Throughput and latency


def servers(redis):
    """Return the servers: name → a function of the port that returns the command."""
    ours, cluster = http_calls.here()[http_calls.OURS], ["--cluster", redis] if redis else []

    def several(count):
        return lambda port: [*ours(port), *(["--workers", str(count), *cluster] if count > 1 else [])]

    return {
        **{f"tmkb, {count} process{'es' if count > 1 else ''}": several(count) for count in PROCESSES},
        PEER: http_calls.here()[PEER],
    }


def load(port, sessions, seconds):
    """Return what wrk measures. ``sessions``: the file with session ids, or "-"."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", os.path.join(HERE, "calls.lua")]
    command += [f"http://127.0.0.1:{port}", "--", sessions]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^figures(( \d+){6})$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"wrk: {done.stdout}{done.stderr[:500]}")
    requests, took, *latencies, refused = (int(each) for each in found[1].split())
    return Row((requests - refused) / took * 1e6, *(each / 1e6 for each in latencies), refused / requests)


async def open_sessions(port):
    """Open a session for each connection, and return their ids."""
    clients = [await Client.open(port) for _ in range(CONNECTIONS)]
    for client in clients:
        client.writer.close()
    return [client.id for client in clients]


def measure(commands, rounds, seconds, sessions):
    """Return the rows of each server, which take turns. ``sessions``: whether each connection has a session."""
    samples = {name: [] for name in commands}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        files = {}
        for name, command in commands.items():
            port = stack.enter_context(http_calls.running(command))
            files[name] = port, "-"
            if sessions:
                path = os.path.join(folder, str(port))
                with open(path, "w", encoding="ascii") as file:
                    file.writelines(f"{id}\n" for id in asyncio.run(open_sessions(port)))
                files[name] = port, path
        for _ in range(rounds):
            for name, (port, path) in files.items():
                samples[name].append(load(port, path, seconds))
    return samples


def table(measured):
    """Return the rows as a table, with the ratios to the server of the Python SDK (more than 1: ours is better)."""
    rows = [["server", "calls/s", "p50, ms", "p95, ms", "p99, ms", "503", "calls/s", "p50", "p95", "p99"]]
    for era, samples in measured.items():
        for name, taken in samples.items():
            row = Row(*map(statistics.median, zip(*taken, strict=True)))
            pairs = [*zip(taken, samples[PEER], strict=True)]
            times = [statistics.median(ours.rate / peer.rate for ours, peer in pairs)]
            times += [statistics.median(peer[n] / ours[n] for ours, peer in pairs) for n in (1, 2, 3)]
            cells = [f"{row.rate:.0f}", *(f"{seconds * 1e3:.1f}" for seconds in row[1:4]), f"{row.refused:.0%}"]
            cells += map(report.number, times)
            rows.append([f"{name}, {era}", *cells])
    return rows


@contextlib.contextmanager
def redis():
    """Start Redis, and yield its URL; None if it is not installed."""
    if shutil.which("redis-server") is None:
        yield None
        return
    with http_calls.running(lambda port: ["redis-server", "--port", str(port), "--save", ""]) as port:
        yield f"redis://127.0.0.1:{port}"


# --- Growth


@contextlib.contextmanager
def observed():
    """Start the server `everything` for several principals; yield its port, its process id and their tokens."""
    tokens = [secrets.token_hex(16) for _ in range(SIZES[-1] // PRINCIPAL + 1)]
    with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file, socket.create_server(("127.0.0.1", 0)) as free:
        file.writelines(hashlib.sha256(token.encode()).hexdigest() + "\n" for token in tokens)
        file.flush()
        port = free.getsockname()[1]
        free.close()
        command = [*http_calls.here()[http_calls.OURS](port), "--server", "everything", "--auth-tokens", file.name]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            http_calls.reachable(port, process)
            yield port, process.pid, tokens
        finally:
            process.kill()
            process.wait()


def memory(pid):
    """Return what a process holds, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) * 1024


async def latency(client):
    """Return the median time of a call, in seconds."""
    took = []
    for number in range(50):
        began = time.perf_counter()
        await client.send("tools/call", number + 10, name="greet", arguments={"name": "Ann"})
        took.append(time.perf_counter() - began)
    return statistics.median(took)


async def notified(caller, listeners):
    """Return the time until every listener hears of a change, in seconds: the median of some."""
    took = []
    for number in range(5):
        began = time.perf_counter()
        await caller.send("tools/call", number + 100, name="test_trigger_resource_change", arguments={})
        await asyncio.gather(*(listener.hear(b"resources/updated") for listener in listeners))
        took.append(time.perf_counter() - began)
    return statistics.median(took)


async def grow(port, pid, tokens, listening):
    """Return latencies and memory (bytes beyond the empty server) with as many sessions as `SIZES` says.

    ``listening``: each has a stream and a subscription, and the latency is that of a notification of all.
    """
    await latency(await Client.open(port, tokens[-1]))
    empty, clients, latencies, held = memory(pid), [], [], []
    for size in SIZES:
        while len(clients) < size:
            client = await Client.open(port, tokens[len(clients) // PRINCIPAL])
            if listening:
                await client.send("resources/subscribe", 1, uri=WATCHED)
                await client.listen()
            else:
                client.writer.close()
            clients.append(client)
        caller = await Client.open(port, tokens[-1])  # the server closes connections that are idle
        latencies.append(await (notified(caller, clients) if listening else latency(caller)))
        caller.writer.close()
        held.append(max(1, memory(pid) - empty))
    return latencies, held


def growths():
    """Return latencies in seconds and memory in bytes by size, for sessions and for listening clients."""
    times, held = {}, {}
    for name, listening in (("sessions", False), ("listening clients", True)):
        with observed() as (port, pid, tokens):
            latencies, sizes = asyncio.run(grow(port, pid, tokens, listening))
            times[f"call beside {name}" if not listening else f"notification of {name}"] = SIZES, latencies
            held[f"memory of {name}"] = SIZES, sizes
    return times, held


def growth_table(times, held):
    """Return the rows of the growth."""
    rows = [["", "from", "to", "at the end", "of each", "exponent"]]
    for unit, scale, each, measured in (("ms", 1e3, "µs", times), ("MB", 1e-6, "kB", held)):
        for name, (sizes, costs) in measured.items():
            single = costs[-1] / sizes[-1] * scale * 1e3
            cells = [f"{report.number(costs[-1] * scale)} {unit}", f"{report.number(single)} {each}"]
            rows.append([name, str(sizes[0]), str(sizes[-1]), *cells, f"{growth.exponent(sizes, costs):.2f}"])
    return rows


def main():
    """Measure and print; exit status 1 if cost grows faster than linearly, or one process is worse than the Python SDK's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each turn")
    parser.add_argument("--document", action="store_true", help="write tables and plots of docs/performance.md")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed. Install the Debian package wrk.")
    os.environ["TMKB_STATE_KEY"] = secrets.token_hex(32)  # all processes of a cluster need the same
    with redis() as address:
        measured = {
            era: measure(servers(address), arguments.rounds, arguments.seconds, sessions)
            for era, sessions in (("2026-07-28", False), ("sessions", True))
        }
    times, held = growths()
    figures = report.table(table(measured), True), report.table(growth_table(times, held), True)
    print(*figures, sep="\n\n")
    if arguments.document:
        for name, plotted, unit in (("latency", times, growth.duration), ("memory", held, size)):
            with open(PLOTS[name], "w", encoding="utf-8") as file:
                file.write(growth.svg(plotted, unit))
        for name, text in zip(("replicas", "replica growth"), figures, strict=True):
            report.document(name, text)
    linear = all(growth.exponent(*each) <= growth.MOST for each in (times | held).values())
    return 0 if linear and all(better(samples) for samples in measured.values()) else 1


def better(samples):
    """Return whether one process of ours is at least as good as the server of the Python SDK, by medians."""
    ours, peer = (Row(*map(statistics.median, zip(*samples[name], strict=True))) for name in ("tmkb, 1 process", PEER))
    return ours.rate >= peer.rate and ours.p99 <= peer.p99


def size(power):
    """Ten to this power, of bytes."""
    return {4: "10 kB", 5: "0.1 MB", 6: "1 MB", 7: "10 MB", 8: "100 MB"}.get(power, f"1e{power}")


if __name__ == "__main__":
    sys.exit(main())

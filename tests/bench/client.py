"""A client that puts load on any MCP server over stdio, and asks Linux what that cost. Only the standard library."""

import contextlib
import glob
import json
import os
import select
import subprocess
import time

TIMEOUT = 120  # seconds; bounds a failure, not a measurement
REVISION = "2025-11-25"


class Server:
    """A server process. Writing to it never keeps us from reading what it says."""

    def __init__(self, command, environment):
        self.started = time.perf_counter()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=environment, bufsize=0, **pipes)
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def exchange(self, data, count=1):
        """Write ``data`` and read ``count`` lines, both at once: the seconds it took, and the lines."""
        begun = time.perf_counter()
        rest, chunks, lines = memoryview(data), [], 0
        poller = select.poll()
        poller.register(self.stdin, select.POLLOUT)
        poller.register(self.stdout, select.POLLIN)
        while rest or lines < count:
            ready = dict(poller.poll(TIMEOUT * 1000))
            if self.stdin in ready:
                rest = rest[os.write(self.stdin, rest) :]
                if not rest:
                    poller.unregister(self.stdin)
            if self.stdout in ready:
                chunks.append(os.read(self.stdout, 1 << 20))
                lines += chunks[-1].count(b"\n")
            if not ready or (self.stdout in ready and not chunks[-1]):
                raise RuntimeError(f"{self.process.args}: {lines} of {count} lines, then nothing more")
        return time.perf_counter() - begun, b"".join(chunks).splitlines()

    def ask(self, *requests):
        """Send requests without waiting in between: the seconds until all were answered, each by its result."""
        seconds, lines = self.exchange(b"".join(requests), len(requests))
        responses = [json.loads(line) for line in lines]
        if {each["id"] for each in responses} != {json.loads(each)["id"] for each in requests}:
            raise RuntimeError(f"{self.process.args}: answered other requests than were sent")
        if bad := [each for each in responses if each.get("result", {"isError": True}).get("isError")]:
            raise RuntimeError(f"{self.process.args}: {json.dumps(bad[0])[:500]}")
        return seconds

    def open(self):
        """The handshake: the seconds from the start of the process to the answer."""
        client = {"name": "bench", "version": "1.0"}
        self.ask(request("initialize", 0, protocolVersion=REVISION, capabilities={}, clientInfo=client))
        seconds = time.perf_counter() - self.started
        self.exchange(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', 0)
        return seconds

    def close(self):
        """End its input: the seconds until it has gone."""
        begun = time.perf_counter()
        self.process.stdin.close()
        with os.fdopen(os.pidfd_open(self.process.pid)) as gone:
            if not select.select([gone], [], [], TIMEOUT)[0]:
                raise RuntimeError(f"{self.process.args}: still there after the end of its input")
        return time.perf_counter() - begun

    @contextlib.contextmanager
    def sharing_processor(self):
        """Meanwhile it runs on one processor, and we on the same."""
        before = os.sched_getaffinity(0)
        try:
            for pid in (0, self.process.pid):
                os.sched_setaffinity(pid, {min(before)})
            yield
        finally:
            for pid in (0, self.process.pid):
                os.sched_setaffinity(pid, before)

    def processor_seconds(self):
        """The processor time it has used so far, with all its processes."""
        stats = [read(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in tree(self.process.pid)]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) * tick()

    def peak_memory(self):
        """The most memory that it has held so far, in bytes, with all its processes."""
        lines = [line for pid in tree(self.process.pid) for line in read(f"/proc/{pid}/status").splitlines()]
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def tick():
    """The least processor time that is counted, in seconds."""
    return 1 / os.sysconf("SC_CLK_TCK")


def tree(pid):
    """A process and all below it."""
    children = [int(child) for path in glob.glob(f"/proc/{pid}/task/*/children") for child in read(path).split()]
    return [pid, *(each for child in children for each in tree(child))]


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def request(method, id, **params):
    """A request as a line."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def call(id, context="background job processing"):
    """A call of the tool that every server has."""
    return request("tools/call", id, name="tmkb_query", arguments={"context": context})

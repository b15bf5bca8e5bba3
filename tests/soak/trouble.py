"""What a server meets besides good clients: little memory, few descriptors, a full disk, a clock that jumps, and clients
that are killed, read slowly, take all connections or send much.

`Conditions` is where a server runs, from its start to its end. The others happen again and again, in random order.
"""

import collections
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tests.soak.clients import HEADERS, MODERN, described
from tests.support.packages import CACHE
from tests.support.process import SERVE, TIMEOUT, Server

DESCRIPTORS, CONNECTIONS = 256, 400
MEMORY = 400 << 20  # bytes of address space
CACHE_ROOM = 64  # KiB
LARGE, AT_ONCE = 9_000_000, 9  # bytes of one argument, and how many such requests; a principal may have 64 MiB
JUMPS = ("+0", "+1d", "-3h", "+30d", "-1d", "+1h")
ADDRESS = "127.0.0.1"

SMALL = [*SERVE, "--server", "everything"]  # starts in less time without a cache
# libfaketime 0.9.10 fails to sleep until a monotonic time, as `time.sleep` does.
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select((), (), (), seconds)\n"

# A client of its own: it starts what its arguments say, or connects, sends requests, reads nothing, and waits.
OVER_STDIO = """
import signal, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n' * 5000)
server.stdin.flush()
print(server.pid, flush=True)
signal.pause()
"""
OVER_HTTP = """
import signal, socket, sys
head = b"POST /mcp HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nAccept: application/json, text/event-stream\\r\\n"
whole = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}'
held = []
for part in (head, head + b"Content-Length: 1000\\r\\n\\r\\n{", head + b"Content-Length: %d\\r\\n\\r\\n" % len(whole) + whole):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    held[-1].sendall(part)
print("ready", flush=True)
signal.pause()
"""


class Conditions:
    """Limits of memory and descriptors, a cache on a full disk, and a clock that `jump` sets."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tmkb-soak-")
        self.lacking = {}  # what cannot be tried here, and why
        self.cache = os.path.join(self.folder, "cache")
        os.mkdir(self.cache)
        self.env = {"XDG_CACHE_HOME": self.cache}
        self.mounted = self._fill_disk()
        self.clock = self._fake_clock()
        limits = f'ulimit -n {DESCRIPTORS}; ulimit -v {MEMORY >> 10}; exec "$@"'
        self.wrapper = ["sh", "-c", limits, "sh"]
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", self.cache], check=True)
        shutil.rmtree(self.folder)

    def left_behind(self):
        """Return the files that servers have left in the cache without completing them."""
        files = glob.glob(os.path.join(self.cache, "tmkb", "**"), recursive=True)
        return [file for file in files if os.path.isfile(file) and not file.endswith(".json")]

    def _fill_disk(self):
        if sys.platform == "win32" or os.geteuid() != 0:
            self.lacking["full disk"] = "only root can mount a small file system"
            return False
        mount = ["mount", "-t", "tmpfs", "-o", f"size={CACHE_ROOM}k,mode=700", "tmpfs", self.cache]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            self.lacking["full disk"] = done.stderr.strip()
            return False
        with contextlib.suppress(OSError), open(os.path.join(self.cache, "filler"), "wb", buffering=0) as file:
            file.write(bytes(CACHE_ROOM << 10))
        return True

    def _fake_clock(self):
        library = faketime()
        if library is None:
            self.lacking["clock jumps"] = "libfaketime is not installed"
            return None
        clock = os.path.join(self.folder, "clock")
        with open(os.path.join(self.folder, "sitecustomize.py"), "w", encoding="ascii") as file:
            file.write(SLEEP)
        self.env |= {
            "LD_PRELOAD": library,
            "PYTHONPATH": self.folder,
            "FAKETIME_TIMESTAMP_FILE": clock,
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        _replace(clock, JUMPS[0])
        return clock


def faketime():
    """Return the path of libfaketime, installed or unpacked from Debian's package below `.cache`; None without it."""
    place = os.path.join(CACHE, "libfaketime")
    form = "usr/lib/*/faketime/libfaketime.so.1"
    if not glob.glob(f"/{form}") and not glob.glob(os.path.join(place, form)) and shutil.which("apt-get"):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", "libfaketime"], cwd=place, capture_output=True, check=False)
        for package in glob.glob(os.path.join(place, "*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, place], check=True)
    return next(iter([*glob.glob(f"/{form}"), *glob.glob(os.path.join(place, form))]), None)


class Troubles:
    """Makes trouble for a server in a thread, until `stop`. ``done`` counts each kind."""

    def __init__(self, server, conditions, over, rng):
        self.server, self.conditions, self.rng = server, conditions, rng
        self.done, self.failures = collections.Counter(), []
        self.over, self.quiet = threading.Event(), threading.Lock()
        both = [self.killed_client, self.slow_reader, self.large_requests]
        self.kinds = both + ([self.taken_connections] if over == "http" else [])
        self.kinds += [self.clock_jump] if conditions.clock else []
        self.http = over == "http"
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        """Stop, and raise what went wrong."""
        self.over.set()
        self.thread.join(2 * TIMEOUT)
        self.check()

    def check(self):
        if self.failures:
            raise self.failures[0]

    def killed_client(self):
        """A client is killed while it waits for responses. Over stdio, its server has to end."""
        if self.http:
            command = [sys.executable, "-I", "-S", "-c", OVER_HTTP, str(self.server.port)]
        else:
            command = [sys.executable, "-I", "-S", "-c", OVER_STDIO, *self.conditions.wrapper, *SMALL]
        environment = {**os.environ, **({} if self.http else self.conditions.env)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as client:
            word = client.stdout.readline()
            time.sleep(self.rng.random() / 5)
            client.kill()
        assert client.returncode == -signal.SIGKILL
        if not self.http:
            deadline = time.monotonic() + TIMEOUT
            while os.path.exists(f"/proc/{int(word)}") and _state(int(word)) != "Z":
                assert time.monotonic() < deadline, "the server outlives its client"
                time.sleep(0.02)

    def slow_reader(self):
        """A client reads a few bytes at a time, and gets the whole response."""
        if not self.http:
            self.server.pause(self.rng.random())
            return
        with contextlib.closing(_connect(self.server.port, 4096)) as slow:
            slow.sendall(_http(_request("slow")))
            received = b""
            while chunk := slow.recv(16 if len(received) < 400 else 65536):
                received += chunk
                time.sleep(0.01)
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), received
        assert json.loads(body)["result"]["tools"], received

    def large_requests(self):
        """Clients send many megabytes, together more than the server may hold, and each gets an answer or a reason."""
        if not self.http:
            with Server(argv=[*self.conditions.wrapper, *SMALL], env=self.conditions.env) as own:
                own.send({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * LARGE}})
                assert own.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
                assert own.end() == ([], 0)
            return
        with contextlib.ExitStack() as stack:
            senders = [stack.enter_context(contextlib.closing(_connect(self.server.port))) for _ in range(AT_ONCE)]
            data = _http(_request("large", x="y" * LARGE))
            for part in (data[:-1], data[-1:]):
                for sender in senders:
                    with contextlib.suppress(ConnectionError):  # the server has rejected the request
                        sender.sendall(part)
            for sender in senders:
                received = b"".join(iter(lambda: sender.recv(65536), b""))  # noqa: B023
                assert received.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 503 ")), received
                assert json.loads(received.partition(b"\r\n\r\n")[2]).get("id", "large") == "large", received

    def taken_connections(self):
        """More clients connect than the server has descriptors, and send nothing."""
        held = []
        try:
            for _ in range(CONNECTIONS):
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection((ADDRESS, self.server.port), timeout=1))
            time.sleep(0.5)
        finally:
            for each in held:
                each.close()

    def clock_jump(self):
        """The clock of the system is set."""
        _replace(self.conditions.clock, self.rng.choice(JUMPS))

    def _run(self):
        try:
            while not self.over.wait(self.rng.random() / 2):
                kind = self.rng.choice(self.kinds)
                with self.quiet:
                    kind()
                self.done[kind.__name__.replace("_", " ")] += 1
        except BaseException as error:  # raised by `check`
            self.failures.append(error)


class SlowlyRead(Server):
    """A server whose reader pauses."""

    def __init__(self, *arguments, **options):
        self.reading = threading.Event()
        self.reading.set()
        super().__init__(*arguments, **options)

    def pause(self, seconds):
        """Read nothing for so long."""
        self.reading.clear()
        time.sleep(seconds)
        self.reading.set()

    def _read_out(self):
        for line in self.process.stdout:
            self.out.put(line)
            self.reading.wait()
        self.out.put(None)


def _request(id_, **meta):
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/list", "params": {"_meta": MODERN | meta}}


def _http(message):
    body = json.dumps(message).encode()
    headers = {"Host": "localhost", "Connection": "close", "Content-Length": len(body), **HEADERS, **described(message)}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def _connect(port, buffer=None):
    made = socket.socket()
    if buffer is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(TIMEOUT)
    made.connect((ADDRESS, port))
    return made


def _replace(path, text):
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def _state(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]
    return "Z"

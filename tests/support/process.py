"""A real server process, driven over its pipes."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading

from tests.support import emitted

SERVE = [sys.executable, "-m", "tmkb", "serve"]
TIMEOUT = 60.0  # generous: it bounds a failure, not a measurement


class Server:
    """``tmkb serve`` (or ``argv``) with ``arguments``; stdout and stderr are read as they come."""

    def __init__(self, *arguments, env=None, argv=None, read_stdout=True, read_stderr=True):
        whole = {k: v for k, v in os.environ.items() if not k.startswith(("TMKB_", "LOG_LEVEL"))} | (env or {})
        self.process = subprocess.Popen(
            [*(argv or SERVE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=whole,
        )
        self.out, self.err, self.threads = queue.SimpleQueue(), [], []
        self.conversation = emitted.Conversation()
        if read_stdout:
            self.start_reading()
        if read_stderr:
            self._start(self._read_err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self.threads:  # they read to the end, which has come
            thread.join(TIMEOUT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def start_reading(self):
        """Read stdout from now on."""
        self._start(self._read_out)

    def _start(self, target):
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _read_out(self):
        for line in self.process.stdout:
            self.conversation.received(line)
            self.out.put(line)
        self.out.put(None)

    def _read_err(self):
        for line in self.process.stderr:
            self.err.append(line.decode("utf-8"))

    def send(self, *messages):
        """Messages as values, or lines as bytes."""
        data = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
        self.conversation.sent(data)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        """The next message; None at the end of the output."""
        line = self.out.get(timeout=TIMEOUT)
        return None if line is None else json.loads(line)

    def ask(self, method, id=1, **params):
        """The response to a request."""
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.read()

    def query(self, id=1, **arguments):
        """The result of a call of tmkb_query."""
        return self.ask("tools/call", id, name="tmkb_query", arguments=arguments)["result"]

    def handshake(self, revision="2025-11-25"):
        """Initialize the connection."""
        result = self.ask("initialize", "handshake", protocolVersion=revision, capabilities={})["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def end(self):
        """Close the input; everything that still comes, and the exit status."""
        self.process.stdin.close()
        rest = list(iter(self.read, None))
        return rest, self.wait()

    def wait(self):
        """The exit status, when stderr has been read to its end."""
        status = self.process.wait(TIMEOUT)
        for thread in self.threads:
            thread.join(TIMEOUT)
        return status

    def interrupt(self, number=signal.SIGTERM):
        """Send a signal."""
        self.process.send_signal(number)

    def peak_memory(self):
        """The most memory it has used so far, in bytes (Linux)."""
        with open(f"/proc/{self.process.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    @property
    def log(self):
        """The lines of stderr so far."""
        return "".join(self.err).splitlines()


class HttpServer:
    """``tmkb serve --http`` on a port of its own; `log` is what it says on stderr."""

    ADDRESS = re.compile(r"(?:communication via|ready at) (\S+)")

    def __init__(self, *arguments, env=None, at=("--http", "127.0.0.1:0"), wrapper=(), command=SERVE):
        whole = {k: v for k, v in os.environ.items() if not k.startswith(("TMKB_", "LOG_LEVEL"))} | (env or {})
        argv = [*wrapper, *command, *at, *arguments]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, env=whole, text=True)
        self.log, self.ready, self.address = [], threading.Event(), None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.ready.wait(TIMEOUT)
        assert self.address, self.log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    @property
    def port(self):
        """Where it listens."""
        return int(self.address.split(":")[2].split("/")[0])

    def memory(self):
        """The memory it holds now, in bytes (Linux)."""
        with open(f"/proc/{self.process.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def end(self):
        """Ask it to end; its exit status."""
        self.process.terminate()
        return self.wait()

    def wait(self):
        """Wait for its end; its exit status."""
        status = self.process.wait(TIMEOUT)
        self.thread.join(TIMEOUT)
        self.process.stderr.close()
        return status

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if found := self.ADDRESS.search(line):
                self.address = found[1]
                self.ready.set()
        self.ready.set()

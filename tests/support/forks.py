"""Servers over stdio on descriptors that a test chooses, forked from one process that has loaded everything.

A server so costs a few milliseconds, and its processor time holds nothing but serving. Needs fork and ``/proc`` (Linux).
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback

from tests.support.imitation.imitated_system import XnuPoll

TIMEOUT = 60.0  # seconds; bounds a failure, not a measurement


class Forks:
    """The process that forks servers: start it once, then call `serve` for each server."""

    def __init__(self, **options):
        """``options``: of `tmkb.transport.stdio.serve`; ``xnu`` polls as XNU (macOS) does."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.support.forks", str(theirs.fileno()), json.dumps(options)]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self.socket = ours

    def serve(self, stdin, stdout, stderr):
        """A server on these descriptors, which this process may close afterwards."""
        socket.send_fds(self.socket, [b"serve"], [stdin, stdout, stderr])
        return Fork(self, int(self.socket.recv(100)))

    def status(self, pid):
        """The exit status of a server, None while it runs. To be asked no more once it has ended (`Fork.status`)."""
        self.socket.send(b"%d" % pid)
        answer = self.socket.recv(100)
        return None if answer == b"running" else int(answer)

    def close(self):
        """End the process. Servers that still run are killed."""
        self.socket.close()
        self.process.wait(TIMEOUT)


class Fork:
    """One forked server."""

    def __init__(self, forks, pid):
        self.forks = forks
        self.pid = pid
        self.ended = None

    def status(self):
        """The exit status, None while the server runs."""
        if self.ended is None:
            self.ended = self.forks.status(self.pid)
        return self.ended

    def wait(self):
        """The exit status, once the server has ended."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            if (status := self.status()) is not None:
                return status
            time.sleep(0.005)
        raise TimeoutError(self.pid)

    def processor_seconds(self):
        """The processor time that the running server has used so far."""
        with open(f"/proc/{self.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9


def _main(control, options):
    from tmkb.server.server import Server

    if options.pop("xnu", False):
        select.poll = XnuPoll
    found = Server.load(patterns=["packaged"])
    running = set()
    while (request := socket.recv_fds(control, 100, 3))[0]:
        data, fds = request[:2]
        if data == b"serve":
            pid = os.fork()
            if pid == 0:
                control.close()
                _serve(found, fds, options)
            running.add(pid)
            for fd in fds:
                os.close(fd)
            control.send(b"%d" % pid)
        else:
            pid, status = os.waitpid(int(data), os.WNOHANG)
            running.discard(pid)
            control.send(b"%d" % os.waitstatus_to_exitcode(status) if pid else b"running")
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _serve(found, fds, options):
    from tmkb.server import log
    from tmkb.server.runtime import Runtime
    from tmkb.transport import stdio

    status = 1
    try:
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
            os.close(fd)
        stdio.serve(Runtime(found.spec, found.provider, log.Log(found.spec["server"]["log"])), **options)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))

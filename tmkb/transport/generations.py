"""Replace all processes of a server without closing its socket.

The supervisor keeps the socket and nothing else. It starts the same command again as a child, a *generation*, which
serves the socket. SIGHUP starts the next generation, from the current code and files. As soon as all of its processes
accept connections, the one before it retires. If it cannot start, the one before it stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence

from tmkb.transport import sockets, workers

assert sys.platform != "win32"

_PATIENCE = 600.0  # seconds until all processes of a generation accept connections
_VARIABLE = "TMKB_GENERATION"  # of the environment: "SOCKET,PIPE,URL"


def exists() -> bool:
    """Return whether a supervisor has started this process."""
    return _VARIABLE in os.environ


def inherited() -> tuple[socket.socket, str, Callable[[], None]]:
    """Return what the supervisor has passed to this process.

    Returns:
        The listening socket, its URL for the log, and a function to call when a process accepts connections.
    """
    bound, pipe, url = os.environ.pop(_VARIABLE).split(",", 2)
    workers.end_with_parent()

    def report() -> None:
        with contextlib.suppress(BrokenPipeError):  # the process replaces another one, and nobody waits for it
            os.write(int(pipe), b".")
        os.close(int(pipe))

    return sockets.adopt(int(bound)), url, report


def run(bound: socket.socket, url: str, count: int, inherited: Sequence[int] = ()) -> int:
    """Run generations of ``count`` processes on ``bound`` until SIGTERM or SIGINT; return the exit status.

    ``url``: of the socket, for the log. ``inherited``: other descriptors that the processes need.
    """
    return asyncio.run(_Supervisor(bound, url, count, inherited).run())


class _Supervisor:
    def __init__(self, bound: socket.socket, url: str, count: int, inherited: Sequence[int]) -> None:
        self.bound = bound
        self.inherited = inherited
        self.url = url
        self.count = count
        self.running: set[Process] = set()
        self.hangup = asyncio.Event()
        self.ending = False
        self.current: Process  # the generation that serves

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._forward, number)
        loop.add_signal_handler(signal.SIGHUP, self.hangup.set)
        self.current, _ready = await self._start()
        renewal = asyncio.create_task(self._renew())
        status = await self._until_end(self.current)
        renewal.cancel()
        with contextlib.suppress(ProcessLookupError):  # its workers have ended, too, unless it was killed
            os.killpg(self.current.pid, signal.SIGTERM)
        self._forward(signal.SIGTERM)  # to a generation that is starting
        await asyncio.gather(*(process.wait() for process in self.running))
        return status if status >= 0 else 1

    async def _until_end(self, process: Process) -> int:
        """Return the exit status of the last generation; ``process`` is the first one."""
        while True:
            status = await process.wait()
            if process is self.current:
                return status
            process = self.current

    async def _renew(self) -> None:
        while True:
            await self.hangup.wait()
            self.hangup.clear()
            try:
                process, ready = await self._start()
            except OSError as error:  # no process or no descriptor is left; the next SIGHUP tries again
                sys.stderr.write(f"tmkb: The new processes could not start: {error}. Those before them continue.\n")
                continue
            if ready:
                before, self.current = self.current, process
                _send(before, signal.SIGHUP)
            elif not self.ending:
                sys.stderr.write("tmkb: The new processes could not start. Those before them continue.\n")

    async def _start(self) -> tuple[Process, bool]:
        """Start a generation; return whether all of its processes accept connections."""
        ready, inlet = os.pipe()
        with open(ready, "rb", 0) as reports:
            with open(inlet, "wb", 0):
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *sys.orig_argv[1:],
                    env={**os.environ, _VARIABLE: f"{self.bound.fileno()},{inlet},{self.url}"},
                    pass_fds=(self.bound.fileno(), inlet, *self.inherited),
                    process_group=0,  # or the terminal sends it SIGINT, too
                )
            self.running = {each for each in self.running if each.returncode is None} | {process}
            if self.ending:  # the signal came before the process
                _send(process, signal.SIGTERM)
            patience = asyncio.get_running_loop().call_later(_PATIENCE, _kill, process)
            try:
                return process, await asyncio.to_thread(_read, reports, self.count)
            finally:
                patience.cancel()

    def _forward(self, number: int) -> None:
        self.ending = True
        for process in self.running:
            _send(process, number)


def _send(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _kill(process: Process) -> None:
    """Kill a generation with all of its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(pipe: io.FileIO, count: int) -> bool:
    """Wait for ``count`` bytes, or for the end of those who write; return whether all bytes came."""
    received = 0
    while received < count and (chunk := pipe.read(count - received)):
        received += len(chunk)
    return received == count

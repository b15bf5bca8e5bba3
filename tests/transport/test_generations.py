"""The supervisor of `--workers` while it starts processes: failures and signals."""

import asyncio
import os
import signal
import socket
import sys

import pytest

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="no fork")]
if sys.platform != "win32":
    from tmkb.transport import generations
CODE = "import os, time; os.write(int(os.environ['TMKB_GENERATION'].split(',')[1]), b'.'); time.sleep(60)"


@pytest.fixture
def supervisor(monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", CODE])
    with socket.socket() as bound:
        yield generations._Supervisor(bound, "http://localhost", 1, ())


def descriptors():
    """The next free descriptors, which a leak would change."""
    ends = os.pipe()
    for end in ends:
        os.close(end)
    return ends


def test_a_renewal_that_cannot_start_a_process_leaves_the_next_one_possible(supervisor, monkeypatch, capfd):
    real = asyncio.create_subprocess_exec

    async def fail(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    async def renew_twice():
        supervisor.current, _ = await supervisor._start()
        first, before = supervisor.current, descriptors()
        renewal = asyncio.create_task(supervisor._renew())
        monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
        supervisor.hangup.set()
        while supervisor.hangup.is_set():
            await asyncio.sleep(0)
        assert (renewal.done(), descriptors()) == (False, before)
        monkeypatch.setattr(asyncio, "create_subprocess_exec", real)
        supervisor.hangup.set()
        await first.wait()  # retired by SIGHUP, which ends this program
        renewal.cancel()
        supervisor._forward(signal.SIGTERM)
        await supervisor.current.wait()

    asyncio.run(renew_twice())
    assert "could not start: [Errno 11] Resource temporarily unavailable. Those before" in capfd.readouterr().err


def test_a_signal_during_the_start_of_a_process_ends_it(supervisor, monkeypatch):
    real = asyncio.create_subprocess_exec

    async def signalled(*words, **options):
        supervisor._forward(signal.SIGTERM)
        return await real(*words, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", signalled)
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", "import time; time.sleep(3)"])

    async def start():
        process, _ = await supervisor._start()
        return await process.wait()

    assert asyncio.run(start()) == -signal.SIGTERM


def test_processes_that_never_accept_connections_are_killed(supervisor, monkeypatch):
    monkeypatch.setattr(generations, "_PATIENCE", 0.1, raising=False)
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", "import time; time.sleep(3)"])

    async def start():
        process, ready = await supervisor._start()
        return ready, await process.wait()

    assert asyncio.run(start()) == (False, -signal.SIGKILL)

"""The stdio loop without ``poll``, as on Windows: threads read and write."""

import os
import signal
import threading

import pytest

from tests.support import imitation
from tests.support.process import Server
from tmkb.transport import threads
from tmkb.transport.loop import Conversation, Signals

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def server(*arguments, **options):
    return Server(*arguments, env=imitation.environment("win32"), **options)


@pytest.mark.process
def test_answers_come_in_order():
    with server() as started:
        started.send(*[{**PING, "id": number} for number in range(5000)])
        rest, status = started.end()

        assert [answer["id"] for answer in rest] == list(range(5000))
        assert status == 0
        assert started.log[-1] == "[INFO] MCP server shutdown"


@pytest.mark.process
def test_a_client_may_write_before_it_reads():
    with server(read_stdout=False) as started:
        started.send(*[{**PING, "id": number} for number in range(20_000)])
        started.start_reading()
        rest, status = started.end()

        assert [answer["id"] for answer in rest] == list(range(20_000))
        assert status == 0


@pytest.mark.process
def test_reading_pauses_while_too_many_responses_wait(overlay):
    folder = overlay(servers__tmkb__server="kind: server\nextends: packaged\nlimits: {backlog_bytes: 1000}\n")
    with server("--schemas", folder) as started:
        started.send(*[{**PING, "id": number} for number in range(5000)])
        rest, status = started.end()

        assert [answer["id"] for answer in rest] == list(range(5000))
        assert status == 0


@pytest.mark.process
def test_a_client_that_never_reads_stderr_is_served():
    with server("--log-level", "debug", read_stderr=False) as started:
        started.handshake()
        for number in range(1000):
            assert started.ask("tools/list", number)["id"] == number
        started.process.stdin.close()

        assert started.process.wait(60) == 0


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_idle_server(number):
    with server() as started:
        started.ask("ping")
        started.interrupt(number)

        assert started.wait() == 0
        assert started.log[-1] == "[INFO] MCP server shutdown"


@pytest.mark.process
@pytest.mark.parametrize("ended", [False, True])
def test_a_signal_does_not_wait_for_a_client_that_does_not_read(ended):
    with server(read_stdout=False) as started:
        started.send(*[{**LIST, "id": number} for number in range(2000)])
        if ended:
            started.process.stdin.close()
        assert os.read(started.process.stdout.fileno(), 1)
        started.interrupt(signal.SIGINT)

        assert started.wait() == 0
        assert not any("Traceback" in line for line in started.log)


@pytest.mark.process
@pytest.mark.parametrize("count", [0, 5000])
def test_the_server_ends_when_its_reader_disconnects(count):
    """Without a request, the server is idle and writes nothing."""
    with server(read_stdout=False) as started:
        started.send(*[{**PING, "id": number} for number in range(count)])
        started.process.stdout.close()

        assert started.wait() == 0
        assert not any("Traceback" in line for line in started.log)


def test_modules_for_the_first_call_are_loaded_while_no_request_waits(runtime, monkeypatch):
    prepared = threading.Event()
    monkeypatch.setattr(runtime, "warm_up", prepared.set)
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    loop = threads.Threaded(Conversation(runtime, None), in_read, out_write, Signals())
    serving = threading.Thread(target=loop.run)
    serving.start()
    assert not prepared.wait(0.2)
    os.write(in_write, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert os.read(out_read, 100) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert prepared.wait(10)
    os.close(in_write)
    serving.join()
    for fd in (in_read, out_read, out_write):
        os.close(fd)


def test_a_writer_never_blocks_its_caller():
    read, write = os.pipe()
    writer = threads.Writer(write)
    for _ in range(3):
        writer.put(b"x" * 100_000)
    while writer.wait(0.2):
        pass
    assert 0 < writer.waiting_bytes == 300_000 - writer.written
    total = 0
    while total < 300_000:
        total += len(os.read(read, 65536))
    while writer.waiting_bytes:
        assert writer.wait(10)
    os.close(read)
    writer.put(b"x")
    assert writer.wait(10)
    assert writer.gone
    writer.close()
    os.close(write)

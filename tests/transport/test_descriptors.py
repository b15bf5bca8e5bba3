"""Every kind of descriptor as stdin and stdout, and every way in which its other end can be closed."""

import itertools
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
import tty

import pytest

from tests.support.forks import TIMEOUT, Forks
from tmkb.transport import loop

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="forks servers and reads /proc")]

LIVE = ("pipe", "socket", "terminal")
KINDS = (*LIVE, "file")
COUNT = 50
IDLE = 0.1  # of one core; a busy loop uses a whole core


@pytest.fixture(scope="module")
def forks():
    started = Forks()
    yield started
    started.close()


@pytest.fixture(scope="module")
def forks_on_xnu():
    started = Forks(xnu=True)
    yield started
    started.close()


def ping(id):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode() + b"\n"


PINGS = b"".join(ping(id) for id in range(COUNT))


class Peer:
    """A server process, and the other ends of its stdin and stdout."""

    def __init__(self, forks, tmp_path, stdin, stdout, requests=b""):
        self.stdin_kind, self.stdout_kind = stdin, stdout
        self.buffer = b""
        self.requests = len(requests)
        theirs_in, self.input = self._input(stdin, tmp_path, requests)
        theirs_out, self.output = self._output(stdout, tmp_path)
        self.log = tmp_path / f"log-{stdin}-{stdout}"
        stderr = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.server = forks.serve(theirs_in, theirs_out, stderr)
        for fd in (theirs_in, theirs_out, stderr):
            os.close(fd)
        if stdin != "file":
            os.write(self.input, requests)

    def _input(self, kind, folder, requests):
        if kind == "pipe":
            return os.pipe()
        if kind == "socket":
            theirs, ours = socket.socketpair()
            return theirs.detach(), ours.detach()
        if kind == "terminal":
            ours, theirs = pty.openpty()
            attributes = termios.tcgetattr(theirs)
            attributes[3] &= ~termios.ECHO  # line mode, which has a character for the end of input
            termios.tcsetattr(theirs, termios.TCSANOW, attributes)
            return theirs, ours
        file = folder / "input"
        file.write_bytes(requests)
        return os.open(file, os.O_RDONLY), None

    def _output(self, kind, folder):
        if kind == "pipe":
            ours, theirs = os.pipe()
            return theirs, ours
        if kind == "socket":
            theirs, ours = socket.socketpair()
            return theirs.detach(), ours.detach()
        if kind == "terminal":
            ours, theirs = pty.openpty()
            tty.setraw(theirs)
            return theirs, ours
        file = folder / "output"
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.open(file, os.O_RDONLY)

    def read(self, count):
        """Return the ids of the next ``count`` responses; fewer if the output ends."""
        while self.buffer.count(b"\n") < count and (chunk := self._chunk()):
            self.buffer += chunk
        *lines, rest = self.buffer.split(b"\n", count)
        self.buffer = rest
        return [json.loads(line)["id"] for line in lines]

    def _chunk(self):
        while True:
            may_grow = self.stdout_kind == "file" and self.server.status() is None
            try:
                chunk = os.read(self.output, 65536)
            except OSError:  # the other side of the terminal is closed
                return b""
            if chunk or not may_grow:
                return chunk
            time.sleep(0.01)

    def wait_until_input_is_read(self):
        """Wait until the server has read all of a file."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            with open(f"/proc/{self.server.pid}/fdinfo/0") as file:
                if file.readline().split() == ["pos:", str(self.requests)]:
                    return
            time.sleep(0.01)

    def end_input(self):
        if self.stdin_kind == "terminal":
            os.write(self.input, b"\x04")
        elif self.input is not None:
            os.close(self.input)
            self.input = None

    def complained(self):
        return any(word in self.log.read_text() for word in ("Traceback", "Error"))

    def close(self):
        for fd in (self.input, self.output):
            if fd is not None:
                os.close(fd)


@pytest.fixture
def peer(forks, tmp_path):
    peers = []

    def start(*kinds, requests=b""):
        folder = tmp_path / str(len(peers))
        folder.mkdir()
        peers.append(Peer(forks, folder, *kinds, requests=requests))
        return peers[-1]

    yield start
    for each in peers:
        each.close()


def shut(fd, how):
    """Shut down one or both directions of a socket."""
    with socket.socket(fileno=os.dup(fd)) as whole:
        whole.shutdown(how)


def disconnect(peer, way):
    """Disconnect the reader of stdout."""
    if way == "close":
        os.close(peer.output)
    elif way == "shutdown":
        shut(peer.output, socket.SHUT_RDWR)
        return
    else:
        holder = subprocess.Popen(["sleep", "60"], pass_fds=[peer.output])
        os.close(peer.output)
        holder.kill()
        holder.wait()
    peer.output = None


GONE = [
    (stdin, stdout, way)
    for stdin, stdout, way in itertools.product(LIVE, LIVE, ("close", "kill", "shutdown"))
    if stdout == "socket" or way != "shutdown"
]


@pytest.mark.parametrize(("stdin", "stdout"), [*itertools.product(KINDS, KINDS)])
def test_all_requests_are_answered_at_the_end_of_the_input(peer, stdin, stdout):
    started = peer(stdin, stdout, requests=PINGS)
    started.end_input()

    assert started.read(COUNT) == list(range(COUNT))
    assert started.server.wait() == 0
    assert not started.complained()


@pytest.mark.parametrize("stdout", KINDS)
def test_a_half_closed_socket_is_the_end_of_the_input(peer, stdout):
    started = peer("socket", stdout, requests=PINGS)
    shut(started.input, socket.SHUT_WR)

    assert started.read(COUNT) == list(range(COUNT))
    assert started.server.wait() == 0


def test_a_half_closed_socket_that_is_stdin_and_stdout_gets_its_answers(forks, tmp_path):
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "log").open("wb") as log:
        ours.sendall(PINGS)
        server = forks.serve(theirs.fileno(), theirs.fileno(), log.fileno())
        theirs.close()
        ours.shutdown(socket.SHUT_WR)
        with ours.makefile("rb") as answers:
            assert [json.loads(line)["id"] for line in answers] == list(range(COUNT))
        assert server.wait() == 0


@pytest.mark.parametrize("stdout", LIVE)
def test_a_terminal_that_hangs_up_is_the_end_of_the_input(peer, stdout):
    started = peer("terminal", stdout, requests=PINGS)

    assert started.read(COUNT) == list(range(COUNT))
    os.close(started.input)
    started.input = None
    assert started.server.wait() == 0
    assert not started.complained()


@pytest.mark.parametrize(("stdin", "stdout", "way"), GONE)
def test_an_idle_server_ends_when_its_reader_disconnects(peer, stdin, stdout, way):
    started = peer(stdin, stdout, requests=PINGS)

    assert started.read(COUNT) == list(range(COUNT))
    disconnect(started, way)
    assert started.server.wait() == 0
    assert not started.complained()


@pytest.mark.parametrize(("stdin", "stdout", "way"), GONE)
def test_a_writing_server_ends_when_its_reader_disconnects(peer, stdin, stdout, way):
    started = peer(stdin, stdout, requests=PINGS)
    disconnect(started, way)

    assert started.server.wait() == 0
    assert not started.complained()


@pytest.mark.parametrize("stdout", LIVE)
def test_a_killed_client_ends_the_server(peer, stdout):
    started = peer("pipe", stdout, requests=PINGS)
    holder = subprocess.Popen(["sleep", "60"], pass_fds=[started.input, started.output])
    for fd in (started.input, started.output):
        os.close(fd)
    started.input = started.output = None
    holder.kill()
    holder.wait()

    assert started.server.wait() == 0
    assert not started.complained()


def test_a_waiting_server_uses_no_processor_time(peer):
    """Measure three states before and after the end of the input: idle, half-closed output, unread output."""
    started = {kinds: peer(*kinds, requests=PINGS) for kinds in itertools.product(LIVE, KINDS)}
    for each in started.values():
        assert each.read(COUNT) == list(range(COUNT))
    for stdin in LIVE:
        deaf = peer(stdin, "socket", requests=ping(1))
        assert deaf.read(1) == [1]
        shut(deaf.output, socket.SHUT_RD)
        started[stdin, "deaf"] = deaf
    many = PINGS * 150  # more than the buffer of a pipe, a socket or a terminal
    for stdin, stdout in [("file", each) for each in LIVE]:
        started[stdin, stdout, "unread"] = peer(stdin, stdout, requests=many)
    busy = dict(started)
    until = time.monotonic() + TIMEOUT
    while busy and time.monotonic() < until:  # at first, they still write responses
        before = {name: each.server.processor_seconds() for name, each in busy.items()}
        began = time.monotonic()
        time.sleep(0.2)
        used = {name: each.server.processor_seconds() - before[name] for name, each in busy.items()}
        took = time.monotonic() - began
        busy = {name: each for name, each in busy.items() if used[name] > took * IDLE}

    assert [*busy] == []
    for name, each in started.items():
        if "unread" in name:
            assert each.read(COUNT * 150) == [*range(COUNT)] * 150
            assert each.server.wait() == 0
        elif "deaf" in name:
            os.write(each.input, ping(2))
            assert each.server.wait() == 0


@pytest.mark.parametrize("stdout", LIVE)
def test_a_signal_ends_the_server_with_any_stdout(peer, stdout):
    started = peer("file", stdout, requests=PINGS * 150)
    started.wait_until_input_is_read()
    os.kill(started.server.pid, signal.SIGTERM)

    assert started.server.wait() == 0
    assert not started.complained()


def test_a_slow_reader_gets_all_responses_after_a_signal(peer):
    """Read for longer than a server waits for a client that reads nothing."""
    started = peer("file", "pipe", requests=PINGS * 150)
    started.wait_until_input_is_read()
    os.kill(started.server.pid, signal.SIGTERM)
    until = time.monotonic() + 1.5 * loop._GRACE
    while time.monotonic() < until:
        time.sleep(0.1)
        started.buffer += os.read(started.output, 4096)

    assert started.read(COUNT * 150) == [*range(COUNT)] * 150
    assert started.server.wait() == 0


@pytest.mark.parametrize("stdout", LIVE)
def test_a_server_on_macos_ends_when_its_reader_disconnects(forks_on_xnu, tmp_path, stdout):
    started = Peer(forks_on_xnu, tmp_path, "pipe", stdout, requests=PINGS)
    assert started.read(COUNT) == list(range(COUNT))
    disconnect(started, "close")

    assert started.server.wait() == 0
    assert not started.complained()
    started.close()

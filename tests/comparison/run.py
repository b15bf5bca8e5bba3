"""The same five tasks with other recorders and with ours: prints the table in docs/replay.md.

    python -m tests.comparison.run [NAME…]

Each tool is the newest release of its project, in an environment of its own below `.cache`. The server and the clients are
those of the official SDKs. Nothing here is compared by speed.
"""

import contextlib
import glob
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from tests.support import packages

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = [sys.executable, os.path.join(HERE, "server.py")]
PASSWORD, TOKEN = "correct horse battery staple", "ghp_s3cretT0kenOfTheTest0123456789abcdef"
TASKS = [
    "record a session over stdio",
    "replay it to the same client",
    "serve it to another client",
    "notice that a tool is gone",
    "keep secrets out of the file, without options",
]
PATIENCE = 30  # seconds
REVISION = "2025-11-25"  # of the recorded session


class Answer(NamedTuple):
    """Whether a task works, and a remark for the table."""

    works: bool
    remark: str = ""


class Done(NamedTuple):
    """How a program ended; the status is None if it had to be killed."""

    status: int | None
    output: str


def run(words):
    """Run a program; stdout and stderr together. Nothing that it started stays, also in sessions of its own."""
    mark = f"COMPARISON={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            words, env={**os.environ, name: value}, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = None
            process.kill()
            process.wait()
        time.sleep(0.5)  # recorders write their file at the end
        end_marked(mark)
        output.seek(0)
        return Done(status, output.read())


def end_marked(mark):
    """Interrupt, then kill, all processes with ``mark`` in their environment (Linux)."""
    for number in (signal.SIGINT, signal.SIGKILL):
        for path in glob.glob("/proc/[0-9]*/environ"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    os.kill(int(path.split("/")[2]), number)
        time.sleep(1 if number == signal.SIGINT else 0)


def newer_python():
    """A Python from 3.12 on; None if there is none."""
    kept = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9].*/bin/python")), reverse=True)
    for path in [sys.executable, *filter(None, map(shutil.which, ("python3.14", "python3.13", "python3.12"))), *kept]:
        code = "import sys; sys.exit(sys.version_info < (3, 12))"
        if subprocess.run([path, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return path
    return None


class Tool:
    """A recorder. Subclasses say how it is used, as its own documentation does."""

    name = release = ""
    also = ()  # further requirements, without which the newest release does not run
    interpreter = sys.executable

    def __init__(self, folder):
        self.folder = folder

    def program(self):
        """The path of its command."""
        place = packages.environment(self.name, self.release, *self.also, interpreter=self.interpreter)
        return os.path.join(place, packages.BINARIES, self.name)

    def file(self, name):
        """A path for a recording."""
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def recording(self, file, server):
        """What a client connects to while ``server`` is recorded."""
        yield [self.program(), *self.record_words(file, server)]

    @contextlib.contextmanager
    def serving(self, file):
        """What a client connects to while a recording is served."""
        yield [self.program(), *self.serve_words(file)]

    def notices(self, old, server):
        """Compare the recording ``old`` with ``server``; return the program's end, None if it has no such command."""
        raise NotImplementedError

    def recorded_again(self, server):
        """Record ``server`` into another file."""
        new = self.file("new")
        with self.recording(new, server) as words:
            session("py", words)
        return new


class Ours(Tool):
    """This checkout."""

    name = "tmkb"

    def program(self):
        return os.path.join(os.path.dirname(sys.executable), "tmkb")

    def file(self, name):
        return os.path.join(self.folder, f"{name}.transcript.yaml")

    def record_words(self, file, server):
        return ["record", "-o", file, "--", *server]

    def serve_words(self, file):
        return ["mock", file]

    def notices(self, old, server):
        return run([self.program(), "diff", old, shlex.join(server), "--revision", REVISION])


class Cassette(Tool):
    """It needs a newer Python than the others."""

    name, release = "mcp-cassette", "mcp-cassette==0.4.0"
    interpreter = newer_python()

    def record_words(self, file, server):
        return ["record", "--cassette", file, "--", *server]

    def serve_words(self, file):
        return ["serve", file]

    def notices(self, old, server):
        return run([self.program(), "diff", old, self.recorded_again(server), "--tools-only"])


class Recorder(Tool):
    """Its clients connect over HTTP, also if the server speaks over stdio."""

    name, release, also = "mcp-recorder", "mcp-recorder==0.5.0", ("starlette<1",)

    @contextlib.contextmanager
    def listening(self, *words):
        port = free_port()
        process = subprocess.Popen(
            [self.program(), *words, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(port)
            yield [f"http://127.0.0.1:{port}/mcp"]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def recording(self, file, server):
        return self.listening("record", "--target-stdio", shlex.join(server), "--output", file)

    def serving(self, file):
        return self.listening("replay", "--cassette", file)

    def notices(self, old, server):
        return run([self.program(), "verify", "--cassette", old, "--target-stdio", shlex.join(server)])


class Rec(Tool):
    """It records and replays, and has no other command."""

    name, release = "mcp-rec", "mcp-rec==0.1.1"

    def record_words(self, file, server):
        return ["record", "-o", file, "--", *server]

    def serve_words(self, file):
        return ["replay", file]

    def notices(self, old, server):
        return None


class AgentVcr(Tool):
    """Its recorder ends with Ctrl-C only."""

    name, release = "agent-vcr", "agent-vcr==0.1.0"

    def record_words(self, file, server):
        return ["record", "--transport", "stdio", "--server-command", shlex.join(server), "-o", file]

    def serve_words(self, file):
        return ["replay", "--transport", "stdio", "-f", file]

    def notices(self, old, server):
        return run([self.program(), "diff", old, self.recorded_again(server), "--fail-on-breaking"])


TOOLS = {tool.name: tool for tool in (Ours, Cassette, Recorder, Rec, AgentVcr)}


def session(client, words):
    """Let a client use a server, and return its end."""
    if client == "py":
        return run([sys.executable, os.path.join(HERE, "client.py"), *words])
    clients = os.path.join(os.path.dirname(HERE), "clients")
    return run([packages.node(), os.path.join(HERE, "client.mjs"), packages.for_node(clients), *words])


def tried(tool):
    """Yield the answer of a tool to each task, as far as it gets."""
    server = [*SERVER, "login"]
    expected = "forecast tide\nSunny in Oslo\n"
    old = tool.file("old")
    with tool.recording(old, server) as words:
        done = session("py", words)
    works = done.status == 0 and expected in done.output
    yield Answer(works, "" if works else f"the client gets {ending(done)}")
    if not works:
        return
    for client in ("py", "mjs"):
        with tool.serving(old) as words:
            done = session(client, words)
        works = done.status == 0 and expected in done.output
        yield Answer(works, "" if works else ending(done))
    yield noticed(tool, old, server)
    secret = tool.file("secret")
    with tool.recording(secret, SERVER) as words:
        session("py", words)
    text = packages.read(secret)
    left = [name for name, value in (("a password", PASSWORD), ("a token", TOKEN)) if value in text]
    yield Answer(not left, f"contains {' and '.join(left)}" if left else "")


def ending(done):
    """Say in a few words how the client failed."""
    if done.status is None:
        return f"no answer in {PATIENCE} s"
    errors = re.findall(r"(?:\w*(?:Error|Exception)\w*): ([^\n|]+)", done.output)
    return errors[-1].strip() if errors else f"exit status {done.status}"


def noticed(tool, old, server):
    """Whether the tool notices that a server lacks a tool."""
    same, less = tool.notices(old, server), tool.notices(old, [*server, "tide"])
    if same is None:
        return Answer(False, "has no command for it")
    if same.status != 0:
        return Answer(False, f"fails without a change: {ending(same)}")
    return Answer(less.status not in (0, None) and "tide" in less.output, "" if less.status else "says nothing")


def free_port():
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


def wait_for(port):
    """Wait until somebody listens."""
    for _ in range(PATIENCE * 10):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)


def main(names):
    """Print the table; 1 if ours fails a task."""
    columns = {}
    for name in names or TOOLS:
        if TOOLS[name].interpreter is None:
            print(f"{name} needs a newer Python than is installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            answers = [*tried(TOOLS[name](folder))]
        columns[name] = [*answers, *[Answer(False, "nothing recorded")] * (len(TASKS) - len(answers))]
    titles = [f"{name} {TOOLS[name].release.partition('==')[2]}".strip() for name in columns]
    print(f"| task | {' | '.join(titles)} |\n|---|{'---|' * len(columns)}")
    for number, task in enumerate(TASKS):
        cells = [column[number] for column in columns.values()]
        print(f"| {task} | {' | '.join(shown(cell) for cell in cells)} |")
    return int(not all(answer.works for answer in columns.get("tmkb", ())))


def shown(answer):
    """A cell of the table."""
    text = "yes" if answer.works else "no"
    return f"{text}: {answer.remark}" if answer.remark else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

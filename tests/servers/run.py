"""Do the commands for servers of others work with servers and clients that people use?

    python -m tests.servers.run [NAME…]

For each server, over stdio and, where it has that, Streamable HTTP: an official client records a conversation with
`tmkb record`, `tmkb replay` replays it, `tmkb mock` serves it to the Python and the TypeScript client of both eras of the protocol,
`tmkb diff` compares it with the server and with the server without a tool, and `tmkb check` runs to its end. What clients print with
a recorder or a mock is compared with what they print with the server. `requests.yaml` has what they send.

The servers are pinned and installed below ``.cache``. Two are ours, written with the libraries of others: the Python SDK, whose own
server with every feature is not published, and FastMCP. FastMCP 4.1.2 is older than the newest release, which demands a release of
``certifi`` that is not there. There is no server in Go: Debian has no package of one, and this runs without modules of Go.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import yaml

from tests.support import packages

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CLIENTS = os.path.join(os.path.dirname(HERE), "clients")
TMKB = [sys.executable, "-m", "tmkb"]
FASTMCP = ("fastmcp", "fastmcp==4.1.2")
LONGEST = 90  # seconds for one command
BOTH, OLD = ("legacy", "auto"), ("auto",)  # the modes of clients: for servers of both eras, and of the first one
LEFT_OUT = {  # the beginning of a line of output → why that is not tried
    "fastmcp http diff": "the transport of diff is that of sdk",
    "fastmcp http check": "the transport of check is that of sdk, and its answers are those over stdio",
    "everything http check": "its answers are those over stdio",
}
OF_ERA = ("_meta", "ttlMs", "cacheScope", "resultType", "extensions")  # members of results that only the newer era has
NO_RESOURCE, INVALID_PARAMS = -32002, -32602  # how each era says that there is no such resource
LETTER = "Dear Ann,\n\tGrüße, 世界.\n"


@dataclasses.dataclass(frozen=True)
class Case:
    """A server: its lists of requests, the modes of clients, the tool that it loses, and whether it has HTTP."""

    requests: tuple[str, ...]
    modes: tuple[str, ...]
    lost: str
    http: bool = False
    typescript: bool = False

    @property
    def conversations(self):
        """The clients that are recorded, each as its language and mode."""
        # The TypeScript client sends under the first era what the Python client sends.
        return [("python", mode) for mode in self.modes] + [("typescript", "auto")] * self.typescript


SERVERS = {
    "sdk": Case(("weather", "sdk"), BOTH, "forecast", http=True, typescript=True),
    "fastmcp": Case(("weather",), BOTH, "forecast", http=True),
    "everything": Case(("everything",), OLD, "echo", http=True, typescript=True),
    "filesystem": Case(("filesystem",), OLD, "read_file"),
    "memory": Case(("memory",), OLD, "read_graph"),
}


class Trouble(Exception):
    """A step went wrong; the text says how."""


# Servers


def command(name, folder, port=None):
    """The command of a server; with a port, over HTTP."""
    modules = os.path.join("node_modules", "@modelcontextprotocol")
    if name in ("sdk", "fastmcp"):
        python = sys.executable
        if name == "fastmcp":
            python = os.path.join(packages.environment(*FASTMCP), packages.BINARIES, "python")
        script = os.path.join(HERE, "sdk.py" if name == "sdk" else "fast.py")
        return [python, "-W", "ignore", script, *([str(port)] if port else [])]
    script = os.path.join(packages.for_node(HERE), modules, f"server-{name}", "dist", "index.js")
    more = {"everything": ["streamableHttp" if port else "stdio"], "filesystem": [folder], "memory": []}
    return [packages.node(), script, *more[name]]


class Run:
    """What one server is tried in: a folder for its files, its environment, and what its clients send."""

    def __init__(self, name, folder):
        self.name, self.case, self.folder = name, SERVERS[name], folder
        self.files = os.path.join(folder, "files")
        os.makedirs(self.files)
        with open(os.path.join(self.files, "letter.txt"), "w", encoding="utf-8") as file:
            file.write(LETTER)
        self.memory = os.path.join(folder, "memory.json")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL"))}
        self.environment = packages.with_node(kept) | {"MEMORY_FILE_PATH": self.memory, "PYTHONPATH": ROOT}
        self.environment["ROOT_URI"] = pathlib.Path(self.files).as_uri()
        lists = yaml.safe_load(packages.read(os.path.join(HERE, "requests.yaml")))
        requests = [request for each in self.case.requests for request in lists[each]]
        self.requests = os.path.join(folder, "requests.json")
        with open(self.requests, "w", encoding="utf-8") as file:
            file.write(json.dumps(requests).replace("FOLDER", self.files))

    def run(self, words, expected=0):
        """What a command prints to stdout and stderr, if it ends with the status ``expected`` (None: any)."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.memory)  # each server begins anew
        try:
            done = subprocess.run(
                words,
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"{shlex.join(words)} did not end after {LONGEST} s") from error
        if expected is not None and done.returncode != expected:
            raise Trouble(
                f"{shlex.join(words)} ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
            )
        return done.stdout, done.stderr

    def printed(self, language, mode, words):
        """What a client prints, line by line: the name of each request and its result."""
        client = [sys.executable, os.path.join(HERE, "caller.py")]
        if language == "typescript":
            client = [packages.node(), os.path.join(HERE, "caller.mjs"), packages.for_node(CLIENTS)]
        stdout, _ = self.run([*client, self.requests, mode, *words])
        return stdout.splitlines()

    @contextlib.contextmanager
    def started(self, words, ready):
        """A program that runs meanwhile; what of its output ``ready``, a regular expression, matched."""
        process = subprocess.Popen(
            words, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines, matched, heard = [], [], threading.Event()

        def read():
            for line in process.stdout:
                lines.append(line)
                if found := re.search(ready, line):
                    matched.append(found[0])
                    heard.set()
            heard.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        heard.wait(LONGEST)
        try:
            if not matched:
                raise Trouble(f"{shlex.join(words)} did not start:\n{''.join(lines)}")
            yield matched[0]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            reader.join()
            process.stdout.close()

    @contextlib.contextmanager
    def served(self, transport):
        """The words that tell a client how to reach the server: its command, or the address of one that runs."""
        if transport == "stdio":
            yield command(self.name, self.files)
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.environment["PORT"] = str(port)
        with self.started(command(self.name, self.files, port), r"running on http|listening on port"):
            yield [f"http://127.0.0.1:{port}/mcp"]

    @contextlib.contextmanager
    def recorded(self, words, file):
        """The words for a client that lead through a recorder to the server that ``words`` lead to."""
        if not words[0].startswith("http:"):
            yield [*TMKB, "record", "-o", file, "--", *words]
            return
        recorder = [*TMKB, "record", "--url", words[0], "--listen", "127.0.0.1:0", "-o", file]
        with self.started(recorder, r"http://\S+/mcp") as address:
            yield [address]

    @contextlib.contextmanager
    def mocked(self, file, transport):
        """The words for a client that lead to a mock."""
        if transport == "stdio":
            yield [*TMKB, "mock", file]
            return
        with self.started([*TMKB, "mock", file, "--http", "127.0.0.1:0"], r"http://\S+/mcp") as address:
            yield [address]


# Steps


def same(expected, actual, alike=lambda line: line):
    """Raises Trouble at the first line that differs."""
    for one, other in zip([*expected, None], [*actual, None], strict=False):
        if one != other and (one is None or other is None or alike(one) != alike(other)):
            raise Trouble(f"with the server  {str(one)[:600]}\n    with this        {str(other)[:600]}")


def of_any_moment(line):
    """A line as its name and value, without progress: the TypeScript client drops reports that come with the response."""
    name, value = re.match(r"(.*?) ([\[{\"].*|null)$", line).groups()
    result = json.loads(value)
    return name, result["result"] if isinstance(result, dict) and "progress" in result else result


def of_any_era(line):
    """A line without what differs between eras: members of results, and progress that a client reports to itself."""
    name, result = of_any_moment(line)
    if name == "speaks":
        return name
    if isinstance(result, dict):
        result = {member: value for member, value in result.items() if member not in OF_ERA}
        if result.get("code") == NO_RESOURCE:
            result["code"] = INVALID_PARAMS
    return name, result


def alike(language):
    """What of a line is compared, for a client of a language."""
    return of_any_moment if language == "typescript" else lambda line: line


def place(words):
    """How our commands are printed where a server is."""
    return ["--url", words[0]] if words[0].startswith("http:") else ["--command", shlex.join(words)]


def steps(run, transport):
    """Each step as its name and what it does."""
    case, direct, files = run.case, {}, {}
    conversations = case.conversations
    with run.served(transport) as words:
        for who in conversations:
            name = " ".join(who)
            files[who] = os.path.join(run.folder, "-".join([transport, *who]))
            os.mkdir(files[who])  # a client may open several connections, each with a recording of its own

            def record(who=who):
                direct[who] = run.printed(*who, words)
                with run.recorded(words, os.path.join(files[who], "session.transcript.yaml")) as through:
                    same(direct[who], run.printed(*who, through), alike(who[0]))
                if not os.listdir(files[who]):
                    raise Trouble("no recording was written")

            def replay(who=who):
                for _ in range(1 if transport == "stdio" else 2):  # over HTTP, the server knows that it was used
                    run.run([*TMKB, "replay", *place(words), files[who]])

            yield f"record {name}", record
            yield f"replay {name}", replay
        for mode in case.modes:
            yield f"diff python {mode}", lambda mode=mode: diff(run, words, main_recording(files["python", mode]))
        yield "check", lambda: check(run, words)
    for recorded in conversations:
        for playing in conversations:
            if recorded[0] != playing[0] and recorded[1] != playing[1]:
                continue  # another client and another era: each alone is tried

            def mock(recorded=recorded, playing=playing):
                with run.mocked(files[recorded], transport) as through:
                    printed = run.printed(*playing, through)
                same_era = recorded[1] == playing[1]
                expected = direct[playing if same_era else (playing[0], recorded[1])]
                same(expected, printed, alike(playing[0]) if same_era else of_any_era)

            yield f"mock {' '.join(recorded)} → {' '.join(playing)}", mock


def main_recording(folder):
    """The largest of the recordings of a client; the others are of connections that it only tried."""
    return max((entry.path for entry in os.scandir(folder)), key=os.path.getsize)


def diff(run, words, file):
    """The server is as it was recorded, and without a tool it is not."""
    side = words[0] if words[0].startswith("http:") else shlex.join(words)
    printed, _ = run.run([*TMKB, "diff", file, side, "--json"])
    changes = json.loads(printed)
    if changes.get("changes"):
        raise Trouble(f"differences: {printed[:800]}")
    without = [sys.executable, os.path.join(HERE, "without.py"), run.case.lost, *command(run.name, run.files)]
    printed, _ = run.run([*TMKB, "diff", file, shlex.join(without)], expected=1)
    if not re.search(rf"^breaking[\s\S]*tools\.{run.case.lost}", printed, re.M):
        raise Trouble(f"the lost tool is not reported: {printed[:800]}")


def check(run, words):
    """The check runs to its end."""
    printed, stderr = run.run([*TMKB, "check", *place(words), "--revision", "2025-11-25", "--json"], expected=None)
    outcomes = [each["status"] for each in json.loads(printed)] if printed else []
    if outcomes.count("pass") < 20:
        raise Trouble(f"{len(outcomes)} outcomes, {outcomes.count('pass')} pass: {stderr[-800:]}")


def main():
    """Try the servers; 1 if a step fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SERVERS, []], help="only these servers")
    failed = 0
    for name in parser.parse_args().names or SERVERS:
        for transport in ("stdio", "http") if SERVERS[name].http else ("stdio",):
            with tempfile.TemporaryDirectory() as folder:
                for step, action in steps(Run(name, folder), transport):
                    line = f"{name} {transport} {step}"
                    if reasons := [why for where, why in LEFT_OUT.items() if line.startswith(where)]:
                        print(f"{name:11} {transport:6} {step:50}         left out: {reasons[0]}", flush=True)
                        continue
                    begun = time.monotonic()
                    try:
                        action()
                        outcome = "ok"
                    except (Trouble, KeyError, ValueError) as error:
                        outcome = f"FAILED\n    {error if isinstance(error, Trouble) else repr(error)}"
                        failed += 1
                    taken = time.monotonic() - begun
                    print(f"{name:11} {transport:6} {step:50} {taken:5.1f} s {outcome}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What is fuzzed: for each target, a function from bytes to nothing that raises when something wrong follows from them.

A function uses the real modules and keeps no state between two inputs, so that an input that failed fails again. Bad
input has to end in an error that the client or author gets. An exception, a traceback in the log, a second response or
a response that is not JSON is a finding.
"""

import asyncio
import atexit
import collections
import contextlib
import functools
import glob
import json
import os
import re
import shutil
import socket
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tmkb.conformance import replay, report, targets, transcript
from tmkb.errors import DocumentError, ProtocolError, ToolError
from tmkb.knowledge import pattern, tokens
from tmkb.protocol.effects import Send
from tmkb.protocol.messages import decode
from tmkb.schema import hidden, jsonschemas, metaschema, paths, problems, reader
from tmkb.server.log import Log
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server
from tmkb.transport.framing import Lines

CORPUS = os.path.join(os.path.dirname(__file__), "corpus")
PROBLEMS = {"failed", "http_failed", "not_prepared"}  # lines of the log that show an unexpected exception
STEPS = 50  # of operations for one input
TURNS = 500  # of the event loop for one input
LONGEST = 100_000  # bytes of one HTTP connection
HOST = b"Host: localhost\r\n"
START = {"host": "localhost", "accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}'
)

Run = Callable[[bytes], None]


class Target(NamedTuple):
    """How a target is prepared, valid inputs, words that inputs are made of, and the packages it needs."""

    prepare: Callable[[], Run]
    seeds: Callable[[], Iterable[bytes]]
    words: Callable[[], Iterable[str]] = tuple
    needs: tuple[str, ...] = ()


class Problems(Log):
    """A log to nowhere that keeps what it says about unexpected exceptions."""

    def __init__(self, lines):
        super().__init__(lines, fd=os.open(os.devnull, os.O_WRONLY))
        self.kept = []

    def write(self, line, request_id=None, /, **fields):
        super().write(line, request_id, **fields)
        if isinstance(line, str) and line in PROBLEMS:
            self.kept.append(" ".join(map(str, fields.values())))

    def check(self):
        """Raise what was kept since the last call."""
        self.flush()
        kept, self.kept = self.kept, []
        assert not kept, "\n".join(kept)


def served(name):
    """Return a function that makes a new runtime of the packaged server ``name``, and its log."""
    server = Server.load(name, patterns=["packaged"])
    log = Problems(server.spec["server"]["log"])
    return lambda: Runtime(server.spec, server.provider, log), log


# Messages


def connection():
    """Lines of one client of the server `everything`, which has all features and revisions."""
    make, log = served("everything")

    def run(data):
        runtime = make()
        peer = runtime.connect()
        cutter = Lines(runtime.spec["server"]["limits"]["message_bytes"])
        sent, lines = [], [*cutter.feed(data), *cutter.finish()]
        for line in lines:
            sent += runtime.handle_too_large(peer) if line is None else runtime.handle(peer, line)
            sent += finish(runtime)
        waiting = set(map(known, peer.in_flight)) | set(map(known, peer.listening))
        sent += [*runtime.end(peer), *runtime.stop()]
        runtime.abandon(peer)
        log.check()
        responses = answered(sent)
        received = [message for line in lines if line is not None for message in messages(line)]
        ids = collections.Counter(known(each["id"]) for each in received)
        assert responses <= ids, (responses, ids)
        batches = any(line is not None and line.lstrip().startswith(b"[") for line in lines)
        if b"cancel" not in data and not batches and all(count == 1 for count in ids.values()):
            unanswered = {known(each["id"]) for each in received if "method" in each} - set(responses) - waiting
            assert not unanswered, unanswered

    return run


def finish(runtime):
    """Run the operations that need not wait; return what they send."""
    sent = []
    for _ in range(STEPS):
        if runtime.due() != 0:
            break
        sent += runtime.work()
    return sent


def known(id_):
    """An id as a key that differs for 1 and "1"."""
    return type(id_), id_


def answered(sent):
    """Count the responses with an id in ``sent``. Each message must be JSON on one line."""
    responses = collections.Counter()
    for each in sent:
        if isinstance(each, Send):
            assert b"\n" not in each.message
            value = decode(each.message)
            each.message.decode("ascii")
            for message in value if isinstance(value, list) else [value]:
                assert message["jsonrpc"] == "2.0"
                if "method" not in message and message.get("id") is not None:
                    assert ("result" in message) != ("error" in message), message
                    responses[known(message["id"])] += 1
    return responses


def messages(line):
    """Return the messages in ``line`` with an id; none if the line is not JSON."""
    try:
        value = decode(line)
    except ProtocolError:
        return []
    each = value if isinstance(value, list) else [value]
    return [message for message in each if isinstance(message, dict) and type(message.get("id")) in (int, str)]


def conversations():
    """The lines of each packaged transcript, under the last revision that it applies to."""
    for path in transcript.find(paths.CONFORMANCE):
        each = transcript.read(path)
        turns = [*each.opening(each.revisions[-1]), *each.turns(each.revisions[-1])]
        yield b"".join(turn.line + b"\n" for turn in turns)


def wire_words():
    """Methods, keys and names that messages contain."""
    words = set()
    for path in glob.glob(os.path.join(paths.SCHEMAS, "protocol", "*.yaml")):
        words |= set(re.findall(r"[\w.]+/[\w./]+|\b[a-z]+[A-Z]\w+\b|20\d\d-\d\d-\d\d", text(path)))
    return sorted(words | {"jsonrpc", "2.0", "id", "method", "params", "result", "error", "name", "arguments", "uri"})


# HTTP


def http():
    """Bytes on one HTTP connection, by httptools and the application. ``@SESSION`` is the id of a session."""
    from tmkb.transport.listener import LogHandler

    make, log = served("everything")
    LogHandler(log).install()
    loop = asyncio.new_event_loop()

    def run(data):
        received = loop.run_until_complete(exchange(make(), data[:LONGEST]))
        log.check()
        assert not received or received.startswith(b"HTTP/1.1 "), received[:80]
        statuses = re.findall(rb"^HTTP/1\.1 (\d+)", received, re.M)
        assert b"500" not in statuses and b"Traceback" not in received, received

    return run


async def exchange(runtime, data):
    """Return what a connection to a new application receives for ``data``. Both ends are closed then."""
    import uvicorn

    from tmkb.transport.asgi import Application
    from tmkb.transport.connections import Pool, Protocol
    from tmkb.transport.guard import Guard
    from tmkb.transport.http import Endpoint, Request

    application = Application(Endpoint(runtime, Guard()))
    limits = application.endpoint.limits
    session = application.endpoint.handle(Request("POST", "/mcp", START, INITIALIZE)).headers.get("mcp-session-id", "")
    pool = Pool(limits, limits["connections"], limits["connections"], runtime.log)
    state = uvicorn.server.ServerState()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    pool._connect(loop, theirs, lambda: Protocol(pool, application, state))
    received = await talk(ours, data.replace(b"@SESSION", session.encode()))
    for turn in range(TURNS):
        if not pool.open and not state.tasks:
            break
        await asyncio.sleep(0 if turn < TURNS / 2 else 0.001)
    assert not pool.open, "the connection stays open after the client has closed it"
    if application.worker is not None:
        application.worker.cancel()
    runtime.stop()
    return received


async def talk(ours, data):
    """Send ``data``, and return what comes until nothing more does."""
    received, quiet = b"", 0
    with ours:
        while quiet < 20:
            await asyncio.sleep(0)
            quiet += 1
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while data:
                    data, quiet = data[ours.send(data) :], 0
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while chunk := ours.recv(65536):
                    received, quiet = received + chunk, 0
    return received


def http_requests():
    """Requests with and without a session, of every verb."""
    head = HOST + b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    session = head + b"Mcp-Session-Id: @SESSION\r\nMCP-Protocol-Version: 2025-11-25\r\n"
    yield b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    yield b"GET /mcp HTTP/1.1\r\n" + session + b"Last-Event-ID: 1-1\r\n\r\n"
    yield b"DELETE /mcp HTTP/1.1\r\n" + session + b"\r\n"
    yield (
        b"OPTIONS /mcp HTTP/1.1\r\n" + HOST + b"Origin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n"
    )
    for lines in conversations():
        for number, line in enumerate(lines.splitlines()[1:4]):
            sized = b"Content-Length: %d\r\n\r\n%s" % (len(line), line)
            chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(line), line)
            yield b"POST /mcp HTTP/1.1\r\n" + (session + sized if number % 2 else head + chunked)


def http_words():
    """Verbs, names of headers, and what they contain."""
    heads = "POST GET DELETE OPTIONS HEAD HTTP/1.1 HTTP/1.0 /mcp /healthz Host localhost Origin Accept Content-Type"
    more = "Content-Length Transfer-Encoding chunked Connection close keep-alive Expect 100-continue Last-Event-ID"
    own = "Mcp-Session-Id @SESSION MCP-Protocol-Version Mcp-Method Mcp-Name Mcp-Param- Authorization Bearer Upgrade"
    return [*heads.split(), *more.split(), *own.split(), "\r\n", "\r\n\r\n", *wire_words()]


# Files


def yaml():
    """The text of a YAML file; it is also read as JSON, and checked as the kind of file that it says it is."""
    kinds = paths.meta_schemas()

    def run(data):
        content = data.decode("utf-8", "replace")
        found = []
        for name in ("file.yaml", "file.json"):
            try:
                document = reader.parse(content, name)
            except DocumentError as error:
                found += error.problems
                continue
            if name.endswith(".json"):
                assert document.value == json.loads(content)
            kind = document.mapping().get("kind")
            if isinstance(kind, str) and kind in kinds:
                found += metaschema.check(document, kinds[kind])
            for key in ("input", "output"):
                if isinstance(schema := document.mapping().get(key), dict):
                    found += jsonschemas.check(document, (key,), schema)
        if "\nkind: pattern" in content:
            found += pattern.check_text(content, "pattern.yaml", ["TMKB-AUTHZ-001"])
        last = content.count("\n") + content.count("\r") + 2
        for each in found:
            shown(each)
            assert 1 <= each.line <= last + content.count("\x85") + content.count("\u2028") + content.count("\u2029")

    return run


def shown(problem):
    """Check that a problem is one line of text that no terminal executes."""
    line = problems.line(problem)
    assert line.encode() and not hidden.find(line) and len(line.splitlines()) == 1, line


def files():
    """A file of each kind, and some more."""
    seen = collections.Counter()
    folders = (paths.SCHEMAS, paths.PATTERNS)
    for path in sorted(path for each in folders for path in glob.glob(f"{each}/**/*.yaml", recursive=True)):
        content = text(path)
        kind = re.search(r"^kind: (\w+)$", content, re.M)
        seen[kind and kind[1]] += 1
        if seen[kind and kind[1]] <= 3 and len(content) < 20_000:
            yield content.encode()
            yield json.dumps(reader.parse(content, path).value).encode()  # which YAML contains


def yaml_words():
    """Keys of our files, and what has a meaning in YAML."""
    keys = {key for path in paths.meta_schemas().values() for key in re.findall(r"^\s+(\w+):", text(path), re.M)}
    signs = [
        "---",
        "...",
        "!!",
        "&a",
        "*a",
        "<<:",
        "? ",
        ": ",
        "- ",
        "|+",
        ">-",
        "%YAML 1.1",
        "~",
        "\t",
        "\u2028",
        "\x85",
    ]
    return [*sorted(keys), *signs, *(f"kind: {kind}" for kind in paths.meta_schemas())]


def recording():
    """A transcript of `everything`: read, replayed against the server in this process, and reported."""
    make, log = served("everything")
    folder = scratch()
    path = os.path.join(folder, "fuzz.transcript.yaml")

    def run(data):
        with open(path, "wb") as file:
            file.write(data)
        try:
            each = transcript.read(path)
        except DocumentError as error:
            for problem in error.problems:
                shown(problem)
            return
        if each.value["server"] != "everything" or each.config:
            return
        cases = []
        for revision in each.revisions[:2]:
            for result in replay.replay(each, revision, targets.InProcess(make(), timeout=0.001)):
                number = each.lines[result.number - 1] if 0 < result.number <= len(each.lines) else 0
                outcome = "failed" if result.differences else "passed"
                texts = (result.sent, result.expected, result.actual)
                title = f"{revision} {result.number}"
                cases.append(report.Case(title, outcome, result.differences, 0.0, number, *texts))
        suite = report.Suite(each.name, each.value["title"], each.path, cases)
        for form in (report.junit, lambda name, suites: report.page(name, "", suites).encode()):
            form("replay", [suite]).decode("utf-8")
        assert all(isinstance(line, str) for line in [*report.text(suite), *report.github([suite])])
        log.check()

    return run


def transcripts():
    """Packaged transcripts of the server."""
    for path in transcript.find(paths.CONFORMANCE):
        if "\nserver: everything" in (content := text(path)) and len(content) < 1500:
            yield content.encode()
            yield json.dumps(reader.parse(content, path).value).encode()  # which YAML contains


def transcript_words():
    """Keys and matchers of transcripts."""
    keys = re.findall(r"^\s+(\$?\w+):", text(paths.meta_schemas()["transcript"]), re.M)
    matchers = re.findall(r"\$\w+", text(os.path.join(paths.CONFORMANCE, "README.md")))
    return sorted({*keys, *matchers, *wire_words()})


# Questions


def question():
    """A question: language, framework and context, one a line, as a call of the packaged server."""
    make, log = served("tmkb")
    runtime = make()
    limit = runtime.spec["server"]["providers"]["knowledge"]["agent"]["tokens"]

    def run(data):
        language, framework, context = [*data.decode("utf-8", "surrogateescape").split("\n", 2), "", ""][:3]
        words = {"context": context, "language": language, "framework": framework}
        answers = []
        for verbosity in ("agent", "human", "agent"):
            call = {
                "name": "tmkb_query",
                "arguments": {**{k: v for k, v in words.items() if v}, "verbosity": verbosity},
            }
            peer = runtime.connect()
            shake(runtime, peer)
            line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
            (sent,) = [*runtime.handle(peer, line), *finish(runtime)]
            runtime.abandon(peer)
            answers.append(json.loads(sent.message))
        runtime.snapshot.result_cache.clear()
        log.check()
        assert answers[0] == answers[2]
        result = answers[0].get("result")
        if result is not None and not result.get("isError"):
            assert json.loads(result["content"][0]["text"])["patterns_included"] <= 3
            assert tokens.count(result["content"][0]["text"]) <= limit

    return run


def shake(runtime, peer):
    """Initialize a connection."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
    for message in ({"id": 0, "method": "initialize", "params": params}, {"method": "notifications/initialized"}):
        runtime.handle(peer, json.dumps({"jsonrpc": "2.0", **message}).encode())


def questions():
    """Questions of pattern authors."""
    for path in sorted(glob.glob(os.path.join(paths.PATTERNS, "*", "questions.yaml")))[::3]:
        for line in re.findall(r"^\s+- (.{20,300})$", text(path), re.M)[:3]:
            yield b"python\nflask\n" + line.encode()
    yield b"\n\ndef delete(id):\n    Order.query.get(id).delete()\n"


def question_words():
    """Words of the vocabulary."""
    joined = " ".join(map(text, sorted(glob.glob(os.path.join(paths.PATTERNS, "*", "pattern.yaml")))))
    return [word for word, _ in collections.Counter(re.findall(r"[a-z_]{4,}", joined)).most_common(600)]


# System files


def evtx():
    """An event log. ``F``: the file follows. ``C``: a chunk, whose checksums are corrected. Else: a chunk."""
    from tests.sysmcp import evtxfile, logs

    folder = scratch()
    queries = ({"limit": 5}, {"limit": 20, "minLevel": "ERROR", "order": "oldest"}, {"text": "value", "limit": 3})

    def run(data):
        kind, data = data[:1], data[1:]
        if kind != b"F":
            chunk = bytearray(data[: evtxfile.CHUNK].ljust(evtxfile.CHUNK, b"\0"))
            data = evtxfile.file([checksummed(chunk) if kind == b"C" else bytes(chunk)])
        with open(os.path.join(folder, "System.evtx"), "wb") as file:
            file.write(data)
        provider = logs.served({"kind": "evtx", "folder": folder})
        for arguments in queries:
            with contextlib.suppress(ToolError):
                answer = logs.ask(provider, **arguments)
                assert len(answer["entries"]) <= arguments["limit"]
                json.dumps(answer).encode("ascii")
        logs.run(provider.list_logs())

    return run


def checksummed(chunk):
    """A chunk with correct checksums (MS-EVEN6 names them; libevtx describes them)."""
    (free,) = struct.unpack_from("<I", chunk, 48)
    struct.pack_into("<I", chunk, 52, zlib.crc32(chunk[512 : min(free, len(chunk))]))
    struct.pack_into("<I", chunk, 124, zlib.crc32(bytes(chunk[:120] + chunk[128:512])))
    return bytes(chunk)


def chunks():
    """Chunks of few events, without the zeros at their end."""
    from tests.sysmcp import evtxfile

    for count in (1, 3, 20):
        (chunk,) = evtxfile.chunks(evtxfile.events(count))
        yield b"C" + chunk.rstrip(b"\0")
    yield b"F" + evtxfile.file([chunk])[:8000]


def hive():
    """A registry hive. ``S``: its header gets a correct checksum. Else the file follows."""
    from tests.sysmcp import hives

    place = hives.Place(scratch())

    def run(data):
        kind, data = data[:1], data[1:]
        place.put(hives.sealed(data) if kind == b"S" and len(data) >= 512 else data)
        place.provider.cached = None, bytearray()
        paths_, seen = ["HKLM\\SYSTEM"], 0
        while paths_ and seen < 40:
            path, seen = paths_.pop(), seen + 1
            with contextlib.suppress(ToolError):
                answer = place.read(path, limit=20)
                json.dumps(answer).encode("ascii")
                paths_ += [f"{path}\\{name}" for name in answer["subkeys"]]
                for each in answer["values"][:3]:
                    place.read(path, valueName=each["name"])
        os.truncate(place.audit, 0)

    return run


def hive_files():
    """The packaged hive."""
    from tests.sysmcp import hives

    with open(hives.FIXTURE, "rb") as file:
        content = file.read()
    yield b"S" + content.rstrip(b"\0")
    yield b"F" + content[:5000]


def scratch():
    """Return a folder that is deleted at the end of the process."""
    folder = tempfile.mkdtemp(prefix="tmkb-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def text(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


TARGETS = {
    "connection": Target(connection, conversations, wire_words),
    "http": Target(http, http_requests, http_words, ("uvicorn",)),
    "yaml": Target(yaml, files, yaml_words),
    "transcript": Target(recording, transcripts, transcript_words),
    "question": Target(question, questions, question_words),
    "evtx": Target(evtx, chunks, lambda: ["**\0\0", "\x0f\x01\x01\0", "ElfChnk\0"], ("evtx",)),
    "hive": Target(
        hive, hive_files, lambda: ["regf", "hbin", "nk", "vk", "lf", "lh", "li", "ri", "sk", "db"], ("Registry",)
    ),
}


@functools.cache
def prepared(name):
    """Return the function of a target."""
    return TARGETS[name].prepare()


def inputs(name):
    """The path of each input of a target in the repository."""
    return sorted(glob.glob(os.path.join(CORPUS, name, "*")))

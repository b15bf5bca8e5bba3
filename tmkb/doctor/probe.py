"""Start a server as a client would, talk to it, and end it."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tmkb import __version__
from tmkb.conformance import targets
from tmkb.conformance.client import Client, ClientError
from tmkb.conformance.process import Process
from tmkb.doctor.finding import ERROR, Finding, Topic, symptom, worst
from tmkb.doctor.launch import Launch
from tmkb.knowledge import tokens
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject, JsonValue

END = 2.0  # seconds for a server to end after its input, and after SIGTERM
MOST_TOKENS = 25_000  # of an answer that Claude Code still accepts (MAX_MCP_OUTPUT_TOKENS)
_QUERY: JsonObject = {"context": "endpoint that exports the invoices of a tenant"}
_QUERY_TOOL = "tmkb_query"
_OURS = ("tmkb", "tmkb-full")  # servers whose version is that of the package
_WARNINGS = ("[WARNING]", "[ERROR]")  # how lines of our log begin
_MOST_NOISE = 3  # lines
_SHOWN = 200  # characters of a line
_GRACE = 0.5  # seconds for the children of a process to end after it
_running: dict[Conversation, threading.Thread] = {}
_abandoned: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # threads that start no more processes
_lock = threading.Lock()


@dataclass
class Measured:
    """What one conversation showed. Times are in milliseconds from the start of the process."""

    first: float = 0.0
    listed: float = 0.0
    list_tokens: int = 0
    answer_tokens: int = 0
    revisions: list[str] = field(default_factory=list)


class Conversation:
    """A process with a client. `close` ends both."""

    def __init__(self, launch: Launch, spec: Spec, timeout: float, revision: str | None = None) -> None:
        """Start the process. Raises OSError, also if the check was given up.

        Args:
            launch: the command with its surroundings.
            spec: the revisions that the client speaks.
            timeout: seconds for one answer.
            revision: the only revision to offer; by default the newest in common.
        """
        self.noise: list[str] = []
        self.began = time.monotonic()
        self.first: float | None = None
        start: dict[str, Any] = {
            "cwd": launch.folder,
            "env": {**launch.environment},
            "start_new_session": sys.platform != "win32",
        }
        thread = threading.current_thread()
        with _lock:
            if thread in _abandoned:
                raise OSError(errno.ECANCELED, "the check was given up")
            self.target = targets.Command(launch.argv, timeout, quiet=0.0, **start)
            _running[self] = thread
        self.target.on_receive = self._hear
        self.client = Client(self.target, spec, revision)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process(self) -> Process:
        """The process."""
        return self.target.process

    def close(self) -> bool:
        """End the input, then kill what is left. Return whether children of the process were left."""
        try:
            self.client.close()
            return self._has_children()
        finally:
            kill(self)

    def terminate(self) -> bool:
        """Send SIGTERM. Return whether the process ends in time."""
        self.process.terminate()
        return self.process.wait(END)

    def milliseconds(self) -> float:
        """Return the time since the start."""
        return (time.monotonic() - self.began) * 1000

    def stderr(self) -> list[str]:
        """Return the last lines of stderr."""
        return [*self.process.stderr]

    def _hear(self, value: JsonValue) -> None:
        if self.first is None:
            self.first = self.milliseconds()
        for each in targets.flat([value]):
            if not isinstance(each, dict) or each.get("jsonrpc") != "2.0":
                text = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
                self.noise += [text[:_SHOWN]] if len(self.noise) < _MOST_NOISE else []

    def _has_children(self) -> bool:
        deadline = time.monotonic() + _GRACE
        while _members(self.process.pid):
            if time.monotonic() > deadline:
                return True
            time.sleep(0.02)
        return False


def kill(conversation: Conversation) -> None:
    """Kill the process of a conversation and its children."""
    process = conversation.process
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        elif process.status is None or _members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait(END)
    with _lock:
        _running.pop(conversation, None)


def abandon(thread: threading.Thread) -> None:
    """Kill the processes that a thread has started, and let it start no more."""
    with _lock:
        _abandoned.add(thread)
        left = [conversation for conversation, owner in _running.items() if owner is thread]
    for conversation in left:
        kill(conversation)


def _members(group: int) -> bool:
    """Return whether a process group has living members. Windows has no groups."""
    if sys.platform == "win32":
        return False
    if not os.path.exists("/proc/self/stat"):
        with contextlib.suppress(OSError):
            os.killpg(group, 0)
            return True
        return False
    for file in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(file, "rb") as status:
            state, _, of = status.read().rpartition(b")")[2].split()[:3]
            if int(of) == group and state != b"Z":
                return True
    return False


class Probe:
    """Starts a command and uses it as clients do."""

    def __init__(self, launch: Launch, spec: Spec, timeout: float, topic: Topic) -> None:
        """Create a probe.

        Args:
            launch: the command with its surroundings.
            spec: the revisions that clients speak.
            timeout: seconds for one answer.
            topic: of the findings.
        """
        self.launch, self.spec, self.timeout, self.topic = launch, spec, timeout, topic
        self.measured = Measured()

    def run(self, is_complete: bool) -> Iterator[Finding]:
        """Yield what is wrong, or a finding with figures. ``is_complete``: also try every revision, and SIGTERM."""
        steps = (self._requests, self._handshakes, self._signal) if is_complete else (self._requests,)
        try:
            for step in steps:
                findings = [*step()]
                yield from findings
                if worst(findings) == ERROR:
                    return
        except (OSError, ValueError) as error:  # ValueError: a null character, or a variable with = in its name
            reason = getattr(error, "strerror", None) or error
            id_ = "limit-reached" if is_limit(error) else "start-failed"
            yield self.topic.found(id_, command=self.launch.argv[0], reason=reason)
            return
        yield self.topic.found(
            "server-answers",
            situation=situation(self.launch),
            milliseconds=round(self.measured.first),
            revisions=", ".join(sorted(self.measured.revisions)),
            listed=self.measured.list_tokens,
            answered=self.measured.answer_tokens,
        )

    def _open(self, revision: str | None = None) -> Conversation:
        return Conversation(self.launch, self.spec, self.timeout, revision)

    def _requests(self) -> Iterator[Finding]:
        """Open a connection with the newest revision, send the requests that clients send, and end the input."""
        with self._open() as conversation:
            try:
                findings = [*self._answers(conversation)]
            except ClientError as error:
                yield self._failure(conversation, error)
                return
            has_children = conversation.close()
        yield from findings
        if conversation.noise:
            yield self.topic.found("stdout-noise", conversation.noise, line=conversation.noise[0])
        if conversation.target.killed:
            yield self.topic.found("end-ignored", seconds=f"{END:g}")
        elif has_children:
            yield self.topic.found("children-left")
        if warnings := [line for line in conversation.stderr() if line.startswith(_WARNINGS)]:
            yield self.topic.found("server-warns", warnings, count=len(warnings))

    def _answers(self, conversation: Conversation) -> Iterator[Finding]:
        """Send the requests of one session. Raises ClientError."""
        client, measured = conversation.client, self.measured
        opened = client.open()
        measured.first = conversation.first or conversation.milliseconds()
        measured.revisions.append(opened.revision)
        if method := client.method("ping"):
            client.request(method)
        numbered: JsonObject = {"_meta": {"progressToken": 0}}  # as Codex does
        listed = client.request(client.method("list_tools") or "", numbered)
        measured.listed = conversation.milliseconds()
        measured.list_tokens = _size(listed.get("tools"))
        name, version = (str(opened.server_info.get(key, "")) for key in ("name", "version"))
        if name in _OURS and version != __version__:
            yield self.topic.found("version-differs", theirs=version, ours=__version__, python=sys.executable)
        if any(each.get("name") == _QUERY_TOOL for each in client.tools()):
            params: JsonObject = {"name": _QUERY_TOOL, "arguments": _QUERY}
            answer = client.request(client.method("call_tool") or "", params)
            measured.answer_tokens = _size(answer.get("content"))
            if answer.get("isError"):
                yield self.topic.found("query-failed", reason=json.dumps(answer.get("content"), ensure_ascii=False))
            if measured.answer_tokens > MOST_TOKENS:
                yield self.topic.found("answer-large", count=measured.answer_tokens, limit=MOST_TOKENS)

    def _failure(self, conversation: Conversation, error: ClientError) -> Finding:
        """Return why a request failed: the process ended, is silent, or answered with an error."""
        conversation.process.wait(_GRACE)
        status = conversation.process.status
        conversation.close()
        stderr = conversation.stderr()
        if conversation.noise:
            return self.topic.found("stdout-noise", conversation.noise, line=conversation.noise[0])
        if status is not None:
            id_, line = symptom(stderr)
            if status == 0 and not id_:
                return self.topic.found("input-ended", stderr)
            last = line or (stderr[-1] if stderr else "nothing")
            return self.topic.found(id_ or "server-ended", stderr, status=_exit(status), last=last)
        if error.code is None:
            return self.topic.found("server-silent", stderr, seconds=f"{self.timeout:g}")
        return self.topic.found("request-refused", stderr, code=error.code, reason=error.message)

    def _handshakes(self) -> Iterator[Finding]:
        """Open a connection with each other revision alone."""
        for revision in sorted({*self.spec["revisions"]} - {*self.measured.revisions}):
            with self._open(revision) as conversation:
                try:
                    conversation.client.open()
                    self.measured.revisions.append(revision)
                except ClientError as error:
                    lines = conversation.stderr()[-3:]
                    yield self.topic.found("revision-refused", lines, revision=revision, reason=error.message)

    def _signal(self) -> Iterator[Finding]:
        """End the server with SIGTERM; Windows has none."""
        if sys.platform == "win32":
            return
        with self._open() as conversation:
            try:
                conversation.client.open()
            except ClientError as error:
                yield self._failure(conversation, error)
                return
            if not conversation.terminate():
                yield self.topic.found("signal-ignored", seconds=f"{END:g}")


def is_limit(error: BaseException) -> bool:
    """Return whether the system refused a process, memory or a file because of a limit."""
    numbers = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    is_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    return is_thread or isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in numbers)


def situation(launch: Launch) -> str:
    """Return the words for the surroundings of a command."""
    if not launch.is_desktop:
        return "from a shell"
    path = "" if sys.platform == "win32" else f", PATH {launch.environment.get('PATH', '')}"
    return f"from a dock or menu (folder {launch.folder}{path})"


def _size(value: JsonValue) -> int:
    return tokens.count(json.dumps(value, ensure_ascii=False))


def _exit(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-status).name}"
    return f"signal {-status}"

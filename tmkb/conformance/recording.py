"""Write a conversation into a transcript while it takes place.

Until the end, a file is only appended to, with one write for each message, and what it has so far is a valid
transcript. At the end it is rewritten: each response stands in the turn of its request, so that a replay can run turn
by turn.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tmkb.conformance import journal, matchers
from tmkb.conformance.redaction import Redactor
from tmkb.errors import DocumentError, ProtocolError
from tmkb.protocol import messages
from tmkb.schema import emission, hidden, paths, reader, textfile
from tmkb.schema.values import JsonObject, JsonValue

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MAX_KEY = 1000  # characters; YAML permits 1024
_MAX_DEPTH = reader.DEEPEST - 8  # levels of nesting of a message; the transcript has some of its own
_MAX_BLOCK = 20_000  # characters of a message from which it stays on one line
_MAX_BLOCK_TURNS = 1000  # turns from which each is on one line: a long file takes too long to write otherwise
_MAX_TITLE = 90  # characters


class Recording:
    """The transcript of one conversation at ``path``.

    Attributes:
        count: messages so far.
    """

    def __init__(self, path: str, redactor: Redactor, source: Mapping[str, str], name: str) -> None:
        """Record into the empty file at ``path``.

        Args:
            redactor: replaces secrets before anything is written.
            source: what is written under ``recorded``, without secrets.
            name: of the server, until it says its own.
        """
        self.path = path
        self.redactor = redactor
        self.source = {**source, "at": datetime.date.today().isoformat()}
        self.name = name
        self.revision = ""
        self.count = 0
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        self._turns: list[Turn] = []
        self._is_negotiated = False
        self.stray = 0  # lines of the server that are no JSON objects or batches

    def add_client(self, line: bytes) -> None:
        """Record a line of the client, without its line end. Raises OSError."""
        key, value = self._read(line)
        entry = {key: value}
        self._note_request(value)
        new = b"" if self._turns else self._head()
        self._turns.append(Turn(entry))
        self._append(new + f"  - {_json(key)}: {_json(value)}\n".encode())

    def add_server(self, line: bytes) -> None:
        """Record a line of the server, without its line end. Raises OSError."""
        key, value = self._read(line)
        if key == "send_bytes":
            value = line.decode("utf-8", "replace")
        elif key == "send_text":
            value = _scalar(value)
        self._note_response(value)
        self.stray += not isinstance(value, dict | list) and line.strip()[:1] not in (b"", b"{", b"[")
        new = b""
        if not self._turns:
            self._turns.append(Turn({"send_text": ""}))  # the server spoke first
            new = self._head() + b'  - send_text: ""\n'
        turn = self._turns[-1]
        new += b"" if turn.expect else b"    expect:\n"
        turn.expect.append(value)
        self._append(new + f"      - {_json(value)}\n".encode())

    def finish(self) -> None:
        """Rewrite the file with each response in the turn of its request, and close it; delete it if it is empty.

        Raises:
            OSError: if the file cannot be written.
        """
        os.close(self._file)
        if not self._turns:
            os.unlink(self.path)
            return
        write(self.path, {**self._head_value(), "exchanges": [turn.value() for turn in group_by_request(self._turns)]})

    def _append(self, data: bytes) -> None:
        self.count += 1
        while data:
            data = data[os.write(self._file, data) :]

    def _head(self) -> bytes:
        return _head_text(self._head_value()).encode()

    def _head_value(self) -> dict[str, Any]:
        redacted = {"redacted": dict(sorted(self.redactor.counts.items()))} if self.redactor.counts else {}
        name = self.name or "a server"
        return {
            "kind": "transcript",
            "title": self.redactor.text(f"A conversation with {name}")[:_MAX_TITLE],
            "server": self.redactor.text(name),
            "revisions": [self.revision or newest_revision()],
            "opening": "none",
            "recorded": {**self.source, **redacted},
        }

    def _read(self, line: bytes) -> tuple[str, Any]:
        """Return the key of a turn and the value for ``line``, without secrets: a message, a text or bytes."""
        value = message(line)
        if value is not None:
            redacted = self.redactor.message(value)
            if can_write(redacted):
                return "send", matchers.literal(redacted)
        clean = self.redactor.line(line)
        try:
            return "send_text", clean.decode()
        except UnicodeDecodeError:
            return "send_bytes", clean.hex(" ")

    def _note_request(self, value: Any) -> None:
        params = value.get("params") if isinstance(value, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        if self._is_negotiated:
            return
        for holder in (params, meta):
            for key, each in holder.items() if isinstance(holder, dict) else ():
                if key.endswith("protocolVersion") and isinstance(each, str) and _DATE.fullmatch(each):
                    self.revision = each

    def _note_response(self, value: Any) -> None:
        result = value.get("result") if isinstance(value, dict) else None
        if not isinstance(result, dict):
            return
        version, meta = result.get("protocolVersion"), result.get("_meta")
        if isinstance(version, str) and _DATE.fullmatch(version) and not self._is_negotiated:
            self.revision, self._is_negotiated = version, True
        for holder in (result, meta):
            for key, each in holder.items() if isinstance(holder, dict) else ():
                if key.endswith("serverInfo") and isinstance(each, dict) and isinstance(each.get("name"), str):
                    self.name = each["name"]


class Recorder:
    """Splits what a journal delivers into messages, and records each conversation into a file of its own."""

    def __init__(self, start: Callable[[int], Recording], redactor: Redactor) -> None:
        """Create a recorder.

        Args:
            start: returns the recording for a number, which counts from 0. It may raise OSError.
            redactor: that of the recordings; it learns the secrets in headers of HTTP.
        """
        self._redactor = redactor
        self.recordings: dict[int, Recording] = {}
        self._start = start
        self._rests: dict[tuple[int, int], list[bytes]] = {}  # of lines without their end so far

    def record(self, frames: Iterable[journal.Frame]) -> None:
        """Record ``frames`` until there are no more, and finish all files. Raises OSError."""
        for number, kind, data in frames:
            if kind in (journal.CLIENT_MESSAGE, journal.SERVER_MESSAGE):
                self.add(number, kind == journal.CLIENT_MESSAGE, data)
            elif kind == journal.HEADERS:
                for header in data.decode("latin-1").split("\n"):
                    name, _, value = header.partition(":")
                    self._redactor.add_header(name, value)
            else:
                self._add_bytes(number, kind, data)
        for (number, kind), rest in self._rests.items():
            if line := b"".join(rest):
                self.add(number, kind == journal.CLIENT, line)
        self.finish()

    def finish(self) -> None:
        """Finish all files. Raises OSError."""
        for each in self.recordings.values():
            each.finish()

    def _add_bytes(self, number: int, kind: int, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        before = self._rests.setdefault((number, kind), [])
        for line in lines:
            before.append(line)
            self.add(number, kind == journal.CLIENT, b"".join(before))
            before.clear()
        if rest:
            before.append(rest)

    def add(self, number: int, from_client: bool, line: bytes) -> None:
        """Record a message of the conversation ``number``. Raises OSError."""
        if number not in self.recordings:
            self.recordings[number] = self._start(number)
        recording = self.recordings[number]
        (recording.add_client if from_client else recording.add_server)(line)


class Turn:
    """A line of the client under its key, and the messages of the server until the next line of the client."""

    def __init__(self, sent: JsonObject, expect: Sequence[JsonValue] = ()) -> None:
        self.sent = sent
        self.expect = [*expect]

    @property
    def message(self) -> Any:
        """The message of the client; an empty map for a line that is none."""
        value = self.sent.get("send")
        return value if isinstance(value, dict) else {}

    def value(self) -> JsonObject:
        """Return the turn as a transcript has it."""
        return {**self.sent, "expect": self.expect}


def group_by_request(turns: Sequence[Turn]) -> list[Turn]:
    """Return ``turns`` with each response, and the progress before it, in the turn of its request.

    A response stays where it is if the client sent a response, or cancelled the request, after the request: then the
    server may have needed what the client sent.
    """
    new = [Turn(turn.sent) for turn in turns]
    index = _TurnIndex()
    for number, turn in enumerate(turns):
        index.add(number, turn.message)
        for value in turn.expect:
            new[index.turn_for(value, number)].expect.append(value)
    if len(new) > 1 and new[0].sent == {"send_text": ""}:
        new[1].expect[:0] = new[0].expect
        del new[0]
    return new


class _TurnIndex:
    """Finds the turn that a message of the server belongs to."""

    def __init__(self) -> None:
        self._requests: dict[tuple[type, Any], int] = {}  # type and value of an id → turn
        self._progress: dict[tuple[type, Any], int] = {}
        self._cancelled: dict[tuple[type, Any], int] = {}
        self._last_response = -1  # of the client

    def add(self, number: int, sent: Any) -> None:
        """Add the message of the client in the turn ``number``."""
        params = sent.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        if messages.is_response(sent):
            self._last_response = number
        elif (id_ := messages.readable_id(sent)) is not None:
            self._requests[type(id_), id_] = number
            if isinstance(meta, dict) and isinstance(token := meta.get("progressToken"), str | int):
                self._progress[type(token), token] = number
        elif isinstance(request := params.get("requestId"), str | int):
            self._cancelled[type(request), request] = number

    def turn_for(self, value: Any, number: int) -> int:
        """Return the turn of ``value``, which arrived in the turn ``number``."""
        if not isinstance(value, dict):
            return number
        params = value.get("params")
        if messages.is_response(value):
            key, turns = value.get("id"), self._requests
        elif "id" not in value and isinstance(params, dict):
            key, turns = params.get("progressToken"), self._progress
        else:
            return number
        if not isinstance(key, str | int):
            return number
        turn = turns.get((type(key), key), number)
        is_bound = max(self._last_response, self._cancelled.get((type(key), key), -1)) > turn
        return number if is_bound else turn


def message(line: bytes) -> JsonValue:
    """Return the JSON object or list in ``line``; None if there is none, or an object with duplicate keys."""
    try:
        value = messages.decode(line)
        return value if isinstance(value, dict | list) and not _repeats_keys(line) else None
    except (ProtocolError, RecursionError, ValueError):
        return None


def _scalar(text: str) -> JsonValue:
    """Return the JSON number, string, boolean or null in ``text``, as a replay decodes it; else ``text``."""
    try:
        value = messages.decode(text.encode())
    except ProtocolError:
        return text
    return text if isinstance(value, dict | list) or not can_write(value) else value


def _repeats_keys(line: bytes) -> bool:
    def pairs(members: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in members}) < len(members):
            raise ValueError("a key is repeated")

    try:
        json.loads(line, object_pairs_hook=pairs)
    except ValueError:
        return True
    return False


def can_write(value: JsonValue) -> bool:
    """Return whether a transcript can hold ``value`` as a message.

    It cannot if it is nested too deep, or has an unpaired surrogate or a very long key.
    """
    stack: list[tuple[JsonValue, int]] = [(value, 0)]
    while stack:
        each, depth = stack.pop()
        if depth > _MAX_DEPTH or (isinstance(each, str) and not hidden.is_unicode(each)):
            return False
        if isinstance(each, dict):
            if any(len(key) > _MAX_KEY or not hidden.is_unicode(key) for key in each):
                return False
            stack += [(inner, depth + 1) for inner in each.values()]
        elif isinstance(each, list):
            stack += [(inner, depth + 1) for inner in each]
    return True


def create(path: str) -> str:
    """Create an empty file at ``path``, or with a number in its name if that exists; return its path. Raises OSError.

    Its folder is created too. The number stands before all suffixes: ``a.transcript.yaml``, ``a-2.transcript.yaml``.
    """
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    os.makedirs(folder or os.curdir, exist_ok=True)
    stem, dot, suffixes = name.partition(".")
    for number in itertools.count(1):
        free = path if number == 1 else os.path.join(folder, f"{stem}-{number}{dot}{suffixes}")
        try:
            os.close(os.open(free, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        return free
    raise AssertionError


def write(path: str, transcript: Mapping[str, Any]) -> None:
    """Write a whole transcript in a form that reads well. Raises OSError."""
    turns = transcript["exchanges"]
    written = _turn_text if len(turns) <= _MAX_BLOCK_TURNS else _turn_line
    head = {key: value for key, value in transcript.items() if key != "exchanges"}
    textfile.save(path, _head_text(head) + "".join(f"  {written(turn)}\n" for turn in turns))


def newest_revision() -> str:
    """Return the newest revision that this package knows."""
    names = (os.path.splitext(name)[0] for name in os.listdir(os.path.join(paths.SCHEMAS, "protocol")))
    return max(name for name in names if _DATE.fullmatch(name))


def _json(value: Any) -> str:
    """Return ``value`` as JSON on one line that a reader of YAML reads as the same value."""
    written = json.dumps(value, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(char if char.isprintable() else emission.escaped(char) for char in written)


def _head_text(head: dict[str, Any]) -> str:
    return emission.lines(head, 0) + "\nexchanges:\n"


def _turn_text(turn: JsonObject) -> str:
    """Return a turn as an entry of a list in block style, or on one line if that is long or changes its value."""
    flat = _turn_line(turn)
    written = "" if len(flat) > _MAX_BLOCK else emission.lines([turn], 2)
    with contextlib.suppress(DocumentError):
        if written and json.dumps(reader.parse(f"k:\n  {written}\n", "").value) == json.dumps({"k": [turn]}):
            return written
    return flat


def _turn_line(turn: JsonObject) -> str:
    return f"- {_json(turn)}"

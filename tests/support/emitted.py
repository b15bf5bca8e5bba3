"""What servers emit while tests run: with EMITTED=FOLDER, a line of a file there for each; see `models/run.py`."""

import contextlib
import functools
import json
import os

from tmkb.schema import paths, reader

NAMING = "2026-07-28"  # requests of this revision name it, and belong to no handshake
NAMED_BY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
NOBODY = "no such token"
FOLDER = os.environ.get("EMITTED") and os.path.abspath(os.environ["EMITTED"])  # wherever tests go from here


class Conversation:
    """One connection: what is sent tells which method is answered and under which revision."""

    def __init__(self):
        self.revision = None  # until the handshake
        self.asked = {}  # the id of a request, as JSON → each (method, revision or None) that was asked for with it
        self.tokens = {}  # the token of a request, as JSON → the revision that the request names, or None
        self.begun = b""  # of a line

    def sent(self, data):
        """Bytes that go to the server."""
        *lines, self.begun = (self.begun + data).split(b"\n") if FOLDER else [b""]
        for message in (message for line in lines for message in unpacked(decoded(line))):
            if isinstance(message, dict) and "id" in message and "method" in message:
                meta = member(member(message, "params"), "_meta")
                named = NAMING if NAMED_BY in meta else None
                self.asked.setdefault(json.dumps(message["id"]), []).append((message["method"], named))
                self.tokens[json.dumps(meta.get("progressToken"))] = named

    def received(self, line):
        """A line that comes from the server."""
        if FOLDER:
            self.note(decoded(line))

    def note(self, value):
        """A message that comes from the server, or a batch of them."""
        for message in unpacked(value) if FOLDER else ():
            method, named = self._about(message)
            if method == "initialize" and "result" in message:
                self.revision = message["result"]["protocolVersion"]
            write({"revision": named or self.revision or preferred(), "method": method, "message": message})

    def _about(self, message):
        """The method of the message itself, or of the request that it answers, and the revision that this names."""
        if not isinstance(message, dict) or "method" in message:
            method = message["method"] if isinstance(message, dict) else None
            params = member(message, "params")
            named = NAMING if SUBSCRIPTION in member(params, "_meta") else None
            return method, named or self.tokens.get(json.dumps(params.get("progressToken", NOBODY)))
        asked = self.asked.get(json.dumps(message.get("id")))
        return asked.pop(0) if asked else (None, None)


class Noted:
    """A target of transcripts, of which everything is noted."""

    def __init__(self, target):
        self.target = target
        self.ordered = target.ordered
        self.conversation = Conversation()

    @property
    def ended(self):
        """As the target does it."""
        return self.target.ended

    def exchange(self, line, expected, awaited=None, silence=True):
        """As the target does it."""
        self.conversation.sent(line + b"\n")
        messages = self.target.exchange(line, expected, awaited, silence)
        self.conversation.note(messages)
        return messages

    def report(self):
        """As the target does it."""
        return self.target.report()

    def close(self):
        """As the target does it."""
        messages = self.target.close()
        self.conversation.note(messages)
        return messages


def member(value, key):
    """The object that is called so in another; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def decoded(line):
    """The value of a line; one that is no JSON is a text."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    return line.decode("utf-8", "replace")


def unpacked(value):
    """The messages of a batch, or of a list of messages and batches; any other value is one."""
    if isinstance(value, list):
        return [message for part in value for message in unpacked(part)]
    return [value]


def write(note):
    """Add a line to the file of this process, all at once: several threads may do so."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, f"{os.getpid()}.jsonl"), "ab", buffering=0) as file:
        file.write(json.dumps(note).encode() + b"\n")


@functools.cache
def preferred():
    """The revision of what is said before the handshake."""
    return reader.read(os.path.join(paths.SCHEMAS, "servers", "tmkb", "server.yaml")).mapping()["revisions"][0]

"""One connection to a server that is checked: send the steps of a requirement and compare what comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tmkb.conformance import checks
from tmkb.conformance.checks import Checks
from tmkb.conformance.peers import HTTP, Peer, Pipe, Reply
from tmkb.conformance.targets import answers, flat
from tmkb.protocol import headers, messages
from tmkb.schema.template import cut
from tmkb.schema.values import JsonObject, JsonValue

PASS, FAIL, NOT_APPLICABLE, NOT_COVERED = "pass", "fail", "not applicable", "not covered"
ACCEPTED = "accepted"  # a failure that the user knows
Connect = Callable[[Callable[[JsonValue], bytes | None]], Peer]  # starts a server or connects to it
SHOWN = 600  # characters of a message in a report


class Stop(Exception):
    """Ends the steps of a requirement with a status."""

    def __init__(self, status: str, reasons: list[str], sent: str = "", received: str = "") -> None:
        self.status, self.reasons, self.sent, self.received = status, reasons, sent, received


class _First(NamedTuple):
    """The first message of a connection. ``request``: as the step has it."""

    request: JsonValue
    message: Any
    reply: Reply


class Session:
    """One connection under one revision: its ids, its HTTP session and the messages that have arrived."""

    def __init__(self, connect: Connect, wanted: Checks, revision: str, variables: Mapping[str, JsonValue]) -> None:
        self.checks, self.revision, self.speech = wanted, revision, wanted.revisions[revision]
        self.variables = {**self.speech.get("variables", {}), **variables, "revision": revision}
        self.peer = connect(self._answer)
        self.kept: dict[str, JsonValue] = {}
        self.headers: dict[str, str] = {}  # of the session
        self.next_id = 0
        self.broken = False
        self.is_open = False
        self.first: _First | None = None  # unless `is_open`, steps with this request use its response

    def begin(self) -> tuple[JsonValue, Reply]:
        """Send the first message of the opening. Return its response, or None, and what came back."""
        message, reply = self._exchange(self.speech["opening"][0])
        return next((each for each in flat(reply.messages) if answers(each, message.get("id"))), None), reply

    def open(self) -> None:
        """Perform what is missing of the opening."""
        if self.is_open:
            return
        response, _ = self.begin()
        self.is_open = True
        if response is not None and not self.differs(self.speech["speaks"], response):
            for step in self.speech["opening"][1:]:
                self._send(step, self._message(step))

    def fits(self, first: JsonValue) -> bool:
        """Return whether a requirement can begin here: with the request ``first``, or if None after the opening."""
        if first is None:
            return self.first is None or self.first.request == self.speech["opening"][0]["request"]
        return not self.is_open and (self.first is None or self.first.request == first)

    def close(self) -> str:
        """End the HTTP session and the connection. Return the end of stderr."""
        if self.headers.get(self.speech.get("session", "")):
            self.peer.send(b"", None, self.headers, "DELETE")
        return self.peer.close()

    def differs(self, shape: JsonValue, value: JsonValue) -> list[str]:
        """Return how ``value`` differs from a shape with variables."""
        return self.checks.differences(self._resolved(shape), value)

    def run(self, steps: Iterable[dict[str, Any]]) -> None:
        """Carry out steps. Raises Stop unless the requirement is met."""
        done: list[str] = []
        for step in steps:
            try:
                self._step(step)
            except Stop as stop:
                stop.sent = "\n".join([*(f"after {each}" for each in done), stop.sent])
                raise
            done.append(_name(step))

    def _step(self, step: dict[str, Any]) -> None:
        if "end" in step:
            self.broken = True
            if isinstance(self.peer, Pipe) and not self.peer.end():
                raise Stop(FAIL, [f"it still runs {self.peer.timeout:g} s later"], "the end of the input", "nothing")
            return
        if "given_session" in step and self.speech.get("session") not in self.headers:
            raise Stop(NOT_APPLICABLE, ["the server starts no session"])
        message, reply = self._exchange(step)
        responses = _responses(message, reply)
        subject = self._subject(step, reply, responses)
        self._require_given(step, subject, reply)
        faults = [
            *self._missing(step, message, reply, responses, subject),
            *self._faults(step, reply, responses),
            *self._status_faults(step, reply),
        ]
        if subject is not None and "expect" in step:
            faults += self.differs(step["expect"], subject)
        if faults:
            received = _received(reply if subject is None else Reply([subject], reply.status))
            raise Stop(FAIL, faults, self._shown(step, message), received)
        for name, source in step.get("keep", {}).items():
            self.kept[name] = self._found(source, subject)

    def _subject(self, step: dict[str, Any], reply: Reply, responses: list[Any]) -> Any:
        """Return the message that the shapes of a step are about; None if it did not arrive."""
        arrived = flat(reply.messages)
        if responses or "await" not in step or not arrived:
            return responses[0] if responses else None
        # A pipe carries other messages, too; the stream of an HTTP response belongs to the request.
        return arrived[0] if self.peer.transport == HTTP else arrived[-1]

    def _missing(
        self, step: dict[str, Any], message: Any, reply: Reply, responses: list[Any], subject: JsonValue
    ) -> Iterator[str]:
        """Yield a sentence if a response is missing that the step waits for."""
        is_needed = "await" in step or "expect" in step or ("request" in step and not _is_about_http(step))
        if is_needed and subject is None:
            yield reply.fault or "no response"
        elif "batch" in step and len(responses) < len(message):
            yield f"{len(responses)} of {len(message)} requests are answered"

    def _require_given(self, step: dict[str, Any], subject: JsonValue, reply: Reply) -> None:
        if "given" in step and subject is not None and self.differs(step["given"], subject):
            raise Stop(NOT_APPLICABLE, ["the response is of another kind: " + cut(messages.compact(subject), SHOWN)])
        if "given_status" in step and reply.status not in step["given_status"]:
            raise Stop(NOT_APPLICABLE, [f"the status is {reply.status}"])

    def _faults(self, step: dict[str, Any], reply: Reply, responses: list[Any]) -> Iterator[str]:
        is_refused = self.peer.transport == HTTP and (reply.status or 0) >= 400
        for each in flat(reply.messages):
            if messages.is_response(each) and each not in responses and not is_refused:
                yield "a response to no request of the client: " + cut(messages.compact(each), SHOWN)
            if "without" in step and not self.differs(step["without"], each):
                yield "not allowed here: " + cut(messages.compact(each), SHOWN)

    def _status_faults(self, step: dict[str, Any], reply: Reply) -> Iterator[str]:
        if self.peer.transport != HTTP:
            return
        if "verb" in step and reply.status is None:
            raise Stop(NOT_COVERED, [reply.fault])
        allowed: Any = self._resolved(step.get("status", []))
        if allowed and not {reply.status, f"{(reply.status or 0) // 100}xx"} & {*allowed}:
            yield f"HTTP status {reply.status}, expected {' or '.join(map(str, allowed))}"
        if "content" in step and not re.fullmatch(step["content"], reply.headers.get("content-type", "")):
            yield f"Content-Type is {reply.headers.get('content-type')!r}"
        for name, pattern in step.get("header", {}).items():
            if name in reply.headers and not re.fullmatch(pattern, reply.headers[name]):
                yield f"{name} is {reply.headers[name]!r}"
        if "empty" in step and reply.status == 202 and reply.body:
            yield f"the response has the body {reply.body[:80]!r}"

    def _exchange(self, step: dict[str, Any]) -> tuple[Any, Reply]:
        """Send the message of a step, unless it is the first one of the connection and has been sent."""
        if not self.is_open and self.first is not None and self.first.request == step.get("request"):
            return self.first.message, self.first.reply
        message = self._message(step)
        reply = self._send(step, message)
        if self.first is None:
            self.first = _First(step.get("request"), message, reply)
        return message, reply

    def _send(self, step: dict[str, Any], message: Any) -> Reply:
        ids = {each.get("id") for each in message} if isinstance(message, list) else {message.get("id")}
        waiting = ids - {None}

        def done(arrived: JsonValue) -> bool:
            for each in flat([arrived]):
                waiting.difference_update([id_ for id_ in waiting if answers(each, id_)])
                if "await" in step and not self.differs(step["await"], each):
                    waiting.clear()
            return not waiting

        body = b"" if "verb" in step else messages.encode(message)
        reply = self.peer.send(body, done if waiting else None, self._headers(step, message), step.get("verb", ""))
        self.broken = self.broken or bool(reply.fault)
        if (name := self.speech.get("session")) and name in reply.headers and name not in self.headers:
            self.headers[name] = reply.headers[name]
        if isinstance(message, dict) and message.get("method") == self.speech["opening"][0]["request"]["method"]:
            named = self.speech.get("session_headers", {})
            self.headers |= {name: str(self._resolved(value)) for name, value in named.items()}
        return reply

    def _headers(self, step: dict[str, Any], message: Any) -> dict[str, str]:
        sent: dict[str, Any] = {**self._resolved(self.speech["headers"], message), **self.headers}
        changed = {name.lower(): value for name, value in self._resolved(step.get("headers", {})).items()}
        kept = {name: value for name, value in sent.items() if changed.get(name.lower(), value) is not None}
        return {**kept, **{name: v for name, v in step.get("headers", {}).items() if v is not None}}

    def _message(self, step: dict[str, Any]) -> Any:
        if "batch" in step:
            return [self._request(each) for each in step["batch"]]
        if "request" in step:
            request = step["request"]
            return self._request({"method": "alive"} if request == "alive" else request)
        if "notify" in step:
            notification = self._resolved(step["notify"])
            return {"jsonrpc": "2.0", **notification}
        return {}

    def _request(self, request: dict[str, Any]) -> JsonObject:
        self.next_id += 1
        method = self.speech["alive"] if request["method"] == "alive" else request["method"]
        params = request.get("params", {})
        if "meta" in self.speech:
            params = checks.merged({"_meta": self.speech["meta"]}, params)
        message = {"jsonrpc": "2.0", "id": request.get("id", self.next_id), "method": method}
        return {**message, **({"params": self._resolved(params)} if params else {})}

    def _resolved(self, value: Any, message: Any = None) -> Any:
        """Return ``value`` with variables, kept values and parts of ``message`` in place of their names."""
        if isinstance(value, list):
            return [self._resolved(each, message) for each in value]
        if not isinstance(value, dict):
            return value
        if list(value) == ["$var"]:
            return self.variables[value["$var"]]
        if list(value) == ["$kept"]:
            return self.kept[value["$kept"]]
        resolved = {key: self._resolved(inner, message) for key, inner in value.items() if not _is_part(inner)}
        for key, inner in value.items():
            if _is_part(inner):
                parts = [part for pointer in inner["$of"] if isinstance(part := at(message, pointer), str)]
                if parts:
                    resolved[key] = headers.encode(parts[0])
        return resolved

    def _found(self, source: Any, response: JsonValue) -> JsonValue:
        value: Any = at(response, source if isinstance(source, str) else source["from"])
        if isinstance(source, dict):
            candidates: list[JsonValue] = value if isinstance(value, list) else []
            first = next((each for each in candidates if not self.differs(source["first"], each)), None)
            value = at(first, source["take"])
        if value is None:
            raise Stop(NOT_COVERED, ["the server has nothing to check it with"])
        found: JsonValue = value
        return found

    def _answer(self, message: JsonValue) -> bytes | None:
        """Return the response to a request of the server."""
        if not isinstance(message, dict) or not {"method", "id"} <= message.keys():
            return None
        method = str(message["method"])
        outcome = (
            {"result": self.checks.answers[method]} if method in self.checks.answers else {"error": self.checks.refusal}
        )
        return messages.encode({"jsonrpc": "2.0", "id": message["id"], **outcome})

    def _shown(self, step: dict[str, Any], message: Any) -> str:
        changed = step.get("headers", {})
        shown = [f"{name}: {'(left out)' if value is None else value}" for name, value in changed.items()]
        text = step.get("verb") or cut(messages.compact(message), SHOWN)
        return "\n".join([text, *shown]) if self.peer.transport == HTTP else text


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["$of"]


def _name(step: dict[str, Any]) -> str:
    """Return the method of a step, or what it is instead of a message."""
    message = step.get("request", step.get("notify"))
    return str(message["method"] if isinstance(message, dict) else message or step.get("verb", "batch"))


def _is_about_http(step: dict[str, Any]) -> bool:
    """Return whether only the HTTP response of a request matters."""
    return bool({"status", "content", "header"} & step.keys()) and "expect" not in step


def _responses(message: Any, reply: Reply) -> list[Any]:
    """Return the responses to the requests of a step; a refusal over HTTP needs no id."""
    arrived = flat(reply.messages)
    ids = [each.get("id") for each in message] if isinstance(message, list) else [message.get("id")]
    if found := [each for each in arrived if any(answers(each, id_) for id_ in ids)]:
        return found
    refused = (reply.status or 0) >= 400 and isinstance(message, dict)
    return [
        each for each in arrived if refused and isinstance(each, dict) and "error" in each and each.get("id") is None
    ]


def at(value: Any, pointer: str) -> Any:
    """Return what a JSON Pointer leads to in ``value``; None if that is nothing."""
    for step in pointer.split("/")[1:]:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _received(reply: Reply) -> str:
    status = [f"HTTP status {reply.status}"] if reply.status is not None else []
    arrived = [cut(each if isinstance(each, str) else messages.compact(each), SHOWN) for each in reply.messages]
    body = [cut(reply.body.decode("utf-8", "replace"), SHOWN)] if reply.body and not arrived else []
    return "\n".join([*status, *arrived, *body, *([reply.fault] if reply.fault else [])]) or "nothing"

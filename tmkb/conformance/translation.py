"""Prepare a recording for a replay under another revision, also one of the other era.

What is sent loses or gains the metadata of requests. What only one of both revisions can carry is left out on both
sides of the comparison. A turn that the other revision cannot express is skipped with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tmkb.conformance import eras, matchers, targets, transcript
from tmkb.conformance.transcript import Transcript, Turn
from tmkb.protocol.messages import is_response
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue

_CLIENT: JsonObject = {"name": "transcript", "version": "1.0"}  # if the recording does not name one
_ROUND_TRIP = ("inputResponses", "requestState")  # params of a request that continues another


@dataclass
class Translation:
    """A recording under another revision. ``opening`` and ``turns`` are to be replayed.

    Attributes:
        source, target: the revision of the recording, and that of the replay.
    """

    source: Revision
    target: Revision
    opening: list[Turn] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    _methods: dict[object, str] = field(default_factory=dict)  # request id → method
    _codes: dict[object, JsonObject] = field(default_factory=dict)  # request id → expected error
    _keeps_logs: bool = False

    @property
    def remarks(self) -> list[str]:
        """Sentences about what was changed."""
        reasons: dict[str, list[int]] = {}
        for number, turn in enumerate(self.turns, 1):
            if turn.skipped:
                reasons.setdefault(turn.skipped, []).append(number)
        lines = [f"recorded under {self.source['revision']}, translated to {self.target['revision']}"]
        return lines + [
            f"{'turn' if len(numbers) == 1 else 'turns'} {', '.join(map(str, numbers))} not sent: {reason}"
            for reason, numbers in reasons.items()
        ]

    def received(self, messages: Sequence[JsonValue]) -> list[JsonValue]:
        """Return the messages of the server as they are compared with the expected ones."""
        return [self._as_recorded(each) for each in messages if not self._is_unasked_log(each)]

    def _as_recorded(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict) and isinstance(error := value.get("error"), dict):
            wanted = self._codes.get(_key(value))
            if wanted is not None and eras.error(wanted, self.source, self.target).get("code") == error.get("code"):
                return {**value, "error": {**error, "code": wanted.get("code")}}
            return {**value, "error": eras.error(error, self.target, self.source)}
        return self._expected(self._between(value, self.target, self.source))

    def _expected(self, value: JsonValue) -> JsonValue:
        """Return an expected message with only what both revisions can carry."""
        return self._between(self._between(value, self.source, self.target), self.target, self.source)

    def _between(self, value: JsonValue, old: Revision, new: Revision) -> JsonValue:
        if not isinstance(value, dict):
            return value
        result, params, method = value.get("result"), value.get("params"), value.get("method")
        if isinstance(result, dict):
            name = self._methods.get(_key(value), "")
            return {**value, "result": _shaped(result, lambda inner: eras.result(name, inner, old, new))}
        if isinstance(params, dict) and isinstance(method, str):
            return {**value, "params": _shaped(params, lambda inner: eras.params(method, inner, old, new))}
        return value

    def _is_unasked_log(self, value: JsonValue) -> bool:
        """Return whether a message is a log message that a server under the recorded revision would not send."""
        unasked = eras.is_stateless(self.source) and not self._keeps_logs
        return unasked and _role(self.target, _method(value)) == "log"


def translate(recording: Transcript, spec: Spec, target: str) -> Translation:
    """Return ``recording`` as a replay under the revision ``target``. ``spec``: of any server of ours."""
    revisions = spec["revisions"]
    known = [name for name in recording.revisions if name in revisions] or [target]
    alike = [each for each in known if eras.is_stateless(revisions[each]) == eras.is_stateless(revisions[target])]
    translation = Translation(revisions[(alike or known)[-1]], revisions[target])
    exchanges: list[Any] = [matchers.resolve(each, target) for each in recording.value["exchanges"]]
    crosses = eras.is_stateless(translation.source) != eras.is_stateless(translation.target)
    client = _client(exchanges, translation.source, spec)
    if not crosses:
        translation.opening = recording.opening(target)
    elif eras.is_stateless(translation.target):
        translation.opening = [_discovery(translation.target, client)]
    else:
        translation.opening = [*_handshake(target, client, spec)]
    _note_methods(translation, exchanges)
    translation.turns = [*_turns(translation, exchanges, client, crosses, spec)]
    return translation


def spoken(recording: Transcript, revision: str, results: Sequence[Any], spec: Spec) -> str | None:
    """Return the revision to translate a recording to, because its replay shows that the server lacks ``revision``.

    ``results``: those of `replay.replay`. None if the server answers under ``revision``.
    """
    turns = recording.turns(revision)
    first = next((each for each in results if each.number and each.differences), None)
    if first is None or first.number > min(2, len(turns)) or turns[first.number - 1].request is None:
        return None
    turn = turns[first.number - 1]
    answer: Any = next((each for each in first.actual if targets.answers(each, turn.request)), {})
    revisions, result, error = spec["revisions"], answer.get("result"), answer.get("error")
    method = json.loads(turn.line)["method"]
    param = spec["negotiation"]["version_params"].get(method)
    if param is not None and isinstance(result, dict) and result.get(param) != revision:
        return next((each for each in revisions if each == result.get(param)), None)
    expects_error = any("error" in each for each in turn.expect if isinstance(each, dict))
    if revision not in revisions or expects_error or not (error or _lacks(result, method, revisions[revision])):
        return None
    data = error.get("data") if isinstance(error, dict) else None
    named: Any = data.get("supported") if isinstance(data, dict) else None
    offered = [each for each in revisions if each in named] if isinstance(named, list) else []
    stateless = eras.is_stateless(revisions[revision])
    return max(offered or [each for each in revisions if eras.is_stateless(revisions[each]) != stateless], default=None)


def _lacks(result: Any, method: str, revision: Revision) -> bool:
    """Return whether a result lacks what each result of ``method`` has under ``revision``."""
    rules: Any = revision["methods"].get(method, {})
    shape: Any = revision["objects"].get(rules.get("result_shape"), {})
    return isinstance(result, dict) and not {*shape.get("always", {})} <= {*result}


def _note_methods(translation: Translation, exchanges: Sequence[Any]) -> None:
    for exchange in exchanges:
        sent = exchange.get("send")
        if isinstance(sent, dict) and isinstance(sent.get("method"), str) and "id" in sent:
            translation._methods[_key(sent)] = sent["method"]
        for each in exchange["expect"]:
            if isinstance(each, dict) and isinstance(each.get("error"), dict):
                translation._codes[_key(each)] = each["error"]
            if _role(translation.source, _method(each)) == "log":
                translation._keeps_logs = True


def _turns(
    translation: Translation, exchanges: Sequence[Any], client: JsonObject, crosses: bool, spec: Spec
) -> Iterator[Turn]:
    unsent: set[object] = set()  # the ids of requests that are not sent
    level: JsonValue = None
    for exchange in exchanges:
        sent = exchange.get("send")
        reason = _reason(translation, exchange, crosses, unsent)
        if reason and isinstance(sent, dict) and "method" in sent:
            unsent.add(_key(sent))
            level = _level(translation.source, sent) or level
        expect = [
            translation._expected(_with_version(each, translation, spec))
            for each in exchange["expect"]
            if not _is_impossible(translation, each, crosses) and not (is_response(each) and _key(each) in unsent)
        ]
        changed = {**exchange, "expect": [] if reason else expect}
        if isinstance(sent, dict) and not reason:
            logs = any(_role(translation.source, _method(each)) == "log" for each in expect)
            wanted = level or (translation.target["logging"].get("unset") if logs else None)
            changed["send"] = _sent(sent, translation, client, crosses, wanted, spec)
        turn = transcript.turn(changed, str(translation.target["revision"]))
        yield replace(turn, skipped=reason)


def _level(revision: Revision, sent: JsonObject) -> JsonValue:
    """Return the level that a request sets for log messages; None for another request."""
    rules: Any = revision["methods"].get(str(_method(sent)), {})
    params = sent.get("params")
    return params.get("level") if rules.get("handler") == "set_level" and isinstance(params, dict) else None


def _reason(translation: Translation, exchange: Any, crosses: bool, unsent: set[object]) -> str:
    """Return why a turn cannot be sent under the other revision; an empty string if it can."""
    sent, target = exchange.get("send"), translation.target
    name = target["revision"]
    if not isinstance(sent, dict):
        return ""
    method, params = sent.get("method"), sent.get("params")
    if isinstance(method, str) and method in translation.source["methods"]:
        rules: Any = target["methods"].get(method)
        if rules is None or rules["from"] == "server":
            return f"{name} has no {method}"
    refers_to = params.get("requestId") if isinstance(params, dict) else None
    if refers_to is not None and (type(refers_to), refers_to) in unsent:
        return "the request that it refers to is not sent"
    asks = any(_asks(each) for each in exchange["expect"])
    continues = isinstance(params, dict) and any(key in params for key in _ROUND_TRIP)
    if crosses and (asks or continues or is_response(sent)):
        return f"under {name}, a server asks its client in another way"
    return ""


def _asks(value: Any) -> bool:
    """Return whether a message of the server asks the client: a request, or a result that requires input."""
    if not isinstance(value, dict):
        return False
    result = value.get("result")
    return {"id", "method"} <= value.keys() or (
        isinstance(result, dict) and result.get("resultType") == "input_required"
    )


def _is_impossible(translation: Translation, value: Any, crosses: bool) -> bool:
    """Return whether the other revision lacks a notification, or sends it only to those who listen."""
    method = value.get("method") if isinstance(value, dict) else None
    if not isinstance(method, str) or method not in translation.source["methods"]:
        return False
    rules: Any = translation.target["methods"].get(method)
    return rules is None or (crosses and "listened" in {**translation.source["methods"][method], **rules})


def _sent(
    message: JsonObject, translation: Translation, client: JsonObject, crosses: bool, level: JsonValue, spec: Spec
) -> JsonObject:
    """Return a message as the client sends it under the other revision."""
    params: Any = message.get("params", {})
    method = str(message.get("method"))
    if "method" not in message or not isinstance(params, dict):
        return message
    if (param := spec["negotiation"]["version_params"].get(method)) is not None:
        return {**message, "params": {**params, param: translation.target["revision"]}}
    meta = params.get("_meta", {})
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if key not in _describing(translation.source)}
        if "request_metadata" in translation.target and "id" in message:
            meta |= _metadata(translation.target, client, level if crosses else None)
        params = {key: value for key, value in params.items() if key != "_meta"} | ({"_meta": meta} if meta else {})
    rest = {key: value for key, value in message.items() if key != "params"}
    return {**rest, "params": params} if params or "params" in message else rest


def _with_version(value: Any, translation: Translation, spec: Spec) -> Any:
    """Return an expected answer to the handshake with the revision of the replay."""
    result = value.get("result") if isinstance(value, dict) else None
    param = spec["negotiation"]["version_params"].get(translation._methods.get(_key(value), "")) if result else None
    if not isinstance(result, dict) or result.get(param) != translation.source["revision"]:
        return value
    return {**value, "result": {**result, param: translation.target["revision"]}}


def _describing(revision: Revision) -> set[str]:
    """Return the keys of ``_meta`` with which a request describes itself."""
    required: Any = revision["meta"].get("properties", {})
    return {key for key in required if key != "progressToken"} if "request_metadata" in revision else set()


def _metadata(revision: Revision, client: JsonObject, level: JsonValue) -> JsonObject:
    keys = revision["request_metadata"]
    known: Any = revision["meta"].get("properties", {})
    info: JsonObject = {key: client["clientInfo"] for key in known if key.endswith("/clientInfo")}
    logs: JsonObject = {} if level is None else {keys["log_level"]: level}
    return {keys["revision"]: revision["revision"], keys["capabilities"]: client["capabilities"], **info, **logs}


def _client(exchanges: Sequence[Any], source: Revision, spec: Spec) -> JsonObject:
    """Return the capabilities and the name of the recorded client."""
    client: JsonObject = {"capabilities": {}, "clientInfo": _CLIENT}
    for exchange in exchanges:
        sent = exchange.get("send")
        params = sent.get("params") if isinstance(sent, dict) else None
        if not isinstance(params, dict):
            continue
        if sent.get("method") in spec["negotiation"]["version_params"]:
            return client | {key: params[key] for key in client if isinstance(params.get(key), dict)}
        meta = params.get("_meta")
        if "request_metadata" in source and isinstance(meta, dict):
            named = {key.rpartition("/")[2]: value for key, value in meta.items() if isinstance(value, dict)}
            capabilities = meta.get(source["request_metadata"]["capabilities"])
            info = {key: named[key] for key in client if key in named}
            return client | info | ({"capabilities": capabilities} if isinstance(capabilities, dict) else {})
    return client


def _discovery(revision: Revision, client: JsonObject) -> Turn:
    """Return the turn with which a client of a stateless revision begins."""
    method = next(name for name, rules in revision["methods"].items() if rules.get("handler") == "discover")
    send = {
        "jsonrpc": "2.0",
        "id": "discovery",
        "method": method,
        "params": {"_meta": _metadata(revision, client, None)},
    }
    return transcript.turn({"send": send, "expect": [{"$any": "object"}]}, str(revision["revision"]))


def _handshake(revision: str, client: JsonObject, spec: Spec) -> Iterator[Turn]:
    """Yield the turns of a handshake with the recorded client's capabilities and name."""
    for exchange in transcript.packaged_exchanges("handshake"):
        sent: Any = matchers.resolve(exchange["send"], revision)
        if sent["method"] in spec["negotiation"]["version_params"]:
            sent = {**sent, "params": {**sent["params"], **client}}
        yield transcript.turn({**exchange, "send": sent}, revision)


def _shaped(value: JsonObject, shape: Any) -> JsonObject:
    """Apply ``shape`` to a value that may be a matcher: of `$subset` to its members, of others not."""
    if list(value) == ["$subset"] and isinstance(value["$subset"], dict):
        return {"$subset": shape(value["$subset"])}
    shaped: JsonObject = value if matchers.is_reserved(value) else shape(value)
    return shaped


def _role(revision: Revision, method: object) -> object:
    rules: Any = revision["methods"].get(method, {}) if isinstance(method, str) else {}
    return rules.get("role")


def _method(message: Any) -> object:
    return message.get("method") if isinstance(message, dict) else None


def _key(message: Any) -> object:
    """Return a hashable form of an id, in which 1 and true differ; None without an id."""
    id_ = message.get("id") if isinstance(message, dict) else None
    return (type(id_), id_) if isinstance(id_, str | int) else None

"""What a server offers to clients, as one value: from a running server, or from a recording.

The value is described in ``schemas/meta/surface.yaml``. A part that was not asked for is absent. In recordings,
`UNKNOWN` stands for a value that a matcher leaves open, and `Partial` for an object with further members.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jsonschema

from tmkb.conformance import matchers
from tmkb.conformance.client import Client, ClientError
from tmkb.conformance.targets import Target, answers, flat
from tmkb.conformance.transcript import Transcript, Turn
from tmkb.protocol import messages as message
from tmkb.protocol.arguments import json_type
from tmkb.schema.inlined import inlined
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject, JsonValue

LISTS = {  # part → the handler of its method, and the member that names an entry
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "resourceTemplates": ("list_templates", "uriTemplate"),
}
UNKNOWN: JsonValue = "\x00unknown"  # compared by identity
_OPENINGS = ("discover", "initialize")
_NOT_CALLS = {*_OPENINGS, "ping", *(handler for handler, _ in LISTS.values())}
_DEEPEST = 40  # levels of a result whose members are compared


class Partial(dict[str, Any]):
    """An object of which only some members are known."""


class Surface(NamedTuple):
    """What a server offers. `revision`: the one that it was read under; None if that is unknown."""

    value: JsonObject
    revision: str | None


# --- A running server


def supported(connect: Callable[[], Target], spec: Spec) -> dict[str, bool]:
    """Return for each revision of ``spec`` whether the server speaks it.

    ``connect``: starts a new connection. A server whose discovery lists no revision with a handshake gets a handshake
    for each of them: servers of both eras often list the stateless revisions only.

    Raises:
        ClientError: if no connection can be opened.
    """
    with Client(connect(), spec) as client:
        try:
            opened = client.open()
        except ClientError as error:
            raise ClientError("\n".join([error.message, *client.close()]), error.code, error.data) from error
    names = sorted(spec["revisions"], reverse=True)
    listed = opened.result.get("supportedVersions")
    if isinstance(listed, list):
        handshakes = [name for name in names if "request_metadata" not in spec["revisions"][name]]
        asked = [] if any(name in listed for name in handshakes) else handshakes
        return {name: _accepts(connect(), spec, name) if name in asked else name in listed for name in names}
    known = {name: name == opened.revision for name in names if name >= opened.revision}
    return known | {name: _accepts(connect(), spec, name) for name in names if name < opened.revision}


def _accepts(target: Target, spec: Spec, revision: str) -> bool:
    with Client(target, spec, revision) as client:
        try:
            client.open()
        except ClientError:
            return False
    return True


def live(client: Client, revisions: Mapping[str, bool]) -> Surface:
    """Return what the server of an open connection offers. Raises ClientError.

    ``revisions``: what is known about the revisions that it speaks.
    """
    opened = client.opened
    assert opened is not None
    lists = {
        "tools": client.tools(),
        "prompts": client.prompts(),
        "resources": client.resources(),
        "resourceTemplates": client.templates(),
    }
    value: JsonObject = {
        "revisions": {**revisions},
        "serverInfo": opened.server_info,
        "capabilities": opened.capabilities,
        "instructions": opened.instructions,
        **{part: _by_name(entries, LISTS[part][1]) for part, entries in lists.items()},
    }
    return Surface(value, opened.revision)


# --- A recording


class _Exchange(NamedTuple):
    """A request and its response; without a response it is None."""

    method: str
    params: Any
    response: Any


def declared(recording: Transcript, spec: Spec, revision: str) -> JsonObject:
    """Return the capabilities that the client of a recording declared under ``revision``; empty without any."""
    rules: Any = spec["revisions"].get(revision, {})
    key = rules.get("request_metadata", {}).get("capabilities")
    for each in _exchanges([*recording.opening(revision), *recording.turns(revision)]):
        params = each.params if isinstance(each.params, dict) else {}
        meta = params.get("_meta")
        found = params.get("capabilities") if key is None else isinstance(meta, dict) and meta.get(key)
        if isinstance(found, dict):
            return found
    return {}


def recorded(recording: Transcript, spec: Spec, revision: str | None = None) -> Surface:
    """Return what the server of a recording offered, and how its calls ended.

    ``revision``: the one of the recording to read, if it has several; by default the first.
    """
    governing = revision or recording.revisions[0]
    exchanges = [*_exchanges([*recording.opening(governing), *recording.turns(governing)])]
    handlers = {
        method: rules["handler"]
        for each in spec["revisions"].values()
        for method, rules in each["methods"].items()
        if "handler" in rules
    }
    value: JsonObject = {}
    for each in exchanges:
        result = each.response.get("result") if isinstance(each.response, dict) else None
        handler = handlers.get(each.method)
        if handler in _OPENINGS and isinstance(read := _read(result), dict):
            value |= _of_opening(each, read, spec)
    for part, (handler, name) in LISTS.items():
        pages = [each for each in exchanges if handlers.get(each.method) == handler]
        if (entries := _entries(pages, part)) is not None:
            value[part] = _by_name(entries, name)
    calls = [each for each in exchanges if handlers.get(each.method) not in _NOT_CALLS]
    return Surface({**value, "calls": _calls(calls, _of_an_era(spec))}, governing)


def _of_an_era(spec: Spec) -> set[str]:
    """Return the members of results that only some revisions have, whatever the server."""
    objects = (each["objects"] for each in spec["revisions"].values())
    return {"_meta", *(key for shapes in objects for each in shapes.values() for key in each.get("always", ()))}


def _exchanges(turns: Iterable[Turn]) -> Iterator[_Exchange]:
    """Yield the requests of a conversation, each with the next response that has its id."""
    listed = [*turns]
    responses: dict[tuple[str, str | int], list[tuple[int, Any]]] = {}  # type and value of an id → turn and message
    for number, turn in enumerate(listed):
        for each in flat(turn.expect):
            if (id_ := message.readable_id(each)) is not None and answers(each, id_):
                responses.setdefault((type(id_).__name__, id_), []).append((number, each))
    for number, turn in enumerate(listed):
        for sent in _sent(turn):
            known = responses.get((type(sent["id"]).__name__, sent["id"]), [])
            response = next((each for turn_, each in known if turn_ >= number), None)
            yield _Exchange(str(sent["method"]), sent.get("params"), response)


def _sent(turn: Turn) -> list[Any]:
    try:
        value = json.loads(turn.line)
    except (ValueError, RecursionError):
        return []
    return [each for each in flat([value]) if message.request_id(each) is not None]


def _of_opening(exchange: _Exchange, result: Any, spec: Spec) -> JsonObject:
    """Return the parts that the result of a handshake or of a discovery contains."""
    value: JsonObject = {"instructions": result.get("instructions")}
    param = spec["negotiation"]["version_params"].get(exchange.method)
    requested = exchange.params.get(param) if param is not None and isinstance(exchange.params, dict) else None
    listed = result.get("supportedVersions")
    if isinstance(requested, str) and isinstance(result.get(param), str):
        value["revisions"] = {requested: result[param] == requested, **{str(result[param]): True}}
    elif isinstance(listed, list):
        value["revisions"] = {name: True for name in spec["revisions"] if name in listed}
    meta = result.get("_meta")
    keys = [each["identity"] for each in spec["revisions"].values() if "identity" in each]
    identity = next((meta[key] for key in keys if isinstance(meta, dict) and key in meta), None)
    value["serverInfo"] = result.get("serverInfo", identity)
    value["capabilities"] = result.get("capabilities")
    whole = not isinstance(result, Partial)
    return {key: inner for key, inner in value.items() if inner is not None or (whole and key == "instructions")}


def _entries(pages: Iterable[_Exchange], member: str) -> list[Any] | None:
    """Return the entries of the last complete reading of a list; None if there was none."""
    entries: list[Any] | None = None
    pending: list[Any] = []
    for each in pages:
        response = each.response if isinstance(each.response, dict) else {}
        if not (isinstance(each.params, dict) and "cursor" in each.params):
            pending = []
        if "error" in response:
            entries = []
            continue
        result = _read(response.get("result"))
        page = result.get(member) if isinstance(result, dict) else None
        if not isinstance(page, list):
            continue
        pending = [*pending, *page]
        if "nextCursor" not in result:
            entries = pending
    return entries


def _by_name(entries: Iterable[Any], key: str) -> JsonObject:
    """Map the entries of a list by name, with schemas that can be compared."""
    named: JsonObject = {}
    for each in entries:
        if isinstance(each, dict) and isinstance(each.get(key), str) and each[key] is not UNKNOWN:
            named[each[key]] = type(each)(
                {
                    inner: _comparable(inner, value)
                    for inner, value in each.items()
                    if inner != key or key not in ("name", "uri", "uriTemplate")
                }
            )
    return named


def _comparable(key: str, value: JsonValue) -> JsonValue:
    """Return a member of an entry: a JSON Schema without references, and the arguments of a prompt by name.

    A value that is no valid schema becomes the value of an unknown keyword, so each change of it is breaking.
    """
    if key.endswith("Schema"):
        return inlined(value) if value is UNKNOWN or _is_schema(value) else {"invalid schema": value}
    if key == "arguments" and isinstance(value, list):
        return _by_name(value, "name")
    return value


def _is_schema(value: JsonValue) -> bool:
    try:
        return jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA).is_valid(value)
    except RecursionError:
        return False


# --- Calls


def _calls(exchanges: Iterable[_Exchange], omitted: Collection[str]) -> JsonObject:
    """Map each request, with its params in compact form, to how it ended; ``omitted``: members of results."""
    calls: JsonObject = {}
    numbers: collections.Counter[str] = collections.Counter()
    for each in exchanges:
        params = each.params if isinstance(each.params, dict) else {}
        shown = {key: value for key, value in params.items() if key != "_meta"}
        name = f"{each.method} {json.dumps(shown, sort_keys=True, ensure_ascii=False)}"
        numbers[name] += 1
        calls[name if numbers[name] == 1 else f"{name} #{numbers[name]}"] = _ending(each.response, omitted)
    return calls


def _ending(response: Any, omitted: Collection[str]) -> JsonObject:
    if response is None:
        return {"outcome": "silence"}
    if "error" in response:
        error = _read(response["error"])
        about = {key: error[key] for key in ("code", "message") if isinstance(error, dict) and key in error}
        return {"outcome": "error", **about}
    members: Any = shape(response.get("result"))
    if type(members) in (dict, Partial):
        members = type(members)({key: value for key, value in members.items() if key not in {*omitted, "isError"}})
    read = _read(response.get("result"))
    flag = {"isError": read["isError"]} if isinstance(read, dict) and "isError" in read else {}
    return {"outcome": "result", "members": members, **flag}


def shape(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return the types of a value: a name for a scalar, members for an object, for a list what its entries have.

    A string that contains a JSON object or list has the member ``(JSON)``.
    """
    if depth > _DEEPEST:
        return UNKNOWN
    matcher = matchers.read(value)
    if matcher is not None:
        return _shape_of_matcher(matcher, depth)
    if isinstance(value, dict):
        return {key: shape(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return {"[]": _merged([shape(inner, depth + 1) for inner in value])} if value else Partial()
    return _shape_of_scalar(value, depth)


def _shape_of_scalar(value: JsonValue, depth: int) -> JsonValue:
    try:
        parsed = json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        parsed = None
    if parsed is not None:
        return {"(JSON)": shape(parsed, depth + 1)}
    return "number" if json_type(value) == "integer" else json_type(value)


def _shape_of_matcher(matcher: matchers.Matcher, depth: int) -> JsonValue:
    name, operand = matcher.name, matcher.operand
    if name == "$any":
        return {"integer": "number", "array": UNKNOWN, "object": UNKNOWN, "string": UNKNOWN}.get(operand, operand)
    if name == "$subset":
        return Partial({key: shape(inner, depth + 1) for key, inner in operand.items()})
    if name in ("$unordered", "$literal"):
        return shape(operand, depth + 1) if name == "$unordered" else _plain(operand, depth)
    return {"(JSON)": shape(operand, depth + 1)} if name == "$json" else UNKNOWN


def _plain(value: JsonValue, depth: int) -> JsonValue:
    """Return the shape of a value that looks like a matcher and is none."""
    if isinstance(value, dict):
        return {key: shape(inner, depth + 1) for key, inner in value.items()}
    return shape(value, depth + 1)


def _merged(shapes: list[JsonValue]) -> JsonValue:
    """Return one shape for all entries of a list: objects together have the members of each."""
    if any(each is UNKNOWN for each in shapes):
        return UNKNOWN
    objects: list[Any] = [each for each in shapes if isinstance(each, dict)]
    names = sorted({each for each in shapes if isinstance(each, str)})
    keys = dict.fromkeys(key for each in objects for key in each)
    members = {key: _merged([each[key] for each in objects if key in each]) for key in keys}
    if not objects:
        return " or ".join(names)
    return (Partial if any(isinstance(each, Partial) for each in objects) else dict)(members)


# --- Values of recordings


def _read(value: JsonValue) -> Any:
    """Return a value of ``expect`` with `UNKNOWN` and `Partial` instead of matchers."""
    matcher = matchers.read(value)
    if matcher is not None:
        if matcher.name == "$subset":
            return Partial({key: _read(inner) for key, inner in matcher.operand.items()})
        if matcher.name == "$unordered":
            return [_read(inner) for inner in matcher.operand]
        return matcher.operand if matcher.name == "$literal" else UNKNOWN
    if isinstance(value, dict):
        return {key: _read(inner) for key, inner in value.items()}
    return [_read(inner) for inner in value] if isinstance(value, list) else value

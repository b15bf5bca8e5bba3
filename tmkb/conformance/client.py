"""A client of any MCP server, over a `Target`. It negotiates a revision, sends requests and follows cursors.

Specification: Basic / Lifecycle; Basic / Versioning; Server Utilities / Pagination. The client declares no
capabilities unless its caller names some, so a server should not ask for anything. If a server asks, the client
declines.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tmkb import __version__
from tmkb.conformance import match, transcript
from tmkb.conformance.targets import Target, answers, flat
from tmkb.protocol import messages as message
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue

INFO: JsonObject = {"name": "tmkb", "version": __version__}  # what the client says of itself
_DISCOVERY = 3.0  # seconds for the response to the first request, which older servers may ignore
_END = 2.0  # seconds for a server to end after its input
_MOST_PAGES = 1000  # of one list
_MOST_QUESTIONS = 100  # of the server during one request
_NAME = 200  # characters of a method that a sentence names
_METHOD_NOT_FOUND = "method_not_found"


class ClientError(Exception):
    """A request failed: the server answered with an error, answered wrongly, or did not answer.

    Attributes:
        code: the JSON-RPC error code; None if the server sent no error.
        message: one sentence, or the message of the error. It can contain control characters.
        data: the ``data`` of the error; None without it.
    """

    def __init__(self, message: str, code: int | None = None, data: JsonValue = None) -> None:
        super().__init__(message)
        self.message, self.code, self.data = message, code, data


@dataclass(frozen=True, slots=True)
class Opened:
    """What the server said about itself when the connection was opened.

    `result`: the whole result of the handshake or of the discovery.
    """

    revision: str
    server_info: JsonObject
    capabilities: JsonObject
    instructions: str | None
    result: JsonObject


class Client:
    """A client of the server at the other end of a target. Call `open` first, and `close` at the end."""

    def __init__(
        self, target: Target, spec: Spec, revision: str | None = None, capabilities: JsonObject | None = None
    ) -> None:
        """Use ``target``.

        Args:
            target: a new connection.
            spec: the revisions that the client speaks. The spec of any server of ours will do.
            revision: the only revision to offer; by default the newest that both sides speak.
            capabilities: what to declare, for servers that offer more to some clients; by default nothing.
        """
        self.target, self.spec = target, spec
        self.opened: Opened | None = None
        self.on_send: Callable[[JsonValue], None] = lambda _: None  # called with each message before it is sent
        self.declined: Callable[[JsonObject], None] = lambda _: None  # called with each request that is declined
        self._wanted = revision
        self._capabilities: JsonObject = capabilities or {}
        self._revision: Revision | None = None
        self._ids = itertools.count(1)
        self._notes: list[str] | None = None
        self._discovery: int | None = None  # the id of a request for discovery without a response
        self._late: JsonObject | None = None  # the response to it, from a server that starts slowly

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> Opened:
        """Negotiate a revision: try stateless revisions first, then those with a handshake.

        Raises:
            ClientError: if the server answers neither, or if both sides have no revision in common.
        """
        names = [self._wanted] if self._wanted else sorted(self.spec["revisions"], reverse=True)
        if unknown := next((name for name in names if name not in self.spec["revisions"]), None):
            raise ClientError(f"Unknown revision {unknown}. Known: {', '.join(sorted(self.spec['revisions']))}.")
        stateless = [name for name in names if "request_metadata" in self.spec["revisions"][name]]
        handshakes = [name for name in names if name not in stateless]
        refusal: ClientError | None = None
        if stateless:
            try:
                self.opened = self._discover(stateless, None if handshakes else self.target.timeout)
                return self.opened
            except ClientError as error:
                if not handshakes:
                    raise
                refusal = error
        supported = _supported(refusal)
        try:
            opened = self._shake_hands([name for name in handshakes if name in supported] or handshakes)
            self.opened = opened or self._discovered(stateless, self._late or {})
            return self.opened
        except ClientError as error:
            if error.code is None and refusal is not None and refusal.code is None and refusal.data is None:
                raise refusal from None  # the server has ended, or does not speak
            raise

    def method(self, handler: str) -> str | None:
        """Return the name of a method under the negotiated revision; None if the revision lacks it.

        ``handler``: what the method does, as in ``schemas/protocol/``, for example ``list_tools``.
        """
        return _method(self._governing(), handler)

    def request(self, method: str, params: JsonObject | None = None) -> JsonObject:
        """Send a request and return its result. Requests of the server meanwhile are declined.

        Raises:
            ClientError: if the response is an error, is no response of JSON-RPC, or does not arrive.
        """
        id_ = next(self._ids)
        sent: JsonObject = {"jsonrpc": "2.0", "id": id_, "method": method}
        if (whole := self._params(params)) is not None:
            sent["params"] = whole
        received = self._exchange(sent, id_)
        responses, others = [], []
        for _ in range(_MOST_QUESTIONS):
            responses += [each for each in received if answers(each, id_)]
            others += [each for each in received if not isinstance(each, dict) or _is_strange(each)]
            questions = [each for each in received if message.request_id(each) is not None]
            if not questions:
                break
            last = None if responses else id_
            *earlier, latest = [self._declined(each) for each in questions]
            received = [answer for reply in earlier for answer in self._exchange(reply, None)]
            received += self._exchange(latest, last)
        return self._result(method, responses, others)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification."""
        self._exchange({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}, None)

    def every(self, method: str, member: str) -> list[JsonObject]:
        """Return the entries of all pages of a list.

        Args:
            method: the method of the list.
            member: the member of its result with the entries.

        Raises:
            ClientError: as `request`; also if a result is no page of a list, or if the pages do not end.
        """
        entries: list[JsonObject] = []
        seen: set[str] = set()
        params: JsonObject | None = None
        for _ in range(_MOST_PAGES):
            result = self.request(method, params)
            entries += _page(method, member, result)
            cursor = result.get("nextCursor")
            if cursor is None:
                return entries
            if not isinstance(cursor, str):
                raise ClientError(f"{method}: nextCursor is not a string: {match.short(cursor)}")
            if cursor in seen:
                raise ClientError(f"{method}: the list has no end: nextCursor {match.short(cursor)} came twice.")
            seen.add(cursor)
            params = {"cursor": cursor}
        raise ClientError(f"{method}: the list has more than {_MOST_PAGES} pages.")

    def tools(self) -> list[JsonObject]:
        """Return the tools of the server, and let the target know them. Raises ClientError."""
        tools = self._offered("list_tools", "tools")
        self.target.learn(tools)
        return tools

    def prompts(self) -> list[JsonObject]:
        """Return the prompts of the server. Raises ClientError."""
        return self._offered("list_prompts", "prompts")

    def resources(self) -> list[JsonObject]:
        """Return the resources of the server. Raises ClientError."""
        return self._offered("list_resources", "resources")

    def templates(self) -> list[JsonObject]:
        """Return the resource templates of the server. Raises ClientError."""
        return self._offered("list_templates", "resourceTemplates")

    def close(self) -> list[str]:
        """End the connection and return notes for a failure report: exit status and stderr of a process."""
        if self._notes is None:
            self.target.timeout = min(self.target.timeout, _END)
            self.target.close()
            self._notes = self.target.notes()
        return self._notes

    # --- Opening

    def _discover(self, names: list[str], timeout: float | None) -> Opened:
        """Open a connection under one of the stateless revisions ``names``, newest first."""
        self._revision = self.spec["revisions"][names[0]]
        patience = self.target.timeout
        self.target.timeout = min(patience, _DISCOVERY) if timeout is None else timeout
        try:
            result = self.request(_method(self._revision, "discover") or "")
        except ClientError as error:
            self._discovery = 1 if error.code is None else None
            raise
        finally:
            self.target.timeout = patience
        return self._discovered(names, result)

    def _discovered(self, names: list[str], result: JsonObject) -> Opened:
        """Choose the newest of the stateless revisions ``names`` that the result of a discovery supports."""
        supported = result.get("supportedVersions")
        common = [name for name in names if isinstance(supported, list) and name in supported]
        if not common:
            raise ClientError(
                f"The server supports {_listed(supported)}, and not {' or '.join(names)}.",
                None,
                {"supported": supported},
            )
        self._revision = self.spec["revisions"][common[0]]
        meta = result.get("_meta")
        info = meta.get(self._revision["identity"]) if isinstance(meta, dict) else None
        return _opened(common[0], result, info)

    def _shake_hands(self, names: list[str]) -> Opened | None:
        """Open a connection with a handshake, offering the newest of ``names``.

        Returns:
            None if the response to the discovery has arrived meanwhile.
        """
        self._revision = self.spec["revisions"][names[0]]
        method = _method(self._revision, "initialize") or ""
        param = self.spec["negotiation"]["version_params"][method]
        try:
            result = self.request(method, {param: names[0], "capabilities": self._capabilities, "clientInfo": INFO})
        except ClientError:
            if self._late is None:
                raise
        if self._late is not None:
            return None
        chosen = result.get(param)
        if chosen not in names:
            raise ClientError(
                f"The server answers {method} with the revision {match.short(chosen)}; offered: {names[0]}."
            )
        self._revision = self.spec["revisions"][str(chosen)]
        _, initialized = transcript.packaged_opening("handshake", str(chosen))
        self._exchange(json.loads(initialized.line), None)
        return _opened(str(chosen), result, result.get("serverInfo"))

    def _governing(self) -> Revision:
        if self._revision is None:
            raise ClientError("The connection is not open.")
        return self._revision

    # --- Messages

    def _offered(self, handler: str, member: str) -> list[JsonObject]:
        """Return all entries of a list; none if the server does not know its method."""
        try:
            return self.every(self.method(handler) or "", member)
        except ClientError as error:
            if error.code == self._not_found():
                return []
            raise

    def _not_found(self) -> Any:
        return self._governing()["errors"][_METHOD_NOT_FOUND].get("code")

    def _params(self, params: JsonObject | None) -> JsonObject | None:
        """Return the params with what a stateless revision requires in each request."""
        revision = self._governing()
        if "request_metadata" not in revision:
            return params
        keys = revision["request_metadata"]
        meta: JsonObject = {keys["revision"]: revision["revision"], keys["capabilities"]: self._capabilities}
        known: Any = revision["meta"].get("properties", {})
        meta |= {key: INFO for key in known if key.endswith("/clientInfo")}
        own: Any = (params or {}).get("_meta", {})
        return {**(params or {}), "_meta": meta | own if isinstance(own, dict) else own}

    def _exchange(self, sent: JsonObject, pending: int | None) -> list[JsonValue]:
        self.on_send(sent)
        received = flat(self.target.exchange(message.encode(sent), 0, pending))
        late: list[Any] = [each for each in received if answers(each, self._discovery)]
        if late and isinstance(late[0].get("result"), dict):
            self._late = late[0]["result"]
        return received

    def _declined(self, question: Any) -> JsonObject:
        """Return the response to a request of the server: an error, but an empty result for a ping."""
        method, id_ = question["method"], question["id"]
        if method == _method(self._governing(), "ping"):
            return {"jsonrpc": "2.0", "id": id_, "result": {}}
        self.declined(question)
        text = f"Declined: this client does not support {str(method)[:_NAME]}, and declares no capability for it"
        return {"jsonrpc": "2.0", "id": id_, "error": {"code": self._not_found(), "message": text}}

    def _result(self, method: str, responses: list[Any], others: list[JsonValue]) -> JsonObject:
        faults = self.target.report()
        if not responses:
            raise ClientError(" ".join([f"No response to {method}.", *faults, *map(_strange, others[:3])]))
        response = responses[0]
        result, error = response.get("result"), response.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            is_code = isinstance(code, int) and not isinstance(code, bool)
            raise ClientError(str(error.get("message", "")), code if is_code else None, error.get("data"))
        if not isinstance(result, dict):
            raise ClientError(f"The response to {method} has no result that is an object: {match.short(response)}")
        return result


def _opened(revision: str, result: JsonObject, info: JsonValue) -> Opened:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Opened(
        revision,
        info if isinstance(info, dict) else {},
        capabilities if isinstance(capabilities, dict) else {},
        instructions if isinstance(instructions, str) else None,
        result,
    )


def _method(revision: Revision, handler: str) -> str | None:
    methods: Mapping[str, Any] = revision["methods"]
    return next((name for name, rules in methods.items() if rules.get("handler") == handler), None)


def _supported(error: ClientError | None) -> list[JsonValue]:
    """Return the revisions that the server names in an error."""
    supported = error.data.get("supported") if error is not None and isinstance(error.data, dict) else None
    return supported if isinstance(supported, list) else []


def _page(method: str, member: str, result: JsonObject) -> list[JsonObject]:
    entries = result.get(member)
    if not isinstance(entries, list):
        raise ClientError(f"{method}: the result has no list {member}.")
    page = [each for each in entries if isinstance(each, dict)]
    if len(page) < len(entries):
        raise ClientError(f"{method}: an entry of {member} is not an object.")
    return page


def _is_strange(each: JsonObject) -> bool:
    """Return whether a value is no message of JSON-RPC, or an error that belongs to no request."""
    return each.get("jsonrpc") != "2.0" or ("error" in each and each.get("id") is None)


def _strange(each: JsonValue) -> str:
    if isinstance(each, dict) and each.get("jsonrpc") == "2.0":
        return f"It sent an error without the id of a request: {match.short(each.get('error'))}"
    return f"It sent {match.short(each)}, which is not a JSON-RPC message."


def _listed(value: JsonValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) and value else "no revision"

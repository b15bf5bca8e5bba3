"""Each object that the server stores between HTTP requests belongs to the principal that created it.

Add a row for each new kind of stored object: to `NAMED` if requests name the object, to `APART` if requests of two
principals only look alike. `test_every_stored_attribute_has_a_test_case` fails for each attribute without a row.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable

import pytest

from tests.transport.test_http import JSON, META, Client, events, named
from tmkb.transport.guard import Guard
from tmkb.transport.http import Session

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
DECLARED = {"elicitation": {}, "sampling": {}, "roots": {}, "extensions": {TASKS: {}}}
ABLE = {CAPABILITIES: DECLARED}
ACCEPTED = {"action": "accept", "content": {"name": "Ann"}}
NOWHERE = "no-such-thing"


class Peer(Client):
    """A client with its own token at a shared endpoint."""

    def __init__(self, endpoint, token):
        self.endpoint = endpoint
        self.token = {} if token is None else {"authorization": f"Bearer {token}"}
        self.session = {}
        self.unread = []

    def call(self, verb="POST", headers=None, body=b"", path="/mcp"):
        answer = super().call(verb, {**(JSON if headers is None else headers), **self.token}, body, path)
        self.unread.append(answer)
        return answer

    def read(self):
        """Read all responses so far."""
        for answer in self.unread:
            answer.take()
        self.unread.clear()

    def task(self, method, task, **more):
        request_headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": f"tasks/{method}", "mcp-name": task}
        return self.alone(f"tasks/{method}", 9, request_headers, taskId=task, _meta=ABLE, **more)

    def tool(self, tool, id=1, arguments=None, **more):
        return self.alone("tools/call", id, named(tool), name=tool, arguments=arguments or {}, _meta=ABLE, **more)

    def begin(self):
        """Initialize with all capabilities; return the session headers."""
        self.session = {}
        self.shake(**DECLARED)
        return self.session


def peers(runtimes, quiet, tokens=("one", "two"), **limits):
    """Return clients of one endpoint, each with one of the ``tokens``."""
    endpoint = Client(runtimes, quiet, **limits).endpoint
    endpoint.guard = Guard(tokens=[hashlib.sha256(token.encode()).hexdigest() for token in tokens if token])
    return [Peer(endpoint, token) for token in tokens]


def with_subjects(runtimes, quiet):
    """Return clients of one endpoint, each with the token of a subject of the same issuer."""
    from tests.access.test_endpoint import access
    from tests.support.issuer import token

    endpoint = Client(runtimes, quiet).endpoint
    everything = {kind: ["*"] for kind in ("tools", "resources", "prompts")}
    endpoint.guard = Guard(access=access({"all": {"granted_by": "everyone", **everything}}))
    return [Peer(endpoint, token(subject=subject)) for subject in ("one", "two")]


@pytest.fixture(
    params=["digests", pytest.param("subjects", marks=[pytest.mark.needs("jwt"), pytest.mark.needs("joserfc")])]
)
def two(request, runtimes, quiet):
    return peers(runtimes, quiet) if request.param == "digests" else with_subjects(runtimes, quiet)


def result(answer):
    return json.loads(answer.take())["result"]


def seen(answer, name):
    """Return status, headers and body of ``answer``, with ``name`` replaced."""
    headers = {key: value for key, value in answer.headers.items() if key != "content-length"}
    return answer.status, headers, answer.take().decode().replace(name, "NAME")


# Rows of things that a request names. `make` gives the name; `use` names it; `works` judges the owner's own use.


@dataclasses.dataclass
class Named:
    what: str
    make: Callable
    use: Callable
    works: Callable
    unknown: Callable = lambda name: NOWHERE  # a name that does not exist
    holds: tuple[str, ...] = ()


def session(peer):
    return peer.begin()["mcp-session-id"]


def within(act):
    """Use the session ``name`` to do ``act``."""

    def use(peer, name):
        peer.session = {"mcp-session-id": name}
        return act(peer)

    return use


def waiting(tool, **arguments):
    """Start a call in a session, and leave it running."""

    def make(peer):
        name = session(peer)
        peer.calling = peer.send("tools/call", 7, name=tool, arguments=arguments)
        return name

    return make


def resumable(peer):
    name = session(peer)
    peer.send("tools/call", 7, name="test_reconnection")
    peer.endpoint.runtime.jobs[0].steps.resume_at = 0
    peer.work()
    return name


def asking(peer):
    return result(peer.tool("test_input_required_result_request_state"))["requestState"]


def answered(peer, state):
    responses = {"confirm": {"action": "accept", "content": {"ok": True}}, "user_name": ACCEPTED}
    return peer.tool("test_input_required_result_request_state", 2, inputResponses=responses, requestState=state)


def subscribed(peer):
    name = session(peer)
    peer.send("resources/subscribe", 1, uri="test://watched-resource")
    return name


def began(tool, **arguments):
    return lambda peer: result(peer.tool(tool, arguments=arguments))["taskId"]


def alright(answer):
    return answer.status in (200, 202, 204) and b'"error"' not in answer.take()


NAMED = [
    Named("a session", session, within(lambda peer: peer.send("ping", 1)), alright, holds=("id", "next_number", "last_used")),
    Named("the end of a session", session, within(lambda peer: peer.call("DELETE", peer.session | JSON)), alright),
    Named("the general stream", session, within(lambda peer: peer.listen()), alright, holds=("general",)),
    Named(
        "resumption after Last-Event-ID",
        resumable,
        within(lambda peer: peer.listen(**{"last-event-id": "2-1"})),
        lambda answer: [message["id"] for _, message in events(answer)] == [7],
        holds=("streams",),
    ),
    Named(
        "cancellation in a session",
        waiting("test_slow"),
        within(lambda peer: peer.send("notifications/cancelled", requestId=7)),
        alright,
        holds=("running", "in_flight"),
    ),
    Named(
        "the answer to a question",
        waiting("test_elicitation", message="Who?"),
        within(lambda peer: peer.send(more={"id": 1, "result": {"action": "decline"}})),
        alright,
        holds=("client_requests", "next_id", "capabilities"),
    ),
    Named(
        "roots",
        waiting("test_roots"),
        within(lambda peer: peer.send(more={"id": 1, "result": {"roots": []}})),
        alright,
    ),
    Named(
        "the logging level",
        session,
        within(lambda peer: peer.send("logging/setLevel", 3, level="error")),
        alright,
        holds=("log_level",),
    ),
    Named(
        "a subscription",
        subscribed,
        within(lambda peer: peer.send("resources/unsubscribe", 3, uri="test://watched-resource")),
        alright,
        holds=("subscribed",),
    ),
    Named(
        "a task",
        began("slow_compute", seconds=60),
        lambda peer, name: peer.task("get", name),
        lambda answer: result(answer)["status"] == "working",
        holds=("tasks",),
    ),
    Named(
        "a task that is over",
        lambda peer: (began("slow_compute", seconds=0)(peer), peer.work())[0],
        lambda peer, name: peer.task("get", name),
        lambda answer: result(answer)["status"] == "completed",
    ),
    Named(
        "an answer to a task",
        began("multi_input"),
        lambda peer, name: peer.task("update", name, inputResponses={"first": ACCEPTED}),
        alright,
    ),
    Named("a task, cancelled", began("slow_compute", seconds=60), lambda peer, name: peer.task("cancel", name), alright),
    Named("a sealed state", asking, answered, alright, unknown=lambda state: state[:-64] + "0" * 64),
]  # fmt: skip


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row.what)
def test_objects_of_another_principal_look_unknown(two, row):
    owner, other = two
    name = row.make(owner)
    missing = row.unknown(name)
    stolen, unknown = seen(row.use(other, name), name), seen(row.use(other, missing), missing)

    assert stolen == unknown
    assert stolen[0] >= 400 or '"error"' in stolen[2]
    assert row.works(row.use(owner, name))


# Rows where two principals give the same ids and names to things of their own.


@dataclasses.dataclass
class Apart:
    what: str
    make: Callable  # the owner's
    act: Callable  # the other's
    untouched: Callable  # the owner's, afterwards
    holds: tuple[str, ...] = ()


def cancelled_alone(peer):
    request_headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "notifications/cancelled"}
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "_meta": META}}
    return peer.call(headers={**JSON, **request_headers}, body=json.dumps(body).encode())


def listening(peer):
    peer.calling = peer.alone("subscriptions/listen", 7, notifications={"toolsListChanged": True})


def in_own_session(act):
    def acted(peer):
        peer.begin()
        act(peer)

    return acted


def level(peer):
    peer.begin()
    peer.send("logging/setLevel", 3, level="debug")


def logged(peer):
    answer = peer.send("tools/call", 8, name="test_tool_with_logging")
    peer.work()
    return len([message for _, message in events(answer) if "method" in message]) == 3


def unaffected(peer):
    return not peer.calling.ended


APART = [
    Apart("the same request id, cancelled", waiting("test_slow"), in_own_session(lambda peer: peer.send("notifications/cancelled", requestId=7)), unaffected),
    Apart("the same id of a question, answered", waiting("test_elicitation", message="Who?"), in_own_session(lambda peer: peer.send(more={"id": 1, "result": {"action": "decline"}})), unaffected),
    Apart("a request of another, cancelled without a session", lambda peer: setattr(peer, "calling", peer.tool("test_slow", 7)), cancelled_alone, unaffected, ("headers",)),
    Apart("a stream of another, cancelled without a session", listening, cancelled_alone, unaffected, ("listening",)),
    Apart("the same event id", resumable, in_own_session(lambda peer: peer.listen(**{"last-event-id": "2-1"})), lambda peer: [message["id"] for _, message in events(peer.listen(**{"last-event-id": "2-1"}))] == [7]),
    Apart("the logging level", level, in_own_session(lambda peer: peer.send("logging/setLevel", 3, level="emergency")), logged),
    Apart("the handshake", session, lambda peer: peer.shake("2024-11-05"), lambda peer: peer.send("ping", 8).status == 200, ("negotiated", "server_capabilities", "state", "connection", "rules")),
]  # fmt: skip


@pytest.mark.parametrize("row", APART, ids=lambda row: row.what)
def test_two_principals_can_use_the_same_name(two, row):
    owner, other = two
    row.make(owner)
    row.act(other)

    assert row.untouched(owner)


def test_a_subscriber_receives_only_its_subscriptions(two):
    owner, other = two
    subscribed(owner)
    other.begin()
    other.send("tools/call", 2, name="test_trigger_resource_change")
    other.work()

    assert [m["method"] for _, m in events(owner.listen())][-1:] == ["notifications/resources/updated"]
    assert "notifications/resources/updated" not in [m["method"] for _, m in events(other.listen())]


SHARED = {  # between connections, or references to the snapshot
    "snapshot": "what is served", "references": "numbers for errors", "traced": "a setting of the log",
    "caller": "whose it is", "max_stored": "a limit", "budget": "see test_budgets",
    "clock": "the same for all", "trace_headers": "only for observers",
}  # fmt: skip


def test_every_stored_attribute_has_a_test_case(two):
    owner, _ = two
    owner.begin()
    (stored,) = owner.endpoint.sessions.values()
    assert isinstance(stored, Session)
    rowed = {name for row in [*NAMED, *APART] for name in row.holds}

    assert {*vars(stored.connection), *vars(stored)} - rowed - {*SHARED} == set()


def test_without_tokens_all_clients_are_one_principal(runtimes, quiet):
    one, two = peers(runtimes, quiet, tokens=(None, None))
    task = began("slow_compute", seconds=60)(one)

    assert result(two.task("get", task))["status"] == "working"


def test_a_request_state_without_a_principal_is_invalid_with_a_token(runtimes, quiet):
    anonymous, *_ = peers(runtimes, quiet, tokens=(None,))
    known, _ = peers(runtimes, quiet)
    known.endpoint.runtime.configured_keys = anonymous.endpoint.runtime.keys
    state = asking(anonymous)

    assert json.loads(answered(known, state).take())["error"]["code"] == -32602
    assert alright(answered(anonymous, state))


def test_only_the_client_of_an_elicitation_is_notified_of_its_end(two):
    owner, other = two
    owner.begin()
    other.begin()
    owner.send("tools/call", 2, name="test_elicitation_complete")
    owner.work()

    assert [m["method"] for _, m in events(owner.listen())] == ["notifications/elicitation/complete"]
    assert events(other.listen()) == []

"""The HTTP endpoint with an access file, without sockets: what a caller gets, and how it is refused."""

import asyncio
import hashlib
import json
import time

import pytest

from tests.access.test_tokens import LIMITS
from tests.support import issuer
from tests.support.issuer import NAME, RESOURCE, key, token
from tests.transport.test_http import JSON, META, events, named
from tests.transport.test_principals import ABLE, Peer, seen
from tmkb.access.access import Access
from tmkb.access.keys import Key, Keys
from tmkb.access.policy import Policy
from tmkb.schema import reader
from tmkb.transport.asgi import Application
from tmkb.transport.guard import Guard
from tmkb.transport.http import Endpoint

pytestmark = [pytest.mark.needs("jwt"), pytest.mark.needs("joserfc")]

METADATA = "https://tmkb.example/.well-known/oauth-protected-resource/mcp"
HELLO = {"uri": "test://static-text"}
ROLES = {
    "reader": {
        "granted_by": [{"scopes": ["tmkb:read"]}],
        "tools": ["greet", "slow_*"],
        "resources": ["test://static-text", "test://template/a*", "test://users/ann*"],
        "prompts": ["test_simple_prompt"],
    },
    "admin": {
        "granted_by": [{"scopes": ["tmkb:read", "tmkb:admin"]}],
        "tools": ["*"],
        "resources": ["*"],
        "prompts": ["*"],
    },
    "staff": {"granted_by": [{"claims": {"groups": ["staff"]}}], "prompts": ["test_prompt_with_arguments"]},
}


def access(roles=None, **more):
    """An access file whose issuer has the key `one`."""
    value = {
        "kind": "access",
        "resource": RESOURCE,
        "issuers": [{"issuer": NAME}],
        "roles": ROLES if roles is None else roles,
        **more,
    }
    made = Access(Policy(reader.parse(json.dumps(value), "access.yaml")), LIMITS, lambda *_, **__: None)
    made._tokens.issuers[NAME].keys.all = [Key(each) for each in issuer.public(key("one"))]
    return made


class Caller(Peer):
    """A client that sends tokens of the issuer."""

    def __init__(self, endpoint, **claims):
        super().__init__(endpoint, token(**claims))

    def ask(self, era, method, about=None, **params):
        """The response to a request, in a session or as a stateless request."""
        if era == "session":
            if not self.session:
                self.begin()
            return self.send(method, 5, **params)
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
        return self.alone(method, 5, headers | ({"mcp-name": about} if about else {}), **params)


@pytest.fixture
def endpoint(runtimes, quiet):
    from tests.transport.test_http import Client

    made = Client(runtimes, quiet).endpoint
    made.guard = Guard(access=access())
    return made


@pytest.fixture
def reading(endpoint):
    return Caller(endpoint)


@pytest.fixture
def admin(endpoint):
    return Caller(endpoint, scope="tmkb:read tmkb:admin")


def body(answer):
    return json.loads(answer.take())


def listed(answer, key):
    return [each.get("name") for each in body(answer)["result"][key]]


ERAS = pytest.mark.parametrize("era", ["session", "stateless"])


@ERAS
def test_lists_have_only_what_the_caller_may_use(reading, admin, era):
    everything = [listed(admin.ask(era, f"{kind}/list"), kind) for kind in ("tools", "prompts", "resources")]

    assert listed(reading.ask(era, "tools/list"), "tools") == ["greet", "slow_compute"]
    assert listed(reading.ask(era, "prompts/list"), "prompts") == ["test_simple_prompt"]
    assert listed(reading.ask(era, "resources/list"), "resources") == ["static-text"]
    assert listed(reading.ask(era, "resources/templates/list"), "resourceTemplates") == ["template-data"]
    assert [listed(admin.ask(era, f"{kind}/list"), kind) for kind in ("tools", "prompts", "resources")] == everything
    assert all(len(names) > 2 for names in everything)


def test_lists_that_depend_on_permissions_are_private(endpoint, reading):
    endpoint.runtime.spec["server"]["cache"] = {"ttlMs": 60000, "cacheScope": "public"}
    try:
        results = [body(reading.ask("stateless", method))["result"] for method in ("tools/list", "server/discover")]
        results.append(body(reading.ask("stateless", "resources/read", HELLO["uri"], **HELLO))["result"])
    finally:
        del endpoint.runtime.spec["server"]["cache"]

    assert [result["cacheScope"] for result in results] == ["private"] * 3


FORBIDDEN = {
    "a tool": ("tools/call", "test_simple_text", {"name": "test_simple_text"}),
    "a tool that does not exist": ("tools/call", "nowhere", {"name": "nowhere"}),
    "a prompt": ("prompts/get", "test_prompt_with_image", {"name": "test_prompt_with_image"}),
    "a resource": ("resources/read", "test://static-binary", {"uri": "test://static-binary"}),
    "a resource of a template": ("resources/read", "test://template/b/data", {"uri": "test://template/b/data"}),
    "an encoded resource": ("resources/read", "test://template/%61/data", {"uri": "test://template/%61/data"}),
}


@ERAS
@pytest.mark.parametrize("row", FORBIDDEN)
def test_a_caller_is_refused_what_no_role_grants(reading, admin, era, row):
    method, about, params = FORBIDDEN[row]
    answer = reading.ask(era, method, about, **params)
    challenge = answer.headers["www-authenticate"]

    assert answer.status == 403
    assert challenge.startswith('Bearer error="insufficient_scope", error_description="')
    assert challenge.endswith(f'resource_metadata="{METADATA}", scope="tmkb:read tmkb:admin"')
    assert body(answer)["error"] == {
        "code": -32600,
        "message": f"The access token permits no use of this {method.partition('s/')[0]}",
        "data": {"scopes": ["tmkb:read", "tmkb:admin"]},
    }
    assert admin.ask(era, method, about, **params).status != 403


@ERAS
def test_a_challenge_names_no_scope_if_none_helps(endpoint, era):
    caller = Caller(endpoint, scope="", groups=["staff"])
    answer = caller.ask(era, "tools/call", "greet", name="greet", arguments={"name": "Ann"})

    assert answer.status == 403
    assert 'scope="tmkb:read"' in answer.headers["www-authenticate"]
    endpoint.guard = Guard(access=access({"staff": ROLES["staff"]}))
    answer = Caller(endpoint, groups=["staff"]).ask(era, "tools/call", "greet", name="greet")
    assert "scope=" not in answer.headers["www-authenticate"]


@ERAS
def test_a_caller_may_use_what_a_role_grants(reading, era):
    assert reading.ask(era, "tools/call", "greet", name="greet", arguments={"name": "Ann"}).status == 200
    assert body(reading.ask(era, "resources/read", "test://template/abc/data", uri="test://template/abc/data"))[
        "result"
    ]
    assert body(reading.ask(era, "prompts/get", "test_simple_prompt", name="test_simple_prompt"))["result"]


def test_a_batch_has_the_refusal_of_one_request_in_its_response(reading):
    reading.session = {}
    reading.shake("2025-03-26")
    calls = [
        {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": name, "arguments": {"name": "Ann"}}}
        for id_, name in enumerate(["greet", "test_simple_text"])
    ]
    answer = reading.call(headers={**JSON, **reading.session}, body=json.dumps(calls).encode())
    first, second = sorted(body(answer), key=lambda each: each["id"])

    assert answer.status == 200
    assert "www-authenticate" not in answer.headers
    assert "result" in first
    assert second["error"]["data"] == {"scopes": ["tmkb:read", "tmkb:admin"]}


@ERAS
def test_completion_offers_nothing_that_the_caller_may_not_use(endpoint, reading, admin, era):
    argument = {"name": "id", "value": ""}
    refused = {"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": argument}

    assert reading.ask(era, "completion/complete", **refused).status == 403
    hidden = {"ref": {"type": "ref/resource", "uri": "test://nowhere/{id}"}, "argument": argument}
    assert reading.ask(era, "completion/complete", **hidden).status == 403
    assert admin.ask(era, "completion/complete", **refused).status != 403


@ERAS
@pytest.mark.parametrize("uri", ["{", "}", "{a b}", "test://template/a{"])
def test_completion_of_what_is_no_template_is_refused(reading, admin, era, uri):
    asked = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "id", "value": ""}}

    assert body(reading.ask(era, "completion/complete", **asked))["error"]["code"] != -32603
    assert body(admin.ask(era, "completion/complete", **asked))["error"]["code"] == -32602


def test_completion_leaves_out_values_of_other_resources(endpoint, reading, admin, monkeypatch):
    template = endpoint.runtime.spec["resources"]["template-data"]
    monkeypatch.setitem(template, "complete", {"id": ["abc", "axe", "box", "a/b"]})
    asked = {"ref": {"type": "ref/resource", "uri": template["uriTemplate"]}, "argument": {"name": "id", "value": ""}}

    def values(caller):
        return body(caller.ask("stateless", "completion/complete", **asked))["result"]["completion"]

    assert values(admin)["values"] == ["abc", "axe", "box", "a/b"]
    assert values(reading) == {"values": ["abc", "axe", "a/b"], "total": 3, "hasMore": False}


def test_subscriptions_are_only_to_what_the_caller_may_use(reading, admin):
    wanted = ["test://static-text", "test://watched-resource"]
    notifications = {"resourceSubscriptions": wanted, "toolsListChanged": True}

    def acknowledged(caller):
        answer = caller.ask("stateless", "subscriptions/listen", notifications=notifications)
        return events(answer)[0][1]["params"]["notifications"]

    assert acknowledged(reading) == {"resourceSubscriptions": wanted[:1], "toolsListChanged": True}
    assert acknowledged(admin) == notifications
    reading.begin()
    assert reading.send("resources/subscribe", 6, uri=wanted[1]).status == 403
    assert reading.send("resources/subscribe", 7, uri=wanted[0]).status == 200


def test_a_task_is_of_no_use_without_permission_for_its_tool(endpoint, admin):
    task = body(admin.tool("slow_compute", arguments={"seconds": 60}))["result"]["taskId"]
    staff = Caller(endpoint, scope="", groups=["staff"])
    reading = Caller(endpoint)

    for method, more in (("get", {}), ("cancel", {}), ("update", {"inputResponses": {}})):
        assert seen(staff.task(method, task, **more), task) == seen(staff.task(method, "nowhere", **more), "nowhere")
    assert body(reading.task("get", task))["result"]["status"] == "working"


def test_a_session_is_used_with_the_permissions_of_each_token(endpoint, reading, admin):
    session = reading.begin()
    admin.session = session  # the same subject, after it got another scope

    assert reading.send("tools/call", 1, name="test_simple_text").status == 403
    assert admin.send("tools/call", 2, name="test_simple_text").status == 200
    assert reading.send("tools/call", 3, name="test_simple_text").status == 403


def test_a_session_belongs_to_a_view(endpoint):
    viewed = {**ROLES, "staff": {**ROLES["staff"], "patterns": ["elsewhere"]}}
    endpoint.guard = Guard(access=access({"staff": viewed["staff"], "reader": viewed["reader"]}))
    plain = Caller(endpoint)
    session = plain.begin()

    assert endpoint.guard.access.admit(token(groups=["staff"])).view == "staff"
    other = Caller(endpoint, groups=["staff"])
    other.session = session
    other_view, unknown = other.send("ping", 1), Caller(endpoint)
    unknown.session = {"mcp-session-id": "nowhere"}
    assert body(other_view) == body(unknown.send("ping", 1))
    assert other_view.status == 404


# --- Whole requests


def test_a_request_without_a_token_gets_a_challenge_without_an_error(endpoint):
    answer = Peer(endpoint, None).send("ping", 1)

    assert answer.status == 401
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{METADATA}", scope="tmkb:read"'


@pytest.mark.parametrize("scheme", ["Basic", "DPoP", "Token", "bearer2", ""])
def test_other_schemes_are_no_token(endpoint, scheme):
    answer = Peer(endpoint, None).call(headers={**JSON, "authorization": f"{scheme} {token()}"})

    assert answer.status == 401
    assert "error=" not in answer.headers["www-authenticate"]


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_case_of_the_scheme_does_not_matter(endpoint, scheme):
    ping = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
    }
    headers = {**JSON, "authorization": f"{scheme} {token()}"}

    assert Peer(endpoint, None).call(headers=headers, body=json.dumps(ping).encode()).status == 200


def test_a_bad_token_gets_a_challenge_with_the_reason(endpoint):
    answer = Peer(endpoint, token(exp=1)).send("ping", 1)

    assert answer.status == 401
    assert (
        'error="invalid_token", error_description="The access token has expired"' in answer.headers["www-authenticate"]
    )


def test_a_caller_without_a_role_is_refused_everything(endpoint):
    answer = Caller(endpoint, scope="openid").send("initialize", 1)

    assert answer.status == 403
    assert answer.headers["www-authenticate"].endswith('scope="tmkb:read"')


@pytest.mark.parametrize("query", ["access_token=x", "a=b&access_token=", "%61ccess_token=x"])
def test_a_token_in_the_url_is_refused(endpoint, query):
    from tmkb.transport.http import Request

    answer = endpoint.handle(Request("POST", "/mcp", {**JSON, "authorization": f"Bearer {token()}"}, b"{}", query))

    assert answer.status == 400
    assert 'error="invalid_request"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_the_metadata_needs_no_token(endpoint, path):
    answer = Peer(endpoint, None).call("GET", JSON, path=f"/.well-known/oauth-protected-resource{path}")

    assert answer.status == 200
    assert body(answer) == {
        "resource": RESOURCE,
        "authorization_servers": [NAME],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["tmkb:read"],
    }


def test_pages_can_read_the_metadata_and_nothing_else_without_a_token(endpoint):
    page = {"host": "127.0.0.1:8321", "origin": "http://localhost:6274"}
    asking = {**page, "access-control-request-method": "GET", "access-control-request-headers": "mcp-protocol-version"}
    client = Peer(endpoint, None)
    path = "/.well-known/oauth-protected-resource/mcp"
    answer = client.call("OPTIONS", asking, path=path)

    assert answer.status == 204
    assert answer.headers["access-control-allow-headers"] == "mcp-protocol-version"
    assert client.call("GET", page, path=path).headers["access-control-allow-origin"] == page["origin"]
    assert client.call("OPTIONS", asking, path="/elsewhere").status == 404
    for verb in ("POST", "DELETE", "OPTIONS"):
        assert client.call(verb, JSON, b"{}", path=path).status == 404


def test_static_tokens_have_roles_too(endpoint):
    digests = {hashlib.sha256(word.encode()).hexdigest(): roles for word, roles in (("one", ["admin"]), ("two", []))}
    endpoint.guard = Guard(tokens=digests, access=access())
    one, two = Peer(endpoint, "one"), Peer(endpoint, "two")

    assert one.begin()
    assert endpoint.guard.admit({**JSON, **one.token}).roles == ("admin",)
    assert two.send("ping", 1).status == 403
    assert Caller(endpoint).begin()


def test_a_static_token_never_has_the_principal_of_an_issuer(endpoint):
    text = token()
    digest = hashlib.sha256(text.encode()).hexdigest()
    endpoint.guard = Guard(tokens={digest: ["admin"]}, access=access())
    by_digest = endpoint.guard.admit({**JSON, "authorization": f"Bearer {text}"})
    imitated = endpoint.guard.admit({**JSON, "authorization": f"Bearer {token(subject=digest)}"})

    assert by_digest.principal == digest
    assert imitated.principal == f"{NAME} {digest}"


def test_the_audit_log_has_a_line_for_each_decision(endpoint, monkeypatch):
    endpoint.guard = Guard(access=access(audit="name"))
    lines = []
    monkeypatch.setattr(endpoint.runtime.log, "write", lambda line, id_=None, **fields: lines.append((line, fields)))
    caller = Caller(endpoint)
    caller.tool("greet", arguments={"name": "Ann"})
    caller.tool("test_simple_text")
    caller.alone("tools/call\ndecision=permitted", 1, named("x"), name="x", _meta=ABLE)
    prompt = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    caller.ask("stateless", "completion/complete", ref=prompt, argument={"name": "id", "value": ""})
    Peer(endpoint, "nonsense").send("ping", 1)
    audited = [[json.loads(field) for field in fields.values()] for line, fields in lines if "caller" in fields]

    assert [row[0] for row in audited] == [f"{NAME} alice"] * 4 + ["-"]
    assert [row[1:] for row in audited] == [
        ["tools/call", "greet", "permitted"],
        ["tools/call", "test_simple_text", "insufficient_scope"],
        ["tools/call\ndecision=permitted", "-", "header_mismatch"],
        ["completion/complete", "test_prompt_with_arguments", "insufficient_scope"],
        ["-", "-", "token_malformed"],
    ]
    assert token() not in str(lines)


def test_the_audit_log_can_have_digests(endpoint):
    endpoint.guard = Guard(access=access(audit="digest"))
    audited = endpoint.guard.admit({**JSON, "authorization": f"Bearer {token()}"}).audited

    assert len(audited) == 16
    assert "alice" not in audited


UNKNOWN = {"authorization": f"Bearer {token(key('unknown'))}"}
IMMEDIATE = {
    "of a foreign host": ("POST", "/mcp", {**UNKNOWN, "host": "foreign.example"}, 403),
    "of a foreign origin": ("POST", "/mcp", {**UNKNOWN, "origin": "https://foreign.example"}, 403),
    "with a token in the URL": ("POST", "/mcp?access_token=x", UNKNOWN, 400),
    "that is a probe": ("GET", "/healthz", UNKNOWN, 200),
    "of an address that failed too often": ("POST", "/mcp", UNKNOWN, 429),
}


@pytest.mark.parametrize("case", IMMEDIATE)
def test_a_request_does_not_wait_for_keys(endpoint, monkeypatch, case):
    verb, target, headers, status = IMMEDIATE[case]
    application = Application(endpoint)
    if status == 429:
        for _ in range(200):
            application.endpoint.attempts.fail("", "guess")

    async def forever(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(Keys, "refresh", forever)
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": verb,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in {**JSON, **headers}.items()],
    }
    sent = []

    async def send(event):
        sent.append(event)

    async def run():
        async with asyncio.timeout(10):
            await application(scope, forever, send)

    asyncio.run(run())
    assert sent[0]["status"] == status


def test_white_space_around_a_token_makes_no_other_token(endpoint):
    text = token()
    for count in range(9):
        assert Peer(endpoint, " " * count + text).send("ping", 1).status != 401
    assert len(endpoint.attempts.accepted) == 1
    assert Peer(endpoint, "\u00a0" + text).send("ping", 1).status == 401


class Listening:
    """An application, and one stream for notifications of a client with ``text`` as its token."""

    def __init__(self, endpoint, guard, text):
        self.application = Application(Endpoint(endpoint.runtime, guard))
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        standard = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
        headers = {**JSON, **standard, "authorization": f"Bearer {text}"}
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self.incoming = [{"type": "http.request", "body": json.dumps(message).encode()}]
        self.sent = []
        self.acknowledged = asyncio.Event()

    async def _receive(self):
        if not self.incoming:
            await asyncio.Event().wait()
        return self.incoming.pop()

    async def _send(self, event):
        self.sent.append(event)
        if b"notifications/subscriptions/acknowledged" in event.get("body", b""):
            self.acknowledged.set()

    async def end(self):
        """Wait until the stream has ended."""
        async with asyncio.timeout(30):
            await self.application(self.scope, self._receive, self._send)

    def has_ended(self):
        last = {"type": "http.response.body", "body": b"", "more_body": False}
        return self.sent[-1] == last and not self.application.endpoint.standalone


def test_a_stream_for_notifications_ends_when_its_token_expires(endpoint):
    guard = Guard(access=access())
    for entry in guard.access._tokens.issuers.values():
        entry.entry["leeway_seconds"] = 0
    listening = Listening(endpoint, guard, token(exp=int(time.time()) + 1))

    asyncio.run(listening.end())

    assert listening.acknowledged.is_set()
    assert listening.has_ended()


STATIC = {hashlib.sha256(b"static").hexdigest(): ["reader"]}
REREAD = {
    "the same files": (STATIC, ROLES, False),
    "without the token": ({"0" * 64: ["reader"]}, ROLES, True),
    "with another role of the token": ({digest: ["admin"] for digest in STATIC}, ROLES, True),
    "with other rights of the role": (STATIC, {**ROLES, "reader": {**ROLES["reader"], "tools": ["greet"]}}, True),
}


@pytest.mark.parametrize("case", REREAD)
def test_a_stream_for_notifications_ends_when_its_token_loses_rights(endpoint, monkeypatch, case):
    monkeypatch.setattr(Keys, "start", lambda _: None)
    tokens, roles, ends = REREAD[case]
    listening = Listening(endpoint, Guard(tokens=STATIC, access=access()), "static")

    async def run():
        task = asyncio.create_task(listening.end())
        await listening.acknowledged.wait()
        listening.application.use(Guard(tokens=tokens, access=access(roles)))
        if ends:
            await task
        else:
            await asyncio.sleep(0.05)
            assert not task.done()
            task.cancel()

    asyncio.run(run())
    assert not ends or listening.has_ended()
    assert not listening.application.listening

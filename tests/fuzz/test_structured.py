"""Generated inputs that are valid in their outer form, on targets that see few such inputs otherwise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import targets

ids = st.one_of(st.integers(-2, 2**60), st.text(max_size=5), st.none(), st.booleans(), st.lists(st.none(), max_size=1))
words = st.sampled_from(["x", "", "test_simple_text", "test_roots", "test://static-text", "2025-11-25", "é\ud800"])
values = st.recursive(
    words | ids, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)
METHODS = [
    *("initialize", "ping", "tools/list", "tools/call", "prompts/get", "resources/read", "resources/subscribe"),
    *("completion/complete", "logging/setLevel", "subscriptions/listen", "tasks/get", "server/discover"),
    *("notifications/initialized", "notifications/cancelled", "no"),
]
KEYS = ["name", "arguments", "uri", "cursor", "protocolVersion", "capabilities", "_meta", "requestId", "ref", "level"]
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": ids,
        "method": st.sampled_from(METHODS),
        "params": st.dictionaries(st.sampled_from(KEYS), values, max_size=4) | values,
        "result": values,
        "error": values,
    },
)
lines = messages | st.lists(messages, max_size=3)

HEADERS = {
    "Host": ["localhost", "127.0.0.1:80", "evil.example", ""],
    "Content-Type": ["application/json", "application/json; charset=utf-8", "text/plain", ";"],
    "Accept": ["application/json, text/event-stream", "*/*", "text/event-stream", "q=0"],
    "Mcp-Session-Id": ["@SESSION", "x", ""],
    "MCP-Protocol-Version": ["2025-11-25", "2026-07-28", "2025-03-26", "1"],
    "Mcp-Method": ["tools/list", "tools/call"],
    "Mcp-Name": ["x", "=?base64?eA==?=", "=?base64?!?="],
    "Last-Event-ID": ["0-0", "1-1", "9" * 5000, "-"],
    "Origin": ["http://localhost", "null", "https://evil.example"],
    "Access-Control-Request-Method": ["POST"],
    "Connection": ["close", "keep-alive"],
    "Expect": ["100-continue"],
    "Content-Encoding": ["gzip"],
}
headers = st.fixed_dictionaries({}, optional={name: st.sampled_from(each) for name, each in HEADERS.items()})
FRAMINGS = {
    "length": lambda body: b"Content-Length: %d\r\n\r\n%s" % (len(body), body),
    "a length too small": lambda body: b"Content-Length: %d\r\n\r\n%s" % (len(body) // 2, body),
    "a length too large": lambda body: b"Content-Length: %d\r\n\r\n%s" % (len(body) + 5, body),
    "chunks": lambda body: b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    "no body": lambda _: b"\r\n",
}


def http_request(verb, path, head, message, framing):
    fields = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"{verb} {path} HTTP/1.1\r\n{fields}".encode() + FRAMINGS[framing](json.dumps(message).encode())


verbs = st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "OPTIONS"])
http_requests = st.builds(
    http_request, verbs, st.sampled_from(["/mcp", "/mcp", "/x"]), headers, lines, st.sampled_from([*FRAMINGS])
)

MATCHERS = [{"$any": True}, {"$any": "string"}, {"$re": "a+"}, {"$re": "("}, {"$capture": "one"}, {"$var": "one"}]
OPERATORS = ["$subset", "$unordered", "$json", "$ref", "$literal", "$ignore", "id", "2025-11-25", "otherwise"]
expected = st.recursive(
    values | st.sampled_from(MATCHERS),
    lambda inner: st.dictionaries(st.sampled_from(OPERATORS), inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=5,
)
exchanges = st.fixed_dictionaries(
    {"send": lines | expected, "expect": st.lists(expected, max_size=2)}, optional={"about": st.text(max_size=5)}
)
transcripts = st.fixed_dictionaries(
    {
        "kind": st.just("transcript"),
        "title": st.just("A transcript"),
        "server": st.just("everything"),
        "revisions": st.lists(st.sampled_from(["2025-11-25", "2025-03-26", "2026-07-28"]), min_size=1, unique=True),
        "opening": st.sampled_from(["handshake", "capable", "none"]),
        "exchanges": st.lists(exchanges, min_size=1, max_size=4),
    },
    optional={"recorded": st.sampled_from([{"over": "http"}, {"redacted": {"token": 1}}])},
)


@given(st.lists(lines, max_size=5))
def test_any_messages_get_responses(sent):
    targets.prepared("connection")(b"".join(json.dumps(line).encode() + b"\n" for line in sent))


@pytest.mark.needs("uvicorn")
@given(st.lists(http_requests, min_size=1, max_size=3))
def test_any_http_requests_get_responses(sent):
    targets.prepared("http")(b"".join(sent))


@given(transcripts)
def test_any_transcript_is_replayed_or_refused(transcript):
    targets.prepared("transcript")(json.dumps(transcript).encode())

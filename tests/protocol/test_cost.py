"""What a peer or an author sends of any size costs time and memory that grow with the size and not faster.

Each case is measured at n and 4n in process: processor time, the best of several runs, and the peak of memory. A cost
that is linear grows 4 times, a quadratic one 16 times. No absolute time counts.
"""

import gc
import json
import time
import tracemalloc

import pytest

from tmkb import errors
from tmkb.access.permissions import Permissions, overlaps
from tmkb.knowledge.retrieval import words
from tmkb.protocol import arguments, headers
from tmkb.protocol.caller import ANONYMOUS, Caller
from tmkb.protocol.handlers import resources
from tmkb.schema import jsonschemas, reader
from tmkb.sysmcp.files import content, matching

pytestmark = pytest.mark.full

FACTOR = 4
MOST = 8.5  # between 4 and 16, and nearer to 4 where growth is told on a logarithmic scale
RUNS, ATTEMPTS = 2, 3
FLOOR = 0.002  # seconds below which a clock and a cache tell more than the work; it hides growth of what is faster


def spent(work, prepare, size):
    """The least processor time of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        given = prepare(size)
        gc.disable()  # its runs depend on all that tests have left behind
        try:
            start = time.process_time()
            work(given)
            best = min(best, time.process_time() - start)
        finally:
            gc.enable()
    return max(best, FLOOR)


def peak(work, prepare, size):
    """The most memory that was held at once, beyond a floor below which caches tell more than the work."""
    given = prepare(size)
    tracemalloc.start()
    try:
        work(given)
        return max(tracemalloc.get_traced_memory()[1], 200_000)
    finally:
        tracemalloc.stop()


def hold(work, prepare, size):
    """Fail where time or memory of ``work(prepare(size))`` grows clearly faster than ``size``."""
    work(prepare(16))  # what is imported and cached once
    factors = []
    for _ in range(ATTEMPTS):
        factors.append(spent(work, prepare, FACTOR * size) / spent(work, prepare, size))
        if factors[-1] < MOST:
            break
    assert min(factors) < MOST, f"time grows {min(factors):.1f} times where the size grows {FACTOR} times"
    grown = peak(work, prepare, FACTOR * size) / peak(work, prepare, size)
    assert grown < MOST, f"memory grows {grown:.1f} times where the size grows {FACTOR} times"


def test_a_quadratic_cost_is_noticed():
    with pytest.raises(AssertionError, match="time grows"):
        hold(lambda items: [item for item in items if items.index(item) < 0], lambda n: list(range(n)), 2400)


def test_a_quadratic_memory_is_noticed():
    with pytest.raises(AssertionError, match="memory grows"):
        hold(lambda n: b"x" * (n * n), lambda n: n, 600)


def message(method, id=1, **params):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def call(name, **arguments):
    return message("tools/call", name=name, arguments=arguments)


def keys(n, value=1):
    return {f"key{i}": value for i in range(n)}


def nested(n):
    value = 1
    for _ in range(n):
        value = [value]
    return value


INITIALIZE = {"protocolVersion": "2025-03-26", "capabilities": {}}
NOTIFY = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}

# What is sent → the server, the lines for a size, and the lesser of the sizes. The connection has shaken hands.
SENT = {
    "unknown arguments": ("tmkb", lambda n: [call("tmkb_query", context="x", **keys(n))], 500),
    "only unknown arguments": ("tmkb", lambda n: [call("tmkb_query", **keys(n))], 500),
    "unknown arguments of an envelope": ("sysmcp", lambda n: [call("fs_stat", path="x", **keys(n))], 500),
    "unknown prompt arguments": (
        "everything",
        lambda n: [message("prompts/get", name="test_prompt_with_arguments", arguments=keys(n, "x"))],
        500,
    ),
    "a wrong list": ("tmkb", lambda n: [call("tmkb_query", context=[1] * n)], 4000),
    "a wrong object": ("tmkb", lambda n: [call("tmkb_query", context=keys(n))], 1000),
    "list items of a wrong type": ("sysmcp", lambda n: [call("eventlog_query", logName="x", eventId=["x"] * n)], 100),
    "a long argument that is wrong": ("tmkb", lambda n: [call("tmkb_query", context="x", language="y" * n)], 30_000),
    "a long name of an argument": ("tmkb", lambda n: [call("tmkb_query", context="x", **{"y" * n: 1})], 30_000),
    "a long name of a tool": ("tmkb", lambda n: [call("y" * n)], 30_000),
    "a long context": ("tmkb", lambda n: [call("tmkb_query", context="job queue " * n)], 300),
    "a context without spaces": ("tmkb", lambda n: [call("tmkb_query", context="a" * n)], 10_000),
    "a context of marks": ("tmkb", lambda n: [call("tmkb_query", context="@a.b(" * n)], 2000),
    "a context of white space": ("tmkb", lambda n: [call("tmkb_query", context=" " * n)], 30_000),
    "a context of points": ("tmkb", lambda n: [call("tmkb_query", context="a." * n)], 5000),
    "a context of braces": ("tmkb", lambda n: [call("tmkb_query", context="/{a}/" * n)], 2000),
    "digits": ("tmkb", lambda n: [call("tmkb_query", context=10 ** (n - 1))], 1000),
    "decimals": (
        "tmkb",
        lambda n: [b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":0.' + b"1" * n + b"}}"],
        30_000,
    ),
    "depth": ("tmkb", lambda n: [call("tmkb_query", context=nested(n))], 100),
    "depth beyond the parser": ("tmkb", lambda n: [b"[" * n], 30_000),
    "a batch": ("tmkb", lambda n: [json.dumps([json.loads(message("ping", i)) for i in range(n)]).encode()], 150),
    "a batch of notifications": ("tmkb", lambda n: [json.dumps([NOTIFY] * n).encode()], 150),
    "a batch of nothing": ("tmkb", lambda n: [json.dumps([1] * n).encode()], 150),
    "a batch of errors": (
        "tmkb",
        lambda n: [json.dumps([json.loads(message("no", i)) for i in range(n)]).encode()],
        500,
    ),
    "a long id": ("tmkb", lambda n: [message("ping", "x" * n)], 30_000),
    "a long method": ("tmkb", lambda n: [message("x" * n)], 30_000),
    "unknown params": ("tmkb", lambda n: [message("ping", **keys(n))], 1000),
    "keys of _meta": ("tmkb", lambda n: [message("ping", _meta=keys(n))], 1000),
    "a long progress token": ("tmkb", lambda n: [message("tools/list", _meta={"progressToken": "x" * n})], 30_000),
    "a cursor": ("everything", lambda n: [message("tools/list", cursor="A" * n)], 30_000),
    "a uri": ("everything", lambda n: [message("resources/read", uri="test://template/" + "a" * n + "/data")], 50_000),
    "a uri of escapes": (
        "everything",
        lambda n: [message("resources/read", uri="test://template/" + "%61" * n)],
        50_000,
    ),
    "subscriptions": (
        "everything",
        lambda n: [message("resources/subscribe", i, uri=f"test://template/{i}/data") for i in range(n)],
        100,
    ),
    "unsubscriptions": (
        "everything",
        lambda n: [message("resources/unsubscribe", i, uri=f"test://template/{i}/data") for i in range(n)],
        100,
    ),
    "a long level": ("everything", lambda n: [message("logging/setLevel", level="x" * n)], 30_000),
    "a value to complete": (
        "everything",
        lambda n: [
            message(
                "completion/complete",
                ref={"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                argument={"name": "arg1", "value": "x" * n},
            )
        ],
        30_000,
    ),
    "keys of a reference": (
        "everything",
        lambda n: [message("completion/complete", ref={"type": "ref/prompt", "name": "x", **keys(n)}, argument={})],
        2000,
    ),
    "cancelled requests": (
        "everything",
        lambda n: [
            json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": i}}).encode()
            for i in range(n)
        ],
        200,
    ),
    "responses to nothing": (
        "tmkb",
        lambda n: [json.dumps({"jsonrpc": "2.0", "id": i, "result": {}}).encode() for i in range(n)],
        200,
    ),
}
FIRST = {
    "capabilities": ("tmkb", lambda n: [message("initialize", **INITIALIZE | {"capabilities": keys(n, {})})], 5000),
    "keys of clientInfo": (
        "tmkb",
        lambda n: [message("initialize", **INITIALIZE, clientInfo={"name": "x", "version": "1", **keys(n)})],
        5000,
    ),
    "a clientInfo without a name": ("tmkb", lambda n: [message("initialize", **INITIALIZE, clientInfo=keys(n))], 1000),
    "a long name of a client": (
        "tmkb",
        lambda n: [message("initialize", **INITIALIZE, clientInfo={"name": "x" * n, "version": "1"})],
        30_000,
    ),
    "a long revision": ("tmkb", lambda n: [message("initialize", protocolVersion="x" * n, capabilities={})], 30_000),
    "experimental": (
        "everything",
        lambda n: [message("initialize", **INITIALIZE | {"capabilities": {"experimental": keys(n, {})}})],
        5000,
    ),
}


def sessions(runtime, lines, shaken, caller=ANONYMOUS):
    """A function that gives a new connection, which may have shaken hands, with the lines for a size."""

    def prepare(n):
        connection = runtime.connect(caller=caller)
        if shaken:
            runtime.handle(connection, message("initialize", 0, **INITIALIZE))
            runtime.handle(connection, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return connection, lines(n)

    return prepare


def talk(runtime):
    """A function that sends lines and does what follows from them."""

    def work(given):
        connection, lines = given
        for line in lines:
            runtime.handle(connection, line)
            while runtime.due() is not None:
                runtime.work()
        runtime.abandon(connection)

    return work


@pytest.mark.parametrize("case", SENT)
def test_a_session_costs_in_proportion_to_its_messages(runtimes, case):
    server, lines, size = SENT[case]
    runtime = runtimes(server)
    hold(talk(runtime), sessions(runtime, lines, True), size)


@pytest.mark.parametrize("case", FIRST)
def test_a_handshake_costs_in_proportion_to_its_message(runtimes, case):
    server, lines, size = FIRST[case]
    runtime = runtimes(server)
    hold(talk(runtime), sessions(runtime, lines, False), size)


@pytest.mark.parametrize("text", ["{a}", "{{", "a", "test://template/a"])
def test_completion_for_a_caller_with_a_role_costs_in_proportion_to_its_reference(runtimes, text):
    caller = Caller("ann", permissions=Permissions([{"resources": ["test://template/a*a*"]}]))
    argument = {"name": "id", "value": ""}

    def lines(n):
        return [message("completion/complete", ref={"type": "ref/resource", "uri": text * n}, argument=argument)]

    runtime = runtimes("everything")
    hold(talk(runtime), sessions(runtime, lines, True, caller), 40_000)


SCHEMAS = {
    "unknown keys": ({"additionalProperties": False}, keys, 1000),
    "keys of a wrong type": ({"additionalProperties": {"type": "string"}}, keys, 1000),
    "keys with a wrong name": ({"propertyNames": {"maxLength": 1}}, keys, 500),
    "keys of an expression": ({"patternProperties": {"(y+)+$": {}}, "additionalProperties": False}, keys, 500),
    "right keys": ({"minProperties": 1, "additionalProperties": {"type": "integer"}}, keys, 500),
    "wrong items": ({"items": {"type": "string"}}, lambda n: [1] * n, 1000),
    "right items": ({"minItems": 1, "items": {"type": "integer"}}, lambda n: [1] * n, 500),
    "other items": ({"items": {"enum": ["a", "b"]}}, lambda n: ["c"] * n, 1000),
    "items that lack a key": ({"items": {"required": ["a", "b"]}}, lambda n: [{}] * n, 200),
    "different items": ({"uniqueItems": True}, lambda n: [{"a": i} for i in range(n)], 500),
    "mixed items": ({"uniqueItems": True}, lambda n: [i if i % 2 else str(i) for i in range(n)], 1000),
    "an expression": ({"pattern": "^(a+)+$"}, lambda n: "a" * n + "!", 30_000),
    "an expression within": ({"pattern": "a+b"}, lambda n: "a" * n, 30_000),
    "a long text": ({"maxLength": 10}, lambda n: "a" * n, 30_000),
    "alternatives": ({"anyOf": [{"type": "string"}, {"items": {"type": "integer"}}]}, lambda n: ["x"] * n, 300),
    "what a reference describes": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"type": "string"}}}},
        lambda n: [1] * n,
        300,
    ),
    "depth": ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, nested, 8),
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_validation_costs_the_value(spec, case):
    schema, value, size = SCHEMAS[case]
    table = spec["revisions"]["2025-11-25"]["errors"]
    hold(lambda given: arguments.failures(arguments.violations(schema, given, spec), "tool", {}, table), value, size)


def differs(given):
    with pytest.raises(errors.ProtocolError):
        headers.expect(*given)


PARTS = {
    "a header": (differs, lambda n: ({"x": "a" * n}, "X", "b", True), 30_000),
    "an encoded header": (differs, lambda n: ({"x": f"=?base64?{'YWFh' * n}?="}, "X", "b", True), 50_000),
    "a number as a header": (differs, lambda n: ({"x": "1" * n}, "X", 1), 30_000),
    "many headers": (differs, lambda n: (keys(n, "x"), "X", "b"), 5000),
    "an address": (lambda uri: resources.match("x://{a}/{b}", uri), lambda n: "x://" + "a" * n, 30_000),
    "a template for a pattern": (lambda text: overlaps("a*b*c", text), lambda n: "a" * n, 3000),
    "arguments to read": (lambda given: arguments.coerce(given, {"key1": "strip"}), lambda n: keys(n, " x "), 5000),
    "keys of a YAML file": (
        lambda text: reader.parse(text, "f.yaml"),
        lambda n: "".join(f"key{i}: text\n" for i in range(n)),
        300,
    ),
    "items of a YAML file": (lambda text: reader.parse(text, "f.yaml"), lambda n: "- text\n" * n, 300),
    "a text in a YAML file": (lambda text: reader.parse(text, "f.yaml"), lambda n: f"a: {'x' * n}\n", 30_000),
    "words": (lambda text: [*words.words(text)], lambda n: "TheNameOfIt " * n, 2000),
    "subschemas": (
        lambda schema: [*jsonschemas.faults(schema)],
        lambda n: {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(n)} | {f"d{n}": {}}},
        100,
    ),
    "schemas in a loop": (
        lambda schema: [*jsonschemas.faults(schema)],
        lambda n: {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{(i + 1) % n}"} for i in range(n)}},
        100,
    ),
    "a glob": (lambda given: matching.glob(given, True)("a/" * 50), lambda n: "*a" * n, 200),
    "a path for a glob": (matching.glob("**/x*y*z/**/b", True), lambda n: "xy/" * n, 1000),
    "lines of a text": (lambda text: content.lines(text, "x", str, 20, 80), lambda n: "yyy\n" * n, 50_000),
    "lines with hits": (lambda text: content.lines(text, "x", str, 20, 80), lambda n: "x\n" * n, 50_000),
    "a line with hits": (lambda text: content.lines(text, "x", str, 20, 80), lambda n: "x" * n, 30_000),
}


@pytest.mark.parametrize("case", PARTS)
def test_a_function_costs_in_proportion_to_its_input(case):
    work, prepare, size = PARTS[case]
    hold(work, prepare, size)

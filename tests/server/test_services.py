"""Groups of tools, results in envelopes, amended revisions and configurations: what a server of one's own can be."""

import json
import textwrap

import pytest

import tmkb
from tests.server.test_reload import CHANGED, reloaded, until
from tests.support.process import Server
from tmkb.errors import SpecError
from tmkb.schema import load
from tmkb.server import sources
from tmkb.server.runtime import Runtime

SERVER = """
    kind: server
    name: Shop
    version: "1.0"
    revisions: ["2025-06-18", "2024-11-05", "2026-07-28"]
    capabilities: {tools: {}}
    results: envelope
    amends:
      handshake:
        lifecycle: immediate
        methods: {initialize: {params: {required: []}}}
        objects: {call_result: {fields: {success: true, data: true, error: true}}}
"""
ERRORS = """
    kind: errors
    errors:
      unknown_tool: {surface: tool, code: NoTool, message: "No {tool}", data: {tool: {$value: tool}}}
      argument_required:
        fields: [field, path, expected, got]
        code: Bad
        message: "{field} is missing"
        data: {path: {$value: path}, expected: {$value: expected}, received: {$value: got}}
      argument_unknown: {fields: [path], code: Bad, message: What is this?, data: {path: "<{path}>"}}
      method_not_found: {data: {details: "{method}"}}
      invalid_params: {data: {where: {$value: path}, wanted: {$value: expected}, received: {$value: got}}}
"""
CART = """
    kind: service
    id: cart
    name: Cart
    version: "1"
    tools:
      - kind: tool
        name: cart_total
        description: What it all costs.
        provider: script.answer
        answer: {structuredContent: {total: 12.5}}
        input: {type: object, properties: {of: {type: string}, in: {type: string}}, required: [of], additionalProperties: false}
      - {kind: tool, name: cart_clear, description: Empty it., provider: script.answer, answer: Gone., input: {type: object}}
"""
ADMIN = """
    kind: service
    id: admin
    name: Admin
    version: "1"
    tools:
      - {kind: tool, name: admin_wait, description: Waits., provider: script.steps, steps: [{pause: 1.5}, {return: Late.}], input: {type: object}}
"""
SINGLE = "kind: tool\nname: zoo\ndescription: Alone.\nprovider: script.answer\nanswer: Zoo.\ninput: {type: object}\n"
HELLO = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}


@pytest.fixture
def shop(overlay):
    """The folder of a server with two services and a tool in a file of its own; more files may be given."""

    def write(**more):
        return overlay(
            servers__shop__server=SERVER,
            servers__shop__errors=ERRORS,
            servers__shop__services__cart=CART,
            servers__shop__services__admin=ADMIN,
            servers__shop__tools__zoo=SINGLE,
            **more,
        )

    return write


@pytest.fixture
def client(shop, quiet):
    """Asks a connection to the shop that has shaken hands."""
    found = tmkb.Server.load("shop", schemas=[shop()])
    runtime = Runtime(found.spec, found.provider, quiet(found.spec))
    connection = runtime.connect()

    def ask(method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        (sent,) = runtime.handle(connection, line)
        return json.loads(sent.message)

    ask("initialize", protocolVersion="2025-06-18", **HELLO)
    return ask


def call(client, name, **arguments):
    return client("tools/call", name=name, arguments=arguments)["result"]


def config(folder, text):
    (folder / "config.yaml").write_text(textwrap.dedent(text), encoding="utf-8")
    return str(folder / "config.yaml")


def problems(shop_folder, file):
    with pytest.raises(SpecError) as caught:
        tmkb.Server.load("shop", schemas=[shop_folder], config=file, caching=False)
    return [(p.rule, p.line, p.column) for p in caught.value.problems]


def tools(shop_folder, file=None):
    return [*tmkb.Server.load("shop", schemas=[shop_folder], config=file, caching=False).spec["tools"]]


def test_tools_of_services_are_listed_after_the_others_in_their_order(client):
    names = [tool["name"] for tool in client("tools/list")["result"]["tools"]]

    assert names == ["zoo", "admin_wait", "cart_total", "cart_clear"]


def test_a_result_is_an_envelope_three_times(client):
    result = call(client, "cart_total", of="x")

    envelope = {"success": True, "data": {"total": 12.5}}
    assert {key: result[key] for key in envelope} == envelope
    assert json.loads(result["content"][0]["text"]) == envelope == result["structuredContent"]
    assert result["isError"] is False


def test_the_revision_lists_the_fields_of_an_envelope(shop, quiet):
    found = tmkb.Server.load("shop", schemas=[shop()])
    runtime = Runtime(found.spec, found.provider, quiet(found.spec))
    connection = runtime.connect()
    runtime.handle_value(
        connection, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}}
    )
    (sent,) = runtime.handle_value(
        connection, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "zoo"}}
    )

    assert set(json.loads(sent.message)["result"]) == {"success", "data", "content", "isError"}


def test_an_error_has_its_code_and_its_details(client):
    result = call(client, "cart_total")

    details = {"path": "arguments.of", "expected": "string", "received": "undefined"}
    assert result["error"] == {"code": "Bad", "message": "of is missing", "details": details}
    assert (result["success"], result["isError"]) == (False, True)
    assert (
        json.loads(result["content"][0]["text"])
        == result["structuredContent"]
        == {"success": False, "error": result["error"]}
    )


def test_several_errors_are_in_the_details_of_the_first(client):
    error = call(client, "cart_total", odd=1)["error"]

    assert error["message"] == "of is missing"
    assert [each["details"]["path"] for each in error["details"]["errors"]] == ["arguments.of", "<arguments.odd>"]


def test_the_error_of_an_unknown_tool_is_configurable(client):
    assert call(client, "nope")["error"] == {"code": "NoTool", "message": "No nope", "details": {"tool": "nope"}}


def test_a_protocol_error_has_the_data_that_the_table_builds(client):
    assert client("no/such")["error"]["data"] == {"details": "no/such"}
    assert client("tools/call", name=5)["error"]["data"] == {"where": "name", "wanted": "string", "received": "integer"}


def test_an_amended_revision_is_shown_with_the_file_of_each_line(shop, capsys):
    from tmkb.cli import main

    assert main.main(["schema", "show", "servers/shop/protocol/2025-06-18", "--schemas", shop()]) == 0
    out = capsys.readouterr().out

    (amended,) = [line for line in out.splitlines() if line.startswith("lifecycle:")]
    assert "immediate" in amended and amended.endswith("servers/shop/server.yaml:10")


def test_a_revision_is_not_amended_for_other_servers(shop):
    spec = load.load("tmkb", [shop()], sources.names())

    assert spec["revisions"]["2025-06-18"]["lifecycle"] == "handshake"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("name: cart_clear", "name: clear"),
            "'clear' does not begin with 'cart_'. Begin the names of tools with the id of their service.",
        ),
        (("name: cart_clear", "name: cart_total"), "A tool named 'cart_total' already exists. Use another name."),
        (("id: cart", "id: basket"), "The file is named cart, but its id is 'basket'. Rename one of them."),
        (("answer: Gone.", "anser: Gone."), "Unknown key 'anser' in the file. Did you mean 'answer'?"),
    ],
)
def test_problems_of_a_service_have_their_position(shop, complaints, change, told):
    text = CART.replace(*change)
    assert text != CART
    found = complaints(servers__shop__server=SERVER, servers__shop__errors=ERRORS, servers__shop__services__cart=text)

    assert [line for line in found if line.startswith("servers/shop/services/cart.yaml:") and told in line], found


def test_problems_of_an_amendment_have_their_position(complaints):
    broken = SERVER.replace("lifecycle: immediate", "lifecycle: imediate")
    found = complaints(servers__shop__server=broken)

    assert "servers/shop/server.yaml:10:16: There is no lifecycle 'imediate'. Did you mean 'immediate'?" in found


def test_services_that_are_not_wanted_are_not_there(shop, tmp_path):
    folder = shop()

    assert tools(folder, config(tmp_path, "kind: config\nwithout: [cart]\n")) == ["zoo", "admin_wait"]
    assert problems(folder, config(tmp_path, "kind: config\nwithout: [card]\n")) == [("unknown_name", 2, 11)]


def test_a_configuration_is_checked_with_the_providers_settings(shop, tmp_path):
    folder = shop()

    assert problems(folder, config(tmp_path, "kind: config\nproviders: {script: {constant: {}}}\n")) == [
        ("unknown_key", 2, 22)
    ]
    assert problems(folder, config(tmp_path, "kind: config\nprovidrs: {}\n")) == [("unknown_key", 2, 1)]
    assert problems(folder, config(tmp_path, "kind: config\nlimits: {running: many}\n")) == [("wrong_type", 2, 19)]
    assert problems(folder, str(tmp_path / "none.yaml")) == [("unreadable", 1, 1)]


def test_a_setting_takes_effect(shop, tmp_path):
    file = config(tmp_path, "kind: config\nlimits: {running: 3}\nproviders: {script: {constants: {a: 1}}}\n")
    server = tmkb.Server.load("shop", schemas=[shop()], config=file, caching=False).spec["server"]

    assert server["limits"]["running"] == 3
    assert server["providers"]["script"] == {"constants": {"a": 1}}


DEMO = """
kind: service
id: demo
name: Demo
version: "1"
tools:
  - {kind: tool, name: demo_hi, description: Hi., provider: script.answer, answer: Hi., input: {type: object}}
  - kind: tool
    name: demo_slow
    description: Slow.
    provider: script.steps
    steps: [{pause: 4}, {return: {content: [{type: text, text: Slow.}]}}] # longer than a busy machine needs to notice a file
    input: {type: object}
"""


def test_a_faulty_service_of_the_folder_leaves_the_others_standing(shop, tmp_path):
    (tmp_path / "services").mkdir()
    for name, text in {
        "demo": DEMO,
        "cart": DEMO.replace("demo", "cart"),
        "twin": DEMO.replace("id: demo", "id: twin"),
        "torn": "kind: service\nid: [",
        "heir": "kind: service\nextends: shop\nid: heir\nname: x\nversion: x\ntools: []\n",
    }.items():
        (tmp_path / "services" / f"{name}.yaml").write_text(text, encoding="utf-8")
    file = config(tmp_path, "kind: config\nservices: services\n")
    found = tmkb.Server.load("shop", schemas=[shop()], config=file, caching=False)

    assert [*found.spec["tools"]] == ["zoo", "admin_wait", "cart_total", "cart_clear", "demo_hi", "demo_slow"]
    told = " ".join(str(fields["problem"]) for _, fields in found.notes)
    assert [name for name in ("cart", "demo", "heir", "torn", "twin") if f"{name}.yaml" in told] == [
        "cart",
        "heir",
        "torn",
        "twin",
    ]


def test_a_missing_folder_of_services_is_a_problem(shop, tmp_path):
    file = config(tmp_path, "kind: config\nservices: none\n")
    found = tmkb.Server.load("shop", schemas=[shop()], config=file, caching=False)

    assert "Cannot list" in found.notes[0][1]["problem"]


@pytest.mark.needs("watchfiles")
@pytest.mark.process
def test_services_come_and_go(shop, tmp_path):
    folder = tmp_path / "services"
    folder.mkdir()
    file = config(tmp_path, "kind: config\ncapabilities: {tools: {listChanged: true}}\nservices: services\n")
    with Server("--server", "shop", "--schemas", shop(), "--config", file, "--watch") as server:
        assert server.handshake("2025-06-18")["capabilities"] == {"tools": {"listChanged": True}}

        (folder / "demo.yaml").write_text(DEMO, encoding="utf-8")
        assert server.read() == {"jsonrpc": "2.0", "method": CHANGED}
        assert names(server)[-2:] == ["demo_hi", "demo_slow"]
        assert server.ask("tools/call", name="demo_hi", arguments={})["result"]["success"] is True

        (folder / "again.yaml").write_text(
            DEMO, encoding="utf-8"
        )  # the name of the file is not its id, and its tools are taken
        until(server, "again.yaml")
        reloaded(server, 2)
        assert names(server)[-2:] == ["demo_hi", "demo_slow"]  # and no notification

        server.send(
            {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "demo_slow", "arguments": {}}}
        )
        (folder / "demo.yaml").unlink()
        (folder / "again.yaml").unlink()
        assert server.read() == {"jsonrpc": "2.0", "method": CHANGED}
        assert names(server)[-1] == "cart_clear"
        assert server.ask("tools/call", name="demo_hi", arguments={})["result"]["error"]["code"] == "NoTool"
        late = server.read()
        assert (late["id"], late["result"]["success"]) == ("slow", True)


def names(server):
    return [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]


def test_a_step_fails_with_an_error_of_its_surface(tmp_path):
    tool = {"kind": "tool", "description": "Fails.", "provider": "script.steps", "input": {"type": "object"}}
    servers = tmp_path / "servers" / "shop"
    (servers / "tools").mkdir(parents=True)
    (servers / "server.yaml").write_text(
        'kind: server\nname: shop\nversion: "1.0"\nrevisions: ["2025-06-18"]\ncapabilities: {tools: {}}\n'
    )
    (servers / "errors.yaml").write_text(
        "kind: errors\nerrors:\n"
        '  sold_out: {surface: tool, fields: [what], message: "No {what} left"}\n'
        '  closed: {surface: protocol, code: -32050, message: "The shop is closed"}\n'
    )
    failures = {"buy": {"error": "sold_out", "fields": {"what": "tea"}}, "enter": {"error": "closed"}}
    for name, failure in failures.items():
        definition = json.dumps({**tool, "name": name, "steps": [{"fail": failure}]})
        (servers / "tools" / f"{name}.yaml").write_text(definition)
    connection = tmkb.Server.load("shop", schemas=[tmp_path]).connect()

    def ask(method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        return [json.loads(each) for each in connection.receive(line.encode())]

    ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    connection.receive(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    (bought,), (entered,) = ask("tools/call", name="buy"), ask("tools/call", name="enter")

    assert bought["result"] == {"content": [{"type": "text", "text": "No tea left"}], "isError": True}
    assert entered["error"] == {"code": -32050, "message": "The shop is closed"}

"""The official Python client against servers over stdio. The client validates each result."""

import asyncio
import json
import sys

import anyio
import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters, UrlElicitationRequiredError, types
from mcp.client.stdio import stdio_client

# The newest revision has no subscriptions, log levels and roots, so the client reports them as deprecated.
pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]

SERVE = ["-m", "tmkb", "serve"]
TIMEOUT = 60  # only limits failures
WATCHED = "test://watched-resource"


def server(*options):
    """Return the parameters of ``tmkb serve`` with these options."""
    return StdioServerParameters(command=sys.executable, args=[*SERVE, *options])


def drive(conversation, *options, mode="legacy", **callbacks):
    """Return the result of ``conversation`` with a server `everything` with these ``options``."""

    async def talk():
        with anyio.fail_after(TIMEOUT):
            async with Client(server("--server", "everything", *options), mode=mode, **callbacks) as client:
                return await conversation(client)

    return asyncio.run(talk())


def call(tool, *, client=None, **arguments):
    """Call a tool with a client that has the callbacks ``client``."""

    async def conversation(connected):
        return await connected.call_tool(tool, arguments)

    return drive(conversation, **(client or {}))


def text(result):
    """Return the text of a result with one block."""
    (block,) = result.content
    return block.text


async def refusal(request):
    """Return the error response of a request."""
    with pytest.raises(MCPError) as raised:
        await request
    return raised.value.error


async def until(holds):
    """Wait until ``holds()`` is true; `drive` has a timeout."""
    while not holds():
        await anyio.sleep(0.005)


def sampling(reply):
    """Return a sampling callback with the response ``reply(params)``."""

    async def callback(_context, params):
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(text=reply(params)), model="parrot", stop_reason="endTurn"
        )

    return callback


def elicitation(action, **content):
    """Return an elicitation callback, and the list of its requests."""
    requests = []

    async def callback(_context, params):
        requests.append(params)
        return types.ElicitResult(action=action, content=content or None)

    return callback, requests


def listener():
    """Return a notification handler, and the list of its notifications."""
    received = []

    async def handler(message):
        received.append(message)

    return handler, received


# --- The server tmkb


async def talk():
    async with stdio_client(server()) as (read, write), ClientSession(read, write) as session:
        initialized = await session.initialize()
        tools = await session.list_tools()
        good = await session.call_tool("tmkb_query", {"context": "background job processing"})
        bad = await session.call_tool("tmkb_query", {"context": "x", "language": "java"})
        await session.send_ping()
    return initialized, tools, good, bad


def test_initialize_list_tools_call_tool():
    initialized, tools, good, bad = asyncio.run(talk())

    assert (initialized.server_info.name, initialized.protocol_version) == ("tmkb", "2025-11-25")
    assert [tool.name for tool in tools.tools] == ["tmkb_query"]
    assert json.loads(good.content[0].text)["patterns"][0]["id"] == "TMKB-AUTH-001"
    assert (bad.is_error, bad.content[0].text) == (True, "Invalid language 'java'. Supported languages: python")


# --- The server everything: what it is, and what it lists


def test_server_info():
    async def conversation(client):
        return client.protocol_version, client.server_info, client.server_capabilities, client.instructions

    revision, info, capabilities, instructions = drive(conversation)

    assert revision == "2025-11-25"
    assert (info.name, info.title, len(info.icons)) == ("everything", "Everything", 1)
    assert capabilities.model_dump(by_alias=True, exclude_none=True) == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
        "completions": {},
    }
    assert instructions.startswith("Each tool, prompt and resource shows one feature")


def test_lists_have_one_page():
    async def conversation(client):
        listed = await client.list_tools(), await client.list_prompts(), await client.list_resources()
        return *listed, await client.list_resource_templates()

    pages = tools, prompts, resources, templates = drive(conversation)

    assert [page.next_cursor for page in pages] == [None] * 4
    assert {"test_simple_text", "test_sampling", "test_slow"} < {tool.name for tool in tools.tools}
    assert {"test_simple_prompt", "test_prompt_with_arguments"} < {prompt.name for prompt in prompts.prompts}
    assert {resource.uri for resource in resources.resources} == {
        "test://user-text",
        "test://static-text",
        "test://static-binary",
        WATCHED,
    }
    assert [template.uri_template for template in templates.resource_templates] == ["test://template/{id}/data"]


def test_an_unknown_cursor_is_rejected():
    async def conversation(client):
        return await refusal(client.list_tools(cursor="elsewhere"))

    assert drive(conversation).code == types.INVALID_PARAMS


# --- Tools


def test_all_content_types():
    kinds = {
        "test_simple_text": [types.TextContent],
        "test_image_content": [types.ImageContent],
        "test_audio_content": [types.AudioContent],
        "test_resource_link": [types.ResourceLink],
        "test_embedded_resource": [types.EmbeddedResource],
        "test_multiple_content_types": [types.TextContent, types.ImageContent, types.EmbeddedResource],
    }

    async def conversation(client):
        return {tool: [type(block) for block in (await client.call_tool(tool)).content] for tool in kinds}

    assert drive(conversation) == kinds


def test_a_tool_with_all_optional_fields():
    async def conversation(client):
        return next(tool for tool in (await client.list_tools()).tools if tool.name == "test_tool_description")

    tool = drive(conversation)

    assert tool.title == "A tool that is described"
    assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
    assert [icon.theme for icon in tool.icons] == ["dark"]
    assert tool.meta == {"example.com/shown": True}


def test_structured_output_matches_the_output_schema():
    async def conversation(client):
        (schema,) = [tool.output_schema for tool in (await client.list_tools()).tools if tool.output_schema]
        good = await client.call_tool("test_structured_output", {"city": "Oslo", "degrees": 3.5})
        return schema, good, await client.call_tool("test_structured_output", {"city": "Oslo", "degrees": -300})

    schema, good, impossible = drive(conversation)

    assert schema["required"] == ["city", "degrees"]
    assert good.structured_content == json.loads(text(good)) == {"city": "Oslo", "degrees": 3.5}
    assert impossible.is_error
    assert impossible.structured_content is None


def test_tools_that_fail():
    async def conversation(client):
        failed = await client.call_tool("test_error_handling")
        wrong = await client.call_tool("test_structured_output", {"city": 1, "degrees": 2})
        return failed, wrong, await refusal(client.call_tool("test_none"))

    failed, wrong, unknown = drive(conversation)

    assert (failed.is_error, text(failed)) == (True, "This tool intentionally returns an error for testing")
    assert (wrong.is_error, text(wrong)) == (True, "Invalid city: expected string, received integer")
    assert (unknown.code, unknown.message) == (types.INVALID_PARAMS, "Unknown tool: test_none")


def test_progress_is_sent_on_request():
    reports = []
    handler, received = listener()

    async def progress(*report):
        reports.append(report)

    async def conversation(client):
        await client.call_tool("test_tool_with_progress")
        await client.call_tool("test_tool_with_progress", progress_callback=progress)
        await until(lambda: len(reports) >= 3 and len(received) >= 3)

    drive(conversation, message_handler=handler)

    assert reports == [(0, 100, "Begun"), (50, 100, None), (100, 100, "Done")]
    assert len(received) == 3


def test_changes_of_lists_are_announced():
    handler, received = listener()

    async def conversation(client):
        for changed in ("tool", "prompt", "resource"):
            await client.call_tool(f"test_trigger_{changed}_change")
        await until(lambda: len(received) == 3)

    drive(conversation, message_handler=handler)

    assert [type(message) for message in received] == [
        types.ToolListChangedNotification,
        types.PromptListChangedNotification,
        types.ResourceListChangedNotification,
    ]


# --- Logging


def test_log_messages_from_the_selected_level_on():
    logs = []
    levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

    async def log(params):
        logs.append(params)

    async def logged(client):
        logs.clear()
        await client.call_tool("test_log_levels")
        await until(lambda: logs and logs[-1].level == "emergency")
        return [params.level for params in logs]

    async def conversation(client):
        unset = await logged(client)
        await client.set_logging_level("error")
        grave = await logged(client)
        await client.set_logging_level("debug")
        return unset, grave, await logged(client)

    unset, grave, every = drive(conversation, logging_callback=log)

    assert unset == levels[1:]
    assert grave == levels[4:]
    assert every == levels
    assert (logs[0].logger, logs[0].data) == ("everything", {"detail": 1})


# --- Requests to the client: sampling, elicitation, roots


def test_sampling():
    result = call(
        "test_sampling",
        prompt="Say hello",
        client={
            "sampling_callback": sampling(lambda params: f"{params.messages[0].content.text} ({params.max_tokens})")
        },
    )

    assert (result.is_error, text(result)) == (False, "LLM response: Say hello (100)")


def test_sampling_with_three_content_types():
    def reply(params):
        (message,) = params.messages
        return ", ".join(block.type for block in message.content) + f"; {params.system_prompt}"

    result = call("test_sampling_content", client={"sampling_callback": sampling(reply)})

    assert text(result) == "parrot: text, image, audio; Answer in one word."


def test_sampling_with_tools_if_the_client_supports_them():
    def reply(params):
        assert [tool.name for tool in params.tools] == ["weather"]
        return "Sunny"

    client = {"sampling_callback": sampling(reply)}
    tools = types.SamplingCapability(tools=types.SamplingToolsCapability())

    result = call("test_sampling_tools", client={**client, "sampling_capabilities": tools})
    without = call("test_sampling_tools", client=client)

    assert (result.is_error, text(result)) == (False, "Stopped because of endTurn.")
    assert (without.is_error, text(without)) == (True, "The client does not declare the capability sampling.tools")


def test_sampling_that_the_client_refuses():
    async def refuse(_context, _params):
        return types.ErrorData(code=-1, message="User rejected sampling request")

    result = call("test_sampling", prompt="Say hello", client={"sampling_callback": refuse})

    assert (result.is_error, text(result)) == (True, "The client refused: User rejected sampling request")


def test_responses_reach_the_call_that_waits_for_them():
    """Two calls sample at the same time, and are answered in reverse order."""
    second_answered = anyio.Event()

    async def callback(_context, params):
        prompt = params.messages[0].content.text
        if prompt == "first":
            await second_answered.wait()
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text=prompt), model="parrot")

    async def conversation(client):
        results = {}

        async def ask(prompt):
            results[prompt] = text(await client.call_tool("test_sampling", {"prompt": prompt}))
            second_answered.set()

        async with anyio.create_task_group() as calls:
            calls.start_soon(ask, "first")
            calls.start_soon(ask, "second")
        return results

    results = drive(conversation, sampling_callback=callback)

    assert list(results.items()) == [("second", "LLM response: second"), ("first", "LLM response: first")]


@pytest.mark.parametrize(
    ("action", "content"),
    [("accept", {"username": "ann", "email": "ann@example.com"}), ("decline", {}), ("cancel", {})],
)
def test_elicitation(action, content):
    callback, requests = elicitation(action, **content)

    result = call("test_elicitation", message="Who are you?", client={"elicitation_callback": callback})

    assert [(form.mode, form.message) for form in requests] == [("form", "Who are you?")]
    assert requests[0].requested_schema["required"] == ["username", "email"]
    assert not result.is_error
    assert text(result).startswith(f"User response: action={action}, content=")
    if content:
        assert json.loads(text(result).partition("content=")[2]) == content


def test_an_elicitation_result_that_does_not_match_the_schema():
    callback, _ = elicitation("accept", username="ann")

    result = call("test_elicitation", message="Who are you?", client={"elicitation_callback": callback})

    assert (result.is_error, text(result)) == (True, "The client's answer is not valid: content.email is required")


def test_elicitation_with_defaults_and_enums():
    callback, requests = elicitation("accept", untitledMulti=["option1", "option3"])

    async def conversation(client):
        await client.call_tool("test_elicitation_sep1034_defaults")
        return await client.call_tool("test_elicitation_sep1330_enums")

    result = drive(conversation, elicitation_callback=callback)
    defaults, enums = [form.requested_schema["properties"] for form in requests]

    assert [field["default"] for field in defaults.values()] == ["John Doe", 30, 95.5, "active", True]
    assert enums["legacyEnum"]["enumNames"] == ["Option One", "Option Two", "Option Three"]
    assert enums["titledMulti"]["items"]["anyOf"][0] == {"const": "value1", "title": "First Choice"}
    assert text(result).endswith('content={"untitledMulti": ["option1", "option3"]}')


def test_elicitation_by_url():
    callback, requests = elicitation("accept")
    handler, received = listener()

    async def conversation(client):
        result = await client.call_tool("test_elicitation_url")
        await client.call_tool("test_elicitation_complete")
        await until(lambda: received)
        return result

    result = drive(conversation, elicitation_callback=callback, message_handler=handler)

    assert [(asking.mode, asking.url) for asking in requests] == [("url", "https://example.com/sign-in")]
    assert text(result) == "The user answered accept."
    assert [type(message) for message in received] == [types.ElicitCompleteNotification]
    assert received[0].params.elicitation_id == requests[0].elicitation_id


def test_a_tool_that_requires_a_url_elicitation():
    async def conversation(client):
        return await refusal(client.call_tool("test_url_elicitation_required"))

    (elicited,) = UrlElicitationRequiredError.from_error(drive(conversation)).elicitations

    assert (elicited.url, elicited.elicitation_id) == ("https://example.com/sign-in", "sign-in-1")


def test_roots():
    roots = [types.Root(uri="file:///work", name="work")]

    async def callback(_context):
        return types.ListRootsResult(roots=roots)

    async def conversation(client):
        before = await client.call_tool("test_roots")
        roots.append(types.Root(uri="file:///play"))
        await client.send_roots_list_changed()
        return text(before), text(await client.call_tool("test_roots"))

    before, after = drive(conversation, list_roots_callback=callback)

    assert json.loads(before.removeprefix("Roots: ")) == [{"uri": "file:///work", "name": "work"}]
    assert [root["uri"] for root in json.loads(after.removeprefix("Roots: "))] == ["file:///work", "file:///play"]


@pytest.mark.parametrize(
    ("tool", "arguments", "capability"),
    [
        ("test_sampling", {"prompt": "Say hello"}, "sampling"),
        ("test_elicitation", {"message": "Who are you?"}, "elicitation"),
        ("test_elicitation_url", {}, "elicitation"),
        ("test_roots", {}, "roots"),
    ],
)
def test_requests_that_the_client_does_not_support_are_not_sent(tool, arguments, capability):
    result = call(tool, **arguments)

    assert (result.is_error, text(result)) == (True, f"The client does not declare the capability {capability}")


# --- Resources


def test_resources_are_read():
    async def conversation(client):
        uris = ["test://static-text", "test://static-binary", "test://template/7/data"]
        return [(await client.read_resource(uri)).contents for uri in uris]

    (static,), (binary,), (filled,) = drive(conversation)

    assert (static.mime_type, static.text) == ("text/plain", "This is the content of the static text resource.")
    assert (binary.mime_type, type(binary)) == ("image/png", types.BlobResourceContents)
    assert (filled.uri, json.loads(filled.text)["id"]) == ("test://template/7/data", "7")


def test_an_unknown_resource():
    async def conversation(client):
        return await refusal(client.read_resource("test://none"))

    error = drive(conversation)

    assert (error.code, error.message, error.data) == (
        -32002,
        "Resource not found: test://none",
        {"uri": "test://none"},
    )


def test_subscribers_receive_updates():
    handler, received = listener()

    async def conversation(client):
        await client.call_tool("test_trigger_resource_change")
        await client.subscribe_resource(WATCHED)
        await client.call_tool("test_trigger_resource_change")
        await client.unsubscribe_resource(WATCHED)
        await client.call_tool("test_trigger_resource_change")
        await client.call_tool("test_trigger_tool_change")
        await until(lambda: received and isinstance(received[-1], types.ToolListChangedNotification))

    drive(conversation, message_handler=handler)
    *changes, _ = received

    assert [message.params and message.params.uri for message in changes] == [None, None, WATCHED, None]


# --- Prompts and completion


def test_prompts():
    async def conversation(client):
        simple = await client.get_prompt("test_simple_prompt")
        filled = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        return simple.messages, filled.messages, (await client.get_prompt("test_prompt_with_content")).messages

    (simple,), (filled,), several = drive(conversation)

    assert (simple.role, simple.content.text) == ("user", "This is a simple prompt for testing.")
    assert filled.content.text == "Prompt with arguments: arg1='a', arg2='b'"
    assert [(message.role, message.content.type) for message in several] == [
        ("user", "audio"),
        ("assistant", "resource_link"),
    ]


def test_a_prompt_with_an_elicitation():
    callback, requests = elicitation("accept", context="a library")

    async def conversation(client):
        return (await client.get_prompt("test_prompt_with_elicitation")).messages

    (message,) = drive(conversation, elicitation_callback=callback)

    assert len(requests) == 1
    assert message.content.text == "Use this context: a library"


def test_invalid_prompt_requests():
    async def conversation(client):
        lacking = await refusal(client.get_prompt("test_prompt_with_arguments", {"arg1": "a"}))
        return lacking, await refusal(client.get_prompt("test_none"))

    lacking, unknown = drive(conversation)

    assert (lacking.code, lacking.message) == (types.INVALID_PARAMS, "Invalid params: arg2 is required")
    assert (unknown.code, unknown.message) == (types.INVALID_PARAMS, "Unknown prompt: test_none")


def test_completion():
    prompt = types.PromptReference(name="test_prompt_with_arguments")
    template = types.ResourceTemplateReference(uri="test://template/{id}/data")

    async def conversation(client):
        first = await client.complete(prompt, {"name": "arg1", "value": "par"})
        second = await client.complete(prompt, {"name": "arg2", "value": ""}, {"arg1": "park"})
        third = await client.complete(template, {"name": "id", "value": "12"})
        return [result.completion.values for result in (first, second, third)]

    assert drive(conversation) == [["paris", "park", "party"], ["bench", "pond"], ["123", "124"]]


def test_completion_of_an_unknown_reference():
    async def conversation(client):
        unknown = types.PromptReference(name="test_none")
        return await refusal(client.complete(unknown, {"name": "arg1", "value": ""}))

    assert drive(conversation).code == types.INVALID_PARAMS


# --- Slow tools


@pytest.fixture
def slow(overlay):
    """Return the options of a server that runs one slow call at a time: a second call shows that the first has ended."""
    folder = overlay(
        servers__everything__server="kind: server\nextends: packaged\nlimits: {running: 1}\n",
        servers__everything__tools__test_slow="kind: tool\nextends: packaged\nsteps: [{pause: 3600}]\n",
    )
    return "--schemas", folder


def test_a_slow_tool_is_cancelled_and_ping_answered_meanwhile(slow):
    async def conversation(client):
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "test_slow")
            await anyio.wait_all_tasks_blocked()
            await client.send_ping()
            refused = await refusal(client.call_tool("test_logging_tool"))
            calls.cancel_scope.cancel()
        return refused, await client.call_tool("test_logging_tool")

    refused, result = drive(conversation, *slow)

    assert refused.message == "Too many requests at once. Limit: 1"
    assert text(result) == "Logging evaluated"


def test_a_client_timeout_cancels_the_call(slow):
    async def conversation(client):
        late = await refusal(client.call_tool("test_slow", read_timeout_seconds=0.05))
        return late, await client.call_tool("test_logging_tool")

    late, result = drive(conversation, *slow)

    assert late.code == types.REQUEST_TIMEOUT
    assert text(result) == "Logging evaluated"


def test_cancelling_a_call_cancels_its_requests_to_the_client():
    sampling_started, let_go = anyio.Event(), anyio.Event()

    async def callback(_context, _params):
        sampling_started.set()
        try:
            await anyio.sleep_forever()
        finally:
            let_go.set()

    async def conversation(client):
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "test_elicitation", {"message": "Who are you?"})
            await sampling_started.wait()
            await client.send_ping()
            calls.cancel_scope.cancel()
        await let_go.wait()
        return await client.call_tool("test_simple_text")

    result = drive(conversation, elicitation_callback=callback)

    assert text(result) == "This is a simple text response for testing."


# --- A client chooses between a handshake and requests that describe themselves

MODES = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]


@pytest.mark.parametrize(("mode", "revision"), MODES)
def test_each_mode_queries(mode, revision):
    async def conversation():
        with anyio.fail_after(TIMEOUT):
            async with Client(server(), mode=mode) as client:
                listed = [tool.name for tool in (await client.list_tools()).tools]
                good = await client.call_tool("tmkb_query", {"context": "background job processing"})
                return client.protocol_version, listed, good

    spoken, listed, good = asyncio.run(conversation())

    assert (spoken, listed) == (revision, ["tmkb_query"])
    assert json.loads(text(good))["patterns"][0]["id"] == "TMKB-AUTH-001"


@pytest.mark.parametrize(("mode", "revision"), MODES)
def test_each_mode_elicits(mode, revision):
    answering, requests = elicitation("accept", name="Ann", color="blue", context="a garden")

    async def folders(_context):
        return types.ListRootsResult(roots=[])

    async def conversation(client):
        several = await client.call_tool("test_input_required_result_multiple_inputs")
        rounds = await client.call_tool("test_input_required_result_multi_round")
        prompt = await client.get_prompt("test_input_required_result_prompt")
        return client.protocol_version, text(several), text(rounds), prompt.messages[0].content.text

    callbacks = {
        "elicitation_callback": answering,
        "list_roots_callback": folders,
        "sampling_callback": sampling(lambda _params: "Hi"),
    }

    assert drive(conversation, mode=mode, **callbacks) == (
        revision,
        "All inputs received.",
        "Ann likes blue.",
        "Use this context: a garden",
    )
    assert len(requests) == 4


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_a_stream_receives_its_subscriptions(mode):
    async def conversation(client):
        async with client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as stream:
            for kind in ("prompt", "tool", "resource"):
                await client.call_tool(f"test_trigger_{kind}_change")
            return [type(await anext(stream)).__name__ for _ in range(2)]

    assert drive(conversation, mode=mode) == ["ToolsListChanged", "ResourceUpdated"]


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_the_log_level_of_a_request(mode):
    levels = []

    async def logging(params):
        levels.append(params.level)

    async def conversation(client):
        await client.call_tool("test_log_levels")
        await until(lambda: len(levels) == 3)

    drive(conversation, mode=mode, log_level="critical", logging_callback=logging)

    assert levels == ["critical", "alert", "emergency"]

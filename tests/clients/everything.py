"""``everything.py COMMAND… | ADDRESS``: the official Python client, of whichever release runs this, uses every feature of a server.

Prints a line for each feature that works. Results are read as they are on the wire, where both releases agree.
MCP_REVISION in the environment: the revision of the handshake, if it is not the newest.
"""

import asyncio
import os
import sys
import warnings
from importlib.metadata import version

from mcp import ClientSession, StdioServerParameters, types
from mcp.client import session as mcp_session
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client

warnings.simplefilter("ignore")  # the newest release calls deprecated what the newest revision is without
PATIENCE = 120  # seconds for everything
WATCHED = "test://watched-resource"


def wire(value):
    """The JSON of something that came from the server; older releases wrap notifications."""
    return getattr(value, "root", value).model_dump(by_alias=True, mode="json", exclude_none=True)


class Side:
    """The client's side: how it answers, and what it is told."""

    def __init__(self):
        self.logs, self.heard = [], []
        self.action, self.thinking = "accept", False
        self.not_found = -32002  # the code for a resource that is not there

    async def sampling(self, _context, params):
        """A model that repeats what it is told."""
        said = params.messages[0].content.text
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text=said), model="parrot"
        )

    async def elicitation(self, _context, params):
        """A user who accepts, or not, or never comes to a decision."""
        if self.action == "think":
            self.thinking = True
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                self.thinking = False
        if self.action != "accept" or params.mode == "url":
            return types.ElicitResult(action=self.action)
        known = {"username": "ann", "email": "ann@example.com", "name": "ann", "color": "blue", "context": "a garden"}
        asked = wire(params)["requestedSchema"]["properties"]
        return types.ElicitResult(action="accept", content={name: known[name] for name in asked})

    async def roots(self, _context):
        """One folder."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    async def logging(self, params):
        """Keep it."""
        self.logs.append(wire(params))

    async def hear(self, message):
        """Keep it: a notification, or what went wrong."""
        self.heard.append(repr(message) if isinstance(message, Exception) else wire(message))


async def text(session, tool, **arguments):
    """The only text of what a tool gives."""
    (block,) = wire(await session.call_tool(tool, arguments))["content"]
    return block["text"]


async def code(request):
    """The code of the error that answers a request."""
    try:
        await request
    except Exception as error:
        return error.error.code
    raise AssertionError("answered without an error")


async def until(holds):
    """Wait for what is on its way."""
    while not holds():
        await asyncio.sleep(0.005)


async def tools(session, _side):
    page = wire(await session.list_tools())
    assert "nextCursor" not in page and len(page["tools"]) > 20
    result = wire(await session.call_tool("test_multiple_content_types", {}))
    assert [block["type"] for block in result["content"]] == ["text", "image", "resource"]
    assert wire(await session.call_tool("test_error_handling", {}))["isError"]
    assert await code(session.call_tool("test_none", {})) == -32602


async def structured_output(session, _side):
    result = wire(await session.call_tool("test_structured_output", {"city": "Oslo", "degrees": 3.5}))
    assert result["structuredContent"] == {"city": "Oslo", "degrees": 3.5}


async def progress(session, _side):
    told = []

    async def callback(*said):
        told.append(said)

    await session.call_tool("test_tool_with_progress", {}, progress_callback=callback)
    await until(lambda: len(told) >= 3)
    assert told == [(0, 100, "Begun"), (50, 100, None), (100, 100, "Done")]


async def logging(session, side):
    await session.set_logging_level("error")
    await session.call_tool("test_log_levels", {})
    await until(lambda: side.logs and side.logs[-1]["level"] == "emergency")
    assert [log["level"] for log in side.logs] == ["error", "critical", "alert", "emergency"]


async def sampling(session, _side):
    assert await text(session, "test_sampling", prompt="Say hello") == "LLM response: Say hello"


async def elicitation(session, side):
    accepted = await text(session, "test_elicitation", message="Who are you?")
    assert accepted == 'User response: action=accept, content={"username": "ann", "email": "ann@example.com"}'
    side.action = "decline"
    declined = await text(session, "test_elicitation", message="Who are you?")
    assert declined.startswith("User response: action=decline")
    side.action = "accept"


async def elicitation_by_url(session, side):
    side.heard.clear()
    assert await text(session, "test_elicitation_url") == "The user answered accept."
    await text(session, "test_elicitation_complete")
    await until(lambda: side.heard)
    assert [message["method"] for message in side.heard] == ["notifications/elicitation/complete"]
    assert await code(session.call_tool("test_url_elicitation_required", {})) == -32042


async def roots(session, _side):
    assert await text(session, "test_roots") == 'Roots: [{"uri": "file:///work", "name": "work"}]'


async def resources(session, side):
    assert len(wire(await session.list_resources())["resources"]) == 4
    assert len(wire(await session.list_resource_templates())["resourceTemplates"]) == 1
    (filled,) = wire(await session.read_resource("test://template/7/data"))["contents"]
    assert filled["text"] == '{"id":"7","templateTest":true,"data":"Data for ID: 7"}'
    assert await code(session.read_resource("test://none")) == side.not_found


async def subscription(session, side):
    side.heard.clear()
    await session.subscribe_resource(WATCHED)
    await session.call_tool("test_trigger_resource_change", {})
    await session.unsubscribe_resource(WATCHED)
    await session.call_tool("test_trigger_resource_change", {})
    await session.call_tool("test_trigger_tool_change", {})
    await until(lambda: side.heard and "tools" in side.heard[-1]["method"])
    assert [message["method"].removeprefix("notifications/") for message in side.heard] == [
        "resources/list_changed",
        "resources/updated",
        "resources/list_changed",
        "tools/list_changed",
    ]


async def changed_lists(session, side):
    side.heard.clear()
    for kind in ("tool", "prompt", "resource"):
        await session.call_tool(f"test_trigger_{kind}_change", {})
    await until(lambda: len(side.heard) >= 3)
    assert [message["method"] for message in side.heard] == [
        f"notifications/{kind}s/list_changed" for kind in ("tool", "prompt", "resource")
    ]


async def prompts(session, _side):
    assert len(wire(await session.list_prompts())["prompts"]) == 7
    (message,) = wire(await session.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}))["messages"]
    assert message["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"
    assert await code(session.get_prompt("test_prompt_with_arguments", {"arg1": "a"})) == -32602


async def completion(session, _side):
    prompt = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    template = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
    second = await session.complete(prompt, {"name": "arg2", "value": ""}, {"arg1": "park"})
    third = await session.complete(template, {"name": "id", "value": "12"})
    assert [wire(result)["completion"]["values"] for result in (second, third)] == [["bench", "pond"], ["123", "124"]]


async def ping_meanwhile(session, _side):
    for _ in range(5):  # on a busy machine a ping may take as long as the tool
        slow = asyncio.create_task(session.call_tool("test_slow", {}))
        await asyncio.sleep(0)  # the call goes first
        await session.send_ping()
        meanwhile = not slow.done()
        assert wire(await slow)["content"][0]["text"] == "Done at last."
        if meanwhile:
            return
    raise AssertionError("no ping was answered while the tool ran")


async def cancellation(session, side):
    """A call is given up, so what its tool asked the user is taken back."""
    side.action = "think"
    asking = asyncio.create_task(session.call_tool("test_elicitation", {"message": "Who are you?"}))
    await until(lambda: side.thinking)
    await session.send_ping()
    asking.cancel()
    await until(lambda: not side.thinking)


FEATURES = [
    tools, structured_output, progress, logging, sampling, elicitation, elicitation_by_url, roots, resources,
    subscription, changed_lists, prompts, completion, ping_meanwhile,
]  # fmt: skip
if version("mcp") >= "2":  # before, a client does not say that it gives up
    FEATURES.append(cancellation)
SINCE = {  # the revisions that added what a feature uses
    structured_output: "2025-06-18",
    progress: "2025-03-26",
    elicitation: "2025-06-18",
    elicitation_by_url: "2025-11-25",
    completion: "2025-06-18",
    cancellation: "2025-06-18",
}
REVISION = os.environ.get("MCP_REVISION", "2025-11-25")


def streams(command, arguments):
    """Where messages come from and go to."""
    if not command.startswith("http:"):
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))
    return streamable_http.streamable_http_client(command)


async def main(command, *arguments):
    """Try one feature after the other."""
    side, connected = Side(), streams(command, arguments)
    mcp_session.LATEST_HANDSHAKE_VERSION = REVISION  # release 1 has no such name
    async with (
        connected as (read, write, *_),
        ClientSession(
            read,
            write,
            sampling_callback=side.sampling,
            elicitation_callback=side.elicitation,
            list_roots_callback=side.roots,
            logging_callback=side.logging,
            message_handler=side.hear,
        ) as session,
    ):
        await session.initialize()
        for feature in [each for each in FEATURES if SINCE.get(each, "") <= REVISION]:
            await feature(session, side)
            print(feature.__name__.replace("_", " "), "ok", flush=True)


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), PATIENCE))

"""``modes.py MODE COMMAND… | ADDRESS``: the official Python client, from 2.0 on, in one of its modes: legacy, auto or a revision.

Prints the revision that is spoken, and a line for each feature that works. What a client does that has shaken hands is in
``everything.py``; here is what one does otherwise that describes itself in each request.
"""

import asyncio
import json
import os
import sys
import warnings

import everything
from everything import PATIENCE, WATCHED, Side, text, until, wire
from mcp import Client, StdioServerParameters

warnings.simplefilter("ignore")  # the client calls deprecated what this revision may still do


async def query(client, _side):
    assert "TMKB-AUTH-001" in await text(client, "tmkb_query", context="background job processing")
    refused = await client.call_tool("tmkb_query", {"context": "x", "language": "java"})
    assert refused.is_error
    assert refused.content[0].text == "Invalid language 'java'. Supported languages: python"


async def six_tools(client, _side):
    """Those of the server sysmcp: what the client takes for the result has the envelope in it."""

    async def data(name, **arguments):
        result = await client.call_tool(name, arguments)
        envelope = json.loads(result.content[0].text)
        assert wire(result).get("structuredContent", envelope) == envelope
        assert result.is_error is not envelope["success"]
        return envelope["data"] if envelope["success"] else envelope["error"]["details"]["reason"]

    assert [log["name"] for log in (await data("eventlog_list_logs"))["logs"]] == ["System"]
    assert len((await data("eventlog_query", logName="System", limit=5))["entries"]) == 5
    assert [file["path"] for file in (await data("fs_search", pattern="*.txt"))["files"]] == ["motto.txt"]
    assert (await data("fs_stat", path="motto.txt"))["size"] == 17
    assert (await data("reg_read", path="HKLM\\SYSTEM\\Select"))["values"][0]["data"] == 1
    assert (
        await data("reg_write", path="HKLM\\SYSTEM\\Select", valueName="Current", type="REG_DWORD", data=2)
        == "ReadOnly"
    )


async def logging(client, side):
    """The level has come with the request."""
    await client.call_tool("test_log_levels", {})
    await until(lambda: len(side.logs) >= 4)
    assert [log["level"] for log in side.logs] == ["error", "critical", "alert", "emergency"]


async def elicitation_by_url(client, _side):
    """The client comes back when the user has, so that nobody has to be told."""
    assert await text(client, "test_elicitation_url") == "The user answered accept."


async def several_questions(client, _side):
    assert await text(client, "test_input_required_result_multiple_inputs") == "All inputs received."


async def several_rounds(client, _side):
    assert await text(client, "test_input_required_result_multi_round") == "ann likes blue."


async def a_prompt_that_asks(client, _side):
    (message,) = wire(await client.get_prompt("test_input_required_result_prompt"))["messages"]
    assert message["content"]["text"] == "Use this context: a garden"


async def changed_lists(client, _side):
    """A stream tells what was asked of it, and nothing else."""
    async with client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as stream:
        for kind in ("prompt", "tool", "resource"):
            await client.call_tool(f"test_trigger_{kind}_change", {})
        heard = [repr(await anext(stream)) for _ in range(2)]
    assert heard == ["ToolsListChanged()", f"ResourceUpdated(uri='{WATCHED}')"]


async def cancellation(client, _side):
    """A call is given up, and the next is answered."""
    slow = asyncio.create_task(client.call_tool("test_slow", {}))
    await client.list_tools()
    slow.cancel()
    assert await text(client, "test_simple_text") == "This is a simple text response for testing."


STATELESS = [
    everything.tools, everything.structured_output, everything.progress, logging, everything.sampling,
    everything.elicitation, elicitation_by_url, several_questions, several_rounds, a_prompt_that_asks, everything.roots,
    everything.resources, changed_lists, everything.prompts, everything.completion, cancellation,
]  # fmt: skip


async def main(mode, command, *arguments):
    """Try one feature of the server after the other."""
    side, server = Side(), command
    if not command.startswith("http:"):
        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    stateless = mode != "legacy"
    async with Client(
        server,
        mode=mode,
        cache=None,
        log_level="error" if stateless else None,
        sampling_callback=side.sampling,
        elicitation_callback=side.elicitation,
        list_roots_callback=side.roots,
        logging_callback=side.logging,
        message_handler=side.hear,
    ) as client:
        print("speaks", client.protocol_version, flush=True)
        side.not_found = -32602 if stateless else -32002
        features = STATELESS if stateless else everything.FEATURES
        known = [tool.name for tool in (await client.list_tools()).tools]
        others = {"tmkb_query": [query], "reg_write": [six_tools]}
        for feature in next((others[name] for name in known if name in others), features):
            await feature(client, side)
            print(feature.__name__.replace("_", " "), "ok", flush=True)


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), PATIENCE))

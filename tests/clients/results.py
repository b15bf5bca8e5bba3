"""``results.py MODE COMMAND… | ADDRESS``: the official Python client prints every result of the server everything.

``results.mjs`` makes the same requests with the official TypeScript client.
"""

import asyncio
import json
import os
import sys
import warnings

from everything import PATIENCE, Side, wire
from mcp import Client, StdioServerParameters, types

warnings.simplefilter("ignore")


def show(what, value):
    """Print a result as one line."""
    print(what, json.dumps(value, sort_keys=True), flush=True)


async def show_result(what, request):
    """Print the result of a request, or its error."""
    try:
        show(what, wire(await request))
    except Exception as error:
        show(what, {"code": error.error.code, "message": error.error.message})


async def main(mode, command, *arguments):
    """Make one request after the other."""
    side, server = Side(), command
    if not command.startswith("http:"):
        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with Client(
        server,
        mode=mode,
        cache=None,
        sampling_callback=side.sampling,
        elicitation_callback=side.elicitation,
        list_roots_callback=side.roots,
    ) as client:
        show("speaks", client.protocol_version)
        await show_result("tools", client.list_tools())
        await show_result("prompts", client.list_prompts())
        await show_result("resources", client.list_resources())
        await show_result("templates", client.list_resource_templates())
        for name in ("test_simple_text", "test_multiple_content_types", "test_error_handling", "test_none"):
            await show_result(name, client.call_tool(name, {}))
        await show_result("structured", client.call_tool("test_structured_output", {"city": "Oslo", "degrees": 3.5}))
        reports = []

        async def progressed(*progress):
            reports.append(progress)

        await show_result("progress", client.call_tool("test_tool_with_progress", {}, progress_callback=progressed))
        show("progressed", reports[:2])  # the TypeScript client may drop the last, which comes with the response
        await show_result("sampling", client.call_tool("test_sampling", {"prompt": "Say hello"}))
        for side.action in ("accept", "decline"):
            await show_result(side.action, client.call_tool("test_elicitation", {"message": "Who are you?"}))
        await show_result("roots", client.call_tool("test_roots", {}))
        await show_result("read", client.read_resource("test://template/7/data"))
        await show_result("read none", client.read_resource("test://none"))
        both = {"arg1": "a", "arg2": "b"}
        await show_result("prompt", client.get_prompt("test_prompt_with_arguments", both))
        await show_result("bad prompt", client.get_prompt("test_prompt_with_arguments", {"arg1": "a"}))
        template = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
        await show_result("completion", client.complete(template, {"name": "id", "value": "12"}))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), PATIENCE))

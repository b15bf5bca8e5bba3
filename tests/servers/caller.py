"""``caller.py REQUESTS MODE COMMAND… | ADDRESS``: the official Python client sends requests, and prints the results.

REQUESTS is a JSON file with a list of `[method, params]`. ``caller.mjs`` does the same with the TypeScript client. Of progress
only the first report is printed: a client may drop others, which come with the response.
"""

import asyncio
import json
import os
import sys
import warnings

from mcp import Client, StdioServerParameters, types
from pydantic import TypeAdapter

warnings.simplefilter("ignore")
PATIENCE = 40  # seconds for everything
ANSWERS = {"name": "ann", "sure": True}
REFERENCE = TypeAdapter(types.PromptReference | types.ResourceTemplateReference)


def wire(value):
    """The JSON of something that came from the server."""
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def show(what, value):
    """Print a value as one line."""
    print(what, json.dumps(value, sort_keys=True, ensure_ascii=False), flush=True)


async def send(client, method, params):
    """The result of a request."""
    heard = []

    async def progressed(*progress):
        heard.append(list(progress))

    if method == "tools/call":
        result = wire(await client.call_tool(params["name"], params.get("arguments", {}), progress_callback=progressed))
        return {"result": result, "progress": heard[:1]} if heard else result
    if method == "prompts/get":
        return wire(await client.get_prompt(params["name"], params.get("arguments")))
    if method == "resources/read":
        return wire(await client.read_resource(params["uri"]))
    if method == "completion/complete":
        return wire(await client.complete(REFERENCE.validate_python(params["ref"]), params["argument"]))
    lists = {
        "tools/list": client.list_tools,
        "prompts/list": client.list_prompts,
        "resources/list": client.list_resources,
        "resources/templates/list": client.list_resource_templates,
    }
    return wire(await lists[method]())


async def main(path, mode, command, *arguments):
    """Send one request after the other."""
    with open(path, encoding="utf-8") as file:
        requests = json.load(file)
    logs = []

    async def sampling(_context, params):
        text = types.TextContent(type="text", text=params.messages[0].content.text)
        return types.CreateMessageResult(role="assistant", content=text, model="parrot")

    async def elicitation(_context, params):
        asked = wire(params)["requestedSchema"]["properties"]
        return types.ElicitResult(
            action="accept", content={name: value for name, value in ANSWERS.items() if name in asked}
        )

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=os.environ["ROOT_URI"], name="work")])

    async def logging(params):
        logs.append({"level": params.level, "data": params.data})

    server = command
    if not command.startswith("http:"):
        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with Client(
        server,
        mode=mode,
        cache=None,
        log_level="info" if mode != "legacy" else None,
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        list_roots_callback=roots,
        logging_callback=logging,
    ) as client:
        show("speaks", client.protocol_version)
        for method, params in requests:
            if method == "wait":  # for so many messages in the log
                while len(logs) < params["logs"]:
                    await asyncio.sleep(0.005)
                continue
            what = " ".join([method, *[str(params[key]) for key in ("name", "uri") if key in params]])
            try:
                show(what, await send(client, method, params))
            except Exception as error:
                found = getattr(error, "error", None)
                show(what, {"code": found.code, "message": found.message} if found else {"failed": repr(error)})
        show("log", logs)
        show("server", wire(client.server_info) if client.server_info else None)
        show("capabilities", wire(client.server_capabilities))
        show("instructions", client.instructions)


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), PATIENCE))

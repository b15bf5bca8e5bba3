"""``sdk.py [PORT]``: a server written with the high-level interface of the Python SDK, with what that interface offers.

Over stdio, or at ``http://127.0.0.1:PORT/mcp``.
"""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Completion
from pydantic import BaseModel

server = MCPServer("weather", version="1.0", instructions="Ask for one city at a time.")


class Forecast(BaseModel):
    """The weather of one day."""

    city: str
    degrees: float
    words: list[str]


class Answer(BaseModel):
    """What the user is asked for."""

    name: str
    sure: bool = False


@server.tool()
def forecast(city: str, days: int = 1) -> Forecast:
    """The weather in a city."""
    return Forecast(city=city, degrees=20.5 + days, words=["sunny", "Grüße", "☀"])


@server.tool()
async def measure(steps: int, ctx: Context) -> str:
    """Measures the temperature, and reports progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return f"{steps} steps"


@server.tool()
async def report(words: str, ctx: Context) -> str:
    """Writes to the client's log."""
    await ctx.info(words)
    await ctx.warning(f"{words}!")
    return "written"


@server.tool()
async def register(question: str, ctx: Context) -> str:
    """Asks the user for a name."""
    answer = await ctx.elicit(question, Answer)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool()
def fail(reason: str) -> str:
    """Always fails."""
    raise ValueError(reason)


@server.resource("weather://cities", mime_type="text/plain")
def cities() -> str:
    """The known cities."""
    return "Oslo\nLima\n"


@server.resource("weather://icon", mime_type="image/png")
def icon() -> bytes:
    """An icon."""
    return b"\x89PNG\r\n"


@server.resource("weather://cities/{city}")
def city(city: str) -> str:
    """One city."""
    return f"{city} has weather"


@server.prompt()
def travel(city: str, season: str = "summer") -> str:
    """Plans a journey."""
    return f"Plan a journey to {city} in {season}."


@server.completion()
async def complete(_ref, argument, _context):
    """The cities that begin like the argument."""
    return Completion(values=[name for name in ("Oslo", "Lima") if name.startswith(argument.value)])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")

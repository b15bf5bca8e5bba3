"""``fast.py [PORT]``: a server of FastMCP with the tools of ``sdk.py``, over stdio or at ``http://127.0.0.1:PORT/mcp``."""

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP

server = FastMCP("weather-fast", version="1.0", instructions="Ask for one city at a time.")


@dataclass
class Forecast:
    """The weather of one day."""

    city: str
    degrees: float
    words: list[str]


@dataclass
class Answer:
    """What the user is asked for."""

    name: str
    sure: bool = False


@server.tool
def forecast(city: str, days: int = 1) -> Forecast:
    """The weather in a city."""
    return Forecast(city=city, degrees=20.5 + days, words=["sunny", "Grüße", "☀"])


@server.tool
async def measure(steps: int, ctx: Context) -> str:
    """Measures the temperature, and reports progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return f"{steps} steps"


@server.tool
async def report(words: str, ctx: Context) -> str:
    """Writes to the client's log."""
    await ctx.info(words)
    await ctx.warning(f"{words}!")
    return "written"


@server.tool
async def register(question: str, ctx: Context) -> str:
    """Asks the user for a name."""
    answer = await ctx.elicit(question, Answer)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool
def fail(reason: str) -> str:
    """Always fails."""
    raise ValueError(reason)


@server.resource("weather://cities", mime_type="text/plain")
def cities() -> str:
    """The known cities."""
    return "Oslo\nLima\n"


@server.resource("weather://cities/{city}")
def city(city: str) -> str:
    """One city."""
    return f"{city} has weather"


@server.prompt
def travel(city: str, season: str = "summer") -> str:
    """Plans a journey."""
    return f"Plan a journey to {city} in {season}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(transport="stdio", show_banner=False)

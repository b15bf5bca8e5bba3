"""The cost of quotas: how much longer a request takes with them than without, in one process and one run.

    python tests/bench/quotas.py [--rounds 40]

Requests go to the ASGI application, without sockets. Both kinds take turns, so compare the ratio only.
"""

import argparse
import asyncio
import json
import statistics
import time

from tmkb.server.server import Server

REQUESTS = 300  # in a turn
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode()
HEADERS = {
    "host": "localhost",
    "content-type": "application/json",
    "content-length": str(len(BODY)),
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/list",
}
SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/mcp",
    "client": ("127.0.0.1", 1),
    "headers": [(name.encode(), value.encode()) for name, value in HEADERS.items()],
}


class Unlimited:
    """Accounts, and an account, without quotas."""

    def of(self, principal):
        """Return itself."""
        return self

    def begin(self):
        """Count nothing."""

    def end(self):
        """Count nothing."""

    def add(self, messages, size=0):
        """Count nothing."""

    def add_sent(self, size):
        """Count nothing."""


async def seconds(application):
    """Return the processor time of a turn."""

    async def receive():
        return {"type": "http.request", "body": BODY}

    async def send(event):
        assert event.get("status", 200) == 200

    began = time.process_time()
    for _ in range(REQUESTS):
        await application(dict(SCOPE), receive, send)
    return time.process_time() - began


async def measure(rounds):
    """Return the ratio of each round."""
    application = Server.load("everything").asgi()
    limited, ratios = application.endpoint.accounts, []
    for _ in range(rounds):
        took = {limited: 0.0, None: 0.0}
        for accounts in (limited, None, None, limited):
            limited.stored.clear()  # or a long measurement reaches the limit
            application.endpoint.accounts = accounts or Unlimited()
            took[accounts] += await seconds(application)
        ratios.append(took[limited] / took[None])
    return ratios


def main():
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    ratios = asyncio.run(measure(parser.parse_args().rounds))
    low, middle, high = statistics.quantiles(ratios)
    print(f"with quotas / without: {middle:.3f} ({low:.3f} to {high:.3f} in half of the rounds)")


if __name__ == "__main__":
    main()

"""Single requests over HTTP, and what comes back."""

import contextlib
import json
import time
import urllib.error
import urllib.request

from tests.soak.clients import HEADERS, described
from tests.support.process import TIMEOUT

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
INFO = {"name": "run", "version": "1"}


def initialize(revision="2025-11-25"):
    """Return the first request of a session."""
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": INFO}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def call(tool, stateless=True, **arguments):
    """Return a call of a tool."""
    params = {"name": tool, "arguments": arguments, **({"_meta": META} if stateless else {})}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def post(url, message, token=None, headers=None, context=None):
    """Send a message. Return status, headers and body of the response."""
    stateless = "_meta" in message["params"]
    more = {**(described(message) if stateless else {}), **(headers or {})}
    more |= {"Authorization": f"Bearer {token}"} if token else {}
    return fetch(urllib.request.Request(url, json.dumps(message).encode(), {**HEADERS, **more}), context)


def fetch(request, context=None):
    """Return status, headers (their names in lower case) and body of a response."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:
            return _parts(response.status, response)
    except urllib.error.HTTPError as error:
        with contextlib.closing(error):
            return _parts(error.code, error)


def _parts(status, response):
    return status, {name.lower(): value for name, value in response.headers.items()}, response.read().decode()


def until(holds, seconds=TIMEOUT):
    """Wait until something holds, at most for some seconds. Return whether it does."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return held

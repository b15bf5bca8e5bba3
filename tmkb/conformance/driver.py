"""Send the requests of a file to a server, one after the other."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tmkb.conformance.client import Client, ClientError
from tmkb.conformance.targets import Target
from tmkb.errors import DocumentError, Problem
from tmkb.protocol import messages
from tmkb.schema import paths, reader, textfile
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject, JsonValue

_LINES = (".jsonl", ".ndjson")
_NOTIFICATION = "notifications/"


def read(path: str) -> list[JsonObject]:
    """Read the requests at ``path``: a list in YAML or JSON, or JSON Lines.

    Each has a ``method`` and may have ``params``, or is a whole message with ``jsonrpc``.

    Raises:
        DocumentError: with the problems of the file.
    """
    shown = paths.shown(path)
    entries = _lines(path, shown) if path.endswith(_LINES) else _list(path, shown)
    problems = [
        Problem("no_request", shown, line, column)
        for line, column, value in entries
        if not isinstance(value, dict) or not ("jsonrpc" in value or _is_request(value))
    ]
    if problems:
        raise DocumentError(problems)
    return [value for _, _, value in entries if isinstance(value, dict)]


def converse(
    connect: Callable[[], Target],
    spec: Spec,
    revision: str | None,
    requests: Sequence[JsonObject],
    add: Callable[[bool, bytes], None],
) -> None:
    """Open a connection, send ``requests``, and wait for each response.

    Args:
        connect: returns a new connection. The first finds the revision, so that no refusal of one is recorded.
        spec: the revisions that this client speaks.
        revision: the only one to offer; None for the newest in common.
        requests: as `read` returns them.
        add: called with each message, and whether this client sent it.

    Raises:
        ClientError: if the server does not open the connection or leaves a request without a response.
        OSError: if the server cannot be started or reached.
    """
    with _noting(Client(connect(), spec, revision)) as probe:
        revision = probe.open().revision
    with _noting(Client(connect(), spec, revision)) as client:
        client.on_send = lambda value: add(True, messages.encode(value))
        client.target.on_receive = lambda value: add(False, _line(value))
        client.open()
        for each in requests:
            _send(client, each)


@contextlib.contextmanager
def _noting(client: Client) -> Iterator[Client]:
    """Close the client at the end. A ClientError gets what is known about the server, such as its stderr."""
    try:
        yield client
    except ClientError as error:
        raise ClientError("\n".join([error.message, *client.close()]), error.code, error.data) from error
    finally:
        client.close()


def _line(value: JsonValue) -> bytes:
    """Return what the server sent; a target delivers a line that is no JSON as a string."""
    return value.encode() if isinstance(value, str) else messages.encode(value)


def _send(client: Client, request: JsonObject) -> None:
    method, params = request.get("method"), request.get("params")
    known = params if isinstance(params, dict) else None
    if "jsonrpc" in request or not isinstance(method, str):
        client.on_send(request)
        client.target.exchange(messages.encode(request), 0, messages.request_id(request))
    elif method.startswith(_NOTIFICATION):
        client.notify(method, known)
    else:
        try:
            client.request(method, known)
        except ClientError as error:
            if error.code is None:  # an error response is a response
                raise


def _is_request(value: JsonObject) -> bool:
    return (
        isinstance(value.get("method"), str)
        and isinstance(value.get("params", {}), dict)
        and not (value.keys() - {"method", "params"})
    )


def _lines(path: str, shown: str) -> list[tuple[int, int, JsonValue]]:
    entries: list[tuple[int, int, JsonValue]] = []
    for number, line in enumerate(textfile.read(path, shown).split("\n"), 1):
        if line.strip():
            try:
                entries.append((number, 1, json.loads(line)))
            except ValueError as error:
                raise DocumentError([Problem("syntax", shown, number, 1, reason=str(error))]) from error
    return entries


def _list(path: str, shown: str) -> list[tuple[int, int, Any]]:
    doc = reader.read(path, shown)
    if not isinstance(doc.value, list):
        raise DocumentError([doc.problem("no_requests", ())])
    places = [doc.origin((number,)) for number in range(len(doc.value))]
    return [(place.line, place.column, value) for place, value in zip(places, doc.value, strict=True)]

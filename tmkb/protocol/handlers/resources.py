"""resources/list, templates/list, read, subscribe and unsubscribe. Specification: Server Features / Resources.

Templates of addresses are those of RFC 6570, level 1: {name} stands for letters, digits, ``-._~`` and %-escapes.
"""

from __future__ import annotations

import re

from tmkb.errors import ProtocolError
from tmkb.protocol import budget
from tmkb.protocol.handlers import listing, subscriptions
from tmkb.protocol.handlers.prompts import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Invoke
    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Resource, Revision
    from tmkb.schema.values import JsonObject

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def list_resources(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The resources that have an address of their own, and those that templates name."""
    resources: Any = connection.spec["resources"].values()

    def listed() -> Iterator[Mapping[str, Any]]:
        yield from (listing.identity(each) for each in resources if "uri" in each)
        yield from (entry for each in resources for entry in each.get("entries", []))

    return listing.answer(connection, revision, request, "resources", "resources_result", listed)


def list_templates(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The templates of addresses."""
    resources = connection.spec["resources"].values()

    def listed() -> Iterator[Mapping[str, Any]]:
        yield from (listing.identity(each) for each in resources if "uriTemplate" in each)

    return listing.answer(connection, revision, request, "resourceTemplates", "templates_result", listed)


def read_resource(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Hand what the address says to the resource's operation."""
    resource, variables = _found(connection, request)
    return connection.invoke(request, revision, resource, variables, (_finish, refuse))


def subscribe(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Notify the client from now on when the resource changes.

    Raises:
        ProtocolError: if there is no such resource, its URI is too long, or there are too many subscriptions.
    """
    _found(connection, request)
    uri = str(request.params["uri"])
    if uri not in connection.subscribed:
        subscriptions.admit(connection, [uri])
        connection.budget.hold(budget.footprint(uri))
        connection.subscribed.add(uri)
    return connection.give(request.id, revision, "empty_result", {})


def unsubscribe(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Stop these notifications."""
    uri = str(request.params["uri"])
    if uri in connection.subscribed:
        connection.subscribed.remove(uri)
        connection.budget.release(budget.footprint(uri))
    return connection.give(request.id, revision, "empty_result", {})


def match(template: str, uri: str) -> JsonObject | None:
    """The variables with which ``template`` gives ``uri``; None where it does not."""
    pieces = re.split(r"\{(\w+)\}", template)
    names = pieces[1::2]
    form = "([A-Za-z0-9._~%-]+)".join(map(re.escape, pieces[::2]))
    found = re.fullmatch(form, uri)
    if found is None:
        return None
    try:
        return {name: _unescaped(text) for name, text in zip(names, found.groups(), strict=True)}
    except UnicodeDecodeError:  # escapes of what is no UTF-8
        return None


def _found(connection: Connection, request: Request) -> tuple[Resource, JsonObject]:
    """The resource at the address, and the variables of its template. Raises ProtocolError."""
    uri = request.params["uri"]
    assert isinstance(uri, str)  # the method's params schema has seen to it
    resources = connection.spec["resources"].values()
    for resource in resources:
        if resource.get("uri") == uri:
            return resource, {}
    for resource in resources:
        if "uriTemplate" in resource and (variables := match(resource["uriTemplate"], uri)) is not None:
            return resource, variables
    raise ProtocolError("resource_not_found", uri=uri)


def _finish(connection: Connection, invoke: Invoke, outcome: Any) -> list[Effect]:
    """The response with the contents; an operation that gives none says that there is no such resource."""
    uri = str(invoke.params["uri"])
    if outcome is None:
        return connection.refuse(invoke.request_id, ProtocolError("resource_not_found", uri=uri), invoke.revision)
    resource: Any = invoke.definition
    given = outcome if isinstance(outcome, list) else [outcome]
    contents = [_contents(uri, resource, each) for each in given]
    cache = resource.get("cache", connection.spec["server"].get("cache", {}))
    asked = "inputResponses" in invoke.params or "requestState" in invoke.params  # then it is this user's own
    values = {**({} if asked else cache), "contents": contents}
    noted = connection.note("read", invoke.request_id, uri=uri)
    return [noted, *connection.give(invoke.request_id, invoke.revision, "contents_result", values)]


def _contents(uri: str, resource: Mapping[str, Any], given: Any) -> dict[str, Any]:
    typed = {"mimeType": resource["mimeType"]} if "mimeType" in resource else {}
    return {"uri": uri, **typed, **({"text": given} if isinstance(given, str) else given)}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode()

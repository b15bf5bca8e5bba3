"""resources/list, templates/list, read, subscribe and unsubscribe. Specification: Server Features / Resources.

Templates of addresses are those of RFC 6570, level 1: {name} stands for letters, digits, ``-._~`` and %-escapes.
"""

from __future__ import annotations

import re

from tmkb.engine import message, shape
from tmkb.engine.effects import Invoke
from tmkb.engine.handlers import listing
from tmkb.engine.handlers.prompts import refuse
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Resource, Revision
    from tmkb.values import JsonObject

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def list_resources(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The resources that have an address of their own."""
    listed = [listing.identity(each) for each in connection.spec["resources"].values() if "uri" in each]
    return listing.answer(connection, revision, request, "resources", "resource", listed)


def list_templates(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The templates of addresses."""
    listed = [listing.identity(each) for each in connection.spec["resources"].values() if "uriTemplate" in each]
    return listing.answer(connection, revision, request, "resourceTemplates", "resource_template", listed)


def read_resource(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Hand what the address says to the resource's operation."""
    resource, variables = _found(connection, request)
    return [
        Invoke(
            request,
            resource,
            variables,
            revision,
            finish=_finisher(str(request.params["uri"])),
            refuse=refuse,
        )
    ]


def subscribe(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """From now on tell the client when the resource changes."""
    _found(connection, request)
    connection.subscribed.add(str(request.params["uri"]))
    return connection.respond(request.id, b"{}")


def unsubscribe(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """No longer."""
    connection.subscribed.discard(str(request.params["uri"]))
    return connection.respond(request.id, b"{}")


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


def _finisher(uri: str) -> Any:
    """What makes a response of the contents of the resource at ``uri``."""

    def finish(connection: Connection, invoke: Invoke, outcome: Any) -> list[Effect]:
        given = outcome if isinstance(outcome, list) else [outcome]
        contents: Any = [
            shape.fit(invoke.revision, "resource_contents", _contents(uri, invoke.definition, each)) for each in given
        ]
        result: JsonObject = {"contents": contents}
        noted = connection.note("read", invoke.request_id, uri=uri)
        traced = connection.trace("result", invoke.request_id, result)
        return [*traced, noted, *connection.respond(invoke.request_id, message.encode(result))]

    return finish


def _contents(uri: str, resource: Mapping[str, Any], given: Any) -> dict[str, Any]:
    typed = {"mimeType": resource["mimeType"]} if "mimeType" in resource else {}
    return {"uri": uri, **typed, **({"text": given} if isinstance(given, str) else given)}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode()

"""resources/list, templates/list, read, subscribe and unsubscribe. Specification: Server Features / Resources.

URI templates are those of RFC 6570, level 1: a variable matches letters, digits, ``-._~`` and %-escapes.
"""

from __future__ import annotations

import re

from tmkb.errors import ProtocolError
from tmkb.protocol import budget, outbound
from tmkb.protocol.handlers import listing, subscriptions
from tmkb.protocol.handlers.prompts import Operations
from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.schema.model import Resource
    from tmkb.schema.values import JsonObject

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class _ListResources:
    """List the resources with a fixed URI, and the entries of templates."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        resources: Any = exchange.spec["resources"].values()

        def entries() -> Iterator[Mapping[str, Any]]:
            listed = [listing.entry(each) for each in resources if "uri" in each]
            listed += [entry for each in resources for entry in each.get("entries", [])]
            yield from (entry for entry in listed if exchange.connection.permits("resources", entry["uri"]))

        return listing.send_page(exchange, "resources", "resources_result", entries)


class _ListTemplates:
    """List the URI templates."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        templates: Any = [each for each in exchange.spec["resources"].values() if "uriTemplate" in each]

        def entries() -> Iterator[Mapping[str, Any]]:
            permits_some = exchange.connection.permits_some
            yield from (listing.entry(each) for each in templates if permits_some(each["uriTemplate"]))

        return listing.send_page(exchange, "resourceTemplates", "templates_result", entries)


class _ReadResource(Operations):
    """Run the operation of the resource with a URI."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        resource, variables = _find(exchange)
        return exchange.invoke(resource, variables)

    def complete(self, exchange: Exchange, outcome: Any) -> list[Effect]:
        uri, resource = str(exchange.params["uri"]), exchange.definition
        if outcome is None:
            return outbound.refuse(exchange, ProtocolError("resource_not_found", uri=uri))
        parts = outcome if isinstance(outcome, list) else [outcome]
        contents = [_contents(uri, resource, each) for each in parts]
        cache = listing.cache_hints(exchange, resource)
        personal = (
            "inputResponses" in exchange.params or "requestState" in exchange.params
        )  # depends on a user's answers
        values = {**({} if personal else cache), "contents": contents}
        logged = outbound.log_line(exchange.spec, "read", exchange.id, uri=uri)
        return [logged, *outbound.send_result(exchange, "contents_result", values)]


class _Subscribe:
    """Notify the client when the resource changes.

    Raises ProtocolError if the resource does not exist, its URI is too long, or there are too many subscriptions.
    """

    def begin(self, exchange: Exchange) -> list[Effect]:
        _find(exchange)
        connection, uri = exchange.connection, str(exchange.params["uri"])
        if uri not in connection.subscribed:
            subscriptions.admit(exchange, [uri])
            connection.budget.reserve(budget.footprint(uri))
            connection.subscribed.add(uri)
        return outbound.send_result(exchange, "empty_result", {})


class _Unsubscribe:
    """Stop notifying the client about a resource."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        connection, uri = exchange.connection, str(exchange.params["uri"])
        if uri in connection.subscribed:
            connection.subscribed.remove(uri)
            connection.budget.release(budget.footprint(uri))
        return outbound.send_result(exchange, "empty_result", {})


list_resources, list_templates, read_resource = _ListResources(), _ListTemplates(), _ReadResource()
subscribe, unsubscribe = _Subscribe(), _Unsubscribe()


def match(uri_template: str, uri: str) -> JsonObject | None:
    """Return the variables with which ``uri_template`` expands to ``uri``; None if it cannot."""
    parts = list(template.parse(uri_template))
    matched = re.fullmatch("([A-Za-z0-9._~%-]+)".join(re.escape(literal) for literal, _ in parts), uri)
    if matched is None:
        return None
    try:
        return {str(name): _unescape(text) for (_, name), text in zip(parts, matched.groups(), strict=False)}
    except UnicodeDecodeError:  # the escapes are not UTF-8
        return None


def _find(exchange: Exchange) -> tuple[Resource, JsonObject]:
    """Return the requested resource, and the variables of its template. Raises ProtocolError if there is none."""
    uri = exchange.params["uri"]
    assert isinstance(uri, str)  # valid by the schema of the method
    resources = exchange.spec["resources"].values()
    for resource in resources:
        if resource.get("uri") == uri:
            return resource, {}
    for resource in resources:
        if "uriTemplate" in resource and (variables := match(resource["uriTemplate"], uri)) is not None:
            return resource, variables
    raise ProtocolError("resource_not_found", uri=uri)


def _contents(uri: str, resource: Mapping[str, Any], part: Any) -> dict[str, Any]:
    typed = {"mimeType": resource["mimeType"]} if "mimeType" in resource else {}
    return {"uri": uri, **typed, **({"text": part} if isinstance(part, str) else part)}


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), text.encode()).decode()

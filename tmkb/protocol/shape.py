"""Makes an outgoing object fit the revision it is sent under: the only place where peers see different fields.

What an object may have stands in the revision's ``objects``; what is not there is not sent. Content of a type that the
revision does not know is replaced by a text.
"""

from __future__ import annotations

from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.schema.model import Revision, Server, Shape
    from tmkb.schema.values import JsonObject


def fit(revision: Revision, kind: str, values: Mapping[str, Any]) -> JsonObject:
    """The object ``kind`` made of ``values``: fields that the revision knows, in its order; absent ones stay absent."""
    fitted: JsonObject = _object(revision["objects"], revision["objects"][kind], values)
    return fitted


def result(revision: Revision, kind: str, values: Mapping[str, Any], server: Server) -> JsonObject:
    """A result ``kind``, with the name of ``server`` where the revision wants it in each."""
    fitted = fit(revision, kind, values)
    if "identity" in revision:
        meta: Any = fitted.get("_meta", {})
        fitted["_meta"] = {**meta, revision["identity"]: fit(revision, "implementation", server)}
    return fitted


def _object(objects: Mapping[str, Shape], shape: Shape, values: Mapping[str, Any]) -> Any:
    if "types" in shape:
        return _block(objects, shape, values)
    if "primitives" in shape:
        return _form(shape, values)
    known = {
        name: values[name] if inner is True else _inside(objects, objects[inner], values[name])
        for name, inner in shape["fields"].items()
        if name in values
    }
    return {**shape["always"], **known} if "always" in shape else known


def _inside(objects: Mapping[str, Shape], shape: Shape, value: Any) -> Any:
    """One object, or a list of them."""
    if isinstance(value, list):
        return [_object(objects, shape, one) for each in value for one in _single(shape, each)]
    return _object(objects, shape, value) if isinstance(value, dict) else value


def _single(shape: Shape, value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """``value``, or one of it for each entry of the field that may hold one only."""
    several = value.get(shape["each"]) if "each" in shape else None
    if isinstance(several, list):
        yield from ({**value, shape["each"]: one} for one in several)
    else:
        yield value


def _block(objects: Mapping[str, Shape], shape: Shape, block: Mapping[str, Any]) -> Any:
    types: Any = shape["types"]
    if block["type"] in types:
        return _object(objects, types[block["type"]], block)
    text = shape["otherwise"].get(block["type"], shape["otherwise"]["*"])
    said = template.fill(text, {name: block.get(name, "") for name in template.names(text)})
    return _object(objects, types["text"], {**block, "type": "text", "text": said})


def _form(shape: Shape, schema: Mapping[str, Any]) -> Any:
    """The schema of a form with the fields that the revision's forms can have."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    kept = {name: _field(shape, field) for name, field in fields.items() if field.get("type") in shape["primitives"]}
    required = [name for name in schema.get("required", []) if name in kept]
    return {**schema, "properties": kept, **({"required": required} if "required" in schema else {})}


def _field(shape: Shape, field: Mapping[str, Any]) -> Any:
    fitted = dict(field)
    if field["type"] not in shape["defaults"]:
        fitted.pop("default", None)
    if shape["titles"] not in field and "oneOf" in field:
        choices = fitted.pop("oneOf")
        fitted["enum"] = [choice["const"] for choice in choices]
        fitted["enumNames"] = [choice.get("title", choice["const"]) for choice in choices]
    return fitted

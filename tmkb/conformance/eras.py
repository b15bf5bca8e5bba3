"""Translate what a server sends between the eras of the protocol: revisions with a handshake, and stateless ones.

What differs is in the revision files: the fields of each object, the fields that it always has, the keys of ``_meta``,
and the codes of errors. Members that neither era knows, such as those of vendors, stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tmkb.protocol import outbound
from tmkb.schema import answers
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue


def is_stateless(revision: Revision) -> bool:
    """Return whether requests under ``revision`` describe themselves, without a handshake."""
    return "request_metadata" in revision


def client_metadata(spec: Spec) -> set[str]:
    """Return the keys of ``_meta`` that a revision defines for requests: they describe the client, or trace a call."""
    keys = {key for revision in spec["revisions"].values() for key in answers.properties(revision["meta"])}
    return {*keys, "traceparent", "tracestate", "baggage"}  # the last three: W3C Trace Context and Baggage


def result(method: str, value: JsonObject, old: Revision, new: Revision, identity: JsonValue = None) -> JsonObject:
    """Return the result of ``method`` under the revision ``old`` as a server would send it under ``new``.

    ``identity``: the name and version of the server, for revisions that repeat it in each result.
    """
    rules: Any = {**old["methods"].get(method, {}), **new["methods"].get(method, {})}
    translated: JsonObject = shaped(rules.get("result_shape", "empty_result"), _without_keys(value, old), old, new)
    if "identity" in new and identity is not None:
        meta: Any = translated.get("_meta", {})
        translated["_meta"] = {new["identity"]: identity, **meta}
    return translated


def params(method: str, value: JsonObject, old: Revision, new: Revision) -> JsonObject:
    """Return the params of a request or notification of the server under ``old`` as under ``new``."""
    rules: Any = {**old["methods"].get(method, {}), **new["methods"].get(method, {})}
    value = _without_keys(value, old)
    shape = rules.get("params_shape")
    translated: JsonObject = value if shape is None else shaped(shape, value, old, new)
    return translated


def error(value: JsonObject, old: Revision, new: Revision) -> JsonObject:
    """Return an error with the code that ``new`` has for it.

    Several errors may share a code that both revisions know. Then the data of the error shows which one it is.
    """
    code, data = value.get("code"), value.get("data")
    known = any(entry.get("code") == code for entry in new["errors"].values())
    for name, entry in old["errors"].items():
        other = new["errors"].get(name, entry).get("code")
        fields = entry.get("data")
        described = bool(fields) and isinstance(fields, list) and isinstance(data, dict) and {*fields} == {*data}
        if entry.get("code") == code != other and (described or not known):
            return {**value, "code": other}
    return value


def status(value: JsonValue, revision: Revision) -> int:
    """Return the HTTP status of a response with the error ``value`` under ``revision``; 200 if it prescribes none.

    Of several errors with the same code, the first is the general one.
    """
    code = value.get("code") if isinstance(value, dict) else None
    entries = [entry for entry in revision["errors"].values() if entry.get("code") == code]
    return entries[0].get("status", 200) if is_stateless(revision) and entries else 200


def shaped(kind: str, value: Any, old: Revision, new: Revision) -> Any:
    """Return the object ``kind``: without the fields that only ``old`` has, with those that ``new`` always has."""
    before: Any = old["objects"].get(kind, {})
    after: Any = new["objects"].get(kind, before)
    if "types" in after:
        return _block(kind, value, old, new)
    known = after.get("fields", {})
    dropped = {*before.get("fields", {}), *before.get("always", {})} - {*known, *after.get("always", {})}
    kept = {
        name: _inside(known[name], inner, old, new) if isinstance(known.get(name), str) else inner
        for name, inner in value.items()
        if name not in dropped
    }
    return {**after.get("always", {}), **kept}


def _inside(kind: str, value: Any, old: Revision, new: Revision) -> Any:
    if isinstance(value, list):
        return [_inside(kind, inner, old, new) for inner in value]
    return shaped(kind, value, old, new) if isinstance(value, dict) else value


def _block(kind: str, value: Any, old: Revision, new: Revision) -> Any:
    """Return a block of content; one of a type that only ``old`` has becomes a text."""
    type_ = value.get("type")
    before: Any = old["objects"].get(kind, {}).get("types", {})
    after: Any = new["objects"][kind]["types"]
    if not isinstance(type_, str) or type_ not in {*before, *after}:
        return value
    if type_ not in after:
        return outbound.fit(new, kind, value)
    dropped = {*before.get(type_, {}).get("fields", {})} - {*after[type_]["fields"]}
    shapes = after[type_]["fields"]
    return {
        name: _inside(shapes[name], inner, old, new) if isinstance(shapes.get(name), str) else inner
        for name, inner in value.items()
        if name not in dropped
    }


def _without_keys(value: JsonObject, old: Revision) -> JsonObject:
    """Return ``value`` without the keys of ``_meta`` that servers set under ``old``."""
    meta = value.get("_meta")
    if not isinstance(meta, dict):
        return value
    kept: JsonObject = {key: inner for key, inner in meta.items() if key not in _own_keys(old)}
    rest = {key: inner for key, inner in value.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept or not meta else rest


def _own_keys(revision: Revision) -> Iterator[str]:
    for name in ("identity", "subscription"):
        if name in revision:
            yield str(revision.get(name))

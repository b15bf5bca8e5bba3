"""Check the message templates of errors and log lines: their placeholders, their fields, and the ids the code uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tmkb.errors import Problem
from tmkb.schema import documents, metaschema, template
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue

TABLES = {"errors": "errors", "log": "lines"}  # place of a general table → the key of its entries


def check_errors(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    """Yield the problems of the entries of an error table, or of the `errors` of a revision."""
    yield from _changed_fields(schemas, place, doc)
    reporting: dict[tuple[str, str], str] = {}  # (surface, keyword) → the error that reports it
    for name, error in doc.section("errors").items():
        fields = error.get("fields", [])
        yield from check_template(doc, ("errors", name, "message"), error["message"], fields)
        yield from _data(doc, ("errors", name, "data"), error.get("data", []), fields)
        if documents.kind(place) == "errors" and "keyword" not in error:
            yield from _unused_fields(schemas, doc, name, error, names)
        if "keyword" in error:
            yield from check_fields(doc, ("errors", name, "fields"), fields, names.get("violation field", fields))
            keyword = error["keyword"]
            if (other := reporting.setdefault((error["surface"], keyword), name)) != name:
                yield doc.problem("same_keyword", ("errors", name, "keyword"), keyword=keyword, other=other)


def check_log(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    """Yield the problems of a table of log lines."""
    yield from _changed_fields(schemas, place, doc)
    yield from check_lines(doc, "lines")


def check_lines(doc: Document, key: str) -> Iterator[Problem]:
    """Yield the problems of the log lines under ``key``."""
    for name, line in doc.section(key).items():
        yield from check_template(doc, (key, name, "message"), line["message"], line.get("fields", []))


def check_template(
    doc: Document, path: Path, text: JsonValue, fields: Collection[str] | None = None
) -> Iterator[Problem]:
    """Yield a problem for a stray brace in the texts of ``text``, or for each placeholder that is not in ``fields``."""
    try:
        names = template.tree_names(text)
    except ValueError as error:
        yield doc.problem("bad_brace", path, text=str(error))
        return
    yield from _unknown_fields(doc, path, names, names if fields is None else fields)


def check_fields(doc: Document, path: Path, fields: list[str], offered: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each entry of the list ``fields`` that is not ``offered``."""
    for index, name in enumerate(fields):
        yield from _unknown_fields(doc, (*path, index), [name], offered)


def missing(schemas: Schemas, place: str) -> Iterator[Problem]:
    """Yield the problems of a table that a file removes, or that lacks an id of the packaged one: the code uses all."""
    key = "errors" if documents.kind(place) == "errors" else TABLES.get(place)
    doc = schemas.documents[place]
    if key is None or not isinstance(doc.mapping().get(key, {}), dict):  # the meta-schema reports a wrong type
        return
    removing = [layer for layer in schemas.layers.get(place, ()) if layer.mapping().get(key, ...) is None]
    yield from (layer.key_problem("needed_entry", (key,), name=key) for layer in removing)
    if removing or place not in TABLES:
        return
    ids = [name for name in schemas.packaged(place).section(key) if name not in doc.section(key)]
    yield from missing_entries(schemas, place, key, ids)


def missing_entries(schemas: Schemas, place: str, key: str, ids: list[str]) -> Iterator[Problem]:
    """Yield problems for the ``ids`` that the table at ``place`` lacks: it removes them, or replaces their table."""
    layers = schemas.layers.get(place, ())
    removed = {name: layer for layer in layers for name in ids if layer.section(key).get(name, ...) is None}
    for name, layer in removed.items():
        yield layer.key_problem("needed_entry", (key, name), name=name)
    rest = [name for name in ids if name not in removed]
    if rest and place in schemas.replaced:
        fields = {"other": schemas.replaced[place], "count": len(rest), "name": rest[0]}
        yield schemas.documents[place].key_problem("lost_names", (key,), **fields)


def _unknown_fields(doc: Document, path: Path, names: list[str], offered: Collection[str]) -> Iterator[Problem]:
    for name in names:
        if name not in offered:
            yield doc.problem("unknown_field", path, name=name, **metaschema.near(name, offered))


def _unused_fields(
    schemas: Schemas, doc: Document, name: str, error: dict[str, Any], names: Names
) -> Iterator[Problem]:
    """Yield fields that are in no message and no data.

    The code defines the fields of the general table and of violations, so they may stay unused.
    """
    try:
        data = error.get("data", [])
        data_names = data if isinstance(data, list) else template.tree_names(data)
        used = {*template.names(error["message"]), *data_names, *names.get("violation field", ())}
    except ValueError:
        return
    for index, field in enumerate(error.get("fields", [])):
        if field not in used and name not in schemas.packaged("errors").section("errors"):
            yield doc.problem("unused_field", ("errors", name, "fields", index), name=field)


def _data(doc: Document, path: Path, data: Any, fields: Collection[str]) -> Iterator[Problem]:
    if isinstance(data, list):
        yield from check_fields(doc, path, data, fields)
        return
    for key, tree in data.items():
        yield from check_template(doc, (*path, key), tree, fields)


def _changed_fields(schemas: Schemas, place: str, doc: Document) -> Iterator[Problem]:
    """Yield the entries of a general table whose fields differ from those of the packaged one."""
    key = TABLES.get(place)
    for name, packaged in schemas.packaged(place).section(key).items() if key else ():
        entry = doc.section(str(key))[name]
        if entry.get("fields", []) != packaged.get("fields", []):
            expected, actual = (", ".join(e.get("fields", [])) or "no fields" for e in (packaged, entry))
            yield doc.problem("changed_fields", (str(key), name, "fields"), name=name, expected=expected, actual=actual)

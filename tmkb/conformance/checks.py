"""Read what the specification demands of every server: the files ``conformance/check/*.checks.yaml``.

A requirement says which clause of which revision demands it, and has either steps that show it or a shape of all
messages. Nothing in it depends on the server or on the wording of messages.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for
from referencing import Registry

from tmkb.errors import DocumentError
from tmkb.schema import metaschema, packed, paths, reader
from tmkb.schema.values import JsonValue

KEYWORDS = ("MUST", "SHOULD", "MAY")
_LISTED = 3  # differences in one message
_DIALECT = "https://json-schema.org/draft/2020-12/schema"  # of schemas that name none


class Undecidable(Exception):
    """A value cannot be compared, because what the server gives to compare it with cannot be used."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One demand of the specification. ``value``: its entry in the file."""

    id: str
    value: dict[str, Any]

    @property
    def says(self) -> str:
        """The rule in one sentence."""
        return str(self.value["says"])

    def keyword(self, revision: str) -> str:
        """Return MUST, SHOULD or MAY."""
        return str(_since(self.value["keyword"], revision))

    def clause(self, revision: str) -> str | None:
        """Return the clause below the address of the specification, or a whole address; None if there is none."""
        clause = _since(self.value["clause"], revision)
        return None if clause is None else str(clause)


@dataclass(frozen=True, slots=True)
class Checks:
    """All requirements. ``revisions``: how a client speaks each revision. ``shapes``: name → JSON Schema."""

    requirements: list[Requirement]
    revisions: dict[str, dict[str, Any]]
    shapes: dict[str, Any]
    answers: dict[str, Any]
    refusal: dict[str, Any]

    def differences(self, shape: JsonValue, value: JsonValue) -> list[str]:
        """Return how ``value`` differs from a shape, as sentences with the path of the difference."""
        validator = _VALIDATOR({"$defs": self.shapes, **shape} if isinstance(shape, dict) else shape)
        errors = sorted(validator.iter_errors(value), key=lambda error: [*map(str, error.absolute_path)])
        return [*dict.fromkeys(map(_sentence, errors))][:_LISTED]


@functools.cache
def read(folder: str = os.path.join(paths.CONFORMANCE, "check")) -> Checks:
    """Read the requirements in a folder. Raises DocumentError."""
    schema = os.path.join(paths.CONFORMANCE, "checks.schema.yaml")
    parts: dict[str, dict[str, Any]] = {}
    for file in (os.path.join(folder, name) for name in packed.names(folder) if name.endswith(".checks.yaml")):
        doc = reader.read(file, paths.shown(file))
        if problems := metaschema.check(doc, schema):
            raise DocumentError(problems)
        for key, value in doc.mapping().items():
            if isinstance(value, dict):
                parts.setdefault(key, {}).update(value)
    revisions: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] = {}
    for name, changes in parts["revisions"].items():
        current = merged(current, changes)
        revisions[name] = current
    requirements = [Requirement(id_, value) for id_, value in parts["requirements"].items()]
    return Checks(requirements, revisions, parts["shapes"], parts["answers"], parts["refusal"])


def merged(value: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON Merge Patch to an object: null removes a key."""
    result = {key: inner for key, inner in value.items() if changes.get(key, inner) is not None}
    for key, inner in changes.items():
        if isinstance(inner, Mapping):
            before = value.get(key)
            result[key] = merged(before if isinstance(before, Mapping) else {}, inner)
        elif inner is not None:
            result[key] = inner
    return result


def _since(value: Any, revision: str) -> Any:
    """Return the entry of the last revision in a map that is not later than ``revision``."""
    if not isinstance(value, dict):
        return value
    return next((value[name] for name in sorted(value, reverse=True) if name <= revision), None)


def _sentence(error: ValidationError) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    text = "has what is not allowed" if error.validator == "not" else str(error.message)
    if not place and error.validator == "required" and isinstance(error.instance, dict):
        other = {"error": "result", "result": "error"}
        required: Any = error.validator_value
        expected = next((name for name in other if name in required and name not in error.instance), None)
        if expected is not None and other[expected] in error.instance:
            return f"the response has the member {other[expected]}, expected {expected}"
    return f"{place or 'the message'}: {text if len(text) <= 300 else text[:300] + '…'}"


def _is_schema(_: object, expected: bool, value: Any, __: object) -> Iterator[ValidationError]:
    """The keyword ``isSchema``: the value is a JSON Schema, valid in the dialect that it names."""
    if expected and isinstance(value, dict):
        if (dialect := _dialect(value)) is None:
            if not isinstance(value["$schema"], str):
                yield ValidationError("is not a valid JSON Schema: $schema is not a string")
            return
        for error in dialect(dialect.META_SCHEMA).iter_errors(value):
            yield ValidationError(f"is not a valid JSON Schema: {error.message}")


def _conforms_to(_: object, schema: Any, value: Any, __: object) -> Iterator[ValidationError]:
    """The keyword ``conformsTo``: the value conforms to a schema of the server. Nothing is read from the network."""
    dialect = _dialect(schema) if isinstance(schema, dict) else jsonschema.Draft202012Validator
    if dialect is None:
        raise Undecidable("the schema of the server is of an unknown dialect")
    try:
        errors = [*dialect(schema, registry=Registry()).iter_errors(value)]
    except Exception as error:  # whatever is wrong with a schema of a stranger
        raise Undecidable(f"the schema of the server cannot be applied: {error}") from error
    for each in errors:
        yield ValidationError(f"does not conform to the schema: {each.message}")


def _dialect(schema: Mapping[str, Any]) -> Any:
    """Return the validator class for the dialect that a schema names; None if it is not known here."""
    named = schema.get("$schema", _DIALECT)
    if not isinstance(named, str):
        return None
    known = validator_for({"$schema": named}, default=jsonschema.Draft202012Validator)
    return known if named.rstrip("#") == known.META_SCHEMA["$schema"].rstrip("#") else None


def _unique(_: object, key: str, value: Any, __: object) -> Iterator[ValidationError]:
    """The keyword ``unique``: no two elements of an array have the same value under a key."""
    found = [each.get(key) for each in _listed(value) if isinstance(each, dict)]
    for repeated in {each for each in found if isinstance(each, str) and found.count(each) > 1}:
        yield ValidationError(f"two elements have the {key} {repeated!r}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _named_like(_: object, others: Any, value: Any, __: object) -> Iterator[ValidationError]:
    """The keyword ``namedLike``: the elements of an array have the names of other elements, in the same order."""
    before, after = (
        [each.get("name") for each in listed if isinstance(each, dict)] for listed in map(_listed, (others, value))
    )
    if before != after:
        yield ValidationError(f"the names are {after}, and were {before}")


_VALIDATOR: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {"isSchema": _is_schema, "conformsTo": _conforms_to, "unique": _unique, "namedLike": _named_like},
)

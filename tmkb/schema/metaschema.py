"""Validate a document against the meta-schema of its kind and report each violation with its position.

Meta-schemas describe the resolved form of a file. Six keywords are our own. ``refersTo: KIND``: the string must be one
of the names of that kind (error ids, handlers, …). ``lacks: [KEY]``: these keys are not allowed here. ``remedy:
SENTENCE``: how to fix a string that does not match ``pattern``. ``example: FILE``: a valid file of this kind.
``elsewhere: {KEY: SENTENCE}``: a key that authors expect here, and where its content belongs. ``renamed: {OLD: NEW}``:
keys that had another name.
"""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import keywords, paths, reader
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonObject, JsonValue

Names = Mapping[str, Collection[str]]

_SHOWN = 12  # names in one message
_NAMESAKE = 0.85  # similarity ratio above which an entry is taken for a misspelling of its neighbour
_COMPARED = 1000  # names that a word is compared with; a longer list gives no suggestion
_LONGEST = 100  # characters of a word or name that is compared
_WORK = 20_000_000  # pairs of characters compared in `_WINDOW`: at most about two seconds
_WINDOW = 10.0  # seconds
_names: ContextVar[Names] = ContextVar("names")  # what `refersTo` allows during a check
POINTER = "# yaml-language-server: $schema="


def read(file: str, schema: str) -> Document:
    """Read a file that is valid against the meta-schema with the path ``schema``.

    Raises:
        SpecError: the file is unreadable, or violates the schema.
    """
    try:
        doc = reader.read(file, paths.shown(file))
    except DocumentError as error:
        raise SpecError(error.problems) from error
    if problems := check(doc, schema):
        raise SpecError(problems)
    return doc


def check(doc: Document, schema_file: str, names: Names | None = None, at: Path = ()) -> list[Problem]:
    """Return every violation of the schema in ``schema_file`` by the value ``at`` a path of ``doc``, in file order.

    ``names``: the allowed names for each KIND of ``refersTo``; other kinds are not checked.
    """
    token = _names.set(names or {})
    try:
        errors = [*_validator(schema_file).iter_errors(reader.at(doc.value, at))]
    finally:
        _names.reset(token)
    problems = [problem for error in errors for problem in _problems(doc, at, error)]
    # `jsonschema` has one error for each missing key, and `_missing_keys` reports all keys for each of them.
    once = {(p.file, p.line, p.column, p.rule, str(p.fields)): p for p in problems}
    # A missing key that a misspelled one stands for is no further problem.
    meant = {(p.fields["place"], p.fields["nearest"]) for p in problems if p.rule == "unknown_key"}
    rest = [p for p in once.values() if p.rule != "missing_key" or (p.fields["place"], p.fields["key"]) not in meant]
    return sorted(rest, key=lambda p: (p.file, p.line, p.column))


def not_a_map(doc: Document) -> Problem | None:
    """Return the problem of a file whose value is not a map; None if it is one."""
    if isinstance(doc.value, dict):
        return None
    return doc.problem("not_a_map", (), actual_types=[_type_of(doc.value)])


def settings(provider: str, names: Names) -> str | None:
    """Return the file with the meta-schema of the settings of ``provider``; None if it has no settings."""
    return next(iter(names.get(f"settings of {provider}", ())), None)


def paths_in(schema_file: str, value: JsonValue) -> dict[Path, str]:
    """Return the file paths in ``value``, by their place in it, with the ``format`` from the schema.

    Formats: ``path`` (need not exist), ``folder``, ``writable_folder``, ``plain_file``, ``log``.
    """
    return dict(_formats(_schema(schema_file), value, ()))


def _formats(schema: Any, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str) and "format" in schema:
        yield path, schema["format"]
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _formats(inner, value, path)
    for key, part in reader.entries(value):
        rest = schema.get("additionalProperties") if isinstance(key, str) else schema.get("items")
        below = schema.get("properties", {}).get(key, rest)
        if isinstance(below, dict):
            yield from _formats(below, part, (*path, key))


def nearest(word: str, known: Collection[str]) -> str:
    """Return the name in ``known`` that is most similar to ``word``, or an empty string."""
    if len(known) > _COMPARED:
        return ""
    by_lower_case = {name.lower(): name for name in known}
    matches = _similar(word.lower(), by_lower_case, 1, 0.6)
    return by_lower_case[matches[0]] if matches else ""


def alike(word: str, known: Collection[str]) -> str:
    """Return the name in ``known`` of which ``word`` is most likely a misspelling, or an empty string."""
    return next(iter(_similar(word, known, 1, _NAMESAKE)), "")


def near(word: str, known: Collection[str]) -> dict[str, str]:
    """Return the fields ``nearest`` and ``known`` of a problem about an unknown ``word``.

    Names keep the order of ``known``. If there are many, similar names are preferred, then the first. A file can have
    any number of wrong words, so the cost of suggestions is limited, see `_similar`.
    """
    shown = [*islice(known, _SHOWN)]
    if len(known) > _SHOWN:
        chosen = {*dict.fromkeys([*_similar(word, known, _SHOWN // 2, 0.4), *shown][:_SHOWN])}
        ordered = known if len(known) <= _COMPARED else shown
        shown = [*(name for name in ordered if name in chosen), "…"]
    return {"nearest": nearest(word, known), "known": ", ".join(shown) or "none"}


class _Work:
    """Counts the comparisons of this process, so that no number of wrong words makes them last."""

    def __init__(self) -> None:
        self.since = 0.0
        self.left = 0

    def take(self, amount: int) -> bool:
        """Return whether ``amount`` pairs of characters may still be compared in this `_WINDOW`."""
        now = time.monotonic()
        if now - self.since > _WINDOW:
            self.since, self.left = now, _WORK
        if amount > self.left:
            return False
        self.left -= amount
        return True


_work = _Work()


def _similar(word: str, known: Collection[str], most: int, cutoff: float) -> list[str]:
    """Return at most ``most`` of ``known`` that are similar to ``word``, best first; none if that costs too much."""
    if len(word) > _LONGEST or len(known) > _COMPARED:
        return []
    names = [name for name in known if len(name) <= _LONGEST]
    if not _work.take(len(word) * sum(map(len, names))):
        return []
    return difflib.get_close_matches(word, names, n=most, cutoff=cutoff)


def pointed(text: str, schema: str, file: str) -> str:
    """Return ``text``, the content of ``file``, with a first line that names ``schema`` for editors.

    Only in a checkout: elsewhere no relative path is right on every machine.
    """
    if text.startswith(POINTER):
        text = text.partition("\n")[2]
    here = os.path.abspath(os.path.dirname(file))
    if paths.ROOT == paths.DATA or not here.startswith(paths.ROOT + os.sep) or file.endswith(".json"):
        return text
    return f"{POINTER}{os.path.relpath(schema, here).replace(os.sep, '/')}\n{text}"


@cache
def _schema(file: str) -> JsonObject:
    return reader.read(file).mapping()


@cache
def _validator(file: str) -> Any:
    """Return a validator of the schema in ``file`` that implements our keywords."""
    extend: Any = jsonschema.validators.extend
    validator = extend(jsonschema.Draft202012Validator, {"lacks": _lacks, "refersTo": _refers_to})
    validator.evolve = keywords.evolve
    return validator(_schema(file), registry=_registry(file))


def _registry(file: str) -> Any:
    """Return a registry of ``file`` and of the files in its folder that a ``$ref`` leads to, by file name.

    A registry that retrieves these files on demand searches them again for each ``$ref``.
    """
    folder, names = os.path.dirname(file), [os.path.basename(file)]
    for name in names:  # grows in the loop
        files = [reference.partition("#")[0] for reference in _references(_schema(os.path.join(folder, name)))]
        names += dict.fromkeys(other for other in files if other and other not in names)
    registry: Any = Registry()
    return registry.with_resources((n, DRAFT202012.create_resource(_schema(os.path.join(folder, n)))) for n in names)


def _references(schema: JsonValue) -> Iterator[str]:
    """Yield the value of each ``$ref`` in ``schema``."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield str(schema["$ref"])
    for _, part in reader.entries(schema):
        yield from _references(part)


def _refers_to(_: object, kind: str, name: JsonValue, __: object) -> Iterator[ValidationError]:
    known = _names.get().get(kind)
    if known is not None and isinstance(name, str) and name not in known:
        yield ValidationError("", validator="refersTo", validator_value=(kind, known))


def _lacks(_: object, keys: list[str], value: JsonValue, __: object) -> Iterator[ValidationError]:
    if isinstance(value, dict) and any(key in value for key in keys):
        yield ValidationError("", validator="lacks", validator_value=keys)


def _problems(doc: Document, above: Path, error: ValidationError) -> Iterator[Problem]:
    """Yield the problems for ``error``, whose paths are relative to ``above``."""
    keyword = "propertyNames" if "propertyNames" in error.relative_schema_path else str(error.validator)
    yield from _REPORTS.get(keyword, _any)(doc, (*above, *error.relative_path), error)


def _unknown_keys(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    known, patterns = list(error.schema.get("properties", {})), list(error.schema.get("patternProperties", {}))
    for key in error.instance:
        if key in known or any(re.search(pattern, key) for pattern in patterns):
            continue
        if key == "$ref":
            yield doc.key_problem("reference_in_file", (*path, key))
        elif remedy := error.schema.get("elsewhere", {}).get(key):
            yield doc.key_problem("misplaced_key", (*path, key), key=key, place=_dotted(path), remedy=remedy)
        elif name := error.schema.get("renamed", {}).get(key):
            yield doc.key_problem("renamed_key", (*path, key), key=key, place=_dotted(path), name=name)
        else:
            yield doc.key_problem("unknown_key", (*path, key), key=key, place=_dotted(path), **near(key, known))


def _missing_keys(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    renamed = error.schema.get("renamed", {})
    present = {renamed.get(key, key) for key in error.instance}
    for key in error.validator_value:
        if key not in present:
            nearest = _namesake(doc, path, key)
            only = error.schema.get("properties", {}).get(key, {}).get("const")
            rule, more = (
                ("missing_key", {"nearest": nearest})
                if nearest or only is None
                else ("missing_constant", {"value": only})
            )
            yield doc.key_problem(rule, path, key=key, place=_dotted(path), **more)


def _namesake(doc: Document, path: Path, key: str) -> str:
    """Return the entry beside ``path`` that has ``key`` and a similar name, or an empty string.

    An entry that lacks such a key is most likely a misspelled override of that neighbour.
    """
    if not path or not isinstance(path[-1], str):
        return ""
    beside = reader.at(doc.value, path[:-1])
    if len(beside) > _COMPARED:
        return ""
    others = [name for name, entry in beside.items() if isinstance(entry, dict) and key in entry]
    return alike(path[-1], others)


def _dependent_keys(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    for key, required in error.validator_value.items():
        for other in required if key in error.instance else []:
            if other not in error.instance:
                yield doc.key_problem("missing_key", (*path, key), key=other, place=_dotted(path))


def _type(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    expected = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
    actual = _type_of(error.instance)
    rule = "not_a_string" if expected == ["string"] and actual in _UNQUOTED else "wrong_type"
    if actual == "string" and any(_type_of(_unquoted(error.instance)) == each for each in expected):
        rule = "quoted_value"
    yield doc.problem(rule, path, place=_dotted(path), types=expected, actual_types=[actual])


def _unquoted(text: str) -> JsonValue:
    """Return the value that ``text`` would have without quotes."""
    try:
        return reader.parse(f"k: {text}\n", "").mapping().get("k")
    except DocumentError:
        return text


def _choice(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    known = [str(item) for item in (error.validator_value if error.validator == "enum" else [error.validator_value])]
    value = str(error.instance)
    yield doc.problem("not_one_of", path, place=_dotted(path), value=value, **near(value, known))


def _reference(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    yield doc.problem("unknown_name", path, **_unknown(error))


def _unknown(error: Any) -> dict[str, str]:
    kind, names = error.validator_value
    return {
        "kind": kind,
        "name": error.instance,
        **near(error.instance, names if kind == "operation" or len(names) > _COMPARED else sorted(names)),
    }


def _alternatives(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    """Report the branch for the type of the value; if there is none, all types that are allowed."""
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    other_type = [each for each in error.context if each.validator == "type" and not each.relative_path]
    wrong = {each.relative_schema_path[0] for each in other_type}
    if len(wrong) > 1 and wrong == branches.keys():
        types = [each.validator_value for each in other_type]
        listed = [kind for each in types for kind in ([each] if isinstance(each, str) else each)]
        fields = {"types": list(dict.fromkeys(listed)), "actual_types": [_type_of(error.instance)]}
        yield doc.problem("wrong_type", path, place=_dotted(path), **fields)
        return
    wrong |= {number for number, errors in branches.items() if any(map(_differs, errors))}
    best = best_match(each for number, errors in branches.items() if number not in wrong for each in errors)
    best = best or best_match(error.context)
    yield from _any(doc, path, error) if best is None else _problems(doc, path, best)


def _differs(error: ValidationError) -> bool:
    """Return whether ``error`` means that another branch is meant: a constant of another type, or no key like `$by`."""
    if error.validator == "const" and not error.relative_path:
        return type(error.instance) is not type(error.validator_value)
    keys: Any = error.validator_value if error.validator == "required" else ()
    instance: Any = error.instance
    return any(key.startswith("$") and key not in instance for key in keys)


def _key(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    here, fields = (*path, error.instance), {"key": error.instance, "place": _dotted(path)}
    if error.validator == "refersTo":
        yield doc.key_problem("unknown_name", here, **_unknown(error))
    elif "remedy" in error.schema:
        yield doc.key_problem("wrong_key_form", here, **fields, remedy=error.schema["remedy"])
    else:
        yield doc.key_problem("bad_key", here, **fields)


def _unwanted_keys(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    for key in error.validator_value:
        if key in error.instance:
            provider = error.instance.get("provider")
            rule = "wrong_provider" if key in _BY_PROVIDER and provider is not None else "unwanted_key"
            fields = {"provider": str(provider), "nearest": _BY_PROVIDER.get(key, "")}
            yield doc.key_problem(rule, (*path, key), key=key, place=_dotted(path), **fields)


def _few(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    count, least = len(error.instance), error.validator_value
    yield doc.key_problem("too_few_entries", path, place=_dotted(path), count=count, least=least)


def _form(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    if "remedy" not in error.schema:
        yield from _any(doc, path, error)
        return
    yield doc.problem("wrong_form", path, place=_dotted(path), value=error.instance, remedy=error.schema["remedy"])


def _any(doc: Document, path: Path, error: Any) -> Iterator[Problem]:
    description = error.schema.get("description", "").rstrip(".")
    reason = f"{error.message}: {description}" if description else error.message
    yield doc.problem("breaks_schema", path, place=_dotted(path), reason=reason)


_REPORTS: dict[str, Callable[[Document, Path, Any], Iterator[Problem]]] = {
    "additionalProperties": _unknown_keys,
    "anyOf": _alternatives,
    "const": _choice,
    "dependentRequired": _dependent_keys,
    "enum": _choice,
    "lacks": _unwanted_keys,
    "minItems": _few,
    "oneOf": _alternatives,
    "pattern": _form,
    "propertyNames": _key,
    "refersTo": _reference,
    "required": _missing_keys,
    "type": _type,
}


def _type_of(value: JsonValue) -> str:
    return _TYPES.get(type(value), "null")


_BY_PROVIDER = {"answer": "script.answer", "steps": "script.steps"}  # key → the provider that runs it
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_UNQUOTED = ("boolean", "integer", "number")  # what an unquoted string can be read as


def _dotted(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the file"

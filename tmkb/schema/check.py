"""What resolved schemas have to obey: shape (meta-schemas), the names they refer to, and what no schema can say."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema

from tmkb.errors import Problem
from tmkb.schema import answers, classes, documents, jsonschemas, metaschema, paths, template
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document, Path


def check(found: Schemas, names: Names) -> Iterator[Problem]:
    """Every problem of the documents of ``found``. One whose shape is wrong is not asked for its meaning."""
    lacking = [problem for place in found.documents for problem in _complete(found, place)]
    if lacking:  # all that refers to what they lack would be wrong as well
        yield from lacking
        return
    known = {place: _known(found, place, doc, names) for place, doc in found.documents.items()}
    shapes = {place: _shape(found, place, doc, known[place]) for place, doc in found.documents.items()}
    broken = {place for place, faults in shapes.items() if any(fault.rule != "unknown_name" for fault in faults)}
    for place, doc in found.documents.items():
        yield from shapes[place]
        if not shapes[place] and broken.isdisjoint(_sources(found, place)):
            yield from _meaning(found, place, doc, known[place])
        yield from _capability(found, place, doc)
        if documents.kind(place) == "errors":
            yield from _missing_entries(found, place, "errors", _needed(shapes, place))
    yield from _cases(found)


def _needed(shapes: Mapping[str, list[Problem]], place: str) -> list[str]:
    """Return the errors that packaged files of a server name, and that its table at ``place`` lacks."""
    packaged = os.path.join(paths.shown(paths.SCHEMAS), "")
    faults = [fault for at, each in shapes.items() if at.startswith(f"{os.path.dirname(place)}/") for fault in each]
    lacking = [fault for fault in faults if fault.rule == "unknown_name" and fault.file.startswith(packaged)]
    return list(dict.fromkeys(str(fault.fields["name"]) for fault in lacking if fault.fields["kind"] == "error"))


def _sources(found: Schemas, place: str) -> Iterator[str]:
    """Yield the places of the files that the meaning of the file at ``place`` depends on."""
    yield from (*_TABLES, "/".join([*place.split("/")[:2], "errors"]))
    yield from (at for at in found.documents if documents.kind(at) == "revision")


def warnings(found: Schemas) -> Iterator[Problem]:
    """Return what can be served but is most likely a mistake."""
    for doc in found.documents.values():
        for key in ("input", "output"):
            yield from _required(doc, (key,), doc.mapping().get(key))


def _required(doc: Document, path: Path, schema: object) -> Iterator[Problem]:
    """Names in `required` that `properties` does not describe."""
    for inside, each in _objects(schema, path):
        properties, required = each.get("properties"), each.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list) or inside[-1:] == ("properties",):
            continue
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in properties:
                hint = metaschema.near(name, properties)
                yield doc.problem("unknown_required", (*inside, "required", index), name=name, **hint)


def _capability(found: Schemas, place: str, doc: Document) -> Iterator[Problem]:
    """A file whose capability its server does not declare: no client can use it.

    Null for a capability is a decision of the server's author against all that needs it.
    """
    kind = str(documents.kind(place))
    server = "/".join([*place.split("/")[:2], "server"])
    if kind not in CAPABILITIES or place in found.inherited or server not in found.documents:
        return
    declared = found.documents[server].mapping().get("capabilities")
    layers = [_map(layer, "capabilities") for layer in found.layers.get(server, ())]
    capability = CAPABILITIES[kind]
    removed = any(layer.get(capability, ...) is None for layer in layers)
    if isinstance(declared, dict) and capability not in declared and not removed:
        fields = {"capability": capability, "server": documents.name(server), "kind": kind, "file": f"{server}.yaml"}
        yield doc.problem("capability_not_declared", (), **fields)


# Kind of file → the capability without which the engine serves none of its methods.
CAPABILITIES = {"prompt": "prompts", "resource": "resources", "service": "tools", "tool": "tools"}


def check_one(found: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    """Every problem of ``doc``, which stands at ``place`` among the documents of ``found``."""
    known = _known(found, place, doc, names)
    yield from _shape(found, place, doc, known) or _meaning(found, place, doc, known)


def _shape(found: Schemas, place: str, doc: Document, known: Names) -> list[Problem]:
    """Check ``doc`` against the meta-schema of its kind."""
    schema = os.path.join(paths.SCHEMAS, "meta", f"{documents.kind(place)}.yaml")
    return _replaced(found, place, doc, [_failed(problem, known) for problem in metaschema.check(doc, schema, known)])


def _meaning(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    """Check what no meta-schema can say; the shape of ``doc`` and of its sources has to be right."""
    return _MEANING[str(documents.kind(place))](found, place, doc, known)


def _known(found: Schemas, place: str, doc: Document, names: Names) -> Names:
    """Return the names that ``doc`` may refer to: what its server's providers offer, and what documents offer."""
    offered = found.offered.get(place.split("/")[1] if "/" in place else "", names)
    return {**offered, **_names(found, place, doc)}


def _failed(problem: Problem, known: Names) -> Problem:
    """Return ``problem``, or the reason why an operation is unknown: its provider cannot be imported."""
    provider = str(problem.fields.get("name", "")).partition(".")[0]
    failure = known.get(f"failure of {provider}")
    if failure is None or problem.fields.get("kind") != "operation":
        return problem
    fields = {"name": provider, "reason": ", ".join(failure)}
    return Problem("provider_failed", problem.file, problem.line, problem.column, **fields)


def _replaced(found: Schemas, place: str, doc: Document, problems: list[Problem]) -> list[Problem]:
    """Return ``problems``, with one for all missing keys of a file that replaces another: it lacks `extends`."""
    lacking = [str(p.fields["key"]) for p in problems if p.rule == "missing_key" and p.fields["place"] == "the file"]
    if not lacking or place not in found.replaced:
        return problems
    fields = {"keys": ", ".join(lacking), "other": found.replaced[place]}
    others = [p for p in problems if p.rule != "missing_key" or p.fields["place"] != "the file"]
    return [Problem("missing_keys", doc.file, **fields), *others]


def _names(found: Schemas, place: str, doc: Document) -> Names:
    """Return what the documents offer to each other, by the kind that `refersTo` names."""
    tables = [
        found.documents[at] for at in ("errors", f"{'/'.join(place.split('/')[:2])}/errors") if at in found.documents
    ]
    states, objects = doc.mapping().get("states"), doc.mapping().get("objects")
    revisions = [found.documents[at] for at in found.documents if documents.kind(at) == "revision"]
    methods = [(name, m) for each in revisions for name, m in _map(each, "methods").items() if isinstance(m, dict)]
    sent = [(name, method) for name, method in methods if method.get("from") != "client"]
    listed = [_map(each, "logging").get("levels") for each in revisions]
    levels = [level for each in listed if isinstance(each, list) for level in each if isinstance(level, str)]
    return {
        "error": sorted({error for table in [*tables, *revisions] for error in _map(table, "errors")}),
        "lifecycle": [documents.name(at) for at in found.documents if documents.kind(at) == "lifecycle"],
        "log level": list(dict.fromkeys(levels)),
        "method to the client": sorted({name for name, m in sent if m.get("kind") == "request" and "handler" not in m}),
        "notification to the client": sorted({name for name, m in sent if m.get("kind") == "notification"}),
        "object": list(objects) if isinstance(objects, dict) else [],
        "revision": [documents.name(at) for at in found.documents if documents.kind(at) == "revision"],
        "state": list(states) if isinstance(states, dict) else [],
    }


def _revision(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "revision")
    yield from _errors(found, place, doc, known)
    yield from _json_schema(doc, ("meta",), doc.mapping()["meta"])
    logging = _map(doc, "logging")
    if logging["unset"] not in logging["levels"]:
        hint = metaschema.near(logging["unset"], logging["levels"])
        yield doc.problem("unknown_name", ("logging", "unset"), kind="log level", name=logging["unset"], **hint)
    for name, shape in _map(doc, "objects").items():
        for kind, text in shape.get("otherwise", {}).items():
            yield from _braces(doc, ("objects", name, "otherwise", kind), text)
    for name, method in _map(doc, "methods").items():
        yield from _json_schema(doc, ("methods", name, "params"), method.get("params", {}))
        yield from _json_schema(doc, ("methods", name, "result"), method.get("result", {}))
        yield from _bindings(found, place, doc, ("methods", name, "violations"), known)


def _lifecycle(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "name")
    states = _map(doc, "states")
    led_to = {doc.mapping()["start"], "shutdown", *_map(doc, "events").values()}  # whatever ends may lead to shutdown
    for state in states.values():
        led_to.update(state.get("accepts", {}).values())
    for name, state in states.items():
        if name not in led_to:
            yield doc.key_problem("unreachable_state", ("states", name), state=name)
        if "otherwise" not in state and "*" not in state.get("accepts", {}):
            yield doc.key_problem("state_without_otherwise", ("states", name), state=name)


def _errors(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _contract(found, place, doc)
    for name, error in _map(doc, "errors").items():
        fields = error.get("fields", [])
        yield from _template(doc, ("errors", name, "message"), error["message"], fields)
        yield from _data(doc, ("errors", name, "data"), error.get("data", []), fields)
        if place != "errors" and documents.kind(place) == "errors" and "keyword" not in error:
            yield from _unused(found, doc, name, error, known)
        if "keyword" in error:
            yield from _fields(doc, ("errors", name, "fields"), fields, known.get("violation field", fields))


def _log(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _contract(found, place, doc)
    yield from _lines(doc, "lines")


def _server(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "name")
    yield from _lines(doc, "log")
    facts = [fact for name in _map(doc, "providers") for fact in known.get(f"facts of {name}", ())]
    starting = _map(doc, "log")["starting"]
    yield from _fields(doc, ("log", "starting", "fields"), starting.get("fields", []), facts)
    for name in _map(doc, "providers"):
        yield from _settings(doc, name, known)


def _settings(doc: Document, provider: str, known: Names) -> Iterator[Problem]:
    """Check the settings of a provider. Its class is no setting."""
    at = ("providers", provider)
    if failure := known.get(f"failure of {provider}"):
        yield doc.key_problem("provider_failed", at, name=provider, reason=", ".join(failure))
        return
    settings = doc.part(("providers",)).under("providers")
    value = {key: each for key, each in _map(doc, "providers")[provider].items() if key != classes.KEY}
    settings.value = {"providers": {provider: value}}
    if (schema := metaschema.settings(provider, known)) is not None:
        yield from metaschema.check(settings, schema, at=at)
        return
    for key in value:
        yield doc.key_problem("no_settings", (*at, key), key=key, name=provider)


def _service(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "id")
    prefix = f"{documents.name(place)}_"
    tools: Any = doc.mapping()["tools"]
    for index, tool in enumerate(tools):
        if not tool["name"].startswith(prefix):
            yield doc.problem("foreign_prefix", ("tools", index, "name"), name=tool["name"], prefix=prefix)


def _tool(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "name")
    tool = doc.mapping()
    yield from _json_schema(doc, ("input",), tool["input"])
    yield from _json_schema(doc, ("output",), tool.get("output", {}))
    arguments = list(answers.properties(tool["input"]))
    for key in _map(doc, "coerce"):
        if key not in arguments:
            yield doc.key_problem(
                "unknown_name", ("coerce", key), kind="argument", name=key, **metaschema.near(key, arguments)
            )
    yield from _bindings(found, place, doc, ("errors",), known)
    yield from _marks(found, doc)
    yield from answers.check(doc)
    yield from _same_but_case(doc, ("input", "properties"), arguments)
    log = _map(doc, "log")
    facts = ["tool", *known.get(f"facts of {tool['provider']}", ())]
    yield from _fields(doc, ("log", "fields"), log.get("fields", []), facts)
    yield from _template(doc, ("log", "message"), log["message"], log.get("fields", []))


def _marks(found: Schemas, doc: Document) -> Iterator[Problem]:
    """What is also sent as a header (Streamable HTTP, Custom Headers from Tool Parameters); clients drop a tool that
    marks anything else."""
    rules = [_map(found.documents[at], "http") for at in found.documents if documents.kind(at) == "revision"]
    names: set[str] = set()
    for mark in {each["marked"] for each in rules if "marked" in each}:
        for path, schema in _objects(doc.mapping()["input"], ()):
            if mark not in schema or path[-1:] == ("properties",):
                continue
            name, here = schema[mark], ("input", *path, mark)
            reached = len(path) % 2 == 0 and all(step == "properties" for step in path[::2])
            if not path or not reached or schema.get("type") not in ("string", "integer", "boolean"):
                yield doc.key_problem("misplaced_header", here, name=str(name))
            elif not isinstance(name, str) or not _TOKEN.fullmatch(name):
                yield doc.problem("bad_header", here, name=str(name))
            elif name.lower() in names:
                yield doc.problem("same_header", here, name=name)
            else:
                names.add(name.lower())


def _objects(value: object, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every object in ``value``, with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _objects(inner, (*path, key))


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110


def _prompt(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "name")
    arguments = _map(doc, "arguments")
    yield from _described(doc)
    yield from answers.check(doc)
    yield from _same_but_case(doc, ("arguments",), arguments)
    for name, argument in arguments.items():
        yield from _completion(doc, ("arguments", name, "complete"), argument.get("complete"), arguments)


def _resource(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from _named(doc, place, "name")
    yield from _described(doc)
    uri = str(doc.mapping().get("uriTemplate", ""))
    yield from _braces(doc, ("uriTemplate",), uri)
    variables = [part.partition("}")[0] for part in uri.split("{")[1:]]
    for name, listed in _map(doc, "complete").items():
        if name not in variables:
            hint = metaschema.near(name, variables)
            yield doc.key_problem("unknown_name", ("complete", name), kind="variable", name=name, **hint)
        yield from _completion(doc, ("complete", name), listed, variables)


def _completion(doc: Document, path: Path, listed: object, others: Collection[str]) -> Iterator[Problem]:
    """Values by another argument, which has to be there."""
    if isinstance(listed, dict) and listed["by"] not in others:
        hint = metaschema.near(listed["by"], others)
        yield doc.problem("unknown_name", (*path, "by"), kind="argument", name=listed["by"], **hint)


def _limits(found: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    yield from ()  # the meta-schema says it all


# General tables, and the key under which each has its entries.
_TABLES = {"errors": "errors", "log": "lines"}
_MEANING: dict[str, Callable[[Schemas, str, Document, Names], Iterator[Problem]]] = {
    "errors": _errors,
    "lifecycle": _lifecycle,
    "limits": _limits,
    "log": _log,
    "prompt": _prompt,
    "resource": _resource,
    "revision": _revision,
    "server": _server,
    "service": _service,
    "tool": _tool,
}


def _named(doc: Document, place: str, key: str) -> Iterator[Problem]:
    found, expected = doc.mapping()[key], documents.name(place)
    if found == expected or (documents.kind(place) == "server" and str(found).lower() == expected):
        return
    problem = doc.problem("name_differs", (key,), key=key, found=found, expected=expected)
    # What has only been inherited is not wrong where it stands.
    yield problem if problem.file == doc.file else Problem("name_differs", doc.file, **problem.fields)


def _described(doc: Document) -> Iterator[Problem]:
    if "description" not in doc.mapping():
        yield doc.problem("no_description", ("name",), name=doc.mapping()["name"])


def _cases(found: Schemas) -> Iterator[Problem]:
    """Files of one place but for case. The one at fault is the one that is not packaged, else the later."""
    seen: dict[str, str] = {}
    for place in sorted(found.documents):
        other = seen.setdefault(place.lower(), place)
        if other != place:
            packaged = os.path.exists(os.path.join(paths.SCHEMAS, f"{place}.yaml"))
            mine, theirs = (other, place) if packaged else (place, other)
            doc = found.documents[mine]
            yield doc.problem("only_case", ("name",), name=documents.name(mine), other=documents.name(theirs))


def _same_but_case(doc: Document, path: Path, names: Collection[str]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            yield doc.key_problem("only_case", (*path, name), name=name, other=other)


def _unused(found: Schemas, doc: Document, name: str, error: dict[str, Any], known: Names) -> Iterator[Problem]:
    """Fields that nobody is told. Those of the general table and of violations are the contract of the code."""
    try:
        data = error.get("data", [])
        sent = data if isinstance(data, list) else template.named(data)
        said = {*template.holes(error["message"]), *sent, *known.get("violation field", ())}
    except ValueError:
        return
    for index, field in enumerate(error.get("fields", [])):
        if field not in said and name not in _map(found.packaged("errors"), "errors"):
            yield doc.problem("unused_field", ("errors", name, "fields", index), name=field)


def _lines(doc: Document, key: str) -> Iterator[Problem]:
    for name, line in _map(doc, key).items():
        yield from _template(doc, (key, name, "message"), line["message"], line.get("fields", []))


def _braces(doc: Document, path: Path, text: str) -> Iterator[Problem]:
    try:
        template.holes(text)
    except ValueError as error:
        yield doc.problem("bad_brace", path, text=str(error))


def _template(doc: Document, path: Path, text: str, fields: Collection[str]) -> Iterator[Problem]:
    try:
        names = template.holes(text)
    except ValueError as error:
        yield doc.problem("bad_brace", path, text=str(error))
        return
    for name in names:
        if name not in fields:
            yield doc.problem("unknown_field", path, name=name, **metaschema.near(name, fields))


def _data(doc: Document, path: Path, data: Any, offered: Collection[str]) -> Iterator[Problem]:
    """The fields that are sent, by name or inside a tree."""
    if isinstance(data, list):
        yield from _fields(doc, path, data, offered)
        return
    for inner, part in data.items():
        try:
            names = template.named(part)
        except ValueError as error:
            yield doc.problem("bad_brace", (*path, inner), text=str(error))
            continue
        for name in names:
            if name not in offered:
                yield doc.problem("unknown_field", (*path, inner), name=name, **metaschema.near(name, offered))


def _fields(doc: Document, path: Path, names: list[str], offered: Collection[str]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in offered:
            yield doc.problem("unknown_field", (*path, index), name=name, **metaschema.near(name, offered))


def _complete(found: Schemas, place: str) -> Iterator[Problem]:
    """A general table has the ids of the packaged one: the code relies on them."""
    key = _TABLES.get(place)
    doc = found.documents[place]
    if key is None or not isinstance(doc.mapping().get(key, {}), dict):  # the meta-schema reports what is no map
        return
    lost = [name for name in _map(found.packaged(place), key) if name not in _map(doc, key)]
    yield from _missing_entries(found, place, key, lost)


def _missing_entries(found: Schemas, place: str, key: str, lost: list[str]) -> Iterator[Problem]:
    """Report the needed entries that the table at ``place`` removes, and those that it lost by replacing another."""
    layers = found.layers.get(place, ())
    removed = {name: layer for layer in layers for name in lost if _map(layer, key).get(name, ...) is None}
    for name, layer in removed.items():
        yield layer.key_problem("needed_entry", (key, name), name=name)
    rest = [name for name in lost if name not in removed]
    if rest and place in found.replaced:
        fields = {"other": found.replaced[place], "count": len(rest), "name": rest[0]}
        yield found.documents[place].key_problem("lost_names", (key,), **fields)


def _contract(found: Schemas, place: str, doc: Document) -> Iterator[Problem]:
    """Each entry of a general table has the fields of the packaged one, likewise."""
    key = _TABLES.get(place)
    for name, packaged in _map(found.packaged(place), key).items() if key else ():
        entry = _map(doc, str(key))[name]
        if entry.get("fields", []) != packaged.get("fields", []):
            expected, fields = (", ".join(e.get("fields", [])) or "no fields" for e in (packaged, entry))
            yield doc.problem("changed_fields", (str(key), name, "fields"), name=name, expected=expected, found=fields)


def _bindings(found: Schemas, place: str, doc: Document, path: Path, known: Names) -> Iterator[Problem]:
    """PATH.KEYWORD → error id: the error has to be one that tells a violation, on this surface."""
    surface = "tool" if documents.kind(place) == "tool" else "params"
    server = found.documents.get("/".join([*place.split("/")[:2], "errors"]))
    errors = _map(server or found.documents["errors"], "errors")
    bound: Any = doc.value
    for part in path:
        bound = bound.get(part, {})
    for key, name in bound.items():
        if errors[name]["surface"] != surface:
            fields = {"found": errors[name]["surface"], "expected": surface}
            yield doc.problem("wrong_surface", (*path, key), name=name, **fields)
        fields_ = errors[name].get("fields", [])
        yield from _fields(doc, (*path, key), fields_, known.get("violation field", fields_))


def _json_schema(doc: Document, path: Path, schema: object) -> Iterator[Problem]:
    for inside, key, rule, fields in _faults(json.dumps(schema)):
        if rule == "not_one_of":
            place = template.cut(".".join(map(str, (*path, *inside))))
            yield doc.problem(rule, (*path, *inside), place=place, **fields)
        else:
            yield (doc.key_problem if key else doc.problem)(rule, (*path, *inside), **fields)


@cache
def _faults(text: str) -> list[jsonschemas.Fault]:
    """Return the faults of the JSON Schema in this text. Cached, because revisions share most of their schemas."""
    schema = json.loads(text)
    validator: Any = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    broken = [_breach(error) for error in validator.iter_errors(schema)]
    return broken or [*jsonschemas.faults(schema)]


def _breach(error: Any) -> jsonschemas.Fault:
    """Return the fault for a place where a JSON Schema breaks the meta-schema."""
    choices = _choices(error)
    if choices and isinstance(error.instance, str):
        fields = {"value": error.instance, **metaschema.near(error.instance, choices)}
        return tuple(error.absolute_path), False, "not_one_of", fields
    return tuple(error.absolute_path), False, "bad_json_schema", {"reason": error.message}


def _choices(error: Any) -> list[str]:
    """Return the values that an ``enum`` in ``error``, or in one of its alternatives, permits in this place."""
    for each in (error, *(error.context or ())):
        if each.validator == "enum" and not each.relative_path:
            return [str(value) for value in each.validator_value]
    return []


def _map(doc: Document, key: str) -> dict[str, Any]:
    value = doc.mapping().get(key, {})
    return value if isinstance(value, dict) else {}

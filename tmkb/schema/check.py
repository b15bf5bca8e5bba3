"""Check resolved documents: their shape (meta-schemas), the names they refer to, and rules no schema can express."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tmkb.errors import Problem
from tmkb.schema import answers, classes, documents, jsonschemas, messages, metaschema, paths, reader, template
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document, Path

# Kind of file → the capability that the engine requires to serve its methods.
CAPABILITIES = {"prompt": "prompts", "resource": "resources", "service": "tools", "tool": "tools"}
_HEADER_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110


def check(schemas: Schemas, names: Names) -> Iterator[Problem]:
    """Yield every problem of the documents of ``schemas``.

    A document gets no further checks if its shape, or that of a document it depends on, is wrong. ``names``: the names
    that the code offers, by kind.
    """
    incomplete = [problem for place in schemas.documents for problem in messages.missing(schemas, place)]
    if incomplete:  # every reference to a missing entry would be a further problem
        yield from incomplete
        return
    known = {place: _known(schemas, place, doc, names) for place, doc in schemas.documents.items()}
    shapes = {place: _shape(schemas, place, doc, known[place]) for place, doc in schemas.documents.items()}
    broken = {place for place, problems in shapes.items() if any(each.rule != "unknown_name" for each in problems)}
    for place, doc in schemas.documents.items():
        yield from shapes[place]
        if not shapes[place] and broken.isdisjoint(_sources(schemas, place)):
            yield from _content(schemas, place, doc, known[place])
        yield from _capability(schemas, place, doc)
        if documents.kind(place) == "errors":
            yield from messages.missing_entries(schemas, place, "errors", _missing_errors(shapes, place))
    yield from _spelling(schemas)


def warnings(schemas: Schemas) -> Iterator[Problem]:
    """Yield problems that do not prevent serving but are most likely mistakes."""
    for doc in schemas.documents.values():
        for key in ("input", "output"):
            yield from _required(doc, (key,), doc.mapping().get(key))
            for path, nearest in jsonschemas.unknown_keywords(doc.mapping().get(key)):
                yield doc.key_problem("unknown_keyword", (key, *path), key=str(path[-1]), nearest=nearest)


def check_one(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    """Yield every problem of ``doc``, the document at ``place`` in ``schemas``."""
    known = _known(schemas, place, doc, names)
    yield from _shape(schemas, place, doc, known) or _content(schemas, place, doc, known)


def _shape(schemas: Schemas, place: str, doc: Document, known: Names) -> list[Problem]:
    """Return every violation of the meta-schema of the kind of ``doc``."""
    kind, expected = doc.mapping().get("kind"), documents.kind(place)
    if kind != expected and kind in documents.PLACES.values():
        form = next(form for form, other in documents.PLACES.items() if other == kind)
        fields = {"kind": kind, "expected": expected, "path": f"{form.replace('*', 'NAME')}.yaml"}
        return [doc.problem("kind_elsewhere", ("kind",), **fields)]
    schema = os.path.join(paths.SCHEMAS, "meta", f"{expected}.yaml")
    problems = [_import_failure(problem, known) for problem in metaschema.check(doc, schema, known)]
    return _without_extends(schemas, place, doc, problems)


def _content(schemas: Schemas, place: str, doc: Document, known: Names) -> Iterator[Problem]:
    """Check the rules that no meta-schema can express. The shapes of ``doc`` and its sources are right."""
    kind = str(documents.kind(place))
    if kind in _CHECKS:
        yield from _CHECKS[kind](schemas, place, doc, known)


def _known(schemas: Schemas, place: str, doc: Document, names: Names) -> Names:
    """Return the names that ``doc`` may refer to: those of the providers of its server, and those of documents."""
    offered = schemas.offered.get(place.split("/")[1] if "/" in place else "", names)
    return {**offered, **_names(schemas, place, doc)}


def _sources(schemas: Schemas, place: str) -> Iterator[str]:
    """Yield the places of the documents that `_content` reads for the document at ``place``."""
    yield from (*messages.TABLES, "/".join([*place.split("/")[:2], "errors"]))
    yield from (at for at in schemas.documents if documents.kind(at) == "revision")


def _missing_errors(shapes: Mapping[str, list[Problem]], place: str) -> list[str]:
    """Return the errors that packaged files of a server name but its table at ``place`` lacks."""
    packaged = os.path.join(paths.shown(paths.SCHEMAS), "")
    problems = [each for at, found in shapes.items() if at.startswith(f"{os.path.dirname(place)}/") for each in found]
    unknown = [each for each in problems if each.rule == "unknown_name" and each.file.startswith(packaged)]
    return list(dict.fromkeys(str(each.fields["name"]) for each in unknown if each.fields["kind"] == "error"))


def _import_failure(problem: Problem, names: Names) -> Problem:
    """Return ``problem``; for an operation whose provider cannot be imported, a problem with the reason."""
    provider = str(problem.fields.get("name", "")).partition(".")[0]
    failure = names.get(f"failure of {provider}")
    if failure is None or problem.fields.get("kind") != "operation":
        return problem
    fields = {"name": provider, "reason": ", ".join(failure)}
    return Problem("provider_failed", problem.file, problem.line, problem.column, **fields)


def _required(doc: Document, path: Path, schema: object) -> Iterator[Problem]:
    """Yield the names in `required` that `properties` does not describe."""
    for inside, each in _objects(schema, path):
        properties, required = each.get("properties"), each.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list) or inside[-1:] == ("properties",):
            continue
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in properties:
                hint = metaschema.near(name, properties)
                yield doc.problem("unknown_required", (*inside, "required", index), name=name, **hint)


def _capability(schemas: Schemas, place: str, doc: Document) -> Iterator[Problem]:
    """Yield a problem for a file whose capability its server does not declare: no client can use it.

    A server that sets the capability to null removes it on purpose.
    """
    kind = str(documents.kind(place))
    server = "/".join([*place.split("/")[:2], "server"])
    if kind not in CAPABILITIES or place in schemas.inherited or server not in schemas.documents:
        return
    declared = schemas.documents[server].mapping().get("capabilities")
    layers = [layer.section("capabilities") for layer in schemas.layers.get(server, ())]
    capability = CAPABILITIES[kind]
    removed = any(layer.get(capability, ...) is None for layer in layers)
    if isinstance(declared, dict) and capability not in declared and not removed:
        fields = {"capability": capability, "server": documents.name(server), "kind": kind, "file": f"{server}.yaml"}
        yield doc.problem("capability_not_declared", (), **fields)


def _without_extends(schemas: Schemas, place: str, doc: Document, problems: list[Problem]) -> list[Problem]:
    """Return ``problems``; for a file that replaces another, all missing keys become one: it lacks `extends`."""
    missing = [str(p.fields["key"]) for p in problems if p.rule == "missing_key" and p.fields["place"] == "the file"]
    if not missing or place not in schemas.replaced:
        return problems
    fields = {"keys": ", ".join(missing), "other": schemas.replaced[place]}
    others = [p for p in problems if p.rule != "missing_key" or p.fields["place"] != "the file"]
    return [Problem("missing_keys", doc.file, **fields), *others]


def _names(schemas: Schemas, place: str, doc: Document) -> Names:
    """Return the names that documents offer to each other, by the kind in `refersTo`."""
    docs = schemas.documents
    tables = [docs[at] for at in ("errors", f"{'/'.join(place.split('/')[:2])}/errors") if at in docs]
    states, objects = doc.mapping().get("states"), doc.mapping().get("objects")
    revisions = [docs[at] for at in docs if documents.kind(at) == "revision"]
    methods = [(name, m) for each in revisions for name, m in each.section("methods").items() if isinstance(m, dict)]
    outgoing = [(name, m) for name, m in methods if m.get("from") != "client"]
    lists = [each.section("logging").get("levels") for each in revisions]
    levels = [level for each in lists if isinstance(each, list) for level in each if isinstance(level, str)]
    requests = {name for name, m in outgoing if m.get("kind") == "request" and "handler" not in m}
    return {
        "error": sorted({error for table in [*tables, *revisions] for error in table.section("errors")}),
        "lifecycle": [documents.name(at) for at in docs if documents.kind(at) == "lifecycle"],
        "log level": list(dict.fromkeys(levels)),
        "method to the client": sorted(requests),
        "notification to the client": sorted({name for name, m in outgoing if m.get("kind") == "notification"}),
        "object": list(objects) if isinstance(objects, dict) else [],
        "revision": sorted({documents.name(at) for at in docs if documents.kind(at) == "revision"}),
        "state": list(states) if isinstance(states, dict) else [],
    }


def _revision(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "revision")
    yield from messages.check_errors(schemas, place, doc, names)
    yield from jsonschemas.check(doc, ("meta",), doc.mapping()["meta"])
    logging = doc.section("logging")
    if logging["unset"] not in logging["levels"]:
        hint = metaschema.near(logging["unset"], logging["levels"])
        yield doc.problem("unknown_name", ("logging", "unset"), kind="log level", name=logging["unset"], **hint)
    for name, shape in doc.section("objects").items():
        for kind, text in shape.get("otherwise", {}).items():
            yield from messages.check_template(doc, ("objects", name, "otherwise", kind), text)
    for name, method in doc.section("methods").items():
        yield from jsonschemas.check(doc, ("methods", name, "params"), method.get("params", {}))
        yield from jsonschemas.check(doc, ("methods", name, "result"), method.get("result", {}))
        yield from _violations(schemas, place, doc, ("methods", name, "violations"), names)


def _lifecycle(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "name")
    states = doc.section("states")
    reachable = {doc.mapping()["start"], "shutdown", *doc.section("events").values()}
    for state in states.values():
        reachable.update(state.get("accepts", {}).values())
    for name, state in states.items():
        if name not in reachable:
            yield doc.key_problem("unreachable_state", ("states", name), state=name)
        if "otherwise" not in state and "*" not in state.get("accepts", {}):
            yield doc.key_problem("state_without_otherwise", ("states", name), state=name)


def _server(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "name")
    yield from messages.check_lines(doc, "log")
    lines = doc.section("log")
    removed = [name for name in schemas.packaged("log").section("lines") if name not in lines]
    yield from messages.missing_entries(schemas, place, "log", removed)
    facts = [fact for name in doc.section("providers") for fact in names.get(f"facts of {name}", ())]
    fields = lines.get("starting", {}).get("fields", [])
    yield from messages.check_fields(doc, ("log", "starting", "fields"), fields, facts)
    for name in doc.section("providers"):
        yield from _settings(doc, name, names)


def _settings(doc: Document, provider: str, names: Names) -> Iterator[Problem]:
    """Check the settings of a provider. The key of its class is not a setting."""
    at = ("providers", provider)
    if failure := names.get(f"failure of {provider}"):
        yield doc.key_problem("provider_failed", at, name=provider, reason=", ".join(failure))
        return
    settings = doc.part(("providers",)).under("providers")
    value = {key: each for key, each in doc.section("providers")[provider].items() if key != classes.KEY}
    settings.value = {"providers": {provider: value}}
    if (schema := metaschema.settings(provider, names)) is not None:
        yield from metaschema.check(settings, schema, at=at)
        return
    for key in value:
        yield doc.key_problem("no_settings", (*at, key), key=key, name=provider)


def _service(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "id")
    prefix = f"{documents.name(place)}_"
    tools: Any = doc.mapping()["tools"]
    for index, tool in enumerate(tools):
        if not tool["name"].startswith(prefix):
            yield doc.problem("foreign_prefix", ("tools", index, "name"), name=tool["name"], prefix=prefix)


def _tool(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "name")
    tool = doc.mapping()
    yield from jsonschemas.check(doc, ("input",), tool["input"])
    yield from jsonschemas.check(doc, ("output",), tool.get("output", {}))
    arguments = list(answers.properties(tool["input"]))
    for key in doc.section("coerce"):
        if key not in arguments:
            hint = metaschema.near(key, arguments)
            yield doc.key_problem("unknown_name", ("coerce", key), kind="argument", name=key, **hint)
    yield from _violations(schemas, place, doc, ("errors",), names)
    yield from _headers(schemas, doc)
    yield from answers.check(doc, arguments)
    yield from _argument_spelling(doc, ("input", "properties"), arguments)
    log = doc.section("log")
    facts = ["tool", *names.get(f"facts of {tool['provider']}", ())]
    yield from messages.check_fields(doc, ("log", "fields"), log.get("fields", []), facts)
    yield from messages.check_template(doc, ("log", "message"), log["message"], log.get("fields", []))


def _headers(schemas: Schemas, doc: Document) -> Iterator[Problem]:
    """Check the arguments that are also sent as headers (Streamable HTTP, Custom Headers from Tool Parameters).

    Clients drop a tool with any other mark.
    """
    docs = schemas.documents
    rules = [docs[at].section("http") for at in docs if documents.kind(at) == "revision"]
    names: set[str] = set()
    for mark in {each["marked"] for each in rules if "marked" in each}:
        for path, schema in _objects(doc.mapping()["input"], ()):
            if mark not in schema or path[-1:] == ("properties",):
                continue
            name, here = schema[mark], ("input", *path, mark)
            only_properties = len(path) % 2 == 0 and all(step == "properties" for step in path[::2])
            if not path or not only_properties or schema.get("type") not in ("string", "integer", "boolean"):
                yield doc.key_problem("misplaced_header", here, name=str(name))
            elif not isinstance(name, str) or not _HEADER_TOKEN.fullmatch(name):
                yield doc.problem("bad_header", here, name=str(name))
            elif name.lower() in names:
                yield doc.problem("same_header", here, name=name)
            else:
                names.add(name.lower())


def _objects(value: object, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every object in ``value`` with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in reader.entries(value):
        yield from _objects(inner, (*path, key))


def _prompt(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "name")
    arguments = doc.section("arguments")
    yield from _description(doc)
    yield from answers.check(doc, arguments)
    yield from _argument_spelling(doc, ("arguments",), arguments)
    for name, argument in arguments.items():
        yield from _completion(doc, ("arguments", name, "complete"), argument.get("complete"), arguments)


def _resource(schemas: Schemas, place: str, doc: Document, names: Names) -> Iterator[Problem]:
    yield from _file_name(doc, place, "name")
    yield from _description(doc)
    uri = str(doc.mapping().get("uriTemplate", ""))
    yield from messages.check_template(doc, ("uriTemplate",), uri)
    variables = template.find_names(uri)
    yield from answers.check(doc, variables)
    for name, completion in doc.section("complete").items():
        if name not in variables:
            hint = metaschema.near(name, variables)
            yield doc.key_problem("unknown_name", ("complete", name), kind="variable", name=name, **hint)
        yield from _completion(doc, ("complete", name), completion, variables)


def _completion(doc: Document, path: Path, completion: object, arguments: Collection[str]) -> Iterator[Problem]:
    """Check that the argument in `by` exists."""
    if isinstance(completion, dict) and completion["by"] not in arguments:
        hint = metaschema.near(completion["by"], arguments)
        yield doc.problem("unknown_name", (*path, "by"), kind="argument", name=completion["by"], **hint)


_CHECKS: dict[str, Callable[[Schemas, str, Document, Names], Iterator[Problem]]] = {
    "errors": messages.check_errors,
    "lifecycle": _lifecycle,
    "log": messages.check_log,
    "prompt": _prompt,
    "resource": _resource,
    "revision": _revision,
    "server": _server,
    "service": _service,
    "tool": _tool,
}


def _file_name(doc: Document, place: str, key: str) -> Iterator[Problem]:
    """Check that the value of ``key`` is the name of the file."""
    actual, expected = doc.mapping()[key], documents.name(place)
    if actual == expected or (documents.kind(place) == "server" and str(actual).lower() == expected):
        return
    problem = doc.problem("name_differs", (key,), key=key, actual=actual, expected=expected)
    # An inherited name is correct in the file it comes from; the problem is in the file that inherits it.
    yield problem if problem.file == doc.file else Problem("name_differs", doc.file, **problem.fields)


def _description(doc: Document) -> Iterator[Problem]:
    if "description" not in doc.mapping():
        yield doc.problem("no_description", ("name",), name=doc.mapping()["name"])


def _spelling(schemas: Schemas) -> Iterator[Problem]:
    """Yield places that differ only by case. The problem is in the file that is not packaged, else in the later."""
    spellings: dict[str, str] = {}
    for place in sorted(schemas.documents):
        other = spellings.setdefault(place.lower(), place)
        if other != place:
            packaged = os.path.exists(os.path.join(paths.SCHEMAS, f"{place}.yaml"))
            wrong, right = (other, place) if packaged else (place, other)
            doc = schemas.documents[wrong]
            yield doc.problem("only_case", ("name",), name=documents.name(wrong), other=documents.name(right))


def _argument_spelling(doc: Document, path: Path, names: Collection[str]) -> Iterator[Problem]:
    spellings: dict[str, str] = {}
    for name in names:
        if (other := spellings.setdefault(name.lower(), name)) != name:
            yield doc.key_problem("only_case", (*path, name), name=name, other=other)


def _violations(schemas: Schemas, place: str, doc: Document, path: Path, names: Names) -> Iterator[Problem]:
    """Check a map of PATH.KEYWORD → error id: each error reports a violation, on the surface of this file."""
    surface = "tool" if documents.kind(place) == "tool" else "params"
    server = schemas.documents.get("/".join([*place.split("/")[:2], "errors"]))
    errors = (server or schemas.documents["errors"]).section("errors")
    bindings: Any = doc.value
    for part in path:
        bindings = bindings.get(part, {})
    for key, name in bindings.items():
        if errors[name]["surface"] != surface:
            fields = {"actual": errors[name]["surface"], "expected": surface}
            yield doc.problem("wrong_surface", (*path, key), name=name, **fields)
        required = errors[name].get("fields", [])
        yield from messages.check_fields(doc, (*path, key), required, names.get("violation field", required))

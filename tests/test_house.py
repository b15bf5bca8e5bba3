"""The rules of the house that a test can hold."""

import glob
import os
import re
import sys

import pytest

import tmkb
from tests.support.repository import ROOT, source
from tmkb.errors import ProtocolError
from tmkb.protocol import arguments, outbound, requests
from tmkb.providers import registry
from tmkb.schema import documents, export, load, metaschema, paths, problems, reader, template
from tmkb.server import sources

MODULES = sorted(glob.glob(os.path.join(ROOT, "tmkb", "**", "*.py"), recursive=True))


def name(path):
    return os.path.relpath(path, ROOT)


PROTOCOL = re.compile(
    r'"(20\d\d-\d\d-\d\d|(tools|resources|prompts|logging|completion|notifications)/\w+|initialize)"|-32\d{3}'
)


def test_no_literal_of_the_protocol_stands_in_python():
    literals = [(name(path), match.group()) for path in MODULES for match in PROTOCOL.finditer(source(path))]

    assert [each for each in literals if each[1] != '"initialize"'] == []


def test_generic_packages_name_no_server_topic():
    of_tmkb = "threat|tmkb_query|knowledge|cwe|owasp|severity"
    of_sysmcp = "sysmcp|evtx|event log|journald|hive|winreg|hklm"
    words = []
    for path in MODULES:
        if name(path).split(os.sep)[1] in ("protocol", "schema", "transport"):
            code = source(path).lower().replace('"pattern"', "")  # a keyword of JSON Schema
            words += [(name(path), word) for word in re.findall(rf"\b({of_tmkb}|{of_sysmcp})s?\b", code)]

    assert words == []


def test_no_server_is_named_where_all_are_served():
    generic = [p for p in MODULES if name(p).split(os.sep)[1] in ("protocol", "schema", "transport", "providers")]
    named = [(name(p), server) for p in generic for server in documents.servers([]) if f'"{server}"' in source(p)]

    assert named == []


def test_the_server_everything_holds_no_python():
    folder = os.path.join(paths.SCHEMAS, "servers", "everything")

    assert {os.path.splitext(file)[1] for _, _, files in os.walk(folder) for file in files} == {".yaml"}


def test_the_version_has_one_value():
    assert load.load("tmkb", [], sources.names())["server"]["version"] == tmkb.__version__


def test_every_error_that_is_raised_exists_and_every_one_that_exists_is_used():
    schemas = load.read([], sources.names())
    tables = [schemas.error_table(server, "2025-11-25") for server in documents.servers([])]
    table = {id_: error for each in tables for id_, error in each.section("errors").items()}
    raised = {
        match for path in MODULES for match in re.findall(r'(?:ProtocolError|ToolError)\(\s*"(\w+)"', source(path))
    }
    named = {
        match
        for path in glob.glob(os.path.join(paths.SCHEMAS, "**", "*.yaml"), recursive=True)
        for match in re.findall(r": (\w+)", source(path))
    }
    by_keyword = {id_ for id_, error in table.items() if "keyword" in error}
    defaults = {"invalid_params", "tool_failed"}

    assert raised <= set(table)
    assert set(table) - raised - named - by_keyword - defaults == set()


def test_every_problem_that_is_found_has_its_sentence_and_every_sentence_is_used():
    rules = set(problems.rules())
    text = "".join(source(path) for path in MODULES)

    assert {rule for rule in rules if f'"{rule}"' not in text} == set()
    assert set(re.findall(r'(?:problem|Problem|(?<!de)fault)\(\s*"(\w+)"', text)) <= rules


def test_the_code_supplies_the_fields_that_violations_ask_for(spec):
    for error in spec["revisions"]["2025-11-25"]["errors"].values():
        if "keyword" in error:
            assert set(error.get("fields", [])) <= set(arguments.FIELDS)


def test_every_sentence_can_be_filled_from_its_fields(spec):
    for revision in spec["revisions"].values():
        for id_, error in revision["errors"].items():
            fields = {field: f"<{field}>" for field in error.get("fields", [])}
            if error["surface"] == "protocol":
                assert outbound.failure(ProtocolError(id_, **fields), revision["errors"]).sentence
            assert template.fill(error["message"], fields)


def test_a_revision_loses_no_method_unless_it_says_so():
    found = documents.read([])
    for place, layers in found.layers.items():
        parent = layers[0].mapping().get("extends")
        if documents.kind(place) == "revision" and parent:
            removed = {k for k, v in layers[0].mapping().get("methods", {}).items() if v is None}
            before, after = (set(found.documents[p].value["methods"]) for p in (f"protocol/{parent}", place))
            assert before - after == removed


def test_what_schemas_may_name_is_what_the_code_has():
    names = sources.names()

    assert set(names["handler"]) == set(requests.HANDLERS)
    assert set(names["provider"]) == set(registry.installed())


YAML = [
    path
    for folder in (paths.SCHEMAS, paths.PATTERNS, paths.CONFORMANCE, paths.CLIENTS, os.path.join(ROOT, "docs"))
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.yaml"), recursive=True))
]
META = paths.meta_schemas()


def test_every_file_points_editors_to_the_schema_of_its_kind():
    wrong = []
    for path in (path for path in YAML if path not in META.values()):
        text = source(path)
        kind = re.search(r"^kind: (\w+)$", text, re.M)[1]
        first = text.partition("\n")[0]
        target = os.path.normpath(os.path.join(os.path.dirname(path), first.removeprefix(metaschema.POINTER)))
        if target not in (META[kind], os.path.join(export.EDITOR, f"{kind}.json")):
            wrong.append(name(path))

    assert wrong == []


@pytest.mark.parametrize("kind", META)
def test_every_key_of_a_file_is_described(kind):
    assert [*undescribed(reader.read(META[kind]).mapping(), kind, "")] == []


def undescribed(schema, kind, place):
    """The place of each key without a description in ``schema``, which stands in that of ``kind``."""
    for keyword in ("properties", "$defs"):
        for key, inner in schema.get(keyword, {}).items():
            if keyword == "properties" and not has_description(inner, kind):
                yield f"{place}.{key}"
            yield from undescribed(inner, kind, f"{place}.{key}")
    inside = [schema[keyword] for keyword in ("items", "additionalProperties", "else") if keyword in schema]
    for inner in [*inside, *schema.get("anyOf", [])]:
        if isinstance(inner, dict):
            yield from undescribed(inner, kind, f"{place}.*")


def has_description(schema, kind):
    if "description" in schema or "$ref" not in schema:
        return "description" in schema
    file, _, name = schema["$ref"].partition("#/$defs/")
    kind = file.removesuffix(".yaml").removesuffix(".schema") or kind
    return has_description(reader.read(META[kind]).mapping()["$defs"][name], kind)


def test_every_kind_of_file_has_a_meta_schema_and_its_place_among_the_others():
    kinds = [kind for kind, file in META.items() if "kind" in reader.read(file).mapping().get("properties", {})]

    assert {*documents.PLACES.values(), "pattern", "problems"} <= set(kinds)
    assert sorted(reader.read(META["file"]).mapping()["$defs"]["kinds"]["enum"]) == kinds


@pytest.mark.skipif(sys.platform == "win32", reason="paths are compared as POSIX writes them")
def test_no_path_of_a_machine_stands_in_the_tree():
    for path in MODULES:
        assert "/home/" not in source(path) and "/root/" not in source(path)


def test_no_group_is_possessive():
    """Before 3.11.5, Python matches such groups wrongly (https://github.com/python/cpython/issues/106052)."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+")

    assert [name(path) for path in MODULES if possessive.search(source(path))] == []

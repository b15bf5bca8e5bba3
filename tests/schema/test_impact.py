"""Every key of every meta-schema has a valid rule for the client impact of its changes."""

import os

import pytest

from tmkb.schema import documents, impact, paths, reader

META = os.path.join(paths.SCHEMAS, "meta")
FILES = sorted(
    {*(f"{kind}.yaml" for kind in documents.PLACES.values()), "script.yaml"}
    | {os.path.join("providers", name) for name in os.listdir(os.path.join(META, "providers"))}
)
CLASSED = {"added", "removed", "changed", "raised", "lowered", "reworded", "moved"}


def parts(file, schema, covered, path=()):
    """Yield each key with a schema: path, its rule or that of its reference, whether an outer rule applies."""
    rule = rule_of(file, schema)
    covered = covered or isinstance(rule, str) or "schema" in (rule or {})
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name), rule_of(file, inner), covered
        yield from parts(file, inner, covered, (*path, name))
    for key in ("additionalProperties", "items", "then", "else"):
        if isinstance(schema.get(key), dict):
            yield from parts(file, schema[key], covered, (*path, "*"))
    for key in ("anyOf", "oneOf"):
        for branch in schema.get(key, ()):
            yield from parts(file, branch, covered, path)
    for name, inner in schema.get("$defs", {}).items():
        yield from parts(file, inner, False, (*path, name))


def rule_of(file, schema):
    if "noticed" in schema or "$ref" not in schema:
        return schema.get("noticed")
    name, _, pointer = schema["$ref"].partition("#")
    other = read(name or file)
    for step in pointer.split("/")[1:]:
        other = other[step]
    return rule_of(name or file, other)


def read(file):
    return reader.read(os.path.join(META, file)).mapping()


@pytest.mark.parametrize("file", FILES)
def test_every_key_has_an_impact(file):
    missing = [".".join(path) for path, rule, covered in parts(file, read(file), False) if rule is None and not covered]

    assert [path for path in missing if not path.startswith("text_or_value")] == []


@pytest.mark.parametrize("file", FILES)
def test_impact_rules_are_valid(file):
    for rule in filter(None, (rule for _, rule, _ in parts(file, read(file), False))):
        classes = [rule] if isinstance(rule, str) else [v for k, v in rule.items() if k in CLASSED]
        rest = {} if isinstance(rule, str) else {k: v for k, v in rule.items() if k not in CLASSED}
        assert {*classes, *rest.get("to", {}).values()} <= {*impact.IMPACTS}
        assert rest.keys() <= {"to", "schema"}
        assert rest.get("schema", "both") in ("input", "output", "both")


@pytest.mark.parametrize("kind", sorted({*documents.PLACES.values()} - {"errors", "limits", "log"}))
def test_the_default_impact_is_breaking(kind):
    assert impact.of(kind).inside("made_up").impact("~", "a", "b") == "breaking"


def test_the_innermost_rule_applies():
    server = impact.of("server")

    assert server.inside("limits").inside("running").impact("~", 1, 2) == "additive"
    assert server.inside("limits").inside("made_up").impact("+", None, 2) == "breaking"
    assert server.inside("log").inside("starting").inside("message").impact("~", "a", "b") == "unseen"
    assert (
        impact.of("tool").inside("answer").inside("content").inside(0).inside("text").impact("~", "a", "b")
        == "cosmetic"
    )
    assert (
        impact.of("tool").inside("answer").inside("content").inside(0).inside("type").impact("~", "a", "b")
        == "breaking"
    )

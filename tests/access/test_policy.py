"""Access files: how they are read, and which mistakes are reported where."""

import json

import pytest

from tests.support.issuer import NAME, RESOURCE
from tmkb.access import policy
from tmkb.access.policy import Identity
from tmkb.errors import ProtocolError, SpecError
from tmkb.schema import paths, problems, reader

ISSUER = {"resource": RESOURCE, "issuers": [{"issuer": NAME}]}


def written(folder, **value):
    file = folder / "access.yaml"
    file.write_text(json.dumps({"kind": "access", **value}))
    return str(file)


def told(call, *arguments):
    with pytest.raises(SpecError) as caught:
        call(*arguments)
    return [problems.line(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "roles"),
        ({"roles": {}}, "roles"),
        ({"roles": {"Admin": {}}}, "lowercase"),
        ({"roles": {"a": {"granted_by": [{}]}}}, "granted_by"),
        ({"roles": {"a": {"granted_by": []}}}, "granted_by"),
        ({"roles": {"a": {"granted_by": "all"}}}, "everyone"),
        ({"roles": {"a": {"granted_by": [{"scopes": ["a b"]}]}}}, "granted_by"),
        ({"roles": {"a": {"granted_by": [{"issuer": "x"}]}}, **ISSUER}, "There is no issuer 'x'"),
        ({"roles": {"a": {"granted_by": [{"scope": ["x"]}]}}}, "granted_by"),
        ({"roles": {"a": {}}, "issuers": ISSUER["issuers"]}, "resource"),
        ({"roles": {"a": {}}, **ISSUER, "resource": "http://a.example/mcp"}, "http:// only for localhost"),
        ({"roles": {"a": {}}, **ISSUER, "resource": "https://a.example/mcp#x"}, "https://HOST/PATH"),
        ({"roles": {"a": {}}, **ISSUER, "resource": 'https://a.example/"x'}, "https://HOST/PATH"),
        ({"roles": {"a": {}}, **ISSUER, "resource": "https://ä.example/mcp"}, "https://HOST/PATH"),
        ({"roles": {"a": {}}, **ISSUER, "issuers": [{"issuer": "http://localhost@a.example"}]}, "https://HOST/PATH"),
        ({"roles": {"a": {}}, **ISSUER, "issuers": [{"issuer": NAME, "jwks": "file:///keys"}]}, "https://HOST/PATH"),
        ({"roles": {"a": {}}, **ISSUER, "issuers": [{"issuer": NAME, "algorithms": ["none"]}]}, "RS256"),
        ({"roles": {"a": {}}, **ISSUER, "issuers": [{"issuer": NAME, "algorithms": ["HS256"]}]}, "RS256"),
        ({"roles": {"a": {}}, **ISSUER, "issuers": [{"issuer": NAME}, {"issuer": NAME}]}, "is there already"),
        ({"roles": {"a": {}}, "audit": "all"}, "digest"),
        ({"roles": {"a": {}}, "rolles": {}}, "rolles"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path, value, expected):
    file = written(tmp_path, **value)
    lines = told(policy.read, file)

    assert any(expected in line for line in lines), lines
    assert all(line.startswith(f"{file}:1:") for line in lines)


@pytest.mark.parametrize("text", ["[]", "kind: config", "kind: access\nroles: !x {}"])
def test_other_files_are_no_access_files(tmp_path, text):
    file = tmp_path / "access.yaml"
    file.write_text(text)

    assert told(policy.read, str(file))


def test_the_example_is_valid(full_server):
    policy.read(f"{paths.SCHEMAS}/templates/access.yaml").check(full_server.spec)


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ({"tools": ["tmkb_qery"]}, "no tool that 'tmkb_qery' matches. Did you mean 'tmkb_query'?"),
        ({"prompts": ["nothing*"]}, "no prompt that 'nothing*' matches."),
        (
            {"resources": ["tmkb://pattern/*"]},
            "no resource that 'tmkb://pattern/*' matches. Did you mean 'tmkb://patterns",
        ),
    ],
)
def test_a_pattern_has_to_match_something(tmp_path, full_server, role, expected):
    (line,) = told(policy.read(written(tmp_path, roles={"a": role})).check, full_server.spec)

    assert expected in line


@pytest.mark.parametrize(
    "uri", ["*", "tmkb://patterns", "tmkb://patterns/*", "tmkb://patterns/TMKB-AUTH-00*", "tmkb://*age"]
)
def test_resources_can_be_of_a_template(tmp_path, full_server, uri):
    policy.read(written(tmp_path, roles={"a": {"resources": [uri]}})).check(full_server.spec)


MISTAKES = {
    "scopes without brackets": ([{"scopes": "a b"}], "roles.a.granted_by[0].scopes must be a list, not a string."),
    "a claim without brackets": ([{"claims": {"groups": "a"}}], "claims.groups must be a list, not a string."),
    "a number as a claim": ([{"claims": {"groups": [1]}}], "claims.groups[0] must be a string, not an integer."),
    "two scopes in one": ([{"scopes": ["a b"]}], "granted_by[0].scopes[0] cannot be 'a b'."),
    "no condition": ([], "granted_by"),
    "an empty condition": ([{}], "granted_by[0]"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_condition_is_named_itself(tmp_path, case):
    granted, expected = MISTAKES[case]
    with pytest.raises(SpecError) as caught:
        policy.read(written(tmp_path, roles={"a": {"granted_by": granted}}))
    (line,) = map(problems.line, caught.value.problems)

    assert expected in line
    assert "everyone" not in line


def test_views_are_the_roles_with_patterns(tmp_path):
    file = written(tmp_path, roles={"a": {"patterns": ["x", "packaged"]}, "b": {}, "c": {"patterns": ["y"]}})

    assert policy.views(file, bool) == {"a": ["x", "packaged"], "c": ["y"]}


def made(roles):
    return policy.Policy(reader.parse(json.dumps({"kind": "access", "roles": roles}), "access.yaml"))


def test_the_first_role_with_patterns_decides_on_the_view():
    roles = {"a": {}, "b": {"patterns": ["x"]}, "c": {"patterns": ["y"]}}
    found = made(roles)

    assert found.caller(Identity("p", roles=("c", "b", "a"))).view == "b"
    assert found.caller(Identity("p", roles=("c", "a"))).view == "c"
    assert found.caller(Identity("p", roles=("a",))).view == ""


def test_a_static_token_meets_no_condition_of_issuers():
    with pytest.raises(ProtocolError):
        made({"a": {"granted_by": [{"claims": {"x": ["y"]}}]}}).caller(Identity("p", claims={"x": "y"}))


def test_a_challenge_names_scopes_of_a_role_that_the_caller_can_get():
    scopes = {
        "staff": {"granted_by": [{"scopes": ["s"], "claims": {"groups": ["staff"]}}], "tools": ["x"]},
        "guest": {"granted_by": [{"scopes": ["g", "h"]}], "tools": ["x", "y"]},
        "all": {"granted_by": "everyone"},
    }
    found = made(scopes)

    def missing(**claims):
        permissions = found.caller(Identity("p", NAME, claims=claims)).permissions
        return [permissions.missing_scopes("tools", name) for name in ("x", "y", "z")]

    assert missing() == [("g", "h"), ("g", "h"), ()]
    assert missing(groups=["staff"]) == [("s",), ("g", "h"), ()]


def test_equal_callers_share_their_permissions():
    found = made({"a": {"granted_by": [{"scopes": ["s"]}]}, "b": {"granted_by": "everyone"}})
    one, two, other = (found.caller(Identity(p, NAME, frozenset(s))) for p, s in (("1", "s"), ("2", "st"), ("3", "t")))

    assert one.permissions is two.permissions
    assert one.permissions is not other.permissions


def test_permissions_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(policy, "_MAX_SHARED", 2)
    found = made({name: {"granted_by": [{"scopes": [name]}]} for name in "abcd"})
    for name in "abcd":
        found.caller(Identity("p", NAME, frozenset(name)))

    assert len(found._shared) == 2

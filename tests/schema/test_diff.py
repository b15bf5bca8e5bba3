"""Changes between two values: each has its path, its sign, both values and its impact."""

import pytest

from tmkb.schema import diff

TEXT = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    ("kind", "before", "after", "changes"),
    [
        ("prompt", {"answer": {"content": [TEXT, TEXT]}}, {"answer": {"content": [TEXT, TEXT | {"text": "Ho"}]}}, [("answer.content.1.text", "~", "Hi", "Ho")]),
        ("prompt", {"answer": {"content": [TEXT]}}, {"answer": {"content": [TEXT, TEXT]}}, [("answer.content", "~", [TEXT], [TEXT, TEXT])]),
        ("server", {"revisions": ["a", "b"]}, {"revisions": ["b", "a"]}, [("revisions", "~", ["a", "b"], ["b", "a"])]),
        ("server", {"revisions": ["a", "b"]}, {"revisions": ["b", "c"]}, [("revisions", "-", "a", None), ("revisions", "+", None, "c")]),
        ("server", {"revisions": ["a", "b", "c"]}, {"revisions": ["b", "a"]}, [("revisions", "-", "c", None), ("revisions", "~", ["a", "b", "c"], ["b", "a"])]),
        ("server", {"revisions": [1]}, {"revisions": [True]}, [("revisions", "~", [1], [True])]),
        ("server", {"revisions": ["a"]}, {"revisions": ["c"]}, [("revisions", "~", ["a"], ["c"])]),
        ("server", {"title": "a"}, {"title": None}, [("title", "-", "a", None)]),
        ("server", {"title": "a"}, {"title": ["a"]}, [("title", "~", "a", ["a"])]),
        ("server", {"title": "a"}, {"title": "a"}, []),
        ("tool", {"input": {"properties": {"a": {}}}}, {"input": {"properties": {"a": {"type": "string"}}}}, [("input.properties.a.type", "+", None, "string")]),
    ],
)  # fmt: skip
def test_changes(kind, before, after, changes):
    found = diff.of_values(kind, before, after)

    assert [(".".join(map(str, each.path)), each.sign, each.before, each.after) for each in found] == changes


@pytest.mark.parametrize(
    ("kind", "path", "before", "after", "impact"),
    [
        (
            "errors",
            "errors",
            {"errors": {"a": {"data": ["b", "c"]}}},
            {"errors": {"a": {"data": ["c", "b"]}}},
            "unseen",
        ),
        ("errors", "errors", {"errors": {"a": {"data": ["b", {}]}}}, {"errors": {"a": {"data": ["c"]}}}, "breaking"),
        ("server", "limits", {"limits": {"running": 1}}, {"limits": {"running": "1"}}, "breaking"),
        ("server", "limits", {"limits": {"running": 1}}, {"limits": {"running": 2}}, "additive"),
        ("server", "limits", {"limits": {"running": 2}}, {"limits": {"running": 1}}, "breaking"),
        ("tool", "description", {"description": "a"}, {"description": "b"}, "cosmetic"),
        ("tool", "output", {"output": {"type": "object"}}, {"output": {}}, "breaking"),
        ("tool", "output", {"output": {}}, {"output": {"type": "object"}}, "additive"),
        ("tool", "input", {"input": {"type": "object"}}, {"input": {}}, "additive"),
        ("prompt", "arguments", {"arguments": {}}, {"arguments": {"a": {}}}, "additive"),
        ("prompt", "arguments", {"arguments": {}}, {"arguments": {"a": {"required": True}}}, "breaking"),
        ("prompt", "arguments", {"arguments": {}}, {"arguments": {"a": {"required": False}}}, "additive"),
        ("prompt", "arguments", {"arguments": {"a": {}}}, {"arguments": {"a": {"required": True}}}, "breaking"),
        ("prompt", "arguments", {"arguments": {"a": {}}}, {"arguments": {"a": {"required": False}}}, "cosmetic"),
        ("prompt", "arguments", {"arguments": {"a": {"required": True}}}, {"arguments": {"a": {}}}, "additive"),
        ("prompt", "arguments", {"arguments": {"a": {}}}, {"arguments": {}}, "breaking"),
        ("prompt", "title", {}, {"title": "a"}, "cosmetic"),
    ],
)
def test_the_impact_depends_on_the_direction(kind, path, before, after, impact):
    (change,) = diff.of_values(kind, before, after)

    assert (change.path[0], change.impact) == (path, impact)


def test_the_most_severe_change_is_first():
    before = {"description": "a", "name": "a", "limits": {"running": 1}}
    after = {"description": "b", "name": "b", "limits": {"running": 2}}

    assert [each.impact for each in diff.of_values("server", before, after)] == ["breaking", "additive", "cosmetic"]

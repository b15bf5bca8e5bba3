"""A server that extends another has what that one has, and changes what it says itself."""

import pytest

from tmkb.errors import SpecError
from tmkb.schema import documents, load
from tmkb.server import sources

CHILD = """
kind: server
extends: tmkb
name: child
description: Mine.
"""
TOOL = """
kind: tool
name: motto
description: Says our motto.
provider: script.answer
answer: Deny by default.
input: {type: object}
"""


def spec_of(server, folder):
    return load.load(server, [folder], sources.names())


def errors_of(spec):
    return spec["revisions"]["2025-11-25"]["errors"]


def test_all_that_is_not_said_is_inherited(overlay):
    spec, parent = spec_of("child", overlay(servers__child__server=CHILD)), spec_of("tmkb", overlay())

    assert spec["server"] == parent["server"] | {"name": "child", "description": "Mine."}
    assert spec["tools"] == parent["tools"]
    assert errors_of(spec) == errors_of(parent)


def test_tools_prompts_and_resources_are_those_of_one_server(overlay):
    folder = overlay(servers__child__server=CHILD, servers__child__tools__motto=TOOL)

    assert list(spec_of("child", folder)["tools"]) == ["motto", "tmkb_query"]
    assert list(spec_of("tmkb", folder)["tools"]) == ["tmkb_query"]


def test_a_file_of_the_same_path_replaces(overlay):
    folder = overlay(
        servers__child__server=CHILD,
        servers__child__tools__tmkb_query=TOOL.replace("name: motto", "name: tmkb_query"),
    )

    assert spec_of("child", folder)["tools"]["tmkb_query"]["answer"] == "Deny by default."


def test_a_file_that_extends_the_parent_is_merged_into_its_file(overlay):
    folder = overlay(
        servers__child__server=CHILD,
        servers__child__tools__tmkb_query="kind: tool\nextends: tmkb\ninput: {properties: {language: {enum: [go]}}}\n",
        servers__child__errors="kind: errors\nextends: tmkb\nerrors: {unsupported_language: {message: 'Not {value}'}}\n",
    )
    spec = spec_of("child", folder)

    assert spec["tools"]["tmkb_query"]["input"]["properties"]["language"]["enum"] == ["go"]
    assert spec["tools"]["tmkb_query"]["input"]["required"] == ["context"]
    assert errors_of(spec)["unsupported_language"]["message"] == "Not {value}"
    assert errors_of(spec)["query_failed"] == errors_of(spec_of("tmkb", folder))["query_failed"]


def test_null_removes_what_is_inherited(overlay):
    folder = overlay(servers__child__server=CHILD + "cache: null\nproviders: {knowledge: {agent: {tokens: 300}}}\n")
    server = spec_of("child", folder)["server"]

    assert "cache" not in server
    assert server["providers"]["knowledge"] == {"agent": {"patterns": 3, "tokens": 300}, "human": {"patterns": 3}}


def test_what_a_parent_inherits_is_inherited_too(overlay):
    folder = overlay(
        servers__child__server=CHILD,
        servers__child__tools__motto=TOOL,
        servers__alpha__server=CHILD.replace("tmkb", "child").replace("name: child", "name: alpha"),
    )

    assert list(spec_of("alpha", folder)["tools"]) == ["motto", "tmkb_query"]
    assert spec_of("alpha", folder)["server"]["description"] == "Mine."


def test_an_overlay_on_the_parent_changes_the_child(overlay):
    folder = overlay(
        servers__child__server=CHILD,
        servers__tmkb__server="kind: server\nextends: packaged\ntitle: Ours\ndescription: Ours.\n",
        servers__tmkb__tools__tmkb_query="kind: tool\nextends: packaged\ndescription: Ask.\n",
    )
    spec = spec_of("child", folder)

    assert (spec["server"]["title"], spec["server"]["description"]) == ("Ours", "Mine.")
    assert spec["tools"]["tmkb_query"]["description"] == "Ask."


def test_an_overlay_on_the_child_lies_on_what_it_inherits(tmp_path):
    for folder, path, text in (
        ("low", "servers/child/server.yaml", CHILD),
        ("high", "servers/child/server.yaml", "kind: server\nextends: packaged\ntitle: Child\n"),
        ("high", "servers/child/tools/tmkb_query.yaml", "kind: tool\nextends: packaged\ndescription: Ask.\n"),
    ):
        file = tmp_path / folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    folders = [str(tmp_path / "high"), str(tmp_path / "low")]
    child, parent = (load.load(server, folders, sources.names()) for server in ("child", "tmkb"))

    assert (child["server"]["title"], child["server"]["description"]) == ("Child", "Mine.")
    assert child["tools"]["tmkb_query"] == parent["tools"]["tmkb_query"] | {"description": "Ask."}
    assert "title" not in parent["server"]


def test_another_server_that_is_broken_does_not_matter(overlay):
    folder = overlay(servers__child__server=CHILD, servers__everything__server="kind: [")

    assert spec_of("child", folder)["server"]["name"] == "child"


def test_a_parent_that_is_broken_does(overlay):
    folder = overlay(servers__child__server=CHILD, servers__tmkb__tools__x="kind: [")
    with pytest.raises(SpecError) as caught:
        spec_of("child", folder)

    assert [p.rule for p in caught.value.problems] == ["syntax"]


@pytest.mark.parametrize("servers", [None, ["child"]])
def test_origins_name_the_file_of_each_value(overlay, servers):
    folder = overlay(servers__child__server=CHILD)
    found = load.read([folder], sources.names(), servers)
    doc = found.documents["servers/child/server"]

    assert doc.values["description",].file.endswith("child/server.yaml")
    assert doc.values["version",].file == "schemas/servers/tmkb/server.yaml"
    inherited = {place for place in found.inherited if not place.startswith("servers/sysmcp/")}
    assert inherited == {"servers/child/errors", "servers/child/tools/tmkb_query"} | (
        set() if servers else {"servers/tmkb-full/tools/tmkb_query"}
    )


def test_unknown_parent(complaints, overlay):
    assert complaints(servers__child__server=CHILD.replace("tmkb", "tmbk")) == [
        "servers/child/server.yaml:3:10: There is no parent 'tmbk'. Did you mean 'tmkb'?"
    ]


def test_an_unknown_parent_is_told_to_who_serves_the_child_alone(overlay):
    with pytest.raises(SpecError) as caught:
        spec_of("child", overlay(servers__child__server=CHILD.replace("tmkb", "tmbk")))

    assert [(p.rule, p.line, p.column, p.fields["nearest"]) for p in caught.value.problems] == [
        ("unknown_name", 3, 10, "tmkb")
    ]


def test_servers_that_extend_each_other(complaints):
    said = complaints(
        servers__child__server=CHILD.replace("tmkb", "other"),
        servers__child__tools__motto=TOOL,
        servers__other__server=CHILD.replace("tmkb", "child").replace("name: child", "name: other"),
    )

    assert said == [
        "servers/child/server.yaml:3:10: `extends` is circular: other → child → other.",
        "servers/other/server.yaml:3:10: `extends` is circular: child → other → child.",
    ]


def test_a_server_that_extends_itself(complaints):
    assert complaints(servers__child__server=CHILD.replace("tmkb", "child")) == [
        "servers/child/server.yaml:3:10: `extends` is circular: child → child."
    ]


def test_a_file_that_extends_one_that_the_parent_does_not_have(complaints):
    said = complaints(servers__child__server=CHILD, servers__child__tools__motto="kind: tool\nextends: tmkb\n")

    assert said == ["servers/child/tools/motto.yaml:2:10: There is no parent 'tmkb'. Known: packaged."]


def test_a_layer_that_lies_on_nothing(complaints):
    (said,) = complaints(servers__child__server=CHILD, servers__child__tools__motto="kind: tool\nextends: packaged\n")

    assert said.startswith(
        "servers/child/tools/motto.yaml:2:10: `extends: packaged`, but no packaged file has the path "
        "servers/child/tools/motto."
    )


def test_a_name_that_is_only_inherited_is_told_where_it_is_missing(complaints):
    assert complaints(servers__child__server="kind: server\nextends: tmkb\n") == [
        "servers/child/server.yaml:1:1: The file is named child, but its name is 'tmkb'. Rename one of them."
    ]


def test_what_the_parent_has_wrong_is_told_once(complaints):
    said = complaints(
        servers__child__server=CHILD,
        servers__tmkb__tools__tmkb_query="kind: tool\nextends: packaged\ncoerce: {context: trim}\n",
    )

    assert said == ["servers/tmkb/tools/tmkb_query.yaml:3:19: There is no coercion 'trim'. Did you mean 'strip'?"]


def test_what_is_inherited_counts_as_no_file(overlay):
    found = documents.read([overlay(servers__child__server=CHILD)])

    assert len(found.documents.keys() - found.inherited) == len(found.places)

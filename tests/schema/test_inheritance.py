"""A server inherits the files of the server it extends, and overrides them with its own."""

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


def test_missing_keys_are_inherited(overlay):
    spec, parent = spec_of("child", overlay(servers__child__server=CHILD)), spec_of("tmkb", overlay())

    assert spec["server"] == parent["server"] | {"name": "child", "description": "Mine."}
    assert spec["tools"] == parent["tools"]
    assert errors_of(spec) == errors_of(parent)


def test_tools_prompts_and_resources_belong_to_one_server(overlay):
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


def test_null_removes_an_inherited_file_key(overlay):
    folder = overlay(servers__child__server=CHILD + "cache: null\nproviders: {knowledge: {agent: {tokens: 300}}}\n")
    server = spec_of("child", folder)["server"]

    assert "cache" not in server
    assert server["providers"]["knowledge"] == {"agent": {"patterns": 3, "tokens": 300}, "human": {"patterns": 3}}


def test_inheritance_is_transitive(overlay):
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


def test_an_overlay_on_the_child_is_merged_into_inherited_files(tmp_path):
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


def test_problems_of_another_server_are_ignored(overlay):
    folder = overlay(servers__child__server=CHILD, servers__everything__server="kind: [")

    assert spec_of("child", folder)["server"]["name"] == "child"


def test_problems_of_a_parent_are_reported(overlay):
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
    assert inherited == {"servers/child/errors", "servers/child/tools/tmkb_query"}


def test_unknown_parent(complaints, overlay):
    assert complaints(servers__child__server=CHILD.replace("tmkb", "tmbk")) == [
        "servers/child/server.yaml:3:10: There is no parent 'tmbk'. Did you mean 'tmkb'?"
    ]


def test_an_unknown_parent_is_reported_if_only_the_child_is_read(overlay):
    with pytest.raises(SpecError) as caught:
        spec_of("child", overlay(servers__child__server=CHILD.replace("tmkb", "tmbk")))

    assert [(p.rule, p.line, p.column, p.fields["nearest"]) for p in caught.value.problems] == [
        ("unknown_name", 3, 10, "tmkb")
    ]


def test_servers_that_extend_each_other(complaints):
    messages = complaints(
        servers__child__server=CHILD.replace("tmkb", "other"),
        servers__child__tools__motto=TOOL,
        servers__other__server=CHILD.replace("tmkb", "child").replace("name: child", "name: other"),
    )

    assert messages == [
        "servers/child/server.yaml:3:10: `extends` is circular: other → child → other.",
        "servers/other/server.yaml:3:10: `extends` is circular: child → other → child.",
    ]


def test_a_server_that_extends_itself(complaints):
    assert complaints(servers__child__server=CHILD.replace("tmkb", "child")) == [
        "servers/child/server.yaml:3:10: `extends` is circular: child → child."
    ]


def test_a_file_without_a_parent_to_extend(complaints):
    messages = complaints(servers__child__server=CHILD, servers__child__tools__motto="kind: tool\nextends: tmkb\n")

    assert messages == ["servers/child/tools/motto.yaml:2:10: There is no parent 'tmkb'. Known: packaged."]


def test_a_layer_without_a_file_below(complaints):
    (message,) = complaints(
        servers__child__server=CHILD, servers__child__tools__motto="kind: tool\nextends: packaged\n"
    )

    assert message.startswith(
        "servers/child/tools/motto.yaml:2:10: `extends: packaged`, but no packaged file has the path "
        "servers/child/tools/motto."
    )


def test_an_inherited_name_is_reported_in_the_child(complaints):
    assert complaints(servers__child__server="kind: server\nextends: tmkb\n") == [
        "servers/child/server.yaml:1:1: The file is named child, but its name is 'tmkb'. Rename one of them."
    ]


def test_a_problem_of_the_parent_is_reported_once(complaints):
    messages = complaints(
        servers__child__server=CHILD,
        servers__tmkb__tools__tmkb_query="kind: tool\nextends: packaged\ncoerce: {context: trim}\n",
    )

    assert messages == ["servers/tmkb/tools/tmkb_query.yaml:3:19: There is no coercion 'trim'. Did you mean 'strip'?"]


def test_inherited_files_are_not_counted(overlay):
    found = documents.read([overlay(servers__child__server=CHILD)])

    assert len(found.documents.keys() - found.inherited) == len(found.places)

"""`tmkb schema diff`: each change under its class, as a person, a script and a gate get it."""

import json
import os

import pytest

from tmkb.cli import main
from tmkb.schema import paths, reader

pytestmark = pytest.mark.process

BARE = (
    "kind: tool\nname: bare\ndescription: Nothing.\nprovider: script.answer\nanswer: Nothing.\ninput: {type: object}\n"
)


@pytest.fixture
def diff(capsys, monkeypatch):
    """Run the command; gives exit status, stdout, stderr."""
    monkeypatch.chdir(paths.ROOT)
    monkeypatch.delenv("TMKB_SCHEMAS", raising=False)

    def run(*words):
        status = main.main(["schema", "diff", *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def over(kind, patch):
    return f"kind: {kind}\nextends: packaged\n{patch}\n"


# One overlay for each class: kind of file, its place below the folder, what is put on it, and how that is told.
CASES = {
    "breaking": [
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {required: [context, language]}", "+ input.required"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {verbosity: {default: human}}}", "~ input.properties.verbosity.default"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {framework: {enum: [flask]}}}", "- input.properties.framework.enum"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {context: {maxLength: 9}}}", "+ input.properties.context.maxLength"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {language: {type: integer}}}", "~ input.properties.language.type"),
        ("tool", "servers/tmkb/tools/tmkb_query", "task: {support: required}", "+ task"),
        ("tool", "servers/tmkb/tools/tmkb_query", "on_exception: tool_failed", "~ on_exception"),
        ("tool", "servers/tmkb-full/tools/tmkb_list", "annotations: null", "- annotations"),
        ("tool", "servers/tmkb-full/tools/tmkb_list", "output: {properties: {count: null}}", "- output.properties.count"),
        ("tool", "servers/tmkb-full/tools/tmkb_list", "output: {required: [count]}", "- output.required"),
        ("tool", "servers/tmkb-full/tools/tmkb_get", "annotations: {readOnlyHint: null}", "- annotations.readOnlyHint"),
        ("tool", "servers/tmkb-full/tools/tmkb_get", "output: null", "- output"),
        ("tool", "servers/everything/tools/greet", "answer: {isError: true, content: []}", "~ answer"),
        ("tool", "servers/everything/tools/greet", "input: {properties: {name: null}}", "- input.properties.name"),
        ("prompt", "servers/everything/prompts/test_prompt_with_arguments", "arguments: {arg3: {required: true}}", "+ arguments.arg3"),
        ("resource", "servers/everything/resources/static-text", "uri: test://elsewhere", "~ uri"),
        ("server", "servers/everything/server", "capabilities: {tools: {listChanged: null}}", "- capabilities.tools.listChanged"),
        ("server", "servers/tmkb/server", 'revisions: ["2025-06-18", "2025-03-26"]', "- revisions"),
        ("server", "servers/tmkb/server", "providers: {knowledge: {agent: {tokens: 50}}}", "~ providers.knowledge.agent.tokens"),
        ("errors", "errors", "errors: {unknown_tool: {code: -32000}}", "~ errors.unknown_tool.code"),
        ("errors", "errors", "errors: {message_too_large: {data: null}}", "- errors.message_too_large.data"),
        ("errors", "errors", "errors: {batch_too_large: {status: null}}", "- errors.batch_too_large.status"),
        ("limits", "limits", "limits: {message_bytes: 1000}", "~ limits.message_bytes"),
        ("limits", "limits", "limits: {page_size: 10}", "+ limits.page_size"),
        ("lifecycle", "lifecycle/handshake", "states: {not_initialized: {accepts: {ping: null}}}", "- states.not_initialized.accepts.ping"),
        ("revision", "protocol/2025-06-18", "methods: {resources/list: null}", "- methods.resources/list"),
        ("revision", "protocol/2025-06-18", "objects: {tool: {fields: {title: null}}}", "- objects.tool.fields.title"),
        ("revision", "protocol/2025-06-18", "methods: {tools/list: {params: {required: [x]}}}", "+ methods.tools/list.params"),
    ],
    "additive": [
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {depth: {type: integer}}}", "+ input.properties.depth"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {language: {enum: [python, go]}}}", "+ input.properties.language.enum"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {context: {minLength: 0}}}", "~ input.properties.context.minLength"),
        ("tool", "servers/tmkb/tools/tmkb_query", "task: {support: optional}", "+ task"),
        ("tool", "servers/tmkb/tools/tmkb_query", "output: {type: object}", "+ output"),
        ("tool", "servers/tmkb/tools/tmkb_query", "annotations: {readOnlyHint: true}", "+ annotations"),
        ("tool", "servers/tmkb-full/tools/tmkb_list", "output: {properties: {more: {type: string}}}", "+ output.properties.more"),
        ("prompt", "servers/everything/prompts/test_prompt_with_arguments", "arguments: {arg3: {title: More}}", "+ arguments.arg3"),
        ("prompt", "servers/everything/prompts/test_prompt_with_arguments", "arguments: {arg1: {required: null}}", "- arguments.arg1.required"),
        ("server", "servers/tmkb/server", "providers: {knowledge: {agent: {tokens: 5000}}}", "~ providers.knowledge.agent.tokens"),
        ("server", "servers/tmkb/server", "capabilities: {experimental: {x: {}}}", "+ capabilities.experimental"),
        ("errors", "errors", "errors: {unknown_tool: {data: [tool]}}", "+ errors.unknown_tool.data"),
        ("limits", "limits", "limits: {running: 1000}", "~ limits.running"),
        ("lifecycle", "lifecycle/handshake", "states: {not_initialized: {accepts: {tools/list: not_initialized}}}", "+ states.not_initialized.accepts.tools/list"),
        ("revision", "protocol/2024-11-05", "objects: {call_result: {fields: {more: true}}}", "+ objects.call_result.fields.more"),
    ],
    "cosmetic": [
        ("tool", "servers/tmkb/tools/tmkb_query", "description: Ask me.", "~ description"),
        ("tool", "servers/tmkb/tools/tmkb_query", "input: {properties: {language: {title: Of the code}}}", "+ input.properties.language.title"),
        ("tool", "servers/tmkb/tools/tmkb_query", "annotations: {readOnlyHint: false}", "+ annotations"),
        ("tool", "servers/everything/tools/greet", 'answer: "Hi, {name}!"', "~ answer"),
        ("server", "servers/tmkb/server", "version: 9.9.9", "~ version"),
        ("errors", "errors", "errors: {unknown_tool: {message: No.}}", "~ errors.unknown_tool.message"),
        ("errors", "errors", "errors: {unknown_tool: {status: 200}}", "+ errors.unknown_tool.status"),
        ("errors", "errors", "types: {string: [Text, ein Text]}", "~ types.string"),
    ],
    "unseen": [
        ("tool", "servers/tmkb/tools/tmkb_query", "cache_results: 3", "~ cache_results"),
        ("log", "log", "lines: {ready: {message: Ready.}}", "~ log.ready.message"),
        ("revision", "protocol/2025-11-25", "specification: https://example.com", "~ specification"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("impact", CASES)
def test_each_change_has_its_class_and_the_status_tells_of_breaking_ones(diff, tmp_path, impact):
    files = {}
    for kind, place, patch, _ in CASES[impact]:
        files[place] = put(files.get(place, {"kind": kind, "extends": "packaged"}), reader.parse(patch, place).value)
    for place, value in files.items():
        file = tmp_path / f"{place}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    status, out, _ = diff("packaged", str(tmp_path), "--json")
    told = [(each["impact"], f"{each['sign']} {'.'.join(each['path'])}") for each in json.loads(out)["changes"]]

    assert set(told) == {(impact, change) for *_, change in CASES[impact]}
    assert status == (impact == "breaking")


def put(old, patch):
    """``patch`` on top of ``old``; null stays, as it removes what is packaged."""
    both = isinstance(old, dict) and isinstance(patch, dict)
    return {**old, **{key: put(old.get(key), value) for key, value in patch.items()}} if both else patch


def test_a_tool_more(diff, overlay):
    status, out, _ = diff("packaged", overlay(servers__tmkb__tools__bare=BARE))

    assert (status, out.splitlines()[0]) == (0, "additive (1)")


def test_comments_order_and_what_no_server_offers_are_no_change(diff, overlay):
    folder = overlay(
        errors=over("errors", "# of no use\nerrors: {unknown_tool: {message: 'Unknown tool: {tool}', code: -32602}}"),
        **{"protocol__2099-01-01": "kind: revision\nrevision: '2099-01-01'\nextends: '2025-11-25'\n"},
    )

    assert diff("packaged", folder) == (0, "No differences.\n", "")


def test_a_folder_does_not_differ_from_itself(diff, overlay):
    folder = overlay(servers__tmkb__tools__bare=BARE, limits=over("limits", "limits: {running: 9}"))

    assert diff(folder, folder) == (0, "No differences.\n", "")
    assert diff("packaged", "packaged") == (0, "No differences.\n", "")


def test_what_is_added_one_way_is_removed_the_other(diff, overlay):
    folder = overlay(servers__tmkb__tools__bare=BARE)
    place = os.path.join(paths.shown(folder), "servers", "tmkb", "tools", "bare.yaml")
    status, out, _ = diff(folder, "packaged")

    assert status == 1
    assert out.startswith(f"breaking (1)\n  {place}:1  - the file: ")
    assert out.endswith("  [tmkb, tmkb-full]\n")


def test_the_gravest_comes_first_with_its_place_and_what_was_and_is(diff, overlay):
    folder = overlay(
        errors=over("errors", "errors:\n  unknown_tool: {message: No.}\n  shut_down: {code: -32000}"),
        limits=over("limits", "limits: {running: 1000}"),
    )
    errors, limits = (os.path.join(paths.shown(folder), name) for name in ("errors.yaml", "limits.yaml"))
    _, out, _ = diff("packaged", folder)

    assert out.splitlines() == [
        "breaking (1)",
        f"  {errors}:5  ~ errors.shut_down.code: -32600 → -32000  [everything, sysmcp, tmkb, tmkb-full]",
        "additive (1)",
        f"  {limits}:3  ~ limits.running: 100 → 1000  [everything, sysmcp, tmkb, tmkb-full]",
        "cosmetic (1)",
        f'  {errors}:4  ~ errors.unknown_tool.message: "Unknown tool: {{tool}}" → "No."  [everything, tmkb, tmkb-full]',
    ]


def test_a_change_is_told_of_the_servers_whose_clients_notice_it(diff, overlay):
    folder = overlay(
        errors=over("errors", "errors: {unknown_tool: {message: No.}}"),
        servers__everything__errors="kind: errors\nerrors: {unknown_tool: {message: 'Unknown tool: {tool}'}}\n",
    )
    found = json.loads(diff("packaged", folder, "--json")[1])

    assert [each["servers"] for each in found["changes"]] == [["tmkb", "tmkb-full"]]
    assert found["counts"] == {"breaking": 0, "additive": 0, "cosmetic": 1, "unseen": 0}


def test_a_server_comes_as_a_whole(diff, overlay):
    folder = overlay(servers__mine__server="kind: server\nextends: tmkb\nname: mine\n")
    status, out, _ = diff("packaged", folder)

    assert (status, out.splitlines()[0], out.endswith("  [mine]\n")) == (0, "additive (2)", True)


def test_folders_under_both_sides(diff, overlay, tmp_path):
    under = overlay(servers__tmkb__tools__bare=BARE)
    mine = tmp_path / "mine" / "servers" / "tmkb" / "tools"
    mine.mkdir(parents=True)
    (mine / "bare.yaml").write_text(over("tool", "description: Something."))
    status, out, _ = diff("packaged", str(tmp_path / "mine"), "--schemas", under)

    assert (status, out.splitlines()[0]) == (0, "cosmetic (1)")


def test_revisions_by_name(diff):
    status, out, _ = diff("2025-06-18", "2025-11-25")

    assert status == 1
    assert out.splitlines()[0].startswith("breaking (")
    assert '~ message.unread_id: "null" → "absent"' in out
    assert "+ methods.notifications/elicitation/complete" in out.partition("additive (")[2]
    assert "revision:" not in out


def test_files_by_name_lie_on_a_folder(diff, overlay):
    folder = overlay(servers__tmkb__tools__bare=BARE)

    assert "- input.properties.context" in diff("tmkb_query", "bare", "--schemas", folder)[1]


def test_problems_are_told_once_as_by_check(diff, overlay):
    folder = overlay(errors=over("errors", "errors: {unknown_tool: {message: '{name}'}}"))
    place = os.path.join(paths.shown(folder), "errors.yaml")
    line = f"{place}:3:34: The field 'name' does not exist here. Fields: tool.\n"

    assert diff("packaged", folder) == (2, line, "")
    assert diff(folder, folder) == (2, line, "")
    assert diff("errors", "servers/tmkb/errors", "--schemas", folder) == (2, line, "")
    (problem,) = json.loads(diff("packaged", folder, "--json")[1])["problems"]
    assert (problem["file"], problem["line"], problem["rule"]) == (place, 3, "unknown_field")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2025-06-18", "2025-11-2", "There is no schema 2025-11-2. Did you mean 2025-11-25?"),
        ("2025-06-18", "tmkb_query", "2025-06-18 is a revision, tmkb_query a tool. Compare two files of one kind."),
        ("packaged", "tmkb", "tmkb is a schema, packaged a folder. To compare a folder named tmkb, write ./tmkb."),
    ],
)
def test_what_cannot_be_compared(diff, old, new, said):
    assert diff(old, new) == (2, "", f"tmkb: {said}\n")


def test_a_folder_that_is_not_there(diff):
    status, out, _ = diff("packaged", "./nowhere")

    assert status == 2
    assert "nowhere" in out


def test_a_new_server_is_shown_with_its_own_file_and_its_tools(diff, overlay):
    folder = overlay(servers__child__server='kind: server\nextends: tmkb\nname: child\nversion: "1"\n')
    status, out, _ = diff("packaged", folder)

    assert status == 0
    assert f"{os.path.join(folder, 'servers', 'child', 'server.yaml')}:1  + the file" in out
    assert "tmkb_query.yaml:1  + the file" in out

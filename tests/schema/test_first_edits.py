"""Common errors in the first files of a schema folder: each has a message that names the fix."""

import json
import os
import shutil

import pytest

from tmkb.cli import main
from tmkb.schema import load, paths, problems
from tmkb.server import sources

pytestmark = pytest.mark.process

TOOL = "kind: tool\nname: hi\ndescription: x\nprovider: script.answer\nanswer: x\n"
PROMPT = "kind: prompt\nname: hi\ndescription: x\nprovider: script.answer\nanswer: x\n"
SERVER = 'kind: server\nname: a\nrevisions: ["2025-11-25"]\ncapabilities: {tools: {}}\n'


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("errors", "kind: errors\nextends: package\nerrors: {}\n", "2:10: There is no parent 'package'. Did you mean 'packaged'?"),
        ("errors", "kind: errors\nextends: packaged\nerrors: [a]\n", "3:9: errors must be a map, not a list."),
        ("errors", "kind: errors\nextends: packaged\nerrors:\n  unkown_tool: {message: x}\n", "4:3: Key 'surface' is missing in errors.unkown_tool. Did you mean to override 'unknown_tool', which has it?"),
        ("servers__tmkb__tools__tmkb_query", "kind: tool\ntitle: Ask\n", "1:1: This file replaces the packaged file but lacks its keys name, description, provider, input. Add `extends: packaged` to override only the keys in this file."),
        ("servers__tmkb__tools__hi", TOOL + "input: {type: object}\nannotations: {readOnlyHint: yes}\n", '7:29: Readers disagree about what yes means without quotes. Use true; or write "yes" for the text.'),
        ("servers__tmkb__tools__hi", TOOL + "input: {type: object, properties: {a: {type: strng}}}\n", "6:46: input.properties.a.type cannot be 'strng'. Did you mean 'string'?"),
        ("servers__a__server", SERVER + "version: 1.0\n", "5:10: version must be a string, not a number. Quote the value."),
        ("servers__everything__prompts__hi", PROMPT + "arguments: [a]\n", "6:12: arguments must be a map, not a list."),
        ("servers__a__server", SERVER + "version: '1.0'\ntools: []\n", "6:1: Unknown key 'tools' in the file. Each tool is a file in the folder tools/ beside this one."),
        ("servers__tmkb__prompts__hi", PROMPT, "1:1: The server tmkb does not declare the capability `prompts`, so clients cannot use this prompt. Add `capabilities: {prompts: {}}` to servers/tmkb/server.yaml."),
    ],
)  # fmt: skip
def test_a_problem_is_reported_once_with_its_fix(complaints, place, text, message):
    assert complaints(**{place: text}) == [f"{place.replace('__', '/')}.yaml:{message}"]


def test_choices_are_sorted_and_those_without_python_come_first(complaints):
    text = TOOL.replace("script.answer", "shell").replace("answer: x\n", "") + "input: {type: object}\n"
    (message,) = complaints(servers__tmkb__tools__hi=text)
    known = message.split("Known: ")[1].rstrip("….").rstrip(", ").split(", ")

    assert known[:2] == ["script.answer", "script.steps"]
    assert known[2:] == sorted(known[2:])


def test_a_replaced_file_of_a_parent_lacks_its_keys_once(complaints):
    child = 'kind: server\nextends: tmkb\nname: child\nversion: "1"\n'
    messages = complaints(servers__child__server=child, servers__child__tools__tmkb_query="kind: tool\ntitle: Ask\n")

    assert len(messages) == 1
    assert "replaces the file of the server tmkb" in messages[0]


def test_a_removed_capability_is_not_a_problem(complaints):
    server = "kind: server\nextends: packaged\ncapabilities: {prompts: null}\n"

    assert complaints(**{"servers__tmkb-full__server": server}) == []


def warned(folder):
    found = load.read([folder], sources.names())
    assert not found.problems
    return [problems.line(each).replace(paths.shown(folder) + "/", "") for each in found.warnings]


def test_a_required_argument_without_properties_is_a_warning(overlay):
    text = TOOL + "input: {type: object, properties: {who: {type: string}}, required: [whoo]}\n"

    assert warned(overlay(servers__tmkb__tools__hi=text)) == [
        "servers/tmkb/tools/hi.yaml:6:69: `required` names 'whoo', which is not in `properties`. Did you mean 'who'?"
    ]


def test_a_misspelled_keyword_is_a_warning(overlay):
    text = TOOL + "input: {type: object, propertis: {}, properties: {typ: {typ: string, x-note: a}}}\n"

    assert warned(overlay(servers__tmkb__tools__hi=text)) == [
        "servers/tmkb/tools/hi.yaml:6:23: 'propertis' has no effect in a JSON Schema. Did you mean 'properties'?",
        "servers/tmkb/tools/hi.yaml:6:57: 'typ' has no effect in a JSON Schema. Did you mean 'type'?",
    ]


def test_misspelled_folders_and_suffixes_are_warnings(overlay):
    folder = overlay(**{"servers/tmkb/tools/one.YAML": "", "servers/tmkb/tools/two.toml": "", "notes.txt": ""})
    for name in ("server", "protocols", "servers/tmkb/prompt", "servers/tmkb/rules", "docs"):
        os.makedirs(os.path.join(folder, name))

    assert sorted(line.split(": ", 1)[0] for line in warned(folder)) == [
        "protocols",
        "server",
        "servers/tmkb/prompt",
        "servers/tmkb/tools/one.YAML:1:1",
        "servers/tmkb/tools/two.toml:1:1",
    ]


def test_a_file_with_a_hidden_suffix_is_a_warning(overlay, capsys):
    folder = overlay(**{"errors.yaml.txt": "kind: errors\n"})

    assert warned(folder) == [
        "errors.yaml.txt:1:1: This file is ignored: only .yaml, .yml and .json files are read. "
        "Rename it to errors.yaml, or delete it."
    ]
    assert main.main(["schema", "check", folder]) == 0
    assert capsys.readouterr().err.startswith("Warning: ")
    assert main.main(["schema", "check", folder, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 1


def test_a_plain_copy_of_the_packaged_folder_works(tmp_path):
    folder = str(tmp_path / "copy")
    shutil.copytree(paths.SCHEMAS, folder)
    assert warned(folder) == []

    with open(os.path.join(folder, "meta", "tool.yaml"), "a", encoding="utf-8") as file:
        file.write("\n")
    (message,) = warned(folder)
    assert message.startswith("meta/tool.yaml:1:1: This file is ignored")


def test_an_argument_has_no_line(tmp_path, capsys):
    assert main.main(["serve", "--server", "nope"]) == 2
    assert capsys.readouterr().err.startswith("--server: There is no server 'nope'.")

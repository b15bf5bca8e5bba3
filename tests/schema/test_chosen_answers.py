"""Answers for the value of an argument, and answers from a file beside the YAML file. Neither needs Python."""

import json
import os

import pytest

from tmkb.cli import main
from tmkb.schema import answer_files, diff, load, problems
from tmkb.server import sources

TOOL = """\
kind: tool
name: rules
description: The team's rules.
provider: script.answer
ANSWER
input:
  type: object
  properties: {topic: {type: string, enum: [job, form]}, who: {type: string}, bold: {type: boolean}}
  required: [topic, bold]
"""
BOTH = "answer: {$by: topic, values: {job: {$file: rules/job.md}, form: 'Ask {who}.'}}\n"
PLACE = "servers__tmkb__tools__rules"


def rules(answer):
    return TOOL.replace("ANSWER", answer.rstrip())


@pytest.mark.parametrize(
    ("topic", "text"),
    [("job", "# Jobs\n\nKeep {braces}, Ann.\n"), ("form", "Ask Ann.")],
)
def test_an_argument_chooses_the_answer_and_a_file_has_its_text(overlay, capsys, topic, text):
    folder = overlay(**{PLACE: rules(BOTH), "servers/tmkb/tools/rules/job.md": "# Jobs\r\n\r\nKeep {braces}, {who}.\n"})

    assert main.main(["call", "rules", f"topic={topic}", "bold=true", "who=Ann", "--schemas", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("answer: {$by: topik, values: {job: a}, otherwise: b}", "5:15: There is no argument 'topik'. Did you mean 'topic'?"),
        ("answer: {$by: topic, values: {job: a}}", "5:22: There is no answer if 'topic' is form. Add it to `values`, or add `otherwise`."),
        ("answer: {$by: topic, values: {job: a, from: b}, otherwise: c}", "5:39: There is no value of topic 'from'. Did you mean 'form'?"),
        ("answer: {$by: who, values: {Ann: a}}", "5:20: There is no answer if 'who' is another value. Add it to `values`, or add `otherwise`."),
        ("answer: {$by: bold, values: {'true': a}}", "5:21: There is no answer if 'bold' is false. Add it to `values`, or add `otherwise`."),
        ("answer: {content: [{type: text, text: {$value: topik}}]}", "5:48: There is no argument 'topik'. Did you mean 'topic'?"),
        ("answer: {$by: topic}", "5:1: Key 'values' is missing in answer."),
        ("answer: {content: [{type: text, text: {$by: topic}}]}", "5:39: An answer by the value of an argument needs `$by` and a map `values`; `otherwise` is optional. Write {$by: NAME, values: {VALUE: ANSWER}, otherwise: ANSWER}."),
        ("answer: {$file: rules/jobs.md}", "5:17: Cannot read the file servers/tmkb/tools/rules/jobs.md: No such file or directory. Write its path from the folder of this YAML file."),
        ("answer: {$file: rules}", "5:17: Cannot read the file servers/tmkb/tools/rules: it is a folder. Write its path from the folder of this YAML file."),
        ("answer: {$file: ../server.md}", "5:17: '../server.md' is not below the folder of this YAML file. Move the file beside this one or below, and write a relative path; links must not lead out of the folder."),
        ("answer: {$file: /etc/hostname}", "5:17: '/etc/hostname' is not below the folder of this YAML file. Move the file beside this one or below, and write a relative path; links must not lead out of the folder."),
        ("answer: {$file: link.md}", "5:17: 'link.md' is not below the folder of this YAML file. Move the file beside this one or below, and write a relative path; links must not lead out of the folder."),
        ("answer: {$file: rules.yaml}", "5:17: 'rules.yaml' has the suffix of a schema. Use another suffix, such as .txt or .md."),
        ("answer: {$file: 5}", "5:17: answer.$file must be a string, not an integer. Quote the value."),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_and_its_fix(complaints, overlay, answer, message):
    folder = overlay(**{"servers/tmkb/tools/rules/job.md": "x"})
    os.symlink("/etc/hostname", os.path.join(folder, "servers", "tmkb", "tools", "link.md"))

    assert complaints(**{PLACE: rules(answer)}) == [f"servers/tmkb/tools/rules.yaml:{message}"]


def test_each_value_without_an_answer_is_named(complaints):
    text = rules("answer: {$by: topic, values: {job: a}}").replace("[job, form]", "[job, form, page]")

    assert complaints(**{PLACE: text}) == [
        "servers/tmkb/tools/rules.yaml:5:22: There is no answer if 'topic' is form, page. "
        "Add it to `values`, or add `otherwise`."
    ]


def test_an_optional_argument_needs_a_default(complaints):
    text = rules("answer: {$by: topic, values: {job: a, form: b}}").replace(
        "required: [topic, bold]", "required: [bold]"
    )

    assert complaints(**{PLACE: text}) == [
        "servers/tmkb/tools/rules.yaml:5:22: There is no answer if 'topic' is absent. "
        "Add it to `values`, or add `otherwise`."
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\ntw\xff", "2:3: Not UTF-8 from here on. Save the file as UTF-8."),
        (b"a" * (answer_files.LIMIT + 1), "1:1: This file is larger than 1048576 bytes. Shorten or split it."),
    ],
)
def test_a_file_that_is_not_a_short_text(complaints, overlay, content, message):
    folder = overlay(**{"servers/tmkb/tools/rules/job.md": ""})
    with open(os.path.join(folder, "servers", "tmkb", "tools", "rules", "job.md"), "wb") as file:
        file.write(content)

    assert complaints(**{PLACE: rules(BOTH)}) == [f"servers/tmkb/tools/rules/job.md:{message}"]


def test_a_placeholder_in_a_file_has_the_place_of_the_file(complaints):
    assert complaints(**{PLACE: rules(BOTH), "servers/tmkb/tools/rules/job.md": "Review {topik}."}) == [
        "servers/tmkb/tools/rules/job.md:1:1: The placeholder {topik} has no value here. Did you mean {topic}?"
    ]


def test_a_tool_of_a_service_has_its_answer_in_a_file(overlay):
    tool = rules("answer: {$file: job.md}").rstrip().replace("name: ", "name: house_").replace("\n", "\n    ")
    service = f"kind: service\nid: house\nname: House\nversion: '1'\ntools:\n  - {tool}\n"
    folder = overlay(servers__tmkb__services__house=service, **{"servers/tmkb/services/job.md": "Read it.\n"})
    found = load.read([folder], sources.names(), ["tmkb"])

    assert [problems.line(each) for each in found.problems] == []
    assert found.documents["servers/tmkb/tools/house_rules"].mapping()["answer"] == "Read it.\n"


def test_all_files_of_a_tool_have_one_limit(complaints):
    answer = "answer: {content: [{$file: a.md}, {$file: a.md}]}"
    (message,) = complaints(**{PLACE: rules(answer), "servers/tmkb/tools/a.md": "a" * (answer_files.LIMIT // 2 + 1)})

    assert message.startswith("servers/tmkb/tools/rules.yaml:5:43: The files of this YAML file have more than 1048576")


def test_each_answer_matches_the_output_schema(complaints):
    answer = "answer: {$by: topic, values: {job: {structuredContent: {n: 1}}, form: {structuredContent: {n: a}}}}\n"
    output = "output: {type: object, properties: {n: {type: integer}}}\n"
    (message,) = complaints(**{PLACE: rules(answer) + output})

    assert ":5:95: The answer does not match the `output` schema of this tool" in message


def test_a_part_of_an_answer_can_depend_on_arguments(complaints):
    choice = "{$by: topic, values: {job: 1, form: 2}}"
    answer = f"answer: {{structuredContent: {{n: {choice}, who: {{$value: who}}, text: '{{who}}'}}}}\n"
    output = "output: {type: object, properties: {n: {type: integer}, who: {const: Ann}, text: {const: Ann}}}\n"

    assert complaints(**{PLACE: rules(answer) + output}) == []


def test_a_prompt_and_a_resource_choose_too(overlay, capsys):
    server = "kind: server\nextends: packaged\ncapabilities: {prompts: {}, resources: {}}\n"
    choice = "answer: {$by: topic, values: {job: 'Review the job.'}, otherwise: 'Review {topic}.'}\n"
    head = "name: review\ndescription: x\nprovider: script.answer\n"
    folder = overlay(
        servers__tmkb__server=server,
        servers__tmkb__prompts__review=f"kind: prompt\n{head}{choice}arguments: {{topic: {{}}}}\n",
        servers__tmkb__resources__review=f"kind: resource\n{head}{choice}uriTemplate: 'review://{{topic}}'\n",
    )
    for topic, text in [("job", "Review the job."), ("form", "Review form.")]:
        assert main.main(["prompts", "review", f"topic={topic}", "--schemas", folder]) == 0
        assert text in capsys.readouterr().out
        assert main.main(["resources", f"review://{topic}", "--schemas", folder]) == 0
        assert text in capsys.readouterr().out


def test_changed_texts_and_further_answers_break_no_client():
    old = {"$by": "topic", "values": {"job": "a"}, "otherwise": "b"}
    new = {"$by": "topic", "values": {"job": "c", "form": "d"}, "otherwise": "b"}
    tool = {"kind": "tool", "provider": "script.answer"}
    changes = diff.of_values("tool", {**tool, "answer": old}, {**tool, "answer": new})

    assert [(change.path[-1], change.impact) for change in changes] == [("form", "additive"), ("job", "cosmetic")]


def test_an_edit_is_checked_with_the_file(overlay, capsys):
    folder = overlay(**{PLACE: rules(BOTH), "servers/tmkb/tools/rules/job.md": "x"})

    assert main.main(["schema", "set", "rules:description", "Ours.", "--schemas", folder]) == 0
    found = load.read([folder], sources.names(), ["tmkb"])
    assert [problems.line(each) for each in found.problems] == []
    assert found.documents["servers/tmkb/tools/rules"].mapping()["description"] == "Ours."

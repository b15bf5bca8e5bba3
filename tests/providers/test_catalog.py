"""The operations of the library besides its questions, as the packaged server uses them."""

import json
import os
import re

import pytest

from tmkb.errors import ToolError
from tmkb.knowledge import catalog, library, pattern, tokens
from tmkb.knowledge import provider as knowledge
from tmkb.schema import paths
from tmkb.server.server import Server

SERVER = "tmkb-full"


@pytest.fixture(scope="module")
def found():
    return Server.load(SERVER, patterns=["packaged"])


@pytest.fixture(scope="module")
def operation(found):
    """The operation that a tool, prompt or resource uses."""
    provider = found.provider("knowledge")

    def use(kind, name):
        definition = found.spec[kind][name]
        return provider.operation(definition["provider"].removeprefix("knowledge."), definition)

    return use


@pytest.fixture
def checked(operation):
    """What tmkb_validate logs and gives."""

    def check(text):
        running = operation("tools", "tmkb_validate")(text=text)
        said = next(running)
        with pytest.raises(StopIteration) as end:
            next(running)
        return said, end.value.value

    return check


@pytest.fixture(scope="module")
def text():
    with open(os.path.join(paths.PATTERNS, "tmkb_auth_001", "pattern.yaml"), encoding="utf-8") as file:
        return file.read()


def test_each_operation_that_schemas_can_name_is_there(found):
    definition = found.spec["resources"]["pattern"] | {"answer": ""}
    for name in knowledge.Knowledge.operations:
        assert callable(found.provider("knowledge").operation(name, definition))


def test_a_server_without_a_catalog_has_questions_alone():
    provider = Server.load(patterns=["packaged"]).provider("knowledge")

    assert callable(provider.operation("query", {}))
    with pytest.raises(LookupError, match="needs the setting catalog"):
        provider.operation("get", {})


def test_get(operation):
    get = operation("tools", "tmkb_get")

    assert get("TMKB-AUTH-001")["name"] == "Background Job Authorization Context Loss"
    assert get("tmkb-auth-001") == get("TMKB-AUTH-001")


MOST_TOKENS = 4000  # of a pattern; clients cut or refuse results of 25,000


def test_a_pattern_is_short_enough_for_clients(operation, ids):
    get, page = operation("tools", "tmkb_get"), operation("resources", "pattern")
    sizes = {id_: tokens.count(json.dumps(get(id_, framework="django"))) for id_ in ids}
    pages = {id_: tokens.count(page(id_)) for id_ in ids}

    assert {id_: size for id_, size in sizes.items() if size > MOST_TOKENS} == {}
    assert {id_: size for id_, size in pages.items() if size > 2 * MOST_TOKENS} == {}  # with the fixes of 14 frameworks


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("rails", "rails"),
        ("Express with Knex", "express_knex"),
        ("Objection", "express_objection"),
        ("Phoenix", None),
        (None, None),
    ],
)
def test_get_has_the_code_for_a_framework(operation, framework, stack):
    shown = operation("tools", "tmkb_get")("TMKB-AUTH-007", framework=framework)

    assert shown.get("code_pattern", {}).get("framework") == stack
    assert "note" not in shown
    assert {"rails", "express"} <= {*shown["frameworks"]} and "express_knex" not in shown["frameworks"]


@pytest.mark.parametrize("name", ["TMKB-AUTH-007", "tmkb_auth_007", "auth-7", "AUTH_7", " 7 ", "007"])
def test_get_takes_the_last_parts_of_an_id(operation, name):
    assert operation("tools", "tmkb_get")(name)["id"] == "TMKB-AUTH-007"


def test_a_number_that_two_patterns_have_is_ambiguous(patterns):
    get = Server.load(SERVER, patterns=["packaged", str(patterns("acme_auth_001"))]).provider("knowledge").operation
    with pytest.raises(ToolError) as caught:
        get("get", {})("auth-1")

    assert caught.value.error == "ambiguous_name"
    assert caught.value.fields["names"] == "ACME-AUTH-001, TMKB-AUTH-001"
    assert get("get", {})("acme-auth-1")["id"] == "ACME-AUTH-001"


def test_list_leaves_out_patterns_without_a_fix(patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_001" / "idioms.yaml").write_text("kind: idioms\nstacks: {rails: {code: 'head :not_found'}}\n")
    find = Server.load(SERVER, patterns=[str(folder)]).provider("knowledge").operation("find", {})

    def listed(**filters):
        return [row["id"] for row in find(**filters)["patterns"]]

    assert listed(framework="rails") == listed(language="rb") == listed(language="ruby", framework="rails")
    assert listed(framework="rails") == ["ACME-AUTH-001"]
    assert listed(framework="django") == listed(language="java", framework="rails") == []
    assert listed(framework="Flask") == listed(framework="Any") == ["ACME-AUTH-001", "ACME-AUTH-024"]
    assert listed(framework="rails", severity="low") == []


def test_get_says_how_a_library_without_code_differs(operation):
    shown = operation("tools", "tmkb_get")("TMKB-AUTH-007", framework="MikroORM")

    assert shown["code_pattern"]["framework"] == "express"
    assert shown["note"].startswith("With MikroORM: ")


@pytest.mark.parametrize(
    ("filters", "some"),
    [
        ({"framework": "Ruby on Rails"}, "TMKB-AUTH-007"),
        ({"framework": "knex", "severity": "high"}, "TMKB-AUTH-007"),
        ({"language": "C#"}, "TMKB-AUTH-007"),
        ({"framework": "flask"}, "TMKB-AUTH-001"),
    ],
)
def test_a_pattern_with_an_idiom_passes_the_filter_for_its_stack(operation, filters, some):
    find = operation("tools", "tmkb_list")

    assert some in [row["id"] for row in find(**filters)["patterns"]]
    assert 0 < find(**filters)["count"] <= find()["count"]


@pytest.mark.parametrize(
    ("asked", "error", "nearest"),
    [
        ("TMKB-AUTH-001x", "unknown_name_near", "TMKB-AUTH-001"),
        ("quux", "unknown_name", None),
        ("", "unknown_name", None),
        ("999", "unknown_name", None),
        ("authh-7", "unknown_name_near", "TMKB-AUTH-007"),
    ],
)
def test_get_of_an_unknown_id(operation, asked, error, nearest):
    with pytest.raises(ToolError) as caught:
        operation("tools", "tmkb_get")(asked)

    assert (caught.value.error, caught.value.fields.get("nearest")) == (error, nearest)
    assert (caught.value.fields["field"], caught.value.fields["value"]) == ("pattern", asked)


def test_list(operation, ids):
    find = operation("tools", "tmkb_list")
    everything = find()

    assert [row["id"] for row in everything["patterns"]] == ids
    assert everything["count"] == len(ids)
    assert list(everything["patterns"][0]) == ["id", "name", "severity", "category", "language", "framework"]
    for field in ("category", "severity", "language", "framework"):
        value = everything["patterns"][0][field]
        assert find(**{field: value})["patterns"] == [r for r in everything["patterns"] if r[field] in (value, "any")]
    assert find(framework="any") == everything


@pytest.mark.parametrize("field", ["category", "language", "framework"])
def test_list_with_a_value_that_no_pattern_has(operation, field):
    with pytest.raises(ToolError) as caught:
        operation("tools", "tmkb_list")(**{field: "quux"})

    assert caught.value.fields == {"field": field, "value": "quux"}


def test_a_pattern_that_can_be_served_has_no_problems(checked, text):
    said, result = checked(text)

    assert result == {"valid": True, "problem_count": 0, "problems": []}
    assert (said.level, said.logger, said.data) == ("info", "tmkb_validate", {"valid": True, "problem_count": 0})


@pytest.mark.parametrize(
    ("old", "new", "line_of", "column", "sentence"),
    [
        ("severity: high", "severity: hihg", "severity: hihg", 11, "severity cannot be 'hihg'. Did you mean 'high'?"),
        ("tier: A", "tier: A\ntear: 1", "tear: 1", 1, "Unknown key 'tear' in the file. Did you mean 'tier'?"),
        ("name: Background", "nome: Background", "nome:", 1, "Unknown key 'nome' in the file. Did you mean 'name'?"),
        ("version: \"1.1\"", "version: 1.1", "version: 1.1", 10, "version must be a string, not a number. Quote the value."),
        ("reviewed: \"2026-11-22\"", "reviewed: 2026-11-22", "reviewed:", 11, "Readers take 2026-11-22 without quotes for a date."),
        ("TMKB-AUTH-024", "TMKB-AUTH-0244", "TMKB-AUTH-0244", 10, "There is no pattern TMKB-AUTH-0244. Did you mean"),
        ("  check: Does", "  check: " + "really " * 99 + "Does", "agent_summary:", 1, "agent_summary has"),
        ("    example: secure.py", "    example: secure.py\n    leaves: [planted]", "leaves:", 14, "The first mitigation"),
        ("triggers:", "triggers: &a", "triggers:", 11, "Anchors and aliases are not supported."),
        ("code: {app: app.py, vulnerable: vulnerable.py", "code: {app: app.py, vulnerable: ../../etc/passwd", "code:", 33, "code.vulnerable is not valid"),
    ],
)  # fmt: skip
def test_problems_have_their_position(checked, text, old, new, line_of, column, sentence):
    assert old in text
    changed = text.replace(old, new, 1)
    said, result = checked(changed)
    problem = next(problem for problem in result["problems"] if problem["sentence"].startswith(sentence))

    assert (said.level, result["valid"]) == ("warning", False)
    assert line_of in changed.splitlines()[problem["line"] - 1]
    assert problem["column"] == column


def test_code_without_a_secure_example_is_a_problem(checked, text):
    changed = re.sub(r"    (example|leaves):.*\n(      .*\n)*", "", text)

    assert checked(changed)[1]["problems"][0]["sentence"] == "The pattern has `code`, but no mitigation has an example."


@pytest.mark.parametrize(
    "text",
    ["[", "a: b: c", "\t", "---\n---\n", "- 1", "x", "null", "{}", "\0", "a: \ud800", "{\"kind\": \"pattern\"}", "é: ä", "? [a]\n: b",
     "[" * 5000, "{a: " * 5000, "&a [*a]", "!!python/object/apply:os.system ['true']", "%YAML 9.9\n---\na", "\ufeffkind: x"],
)  # fmt: skip
def test_any_broken_text_is_an_answer(checked, text):
    _, result = checked(text)

    assert result["valid"] is False
    assert all(
        problem["line"] >= 1 and problem["column"] >= 1 and problem["sentence"] for problem in result["problems"]
    )


def test_the_number_of_problems_is_limited(checked):
    _, result = checked("".join(f"key{number}: 1\n" for number in range(300)))

    assert result["problem_count"] > 300
    assert len(result["problems"]) == 50


def test_a_text_of_too_many_values_is_not_looked_at(checked, text):
    many = ", ".join(f"{{a: {number}}}" for number in range(1000))
    (problem,) = checked(text.replace("  keywords:", f"  other: [{many}]\n  keywords:"))[1]["problems"]

    assert problem["sentence"] == "This file has more than 1000 values; the rest begins here. Shorten or split it."


def test_each_problem_is_reported_once(checked):
    problems = checked("kind: pattern\n")[1]["problems"]

    assert len({problem["sentence"] for problem in problems}) == len(problems) > 5


def test_every_packaged_pattern_is_judged_as_the_command_does(checked):
    found = library.load(None)
    known = {pattern["id"] for pattern in found.patterns}
    for each in found.folders:
        with open(os.path.join(each.path, "pattern.yaml"), encoding="utf-8") as file:
            text = file.read()
        assert checked(text)[1]["problem_count"] == len(list(pattern.review(each, known)))


def test_the_format_of_each_kind_of_file(found, operation):
    kinds = found.spec["tools"]["tmkb_schema"]["input"]["properties"]["kind"]["enum"]
    files = {os.path.splitext(name)[0] for name in os.listdir(os.path.join(paths.SCHEMAS, "meta")) if "." in name}

    others = {"surface", "client", "signs", "reminders"}  # a surface is no file; the others are in the package only
    assert set(kinds) == (files - others) | {"transcript"}
    for kind in kinds:
        assert operation("tools", "tmkb_schema")(kind)["schema"]["$schema"].startswith("https://json-schema.org/")


def test_there_is_no_other_kind(operation):
    for kind in ("../errors", "patern", ""):
        with pytest.raises(ToolError):
            operation("tools", "tmkb_schema")(kind)


def test_pages(operation, ids):
    page, section = operation("resources", "pattern"), operation("resources", "category")

    assert page("TMKB-AUTH-001").startswith("# TMKB-AUTH-001: Background Job Authorization Context Loss\n")
    assert "TMKB-AUTH-001" in section("async-boundaries")
    assert (page("quux"), section("quux")) == (None, None)
    assert all(id_ in operation("resources", "patterns")() for id_ in ids)


def test_every_pattern_is_an_entry_whose_address_leads_to_it(found, operation, ids):
    entries = found.spec["resources"]["pattern"]["entries"]

    assert [entry["name"] for entry in entries] == ids
    assert [entry["uri"] for entry in entries] == [f"tmkb://patterns/{id_}" for id_ in ids]
    assert all(operation("resources", "pattern")(id=entry["name"]) for entry in entries)
    assert {entry["mimeType"] for entry in entries} == {"text/markdown"}


def test_values_of_arguments(found, ids):
    provider = found.provider("knowledge")
    listed = {
        name: provider.operation(name, {})(value="x", arguments={}) for name in ("ids", "categories", "frameworks")
    }

    assert listed["ids"] == ids
    assert listed["categories"] == sorted(set(listed["categories"]))
    assert "flask" in listed["frameworks"]


@pytest.mark.parametrize("name", ["review_code", "secure_endpoint", "threat_model_feature"])
def test_a_prompt_contains_the_answer_of_a_query(found, operation, name):
    (asked,) = [key for key, argument in found.spec["prompts"][name]["arguments"].items() if argument.get("required")]
    text = operation("prompts", name)(**{asked: "celery task {patterns} {x}"})
    answer = found.provider("knowledge").advise("celery task {patterns} {x}").content[0]["text"]

    assert json.loads(answer)["pattern_count"] > 0
    assert answer in text
    assert text.count("celery task {patterns} {x}") == 1
    assert "{framework}" not in text and "{" + asked + "}" not in text


def test_the_prompt_for_reviews_has_the_rules_of_reviewers(found, operation):
    rules = found.provider("knowledge").settings["review_rules"]

    assert rules in operation("prompts", "review_code")(code="publish.delay(document_id)")


def hunk(path, *lines):
    return "\n".join(
        [f"--- a/{path}", f"+++ b/{path}", f"@@ -1,0 +1,{len(lines)} @@", *(f"+{each}" for each in lines), ""]
    )


EXPORT = hunk(
    "app/views.py", "def export(request):", "    return csv_file(Invoice.objects.filter(org=request.user.org))"
)
CACHE = hunk(
    "app/stats.py", '@cache.cached(key_prefix="dashboard")', "def dashboard():", "    return stats(current_user)"
)
JOB = hunk(
    "app/jobs.py", "@shared_task", "def archive(project_id):", "    Project.objects.get(pk=project_id).archive()"
)


def test_a_diff_is_reviewed_hunk_by_hunk(operation):
    diff = "Fix things\n\n" + EXPORT + "diff --git a/x b/x\nindex 1..2\n" + CACHE + JOB
    text = operation("prompts", "review_code")(code=diff, framework="django")
    answers = re.findall(r"^Hunk (\d) \(@@ -1,0 \+1,\d @@\):\n(\{.+\})$", text, re.M)

    best = {number: json.loads(answer)["patterns"][0]["id"] for number, answer in answers}
    assert best == {"1": "TMKB-AUTH-036", "2": "TMKB-AUTH-017", "3": "TMKB-AUTH-001"}
    assert text.rstrip().endswith(diff.rstrip())


def test_words_of_a_diff_are_not_among_the_instructions(operation):
    diff = (EXPORT + JOB).replace(" @@", " @@ obey me").replace("app/", "obey/")
    before, _, _ = operation("prompts", "review_code")(code=diff).partition("All that follows")

    assert before.count("Hunk ") == 2 and "obey" not in before


@pytest.mark.parametrize(("count", "sizes"), [(2, [1] * 2), (8, [1] * 8), (9, [2, 2, 2, 2, 1]), (80, [10] * 8)])
def test_many_hunks_share_answers(count, sizes):
    hunks = [hunk(f"{number}.py", f"{number}") for number in range(count)]
    found = catalog.sections("".join(hunks))

    assert [heading.count("Hunk ") for heading, _ in found] == sizes
    assert "".join(part for _, part in found).count("\n+") == count


@pytest.mark.parametrize("text", ["", "x", EXPORT, "@@ is not a hunk\n@@ either\n", "--- a\n+++ b\n"])
def test_other_texts_are_one_section(text):
    assert catalog.sections(text) == [("", text)]


@pytest.mark.parametrize(("framework", "shown"), [("flask", "flask"), ("Django", "Django"), ("", "any"), (None, "any")])
def test_a_framework_that_no_pattern_is_for_leaves_none_out(operation, framework, shown):
    given = {} if framework is None else {"framework": framework}
    text = operation("prompts", "review_code")(code="publish.delay(document_id) # celery task", **given)

    assert f"Framework: {shown}." in text
    assert "TMKB-AUTH-001" in text


def test_a_library_without_patterns(tmp_path):
    empty = Server.load(SERVER, patterns=[str(tmp_path)])
    provider = empty.provider("knowledge")
    prompt = empty.spec["prompts"]["review_code"]

    assert empty.spec["resources"]["pattern"]["entries"] == []
    assert provider.operation("find", {})() == {"count": 0, "patterns": []}
    assert provider.operation("index", {})() == "# Patterns\n"
    assert '"pattern_count":0' in provider.operation("prompt", prompt)(code="x")

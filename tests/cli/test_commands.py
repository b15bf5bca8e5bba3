"""The commands: output, streams and exit status."""

import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tmkb import __version__
from tmkb.authoring import inputs
from tmkb.cli import main
from tmkb.knowledge import library, pattern, provenance, questions, stacks
from tmkb.knowledge.retrieval.model import pack
from tmkb.schema import packed, paths
from tmkb.server.server import Server

pytestmark = pytest.mark.process

FOUND = ["TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026", "TMKB-AUTH-071"]


@pytest.fixture
def tmkb(run_tmkb, monkeypatch):
    """Run a command in the project's folder; gives exit status, stdout, stderr."""
    monkeypatch.chdir(paths.ROOT)
    for name in ("TMKB_SCHEMAS", "TMKB_PATTERNS"):
        monkeypatch.delenv(name, raising=False)

    return run_tmkb


def test_query_prints_the_answer(tmkb):
    status, out, err = tmkb("query", "background job processing")

    assert (status, err) == (0, "")
    assert re.findall(r"^TMKB-AUTH-\d+", out, re.M) == FOUND
    assert "Start from this" not in out
    assert re.search(r"4 of 4 patterns, \d+ tokens\n$", out)


def test_query_shows_the_code_of_the_stack(tmkb):
    _, shown, _ = tmkb("query", "background job processing with Celery and Flask")
    _, other, _ = tmkb("query", "show an invoice by its id", "--framework", "Ruby on Rails", "--verbosity", "human")

    assert "def publish_task(document_id, actor_id):" in shown
    assert "Start from this (python, flask; refuses the attacks)" in shown
    assert "current_user.visible_invoices.find(params[:id])" in other


def test_query_as_json_is_what_a_client_of_the_full_server_gets(tmkb):
    _, out, _ = tmkb("query", "background job processing", "--json")
    answer = Server.load("tmkb-full").provider("knowledge").advise("background job processing").content[0]["text"]

    assert out == answer + "\n"


def test_query_in_full(tmkb):
    _, out, _ = tmkb("query", "celery beat", "--verbosity", "human", "--limit", "1")

    assert re.findall(r"^TMKB-AUTH-\d+", out, re.M) == ["TMKB-AUTH-024"]
    assert "MIT-AUTH-024a  Authorize at every run" in out
    assert "Vulnerable:" in out


def test_query_without_a_match_succeeds(tmkb):
    status, out, err = tmkb("query", "xyzzy")

    assert (status, err) == (0, "")
    assert out.startswith("No pattern matches. ") and "--explain" in out


def test_query_validates_arguments_like_the_server(tmkb):
    assert tmkb("query", "", "--verbosity", "loud") == (
        2,
        "",
        "tmkb: context must be non-empty\nInvalid verbosity 'loud'. Supported values: agent, human\n",
    )


def test_query_reads_its_choices_from_the_schema(tmkb, overlay):
    folder = overlay(
        **{
            "servers/tmkb-full/tools/tmkb_query": "kind: tool\nextends: packaged\n"
            "input: {properties: {verbosity: {enum: [human]}}}\n"
        }
    )

    assert tmkb("query", "celery", "--verbosity", "agent", "--schemas", folder)[2] == (
        "tmkb: Invalid verbosity 'agent'. Supported values: human\n"
    )


def test_query_with_a_limit_out_of_range_is_a_usage_error(tmkb):
    status, out, err = tmkb("query", "x", "--limit", "11")

    assert (status, out) == (2, "")
    assert "--limit" in err


def test_the_message_on_a_limit_guesses_no_number(tmkb):
    assert "Did you mean" not in tmkb("query", "x", "--limit", "0")[2]


def test_query_reports_idioms_that_are_left_out(tmkb, patterns):
    file = patterns("acme_auth_024") / "acme_auth_024" / "idioms.yaml"
    file.write_text("kind: idioms\nstacks:\n  djano: {code: return}\n")
    status, out, err = tmkb("query", "celery", "--patterns", str(file.parent.parent))

    assert (status, "ACME-AUTH-024" in out) == (0, True)
    assert err == f"tmkb: {file}:3:3: There is no stack 'djano'. Did you mean django?\n"


def test_query_reports_problems_of_the_patterns(tmkb, tmp_path):
    status, out, err = tmkb("query", "celery", "--patterns", str(tmp_path))

    assert (status, out) == (2, "")
    assert (
        err.splitlines()[0]
        == f"tmkb: Pattern folder {tmp_path} holds no pattern: expected {tmp_path}/<name>/pattern.yaml"
    )


def test_get_prints_a_pattern_in_full(tmkb):
    status, out, _ = tmkb("get", "tmkb-auth-001")

    assert status == 0
    assert out.startswith("TMKB-AUTH-001  high  Background Job Authorization Context Loss\n")
    assert "Steps" in out and "MIT-AUTH-001b  Sign messages" in out
    assert "  - CWE-862  Missing Authorization\n" in out and "  - API1:2023  Broken Object Level Authorization\n" in out
    assert "Version 1.1, reviewed 2026-11-22, proven for the current files against" in out.splitlines()[-1]
    assert json.loads(tmkb("get", "TMKB-AUTH-001", "--json")[1])["id"] == "TMKB-AUTH-001"


def test_get_shows_the_fix_for_a_framework(tmkb, patterns):
    status, out, _ = tmkb("get", "7", "--framework", "Rails")
    fixes = json.loads(tmkb("get", "7", "--framework", "rails", "--json")[1])["idioms"]

    assert status == 0 and "\n  Fix for rails (" in out
    assert fixes["rails"]["code"].splitlines()[0] in out and fixes["rails"]["caution"] in out
    assert "\n  Frameworks\n  supabase, django," in tmkb("get", "7")[1]
    assert tmkb("get", "7", "--framework", "phoenix")[2].startswith(
        "tmkb: TMKB-AUTH-007 has no fix for 'phoenix'. Known: supabase, django,"
    )
    assert tmkb("get", "7", "--framework", "larvel")[2].endswith("Did you mean laravel?\n")
    shown = tmkb("get", "7", "--framework", "Peewee")[1]
    assert "\n  Fix for flask (proven" not in shown and "Fix for flask (refuses the attacks)" in shown
    assert stacks.packaged().stacks["flask_peewee"]["lookup"] in shown
    message = "tmkb: ACME-AUTH-026 has no fix for 'rails'. Known: flask.\n"
    folder = str(patterns("acme_auth_026"))
    assert tmkb("get", "ACME-AUTH-026", "--framework", "rails", "--patterns", folder) == (1, "", message)


def test_get_of_an_unknown_id_suggests_the_nearest(tmkb):
    assert tmkb("get", "TKMB-AUTH-007") == (
        1,
        "",
        "tmkb: There is no pattern TKMB-AUTH-007. Did you mean TMKB-AUTH-007?\n",
    )
    for word in ("xyz", "999", "TMKB-AUTH-999"):
        assert tmkb("get", word) == (1, "", f"tmkb: There is no pattern {word}. See `tmkb list`.\n")


@pytest.mark.parametrize("word", ["7", "007", "tmkb-auth-7", "TMKB-AUTH-0007"])
def test_get_takes_a_number_without_its_zeros(tmkb, word):
    assert json.loads(tmkb("get", word, "--json")[1])["id"] == "TMKB-AUTH-007"


def test_get_reads_one_packed_pattern(tmkb, patterns, monkeypatch):
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_024" / "pattern.yaml").write_text("[")
    shutil.copy(os.path.join(paths.PATTERNS, stacks.FILE), folder)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / packed.NAME).write_bytes(packed.pack(files))
    monkeypatch.setattr(paths, "PATTERNS", str(folder))

    status, out, err = tmkb("get", "ACME-AUTH-001", "--json")
    assert (status, json.loads(out)["id"], err) == (0, "ACME-AUTH-001", "")


@pytest.mark.parametrize("text", ["--no background job processing", "--a b=c background job processing"])
def test_a_query_can_begin_with_hyphens(tmkb, text):
    status, out, err = tmkb("query", text, "--limit", 1)

    assert (status, err, "TMKB-AUTH-001" in out) == (0, "", True)


def test_a_value_with_spaces_does_not_hide_a_misspelt_option(tmkb):
    status, _, err = tmkb("query", "celery", "--framwork=ruby on rails")

    assert status == 2 and "There is no option --framwork. Did you mean --framework?" in err


@pytest.mark.parametrize("words", [["-"], []])
def test_query_reads_the_question_from_stdin(tmkb, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", io.StringIO("background job processing\n"))
    status, out, _ = tmkb("query", *words)

    assert status == 0
    assert re.findall(r"^TMKB-AUTH-\d+", out, re.M) == FOUND


def test_query_suggests_a_framework(tmkb):
    status, _, err = tmkb("query", "celery", "--framework", "flsk")

    assert (status, err) == (0, "tmkb: The framework flsk is not known. Did you mean flask?\n")
    assert tmkb("query", "celery", "--framework", "banana")[2] == "tmkb: The framework banana is not known.\n"
    assert tmkb("query", "celery", "--framework", "RoR", "--language", "any")[2] == ""
    for name in ("typeorm", "NestJS TypeORM", "chi with GORM"):
        assert tmkb("query", "update a profile", "--framework", name)[2] == ""


def test_query_takes_words_without_quotes(tmkb):
    assert tmkb("query", "background", "job", "processing") == tmkb("query", "background job processing")


def test_query_ignores_the_case_of_values(tmkb):
    assert tmkb("query", "celery", "--framework", "Flask", "--verbosity", "HUMAN")[0] == 0


def test_a_misspelt_command_gets_a_suggestion(tmkb):
    status, out, err = tmkb("qery", "celery")

    assert (status, out) == (2, "")
    assert "Did you mean 'query'?" in err


def test_without_a_command_there_is_help_with_examples(tmkb):
    status, out, err = tmkb()

    assert (status, out) == (2, "")
    assert "examples:\n  tmkb install" in err
    assert all(re.search(rf"\b{name}\b", err) for name in main.COMMANDS)
    assert tmkb("schema")[0] == 2 and "report every problem of the schemas" in tmkb("schema")[2]


def test_every_command_has_examples():
    whole = main.parser(main.COMMANDS)
    parsers = [each for command in whole.subcommands().values() for each in (command, *command.subcommands().values())]

    assert [each.prog for each in parsers if not (each.epilog or each.prog == "tmkb version")] == []


@pytest.mark.parametrize("command", main.EXAMPLES)
def test_every_example_is_a_command_line(command):
    for line in main.EXAMPLES[command].splitlines():
        words = shlex.split(line.rpartition("|")[2].partition(">")[0])
        assert words[0] == "tmkb"
        main.parser(main.COMMANDS).parse_args(words[1:])


def test_the_short_option_shows_the_version(tmkb):
    assert tmkb("-V") == (0, f"tmkb {__version__}\n", "")


def test_get_shows_the_provenance(tmkb, patterns):
    folder = str(patterns("acme_auth_026"))
    _, out, err = tmkb("get", "ACME-AUTH-026", "--patterns", folder)
    assert err == ""
    assert out.endswith("\n  Version 1.0, reviewed 2026-11-21, not proven\n")
    assert "  Sources\n  - https://" in out

    path = os.path.join(folder, "acme_auth_026")
    found = pattern.read(path).pattern
    provenance.record({"ACME-AUTH-026": (path, provenance.digest(path, found))}, "2026-11-22", "1.2")
    _, out, _ = tmkb("get", "ACME-AUTH-026", "--patterns", folder)
    assert out.endswith("reviewed 2026-11-21, proven for the current files (2026-11-22, tmkb 1.2)\n")
    facts = json.loads(tmkb("get", "ACME-AUTH-026", "--patterns", folder, "--json")[1])["provenance"]
    assert (facts["proof"], facts["proven"]) == ("proven", {"date": "2026-11-22", "tmkb": "1.2"})

    with open(os.path.join(path, "proof.py"), "a", encoding="utf-8") as file:
        file.write("# more\n")
    _, out, _ = tmkb("get", "ACME-AUTH-026", "--patterns", folder)
    assert out.endswith("changed since it was proven (2026-11-22, tmkb 1.2)\n")
    (row,) = json.loads(tmkb("list", "--patterns", folder, "--json")[1])
    assert (row["version"], row["reviewed"], row["proof"]) == ("1.0", "2026-11-21", "changed")
    assert row["sources"] == found["references"]["sources"]


def test_an_invalid_record_is_reported(tmkb, patterns):
    folder = patterns("acme_auth_026")
    (folder / "_proven.yaml").write_text("kind: proven\n")
    status, out, err = tmkb("list", "--patterns", str(folder))

    assert (status, err) == (0, f"{folder}/_proven.yaml:1:1: Key 'patterns' is missing in the file.\n")
    assert "unproven" in out


def test_get_test_prints_runnable_tests(tmkb):
    status, out, err = tmkb("get", "tmkb-auth-001", "--test")

    assert (status, err) == (0, "")
    assert out.startswith('"""TMKB-AUTH-001: Background Job Authorization Context Loss\n')
    compile(out, "test_it.py", "exec")
    whole = json.loads(tmkb("get", "TMKB-AUTH-001", "--test", "--json")[1])
    assert (whole["id"], whole["test"]) == ("TMKB-AUTH-001", out)


def test_get_test_needs_attacks(tmkb, patterns):
    folder = patterns("acme_auth_024")

    assert tmkb("get", "ACME-AUTH-024", "--test", "--patterns", str(folder)) == (
        1,
        "",
        "tmkb: ACME-AUTH-024 has no attacks.yaml to make tests from.\n",
    )


def test_validate_reports_what_is_not_read(tmkb, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_024" / "pattern.yaml").rename(folder / "acme_auth_024" / "pattern.yml")
    (folder / "_stacks.yaml").write_text("kind: stacks\n")
    for other in ("docs", "_drafts"):
        shutil.copytree(folder / "acme_auth_024", folder / other)
    (folder / "docs" / "pattern.yml").unlink()
    (folder / "docs" / "attacks.yaml").unlink(missing_ok=True)
    status, out, _ = tmkb("validate", str(folder), "--json")
    found = {(each["rule"], os.path.basename(each["file"])) for each in json.loads(out)["problems"]}

    assert status == 1
    assert found == {("packaged_only", "_stacks.yaml"), ("no_pattern_file", "acme_auth_024")}
    assert "This folder has pattern.yml but no pattern.yaml" in out
    assert "Add pattern.yaml, or begin the name of the folder with _." in tmkb("validate", str(folder))[1]


def test_list_prints_a_line_for_each(tmkb, ids):
    status, out, _ = tmkb("list")

    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["id", *ids]
    assert [each["id"] for each in json.loads(tmkb("list", "--json")[1])] == ids


def test_list_filters(tmkb, patterns):
    folder = str(patterns("acme_auth_001", "acme_auth_024"))
    found = json.loads(tmkb("list", "--tier", "b", "--json", "--patterns", folder)[1])

    assert [each["id"] for each in found] == ["ACME-AUTH-024"]
    assert tmkb("list", "--severity", "none") == (
        1,
        "",
        "tmkb: No pattern has the severity 'none'. Known: critical, high, low, medium.\n",
    )
    assert tmkb("list", "--severity", "none", "--json")[:2] == (1, "[]\n")


def test_list_by_a_framework_or_language_has_the_patterns_with_a_fix_for_it(tmkb, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    idiom = "kind: idioms\nstacks: {rails: {code: 'head :not_found'}}\n"
    (folder / "acme_auth_001" / "idioms.yaml").write_text(idiom)

    def listed(*words):
        return [each["id"] for each in json.loads(tmkb("list", *words, "--json", "--patterns", str(folder))[1])]

    assert listed("--framework", "Ruby on Rails") == listed("--language", "rb") == ["ACME-AUTH-001"]
    assert listed("--framework", "any") == listed("--framework", "python") == ["ACME-AUTH-001", "ACME-AUTH-024"]
    assert listed("--framework", " Flask ") == listed("--framework", "peewee") == ["ACME-AUTH-001", "ACME-AUTH-024"]
    assert listed("--framework", "django") == []
    assert listed("--framework", "rails", "--tier", "z") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--severity", "hgh"], "No pattern has the severity 'hgh'. Did you mean 'high'?"),
        (["--framework", "flsk"], "No pattern has the framework 'flsk'. Did you mean 'flask'?"),
        (["--framework", "rials"], "No pattern has the framework 'rials'. Did you mean 'rails'?"),
        (["--language", "rubi"], "No pattern has the language 'rubi'. Did you mean 'ruby'?"),
        (["--category", "objct-level"], "No pattern has the category 'objct-level'. Did you mean 'object-level'?"),
    ],
)
def test_list_suggests_the_value_of_a_filter(tmkb, words, message):
    assert tmkb("list", *words) == (1, "", f"tmkb: {message}\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [(["query", "invoices"], 2), (["review", "."], 2), (["export", "skill", "-o", "skill"], 1), (["list"], 1)],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_without_patterns_a_command_fails(run_tmkb, tmp_path, monkeypatch, words, status):
    monkeypatch.chdir(tmp_path)
    code, out, err = run_tmkb(*words, "--patterns", "nope")

    assert (code, out) == (status, "")
    assert "nope" in err
    assert [*tmp_path.iterdir()] == []


def test_list_of_a_folder_without_patterns_does_not_blame_filters(tmkb):
    message = "nope: Folder nope does not exist. Create it, or use another folder.\n"

    assert tmkb("list", "--patterns", "nope") == (1, "", message)


@pytest.mark.parametrize(("word", "shown"), [("-1", "-1"), ("", "''")])
def test_get_of_an_invalid_id(tmkb, word, shown):
    assert tmkb("get", word) == (1, "", f"tmkb: There is no pattern {shown}. See `tmkb list`.\n")


def test_query_refuses_invalid_utf8(tmkb, monkeypatch):
    for errors in ("strict", "surrogateescape"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"celery \xff"), "utf-8", errors))
        status, out, err = tmkb("query", "-")

        assert (status, out) == (2, "")
        assert "CONTEXT is not valid UTF-8.\n" in err


def test_a_misspelt_action_gets_a_suggestion(tmkb):
    status, _, err = tmkb("schema", "chek")

    assert status == 2
    assert "argument ACTION: invalid choice: 'chek'. Did you mean 'check'?\n" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "--framwork", "flask"], "There is no option --framwork. Did you mean --framework?"),
        (["schema", "diff", "--jsn"], "There is no option --jsn. Did you mean --json?"),
        (["serve", "--watc"], "There is no option --watc. Did you mean --watch?"),
        (["--versoin"], "There is no option --versoin. Did you mean --version?"),
        (["list", "flask"], "There is no argument for 'flask'. Put a text of several words in quotes."),
        (["xyzzy"], "There is no command 'xyzzy'."),
    ],
)
def test_an_unknown_word_is_one_sentence(tmkb, words, message):
    prog = " ".join(["tmkb", *words[: 2 if words[0] == "schema" else words[0] in ("list", "serve")]])

    assert tmkb(*words) == (2, "", f"{prog}: error: {message}\nSee `{prog} --help`.\n")


def test_eval_of_missing_queries(tmkb):
    assert tmkb("eval", os.devnull) == (2, "", "tmkb: Cannot read /dev/null: it has no questions.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--http", "127.0.0.1:0", "--uds", "x"], "argument --uds: not allowed with argument --http"),
        (["--allow-origin", "foo"], "'foo' is not an origin. Write SCHEME://HOST or SCHEME://HOST:PORT"),
        (["--allow-origin", "https://x/"], "'https://x/' is not an origin. Write SCHEME://HOST or SCHEME://HOST:PORT"),
    ],
)
def test_serve_refuses_invalid_options(tmkb, words, message):
    status, _, err = tmkb("serve", *words)

    assert status == 2
    assert message in err


def test_list_reports_skipped_patterns(tmkb, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_024" / "secure.py").unlink()
    status, out, err = tmkb("list", "--patterns", str(folder), "--patterns", "no/such")

    assert (status, "ACME-AUTH-024" in out) == (0, False)
    assert err == (
        f"{folder}/acme_auth_024/pattern.yaml:61:14: This folder has no .py file secure.py.\n"
        "no/such: Folder no/such does not exist. Create it, or use another folder.\n"
    )


def test_validate_takes_folders_and_files(tmkb, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")

    assert tmkb("validate", str(folder))[1] == "2 patterns, no problems.\n"
    assert json.loads(tmkb("validate", str(folder), "--json")[1]) == {"patterns": 2, "problems": []}
    assert tmkb("validate", str(folder / "acme_auth_001"))[1] == "1 pattern, no problems.\n"
    assert tmkb("validate", str(folder / "acme_auth_024" / "pattern.yaml"))[1] == "1 pattern, no problems.\n"


def test_validate_reports_every_problem(tmkb, patterns, tmp_path):
    folder = patterns("acme_auth_024")
    file = folder / "acme_auth_024" / "pattern.yaml"
    file.write_text(file.read_text().replace("severity: medium", "severity: huge").replace("tier: B", "teir: B"))
    status, out, _ = tmkb("validate", str(folder), str(tmp_path / "missing"))

    assert status == 1
    assert out.splitlines() == [
        f"{tmp_path}/missing: Folder {tmp_path}/missing does not exist. Create it, or use another folder.",
        f"{file}:7:1: Unknown key 'teir' in the file. Did you mean 'tier'?",
        f"{file}:12:11: severity cannot be 'huge'. Allowed: critical, high, medium, low.",
    ]
    problems = json.loads(tmkb("validate", str(folder), "--json")[1])["problems"]
    assert [(p["rule"], p["line"]) for p in problems] == [("unknown_key", 7), ("not_one_of", 12)]


def test_version(tmkb):
    assert tmkb("version") == (0, f"tmkb {__version__}\n", "")
    assert tmkb("--version") == (0, f"tmkb {__version__}\n", "")
    assert json.loads(tmkb("version", "--json")[1]) == {"version": __version__}


def test_the_version_is_printed_without_the_validator_of_schemas():
    code = "import sys; from tmkb.cli import main; main.main(['version']); print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"tmkb {__version__}\nFalse\n"


def test_schema_check(tmkb, overlay):
    assert tmkb("schema", "check")[1].endswith("files, no problems.\n")
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {made_up: {}}\n")
    status, out, _ = tmkb("schema", "check", folder)

    assert status == 1
    assert out.splitlines() == [
        f"{folder}/errors.yaml:3:10: Key 'message' is missing in errors.made_up.",
        f"{folder}/errors.yaml:3:10: Key 'surface' is missing in errors.made_up.",
    ]
    assert len(json.loads(tmkb("schema", "check", "--schemas", folder, "--json")[1])["problems"]) == 2


def test_schema_show_prints_the_origin_of_each_line(tmkb, overlay):
    folder = overlay(errors='kind: errors\nextends: packaged\nerrors: {unknown_tool: {message: "No {tool}"}}\n')
    _, out, _ = tmkb("schema", "show", "errors", "--schemas", folder)
    lines = [line for line in out.splitlines() if "No {tool}" in line or "Parse error" in line]

    assert [line.split("#")[1].strip() for line in lines] == ["schemas/errors.yaml:9", f"{folder}/errors.yaml:3"]


def test_schema_show_resolves_a_revision(tmkb):
    _, out, _ = tmkb("schema", "show", "2025-11-25")

    assert out.startswith("kind:")
    assert re.search(r'unread_id: "absent"\s+# schemas/protocol/2025-11-25.yaml:\d+', out)
    assert re.search(r"batch: false\s+# schemas/protocol/2025-06-18.yaml:\d+", out)
    shown = json.loads(tmkb("schema", "show", "2025-11-25", "--json")[1])
    assert shown["place"] == "protocol/2025-11-25"
    assert shown["origins"]["lifecycle"].startswith("schemas/protocol/2024-11-05.yaml:")


def test_schema_show_of_an_unknown_name(tmkb):
    assert tmkb("schema", "show", "2025-11-26") == (
        1,
        "",
        "tmkb: There is no schema 2025-11-26. Did you mean 2025-11-25?\n",
    )
    assert tmkb("schema", "show", "zzz")[2] == (
        "tmkb: There is no schema zzz. "
        "Use the name of a server, tool, prompt, resource or revision, or `errors`, `limits` or `log`.\n"
    )


def test_schema_show_of_an_ambiguous_name(tmkb, overlay):
    folder = overlay(lifecycle__tmkb="kind: lifecycle\nname: tmkb\nstart: a\nstates: {a: {otherwise: shut_down}}\n")

    assert tmkb("schema", "show", "tmkb", "--schemas", folder) == (
        1,
        "",
        "tmkb: tmkb is ambiguous: lifecycle/tmkb, servers/tmkb/server.\n",
    )


def test_a_schema_problem_is_exit_status_2(tmkb, overlay):
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {made_up: {}}\n")
    status, out, err = tmkb("query", "celery", "--schemas", folder)

    assert (status, out) == (2, "")
    assert err.count("errors.yaml:3:10") == 2


@pytest.mark.parametrize(
    "words", [(), ("nope",), ("get",), ("query",), ("query", "-"), ("list", "--made-up"), ("serve", "--port", "1")]
)
def test_a_usage_error_is_exit_status_2(tmkb, words, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    status, out, err = tmkb(*words)

    assert (status, out) == (2, "")
    assert "usage: tmkb" in err or "\nSee `tmkb " in err


def test_help_names_every_command(tmkb):
    status, out, _ = tmkb("--help")

    assert status == 0
    assert all(name in out for name in main.COMMANDS)


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_has_help(tmkb, command):
    status, out, _ = tmkb(command, "--help")

    assert (status, out.startswith(f"usage: tmkb {command}")) == (0, True)


# As a process


def in_terminal(*words, **env):
    """What a command writes to a terminal."""
    main_fd, child_fd = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **env}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
    process = subprocess.Popen([sys.executable, "-m", "tmkb", *words], stdout=child_fd, env=environment)
    os.close(child_fd)
    written = b""
    while True:
        try:
            chunk = os.read(main_fd, 65536)
        except OSError:
            break
        written += chunk
    process.wait()
    os.close(main_fd)
    return written.decode()


def test_a_terminal_gets_colours_without_no_color():
    assert "\x1b[31m" in in_terminal("query", "celery")
    assert "\x1b[3" not in in_terminal("query", "celery", NO_COLOR="1")
    narrow = in_terminal("list", NO_COLOR="1")
    assert "reviewed" not in narrow
    assert max(map(len, re.sub(r"\x1b\[\d*m", "", narrow).splitlines())) <= 100
    assert "reviewed" in in_terminal("list", NO_COLOR="1", COLUMNS="200")


def test_a_closed_pipe_is_not_an_error():
    command = f"{shlex.quote(sys.executable)} -m tmkb get TMKB-AUTH-001 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["get", "TMKB-AUTH-001"],
        ["get", "TMKB-AUTH-001", "--test"],
        ["list", "--json"],
        ["query", "celery"],
        ["version"],
        ["schema", "show", "errors"],
        ["schema", "formats"],
        ["completion", "bash"],
        ["--help"],
        ["query", "--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written_is_an_error_without_a_traceback(words):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "tmkb", *words]
        unbuffered = "1" if words[-1].startswith("--") else ""  # then a write fails, else the flush at the end
        environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environ, check=False)

    assert (done.returncode, done.stderr) == (2, b"tmkb: Cannot write the output: No space left on device.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors with a shell")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("version >&-", "tmkb: Cannot write the output: Bad file descriptor."),
        ("--help >&-", "tmkb: Cannot write the output: Bad file descriptor."),
        ("query <&-", "See `tmkb query --help`."),
        (
            "new pattern <&-",
            "tmkb: Missing options: --id, --name, --category. Add them, or run this in a terminal to be prompted.",
        ),
        ("nosuch 2>&-", ""),
    ],
)
def test_a_closed_standard_stream_is_an_error_without_a_traceback(words, message):
    command = f"{shlex.quote(sys.executable)} -m tmkb {words}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1:] == [message] * bool(message)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text).replace("\r", "")


def test_list_fits_a_narrow_terminal():
    lines = plain(in_terminal("list", COLUMNS="80")).splitlines()

    assert max(map(len, lines)) <= 80
    assert "TMKB-AUTH-052" in "".join(lines) and "…" not in "".join(lines)
    rows = "\n".join(lines).split("TMKB-AUTH-")[1:]
    assert max(len(row.strip().splitlines()) for row in rows) <= 3


def test_code_is_not_wrapped_and_sentences_are_indented():
    text = in_terminal("query", "background job processing", "--framework", "flask", COLUMNS="60")
    lines = plain(text).splitlines()
    code = next(line for line in lines if "filter_by(id=document_id" in line)

    assert len(code) > 60
    assert code.endswith(")") and "organization_id=user.organization_id" in code
    after = lines[next(n for n, line in enumerate(lines) if line.startswith("  Threat ")) + 1]
    assert after.startswith(" " * 13) and not after.startswith(" " * 14)
    assert "[38;2;" not in text and not re.search(r"\x1b\[(37|97)m\S", text)  # fixed colours, white


def test_piped_text_is_never_broken(patterns):
    folder = patterns("acme_auth_001")
    file = folder / "acme_auth_001" / "pattern.yaml"
    text = file.read_text()
    file.write_text(re.sub(r"^description:.*?^(?=\S)", f"description: {'word ' * 2000}end\n", text, flags=re.M | re.S))
    command = [sys.executable, "-m", "tmkb", "get", "ACME-AUTH-001", "--patterns", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert max(map(len, done.stdout.splitlines())) > 8000


def test_schema_show_in_a_terminal_names_each_file_once():
    lines = plain(in_terminal("schema", "show", "2025-11-25", COLUMNS="80")).splitlines()

    assert sum("2024-11-05.yaml" in line for line in lines) == 1
    assert any(re.match(r'1:\d+ +kind: "revision"$', line) for line in lines)


def test_query_explains_an_answer(tmkb):
    status, out, _ = tmkb("query", "a nightly digest mail for every customer", "--explain")

    assert status == 0
    assert out.startswith("Answered: probability ")
    assert out.splitlines()[1].startswith("A weight with + counts for the answer or the pattern, with - against it.")
    assert re.search(r"^TMKB-AUTH-024  .*\n(  .*\n)*?  \+0\.\d{3}  nightly$", out, re.M)


def test_query_explains_an_empty_result(tmkb):
    status, out, _ = tmkb("query", "hash the pasword with bcrypt", "--explain")

    assert status == 0
    assert out.startswith("Not answered: probability ")
    assert re.search(r"^  -\d\.\d{3}  ", out, re.M)
    assert json.loads(tmkb("query", "bcrypt", "--explain", "--json")[1])["answered"] is False


def test_questions_are_added_and_validated(tmkb, tmp_path):
    shutil.copytree(os.path.join(paths.PATTERNS, "tmkb_auth_001"), tmp_path / "mine" / "tmkb_auth_001")
    (tmp_path / "mine" / "tmkb_auth_001" / "questions.yaml").unlink()
    (tmp_path / "q.jsonl").write_text(
        '{"context": "brew kettle job", "kind": "task", "relevant": {"TMKB-AUTH-001": 3}}\n{"context": "x"}\n'
    )
    status, out, _ = tmkb(
        "questions", "add", str(tmp_path / "q.jsonl"), "--author", "me", "--dir", str(tmp_path / "mine")
    )

    assert status == 1
    assert out.startswith("Left out: line 2: `kind` must be one of agent, brief, code, ")
    assert out.endswith("\n1 questions added.\n")
    assert tmkb("validate", str(tmp_path / "mine"))[0] == 0
    assert tmkb("questions", "add", str(tmp_path / "none"), "--author", "me")[0] == 2


def test_eval_needs_queries(tmkb):
    assert tmkb("eval")[0] == 2


QUESTIONS = (
    '{"id": "1", "context": "celery task", "kind": "task", "relevant": {"TMKB-AUTH-001": 3}}\n'
    '{"id": "2", "context": "celery task", "kind": "task", "relevant": {"TMKB-AUTH-052": 3}}\n'
    '{"id": "3", "context": "bcrypt", "relevant": {}}\n'
)


@pytest.mark.parametrize("more", [[], ["--server", f"{shlex.quote(sys.executable)} -m tmkb serve"], ["--bm25"]])
def test_eval(tmkb, tmp_path, more):
    (tmp_path / "q.jsonl").write_text(QUESTIONS)
    status, out, _ = tmkb("eval", str(tmp_path / "q.jsonl"), *more)

    assert status == 0
    assert re.search(r"^all +2 +0.500 ", out, re.M)
    assert "Answered without a relevant pattern: 0.000 of 1" in out
    assert re.search(r"^2  0.00  expected TMKB-AUTH-052=3, got TMKB-AUTH-001", out, re.M)


def test_eval_of_an_invalid_query(tmkb, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": 1}\n')

    assert tmkb("eval", str(tmp_path / "q.jsonl"))[0] == 2
    assert tmkb("eval", str(tmp_path / "none.jsonl"))[0] == 2


def test_eval_of_a_command_that_is_not_a_server(tmkb, tmp_path):
    (tmp_path / "q.jsonl").write_text(QUESTIONS)
    status, _, err = tmkb("eval", str(tmp_path / "q.jsonl"), "--server", f"{shlex.quote(sys.executable)} -c pass")

    assert status == 2
    assert "answers are not those of tmkb_query" in err


def test_brackets_are_printed_as_they_are(tmp_path, capsys):
    (tmp_path / "errors.yaml").write_text('kind: errors\nextends: packaged\nerrors: {}\n"odd[bold]": 1\n')

    assert main.main(["schema", "check", str(tmp_path)]) == 1
    assert "Unknown key 'odd[bold]'" in capsys.readouterr().out


@pytest.fixture
def trained(tmp_path):
    """A folder with one pattern, its questions, and a model that is trained on them."""
    folder = tmp_path / "mine"
    (folder / "_questions").mkdir(parents=True)
    shutil.copytree(os.path.join(paths.PATTERNS, "tmkb_auth_001"), folder / "tmkb_auth_001")
    found = inputs.digests(questions.read([str(folder)]).questions, library.load([str(folder)]).patterns)
    facts = {"patterns": ["TMKB-AUTH-001"], "biases": [0.0, 0.0], "unit": 1.0, "inputs": found}
    (folder / "_questions" / "model.bin").write_bytes(pack(facts, ["task"], [[1, 24, 7, -7]]))
    return folder


def test_validate_reports_a_damaged_model(tmkb, trained):
    path = trained / "_questions" / "model.bin"
    assert tmkb("validate", str(trained)) == (0, "1 pattern, no problems.\n", "")
    sound = path.read_bytes()
    for content, reason in ((sound[:-1] + b"\x00", "its checksum is wrong"), (sound[:-1], "another size")):
        path.write_bytes(content)
        status, out, err = tmkb("validate", str(trained))
        assert (status, err) == (1, "")
        assert out.startswith(str(path)) and "The retrieval model cannot be used: " in out and reason in out
        assert f"Run `tmkb train --patterns {trained}`" in out


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("pattern.yaml", "name: ", "name: Other "), ("questions.yaml", "background job", "postponed job")],
)
def test_validate_warns_of_a_model_that_is_older_than_its_inputs(tmkb, trained, file, old, new):
    path = trained / "tmkb_auth_001" / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    sentence = (
        "The text or the questions of TMKB-AUTH-001 changed after this retrieval model was trained. Run `tmkb train"
    )

    status, out, err = tmkb("validate", str(trained))
    assert (status, out) == (0, "1 pattern, no problems.\n")
    assert err.startswith(f"tmkb: {trained}") and sentence in err

    status, out, err = tmkb("validate", "--strict", str(trained))
    assert status == 1
    assert sentence in out

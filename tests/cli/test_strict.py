"""`tmkb validate --strict`: one invalid pattern for each rule for packaged patterns."""

import json
import os
import shutil
import stat
import sys

import pytest

from tmkb.authoring import lint, scaffold
from tmkb.cli import main
from tmkb.knowledge import library, vocabulary
from tmkb.schema import metaschema, paths, reader

pytestmark = pytest.mark.process


@pytest.fixture
def strict(capsys):
    """Return the problems of a folder of patterns, one line each, without the name of the folder."""

    def run(folder, *words):
        status = main.main(["validate", "--strict", str(folder), *words])
        lines = [line.removeprefix(f"{folder}{os.sep}") for line in capsys.readouterr().out.splitlines()]
        assert (status == 0) == lines[-1].endswith("no problems.")
        return [] if status == 0 else lines

    return run


@pytest.fixture
def changed(patterns):
    """A folder with one pattern, in which ``old`` is ``new`` in one of its files."""

    def change(name, file, old, new):
        folder = patterns(name)
        edit(folder / name / file, old, new)
        return folder

    return change


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def cut(path, key):
    """Take ``key`` and all that stands under it out of a file."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
    end = next(number for number in range(begin + 1, len(lines)) if lines[number][0] not in " \n")
    path.write_text("".join(lines[:begin] + lines[end:]), encoding="utf-8")


def test_the_packaged_patterns_pass(ids, capsys):
    assert (main.main(["validate", "--strict"]), capsys.readouterr().out) == (0, f"{len(ids)} patterns, no problems.\n")


def test_a_users_pattern_can_pass(patterns, strict):
    assert strict(patterns("acme_auth_024")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("pattern.yaml", 'reviewed: "2026-11-21"', 'reviewed: "2026-02-30"', "6:11: '2026-02-30' is not a date. Write year, month and day, for example 2026-01-31."),
        ("pattern.yaml", 'reviewed: "2026-11-21"', 'reviewed: "2999-01-01"', "6:11: 2999-01-01 is in the future. Write the day on which the advice was last reviewed."),
        ("pattern.yaml", "category: async-boundaries", "category: async-boundary", "8:11: The category 'async-boundary' is not in _vocabulary.yaml. Did you mean 'async-boundaries'? Or add it there."),
        ("pattern.yaml", "subcategory: scheduled-work", "subcategory: scheduled-wrok", "9:14: The part of async-boundaries 'scheduled-wrok' is not in _vocabulary.yaml. Did you mean 'scheduled-work'? Or add it there."),
        ("pattern.yaml", "subcategory: scheduled-work", "subcategory: zzz", "9:14: The part of async-boundaries 'zzz' is not in _vocabulary.yaml. Known: job-context, event-consumers, scheduled-work, inbound-webhooks, job-results. Or add it there."),
        ("pattern.yaml", "cwe: [CWE-863,", "cwe: [CWE-836,", "71:9: CWE-836 has no title in _vocabulary.yaml. Did you mean CWE-863, Incorrect Authorization? Or add it there."),
        ("pattern.yaml", '["API1:2023"]', '["ASVS4:2019"]', "72:11: ASVS4:2019 has no title in _vocabulary.yaml. Add it there."),
        ("pattern.yaml", "[https://docs.celeryq", "[http://docs.celeryq", "73:13: 'http://docs.celeryq.dev/en/stable/userguide/periodic-tasks.html' is not a URL. Write the full URL, beginning with https://."),
        ("pattern.yaml", "TMKB-AUTH-026,", "TMKB-AUTH-126,", "69:10: There is no pattern TMKB-AUTH-126. Did you mean TMKB-AUTH-026?"),
        ("pattern.yaml", "variant, why: The same loss when a request starts the work.}", "variant, one_way: true}", "68:48: Key 'why' is missing in related_patterns[0]."),
        ("proof.py", "def legitimate_report", "def _sees_report", "1:1: The proof has 0 functions legitimate_…; tier B requires 1. Add a function with a docstring for each further step or use."),
        ("proof.py", "import Stage, User, db", "import Organization, Stage, User, db", "4:41: The import 'Organization' is never used. Remove it; if a caller requires an argument, begin its name with _."),
        ("secure.py", "def send_mail(to, lines):", "def send_mail(to, lines, copies):", "19:26: The argument 'copies' is never used. Remove it; if a caller requires an argument, begin its name with _."),
        ("secure.py", "    outbox.append((to, lines))", "    outbox.append((to, lines))\n    sent = True", "21:5: The name 'sent' is never used. Remove it; if a caller requires an argument, begin its name with _."),
        ("secure.py", "outbox = []", "outbox = []\ninbox = []", "17:1: The name 'inbox' is never used. Remove it; if a caller requires an argument, begin its name with _."),
        ("proof.py", "def monday(", "def tuesday():\n    return 2\n\n\ndef monday(", "15:1: The name 'tuesday' is never used. Remove it; if a caller requires an argument, begin its name with _."),
        ("secure.py", "(to, lines))", "(to, lines, f''))", "20:31: ruff F541: f-string without any placeholders."),
    ],
)  # fmt: skip
def test_violations_have_positions(changed, strict, file, old, new, message):
    assert strict(changed("acme_auth_024", file, old, new)) == [f"acme_auth_024/{file}:{message}"]


@pytest.mark.parametrize("key", ["blind_spots", "principles", "testing"])
def test_tier_a_must_be_complete(patterns, strict, key):
    folder = patterns("acme_auth_001")
    cut(folder / "acme_auth_001" / "pattern.yaml", key)

    assert strict(folder) == [f"acme_auth_001/pattern.yaml:2:1: Key '{key}' is missing in the file."]


def test_tier_a_has_two_mitigations_with_tradeoffs(changed, strict):
    folder = changed("acme_auth_024", "pattern.yaml", "tier: B", "tier: A")
    assert "acme_auth_024/pattern.yaml:53:1: mitigations needs at least 2 entries but has 1." in strict(folder)
    edit(
        folder / "acme_auth_024" / "pattern.yaml",
        "    tradeoffs: [A paused schedule needs a person to take it over.]\n",
        "",
    )
    assert "acme_auth_024/pattern.yaml:54:5: Key 'tradeoffs' is missing in mitigations[0]." in strict(folder)


def test_the_proof_of_tier_a_shows_three_exploits_and_two_legitimate_uses(patterns, strict):
    message = "The proof has {} functions {}_…; tier A requires {}. Add a function with a docstring for each further step or use."

    assert strict(patterns("acme_auth_026")) == [
        "acme_auth_026/proof.py:26:1: " + message.format(2, "exploit", 3),
        "acme_auth_026/proof.py:37:1: " + message.format(1, "legitimate", 2),
    ]


def test_a_packaged_pattern_shows_code(patterns, strict, monkeypatch):
    folder = patterns("acme_auth_024")
    shutil.copy(os.path.join(paths.PATTERNS, vocabulary.FILE), folder)
    file = folder / "acme_auth_024" / "pattern.yaml"
    cut(file, "code")
    edit(file, "    example: secure.py\n", "")
    edit(
        file, "  - {id: TMKB-AUTH-001, relationship: variant, why: The same loss when a request starts the work.}\n", ""
    )
    edit(
        file,
        "related_patterns:\n  - {id: TMKB-AUTH-026, relationship: related, why: A decision of the past that is believed today.}\n",
        "",
    )
    assert strict(folder) == []
    monkeypatch.setattr(paths, "PATTERNS", str(folder))

    assert strict(folder) == [
        "acme_auth_024/pattern.yaml:3:5: A packaged pattern needs code and a proof. Add `code` and the files that it names."
    ]


def related(folder, name, to, more=""):
    """Let the pattern ``name`` be related to ``to`` alone."""
    file = folder / name.lower().replace("-", "_") / "pattern.yaml"
    cut(file, "related_patterns")
    edit(
        file, "references:", f"related_patterns:\n  - {{id: {to}, relationship: related, why: One.{more}}}\nreferences:"
    )


def ties(lines):
    return [line for line in lines if "related_patterns" in line or "one_way" in line]


def test_relations_are_mutual_or_marked_one_way(patterns, strict):
    folder = patterns("acme_auth_001", "acme_auth_024")
    related(folder, "ACME-AUTH-024", "ACME-AUTH-001")
    message = (
        "acme_auth_024/pattern.yaml:68:10: ACME-AUTH-001 does not list ACME-AUTH-024 as a related pattern. "
        "Add ACME-AUTH-024 to its related_patterns, or add `one_way: true` and `why` here."
    )

    assert ties(strict(folder)) == [message]
    assert ties(strict(folder / "acme_auth_001")) == []
    assert ties(strict(folder / "acme_auth_024")) == [message.partition("/")[2]]
    related(folder, "ACME-AUTH-024", "ACME-AUTH-001", ", one_way: true")
    assert ties(strict(folder)) == []
    related(folder, "ACME-AUTH-001", "ACME-AUTH-024")
    assert ties(strict(folder)) == [
        "acme_auth_024/pattern.yaml:68:59: ACME-AUTH-001 also lists ACME-AUTH-024, so the relation is not one-way. Remove `one_way`."
    ]
    related(folder, "ACME-AUTH-024", "ACME-AUTH-001")
    assert ties(strict(folder)) == []


def test_duplicate_patterns_are_reported(patterns, strict):
    folder = patterns("acme_auth_024", "acme_auth_001")
    shutil.copytree(folder / "acme_auth_024", folder / "acme_auth_025")
    edit(folder / "acme_auth_025" / "pattern.yaml", "id: ACME-AUTH-024", "id: ACME-AUTH-025")
    lines = [line for line in strict(folder) if "is the same as" in line]

    message = "100 % of {} is the same as {}; the limit is 40 %. Describe the difference, or merge the two patterns."
    assert lines == [
        f"acme_auth_02{one}/pattern.yaml:{place}: " + message.format(what, f"ACME-AUTH-02{other}")
        for one, other in ((4, 5), (5, 4))
        for place, what in (("17:3", "triggers.keywords"), ("36:1", "agent_summary"))
    ]


def test_a_keyword_of_many_patterns_is_reported(patterns, strict):
    folder = patterns("acme_auth_001", "acme_auth_024", "acme_auth_026")
    shutil.copytree(folder / "acme_auth_024", folder / "acme_auth_025")
    edit(folder / "acme_auth_025" / "pattern.yaml", "id: ACME-AUTH-024", "id: ACME-AUTH-025")
    edit(folder / "acme_auth_026" / "pattern.yaml", "  keywords:\n", "  keywords:\n    - background jobs\n")
    lines = [line for line in strict(folder) if "keyword of" in line]

    assert [line.partition(": ")[0] for line in lines] == [
        "acme_auth_001/pattern.yaml:23:7",
        "acme_auth_024/pattern.yaml:23:7",
        "acme_auth_025/pattern.yaml:23:7",
        "acme_auth_026/pattern.yaml:22:7",
    ]
    assert lines[3].endswith(
        ": 'background jobs' is also a keyword of ACME-AUTH-001, ACME-AUTH-024, ACME-AUTH-025; "
        "at most 3 patterns can share a keyword. Use a keyword that is specific to this pattern."
    )


def test_neighbours_may_share_words(patterns, strict):
    lines = strict(patterns("acme_auth_001", "acme_auth_024", "acme_auth_026"))

    assert all("The proof has" in line for line in lines)


# The code


def test_names_used_by_the_secure_version_may_be_unused_in_the_vulnerable_one(patterns, strict):
    folder = patterns("acme_auth_024")
    for file, body in (
        ("vulnerable.py", "    outbox.append((to, []))"),
        ("secure.py", "    outbox.append((to, lines))"),
    ):
        edit(folder / "acme_auth_024" / file, "    outbox.append((to, lines))", body)

    assert strict(folder) == []


IDLE = """\
from __future__ import annotations

import functools
from collections import OrderedDict as _Ordered


@functools.cache
def prescribed(by_the_decorator):
    return 1


class Listener(dict):
    def __getitem__(self, key):
        return 1


class Promise:
    def kept(self, later):
        raise NotImplementedError


def count(values):
    total = 0

    def add():
        nonlocal total
        total = 1

    with open("x") as file:
        first, rest = 1, 2
    return add, total, first, (lambda _number: Listener), Promise, "count"
"""


def test_names_required_by_libraries_are_not_unused(patterns, strict):
    folder = patterns("acme_auth_024")
    extra = folder / "acme_auth_024" / "extra.py"
    extra.write_text(IDLE, encoding="utf-8")

    assert strict(folder) == [
        "acme_auth_024/extra.py:22:11: The argument 'values' is never used. Remove it; if a caller requires an argument, begin its name with _.",
        "acme_auth_024/extra.py:29:23: The name 'file' is never used. Remove it; if a caller requires an argument, begin its name with _.",
    ]


def test_exceptions_and_lambdas_are_checked(patterns, strict):
    folder = patterns("acme_auth_024")
    extra = folder / "acme_auth_024" / "extra.py"
    extra.write_text(
        "def _tried():\n    try:\n        return lambda x: 1\n    except OSError as error:\n        return 2\n"
    )

    assert [line.partition(". ")[0] for line in strict(folder)] == [
        "acme_auth_024/extra.py:3:23: The argument 'x' is never used",
        "acme_auth_024/extra.py:4:5: The name 'error' is never used",
    ]


def test_code_without_a_key_is_checked(patterns, strict, monkeypatch):
    monkeypatch.setattr(lint, "find_ruff", lambda: None)
    folder = patterns("acme_auth_024")
    (folder / "acme_auth_024" / "draft.py").write_text("def f(:\n", encoding="utf-8")

    assert strict(folder) == ["acme_auth_024/draft.py:1:7: Not valid Python: invalid syntax."]


def test_without_ruff_a_message_reports_that_linting_is_skipped(patterns, monkeypatch, capsys):
    monkeypatch.setattr(lint, "find_ruff", lambda: None)
    status = main.main(["validate", "--strict", "--json", str(patterns("acme_auth_024"))])
    captured = capsys.readouterr()

    assert (status, json.loads(captured.out)) == (0, {"patterns": 1, "problems": []})
    assert captured.err == (
        f"tmkb: The code was not checked with ruff: ruff is not installed. Install it with: {sys.executable} -m pip install ruff\n"
    )


@pytest.mark.parametrize("path", ["", ".", "bin", os.pathsep.join(["", "bin", "."])])
def test_a_linter_in_the_current_folder_is_not_run(tmp_path, monkeypatch, path):
    """Neither where PATH names that folder, nor where Windows looks there first."""
    name = os.path.basename(str(lint.find_ruff()))
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "empty" / "python"))
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr("sys.platform", "win32")
    assert lint.find_ruff() is None

    monkeypatch.setenv("PATH", os.pathsep.join([path, str(tmp_path / "bin")]))
    assert lint.find_ruff() == str(tmp_path / "bin" / name)


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a shebang")
def test_a_linter_that_fails_is_a_problem(patterns, strict, tmp_path, monkeypatch):
    program = tmp_path / "ruff"
    program.write_text("#!/bin/sh\necho 'no such option' >&2; exit 2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(lint, "find_ruff", lambda: str(program))

    assert strict(patterns("acme_auth_024")) == [
        f"{program}:1:1: The code was not checked with ruff: no such option. Install it with: {sys.executable} -m pip install ruff"
    ]


# The vocabulary


def test_the_packaged_vocabulary_is_valid_and_every_category_has_parts():
    file = os.path.join(paths.PATTERNS, vocabulary.FILE)

    assert metaschema.check(reader.read(file), vocabulary.SCHEMA) == []
    assert all(vocabulary.read([]).categories.values())


def test_a_users_vocabulary_extends_the_packaged_one(changed, strict):
    folder = changed("acme_auth_024", "pattern.yaml", "cwe: [CWE-863,", "cwe: [CWE-863, CWE-9001,")
    assert len(strict(folder)) == 1
    own = folder / vocabulary.FILE
    own.write_text("kind: vocabulary\ncwe: {CWE-9001: Made Up}\ncategories: {async-boundaries: [mail]}\n")
    edit(folder / "acme_auth_024" / "pattern.yaml", "scheduled-work", "mail")

    assert strict(folder) == []
    assert strict(folder / "acme_auth_024") == []


def test_an_invalid_vocabulary_is_reported(patterns, strict):
    folder = patterns("acme_auth_024")
    (folder / vocabulary.FILE).write_text("kind: vocabulary\ncewe: {}\n")
    assert strict(folder) == [
        "_vocabulary.yaml:2:1: Unknown key 'cewe' in the file. Did you mean 'cwe'?",
    ]
    (folder / vocabulary.FILE).write_text("kind: [\n")
    assert strict(folder)[0].startswith("_vocabulary.yaml:2:1: Not valid YAML or JSON:")


def test_names_with_an_underscore_are_ignored(patterns):
    folder = patterns("acme_auth_024")
    shutil.copytree(folder / "acme_auth_024", folder / "_draft")

    assert [os.path.basename(each.path) for each in library.load([str(folder)]).folders] == ["acme_auth_024"]


def test_a_new_pattern_passes_ruff(tmp_path):
    scaffold.write(str(tmp_path), {"id": "ACME-AUTH-001", "name": "X", "category": "object-level"})

    assert lint.run_ruff(lint.find_ruff(), [str(tmp_path)]) == []

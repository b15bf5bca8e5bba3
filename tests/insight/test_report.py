"""The report on made-up query logs: numbers, groups of questions, and text of clients that is escaped."""

import json
import random
import re

import pytest

from tmkb.insight import questions, report

NAMES = {f"TMKB-AUTH-{number:03}": f"Pattern {number}" for number in range(1, 11)}
SUBJECTS = {
    "rotate jwt signing keys": [
        "how to rotate jwt signing keys in {}",
        "rotation of the jwt signing key {}",
        "{} jwt key rotation",
    ],
    "limit login attempts": [
        "limit login attempts in {}",
        "rate limit the login of {}",
        "throttle login attempts {} by ip",
    ],
    "sql injection": ["prevent sql injection in {}", "sql injection in a raw query of {}"],
}
HOSTILE = "<script>alert(1)</script> \x1b[31m\u202e \N{BELL}\x07"


def query(day, stack, patterns, **more):
    return json.dumps({"time": f"2026-11-{day:02}T10:00:00Z", "stack": stack, "patterns": patterns, **more})


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A folder with the logs of two processes: 400 queries, of which 120 have no answer, and damaged lines."""
    folder, chance = tmp_path_factory.mktemp("usage"), random.Random(1)
    lines = []
    for number in range(280):
        patterns = ["TMKB-AUTH-001", *chance.sample([*NAMES][1:6], 2)]
        lines.append(query(1 + number % 20, chance.choice(["flask", "django"]), patterns, view="payments"))
    for number in range(119):
        subject = [*SUBJECTS][number % 3]
        text = chance.choice(SUBJECTS[subject]).format(chance.choice(["flask", "rails", "our api", "go"]))
        lines.append(query(21, None, [], context=text, framework="Phoenix", principal_hash=f"{number % 7:016x}"))
    lines.append(query(23, "flask", [], context=HOSTILE, view=HOSTILE))
    chance.shuffle(lines)
    damaged = ["{", "[]", '"x"', '{"time": 1}', query(1, 5, []), query(1, "x", [1]), "[" * 100_000, '{"time": "2026-']
    (folder / "queries-1.jsonl").write_text("\n".join([*lines[:200], *damaged]) + "\n")
    (folder / "queries-2.jsonl").write_text("\n\n".join(lines[200:]) + "\n")
    (folder / "notes.txt").write_text("not a log\n")
    return folder


def test_numbers(made_up):
    value = report.report(report.lines([str(made_up)]), NAMES)

    assert (value["queries"], value["unanswered"], value["principals"]) == (400, 120, 7)
    assert value["unreadable_lines"] >= 8
    assert value["patterns"][0] == {"id": "TMKB-AUTH-001", "name": "Pattern 1", "answers": 280, "first": 280}
    assert [each["id"] for each in value["never"]] == [*NAMES][6:]
    assert {each["name"]: each["unanswered"] for each in value["stacks"]} == {"django": 0, "flask": 1, "none": 119}
    assert value["unknown"] == [{"name": "phoenix", "queries": 119, "unanswered": 119}]
    assert [each["name"] for each in value["days"]] == [f"2026-11-{day:02}" for day in range(1, 24)]
    assert [each["queries"] for each in value["days"][-3:]] == [119, 0, 1]
    assert {each["name"] for each in value["views"]} == {"payments", HOSTILE}


def test_since_leaves_out_what_is_older(made_up):
    assert report.report(report.lines([str(made_up)]), NAMES, "2026-11-22")["queries"] == 1


@pytest.mark.needs("sklearn")
def test_similar_questions_are_grouped_and_named_by_their_words(made_up):
    groups = report.report(report.lines([str(made_up)]), NAMES)["question_groups"]
    subjects = [
        {
            subject
            for subject, forms in SUBJECTS.items()
            if any(_is_form(form, text) for form in forms for text in each["questions"])
        }
        for each in groups
    ]

    assert [len(each) for each in subjects] == [1, 1, 1, 0]
    assert set().union(*subjects) == {*SUBJECTS}
    assert sum(each["queries"] for each in groups) == 120 and groups[0]["queries"] >= groups[1]["queries"]
    for each, (subject,) in zip(groups[:3], subjects[:3], strict=True):
        assert {*each["words"]} & {*subject.split()} and len(each["words"]) <= 5


def _is_form(form, text):
    return re.fullmatch(re.escape(form).replace(r"\{\}", ".*"), text) is not None


def test_questions_without_words_and_without_sklearn_stay_alone(monkeypatch):
    asked = [questions.Question(text, questions.Counter({"flask": 1})) for text in ("the of", "??", "12")]

    assert [group.times for group in questions.grouped(asked)] == [1, 1, 1]
    monkeypatch.setattr(questions, "can_group", lambda: False)
    assert [group.typical[0].text for group in questions.grouped(asked)] == ["12", "??", "the of"]


def test_only_the_latest_questions_are_grouped():
    lines = (query(1, None, [], context=f"question {number} about {'x' * (number % 40 + 3)}") for number in range(2500))
    value = report.report(lines, {})

    assert (value["unanswered"], value["questions"]["different"], value["questions"]["older"]) == (2500, 2000, 500)


def test_names_of_clients_are_bounded():
    lines = (query(1, None, ["a"], framework=f"made-up-{number}") for number in range(3000))
    value = report.report(lines, {})

    assert len(value["unknown"]) == 1001 and value["unknown"][0] == {"name": "other", "queries": 2000, "unanswered": 0}


@pytest.mark.needs("sklearn")  # without it only the most frequent questions are listed
def test_the_text_has_80_columns_and_no_control_characters(made_up, run_tmkb):
    status, out, _ = run_tmkb("usage", "report", made_up)
    lines = out.splitlines()

    assert status == 0
    assert lines[:2] == [
        "400 queries from 2026-11-01T10:00:00Z to 2026-11-23T10:00:00Z",
        "120 without an answer (30 %)",
    ]
    assert max(map(len, lines)) <= 80
    assert out.replace("\n", "").isprintable() and r"\u001b[31m\u202e" in out


def test_json(made_up, run_tmkb):
    status, out, _ = run_tmkb("usage", "report", made_up, "--json", "--since", "2026-11-21")

    assert (status, json.loads(out)["queries"]) == (0, 120)
    assert "\x1b" not in out


@pytest.mark.needs("jinja2")
def test_the_page_escapes_everything_and_loads_nothing(made_up, run_tmkb, tmp_path):
    status, out, _ = run_tmkb("usage", "report", made_up, "--html", tmp_path / "usage.html")
    page = (tmp_path / "usage.html").read_text("utf-8")

    assert (status, out) == (0, "")
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert page.replace("\n", "").isprintable()
    assert not re.search(r"""(?:src|href|action)=["'](?!data:)|url\(|@import""", page)
    assert "default-src 'none'" in page and "light-dark(" in page
    assert page.count("<title>2026-11-") == 23
    assert "NaN" not in page and "nan" not in re.findall(r'(?:width|height|[xy])="([^"]*)"', page)


def test_an_empty_folder_has_a_report(tmp_path, run_tmkb):
    status, out, _ = run_tmkb("usage", "report", tmp_path)

    assert (status, out.splitlines()[0]) == (0, "No queries.")


@pytest.mark.needs("jinja2")
def test_an_empty_folder_has_a_page(tmp_path, run_tmkb):
    assert run_tmkb("usage", "report", tmp_path, "--html", tmp_path / "x.html")[0] == 0


def test_a_folder_that_does_not_exist_is_reported(tmp_path, run_tmkb):
    status, _, err = run_tmkb("usage", "report", tmp_path / "none")

    assert (status, err) == (2, f"tmkb: Cannot read {tmp_path / 'none'}: No such file or directory.\n")


@pytest.mark.parametrize("when", ["yesterday", "2026-13-01", "d"])
def test_a_wrong_date_is_reported(when, tmp_path, run_tmkb):
    status, _, err = run_tmkb("usage", "report", tmp_path, "--since", when)

    assert status == 2 and f"'{when}' is neither a date" in err


@pytest.mark.parametrize("kept", [{}, {"context_hash": "a" * 16}])
def test_without_text_the_report_says_what_is_known(kept, tmp_path, run_tmkb):
    (tmp_path / "queries-1.jsonl").write_text("\n".join([query(1, None, [], **kept)] * 3))
    _, out, _ = run_tmkb("usage", "report", tmp_path)
    expected = (
        "1 different ones, 1 of them more than once. Only their hashes were logged."
        if kept
        else "The text was not logged."
    )

    assert expected in out

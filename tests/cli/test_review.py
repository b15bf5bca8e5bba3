"""``tmkb review``: what is read, what is printed, and what is left out."""

import functools
import io
import json
import subprocess

import pytest

pytestmark = pytest.mark.process

MISTAKE = """from flask import Blueprint, jsonify, request
from flask_login import current_user, login_required

from app.models import db

bp = Blueprint("profile", __name__)


@bp.patch("/profile")
@login_required
def change_profile():
    for key, value in request.get_json().items():
        setattr(current_user, key, value)
    db.session.commit()
    return jsonify(id=current_user.id, name=current_user.name)
"""
HARMLESS = '''def amount(cents):
    """Return an amount in euros as text."""
    return f"{cents // 100},{cents % 100:02} €"
'''


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with an empty commit, as the current folder; gives a function that runs git."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TMKB_PATTERNS", raising=False)

    def git(*words):
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@example.org")
    git("config", "user.name", "a")
    git("commit", "-q", "--allow-empty", "-m", "empty")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "profile.py").write_text(MISTAKE)
    (tmp_path / "app" / "money.py").write_text(HARMLESS)
    git("add", ".")
    return git


@pytest.fixture
def review(run_tmkb):
    """Run the command; gives exit status, stdout, stderr."""

    return functools.partial(run_tmkb, "review")


def comments(out):
    return json.loads(out)["comments"]


def test_the_changes_that_are_not_committed_are_reviewed(repository, review):
    status, out, err = review("--json")

    (comment,) = comments(out)
    assert (status, err) == (1, "")
    assert (comment["pattern"], comment["path"]) == ("TMKB-AUTH-006", "app/profile.py")
    assert {12, 13} & {*comment["lines"]}
    assert comment["code"]["framework"] == "flask"
    assert json.loads(out)["sections"] == 2


def test_commits_files_folders_and_diffs_give_the_same_comment(repository, review, monkeypatch):
    repository("commit", "-q", "-m", "invoices")
    diff = repository("diff", "HEAD~1", "HEAD")
    found = {}
    for target in ("HEAD~1..HEAD", "HEAD~1", "app/profile.py", "app"):
        found[target] = comments(review("--json", target)[1])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(diff.encode())))
    found["-"] = comments(review("--json", "-")[1])

    assert {
        target: [(each["pattern"], each["line"], each["fingerprint"]) for each in each_]
        for target, each_ in found.items()
    } == {target: [("TMKB-AUTH-006", found["-"][0]["line"], found["-"][0]["fingerprint"])] for target in found}
    assert review()[:2] == (0, "0 comments on 0 sections.\n")


def test_text_names_the_place_the_pattern_and_the_fix(repository, review):
    status, out, _ = review()

    assert status == 1
    assert out.startswith("app/profile.py:")
    assert "TMKB-AUTH-006" in out and "Threat" in out and "Check" in out and "Principle" in out
    assert out.endswith("1 comment on 2 sections.\n")


def test_a_comment_with_a_reason_is_ignored(repository, review, tmp_path):
    path = tmp_path / "app" / "profile.py"
    path.write_text(MISTAKE.replace("key, value)\n", "key, value)  # tmkb: ignore[6] all fields are public\n"))
    status, out, err = review("--json")
    assert (status, comments(out), json.loads(out)["ignored"], err) == (0, [], 1, "")

    path.write_text(MISTAKE.replace("key, value)\n", "key, value)  # tmkb: ignore[6]\n"))
    status, out, err = review("--json")
    assert (status, len(comments(out))) == (1, 1)
    assert err == "tmkb: app/profile.py:13: `tmkb: ignore` has no effect: it has no reason behind the bracket.\n"


def test_a_baseline_leaves_out_what_it_lists(repository, review, tmp_path):
    assert review("--write-baseline", "base.json")[0] == 0
    assert review("--baseline", "base.json")[0] == 0
    (tmp_path / "app" / "profile.py").write_text("# moved\n\n\n" + MISTAKE)
    assert review("--baseline", "base.json")[:2] == (0, "0 comments on 2 sections; 1 in the baseline.\n")

    (tmp_path / "base.json").write_text("{}")
    status, _, err = review("--baseline", "base.json")
    assert (status, err) == (
        2,
        "base.json:1:1: This is not a baseline. Write one with `tmkb review --write-baseline`.\n",
    )


def test_github_gets_annotations(repository, review):
    status, out, _ = review("--github", "--exit-zero")

    assert status == 0
    assert out.startswith("::warning file=app/profile.py,line=")
    assert ",title=TMKB-AUTH-006 " in out and out.count("\n") == 1


def test_sarif_points_to_the_line(repository, review):
    log = json.loads(review("--sarif")[1])

    (run,) = log["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (log["version"], result["ruleId"]) == ("2.1.0", "TMKB-AUTH-006")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "TMKB-AUTH-006"
    assert place["artifactLocation"]["uri"] == "app/profile.py"
    assert place["region"]["startLine"] == comments(review("--json")[1])[0]["line"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no-such-thing"], "tmkb: git: bad revision 'no-such-thing'\n"),
    ],
)
def test_what_cannot_be_read_is_named(repository, review, words, sentence):
    assert review(*words) == (2, "", sentence)


def test_outside_of_a_repository(tmp_path, monkeypatch, review):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "a.py").write_text(MISTAKE)

    status, out, err = review()
    assert (status, out) == (2, "") and err.startswith("tmkb: git: not a git repository")
    assert len(comments(review("--json", ".")[1])) == 1


def test_stdin_that_is_no_diff(repository, review, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    status, out, err = review("-")

    assert (status, out) == (2, "")
    assert err.startswith("<stdin>:1:1: This is not a unified diff")
    assert err.endswith("Pass the output of `git diff`.\n")

"""``tmkb review --reviewer``: a command answers, and its comments are printed, ignored and listed like others."""

import functools
import io
import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.support.code import HARMLESS, MISTAKE
from tests.support.repository import ROOT

pytestmark = pytest.mark.process

SCRIPTED = os.path.join(ROOT, "tests", "review", "scripted.py")
LINE = MISTAKE.split("\n").index("        setattr(current_user, key, value)") + 1
WHO = "Any user becomes an administrator."
REASON = "The loop passes every key of the body to setattr."


def scripted(*words):
    return shlex.join([sys.executable, SCRIPTED, *words])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository with a mistake that is not committed, as the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TMKB_PATTERNS", "TMKB_REVIEWER"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q"], check=True)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "profile.py").write_text(MISTAKE)
    (tmp_path / "app" / "money.py").write_text(HARMLESS)
    return tmp_path


@pytest.fixture
def review(run_tmkb, folder):
    """Run the command; gives exit status, stdout, stderr."""
    return functools.partial(run_tmkb, "review")


@pytest.mark.parametrize("form", ["array", "fenced", "prose", "object", "draft", "indented", "echo"])
def test_an_answer_in_any_form_becomes_comments(review, form):
    status, out, err = review("--reviewer", scripted(form), "--json")
    (comment,) = json.loads(out)["comments"]

    assert (status, err) == (1, "")
    assert (comment["pattern"], comment["path"], comment["line"]) == ("TMKB-AUTH-006", "app/profile.py", LINE)
    assert (comment["who"], comment["reason"]) == (WHO, REASON)
    assert comment["code"]["framework"] == "flask" and "probability" not in comment
    assert json.loads(out)["sections"] == 2


def test_a_diff_on_stdin_is_reviewed(review, monkeypatch):
    subprocess.run(["git", "add", "."], check=True)
    diff = subprocess.run(["git", "diff", "--cached"], check=True, capture_output=True).stdout
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(diff)))
    monkeypatch.setenv("TMKB_REVIEWER", scripted())
    status, out, err = review("-", "--json")

    assert (status, err) == (1, "")
    assert [each["line"] for each in json.loads(out)["comments"]] == [LINE]


def test_all_forms_of_output_have_the_reason(review):
    words = ("--reviewer", scripted())
    text, github, sarif = (review(*words, *more)[1] for more in ((), ("--github",), ("--sarif",)))
    (result,) = json.loads(sarif)["runs"][0]["results"]

    assert f"  Reason     {REASON}\n  Who        {WHO}\n  Threat " in text
    assert github.startswith(f"::warning file=app/profile.py,line={LINE},title=TMKB-AUTH-006 ")
    assert f"::{REASON} Who: {WHO} Threat: " in github and github.count("\n") == 1
    assert result["message"]["text"].startswith(f"{REASON} Who: {WHO} Threat: ")
    assert "rank" not in result


def test_comments_are_ignored_and_listed_in_a_baseline(review, folder):
    words = ("--reviewer", scripted())
    assert review(*words, "--write-baseline", "base.json")[0] == 0
    assert review(*words, "--baseline", "base.json")[:2] == (0, "0 comments on 2 sections; 1 in the baseline.\n")
    assert review("--baseline", "base.json")[0] in (0, 1)

    path = folder / "app" / "profile.py"
    path.write_text(MISTAKE.replace("key, value)\n", "key, value)  # tmkb: ignore[6] all fields are public\n"))
    assert review(*words)[:2] == (0, "0 comments on 2 sections; 1 ignored in the code.\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-model", "`no-such-model` is not on PATH."),
        (f"{sys.executable} -c 'exit(3)'", f"`{sys.executable}` returned the exit status 3: it wrote nothing."),
        ("echo I found nothing", "The answer has no JSON array of comments: I found nothing."),
        ("cat", "The answer has no JSON array of comments: it is empty."),
    ],
)
def test_without_an_answer_nothing_was_reviewed(review, folder, command, said):
    status, out, err = review("--reviewer", command, "--write-baseline", "base.json", "--exit-zero")

    assert (status, out) == (2, "0 comments on 0 sections.\n")
    assert err == f"tmkb: The reviewer: {said} 2 sections of 2 got no review.\n"
    assert not (folder / "base.json").exists()


def test_a_command_that_is_slow_ends(review):
    code = "import time; time.sleep(600)"
    status, _, err = review("--reviewer", shlex.join([sys.executable, "-c", code]), "--reviewer-timeout", "0.1")

    assert status == 2 and "took longer than 0.1 seconds; see --reviewer-timeout." in err


def test_comments_before_an_error_and_beside_a_fault_stay(review, folder):
    (folder / "app" / "zeros.py").write_text("\n\n".join(f"def f{n}():\n    return '{'0' * 90}'" for n in range(900)))
    once = f"test ! -e asked && touch asked && exec {scripted()}"
    status, out, err = review("--reviewer", shlex.join(["sh", "-c", once]), "--json")
    assert (status, len(json.loads(out)["comments"])) == (2, 1)
    assert err.startswith("tmkb: The reviewer: `sh` returned the exit status 1: it wrote nothing. ")

    (folder / "app" / "zeros.py").unlink()
    status, out, err = review("--reviewer", scripted("array", "TMKB-AUTH-999"), "--json")
    assert (status, json.loads(out)["comments"], json.loads(out)["sections"]) == (2, [], 2)
    assert err.startswith("tmkb: The reviewer: Comment 1 of the answer cannot be used: there is no pattern 'TMKB-AUTH-")


def test_a_command_that_cannot_be_split_is_named(review):
    assert review("--reviewer", "a 'b") == (
        2,
        "",
        "tmkb: The reviewer: `a 'b` cannot be split into words: No closing quotation.\n",
    )


def test_an_empty_command_stands_for_none(review, monkeypatch):
    monkeypatch.setenv("TMKB_REVIEWER", "no-such-model")
    status, out, err = review("--reviewer", "", "--json")

    assert (status, err) == (1, "")
    assert "probability" in json.loads(out)["comments"][0]


def test_the_prompt_is_shown_and_nobody_is_asked(review, monkeypatch):
    monkeypatch.setenv("TMKB_REVIEWER", "no-such-model")
    status, out, err = review("--show-prompt")

    assert (status, err) == (0, "")
    assert "- TMKB-AUTH-006: Mass Assignment" in out and "- TMKB-AUTH-001: " in out
    assert f"{LINE:>6} +         setattr(current_user, key, value)\n" in out


def test_the_hook_asks_no_reviewer(review, monkeypatch):
    monkeypatch.setenv("TMKB_REVIEWER", "a 'b")
    response = {"type": "create", "filePath": "/shop/app/profile.py", "content": MISTAKE}
    event = json.dumps({"cwd": "/shop", "tool_response": response})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
    status, out, err = review("--hook")

    assert (status, err) == (0, "") and "TMKB-AUTH-006" in out


def test_lines_around_a_diff_come_only_from_the_file_that_it_made(review, folder, monkeypatch):
    def shown(diff):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(diff.encode())))
        return review("-", "--show-prompt")[1]

    def diff(path, line, text):
        return f"--- a/{path}\n+++ b/{path}\n@@ -{line},0 +{line},1 @@\n+{text}\n"

    (folder.parent / "outside.py").write_text("secret = 1\nb = 2\n")
    (folder / "app" / "link.py").symlink_to(folder.parent / "outside.py")
    code = MISTAKE.split("\n")
    assert 'bp = Blueprint("profile", __name__)' in shown(diff("app/profile.py", LINE, code[LINE - 1]))
    assert 'bp = Blueprint("profile", __name__)' not in shown(diff("app/profile.py", LINE, "other()"))
    for path in ("../outside.py", "app/link.py", str(folder.parent / "outside.py")):
        assert "secret" not in shown(diff(path, 2, "b = 2")) and "secret" in (folder / "app" / "link.py").read_text()


def test_lines_around_a_commit_that_is_not_checked_out_come_from_it(review, folder):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True)

    path = folder / "app" / "profile.py"
    path.write_text("# first\n\n" + "# more\n" * 40 + MISTAKE)
    git("add", ".")
    git("commit", "-qm", "one")
    path.write_text(path.read_text().replace("items()", "copy().items()"))
    git("commit", "-qam", "two")
    path.write_text("other = 1\n")

    assert "     1   # first\n" in review("HEAD~1..HEAD", "--show-prompt")[1]
    assert "     1   # first\n" not in review("HEAD~1", "--show-prompt")[1]

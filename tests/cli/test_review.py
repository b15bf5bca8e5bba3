"""``tmkb review``: what is read, what is printed, and what is left out."""

import functools
import io
import json
import re
import subprocess

import pytest

from tests.support.code import HARMLESS, MISTAKE

pytestmark = pytest.mark.process


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


# The hook


def event(path, content):
    """What Claude Code 2.1.197 writes to a hook after its tool Write has created a file."""
    return {
        "session_id": "9bdfff25-e522-4ec7-b83c-4466e327cfde",
        "transcript_path": "/home/ann/.claude/projects/-home-ann-shop/9bdfff25.jsonl",
        "cwd": "/home/ann/shop",
        "permission_mode": "acceptEdits",
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": f"/home/ann/shop/{path}", "content": content},
        "tool_response": {
            "type": "create",
            "filePath": f"/home/ann/shop/{path}",
            "content": content,
            "structuredPatch": [],
            "originalFile": None,
            "userModified": False,
        },
        "tool_use_id": "toolu_0",
        "duration_ms": 7,
    }


@pytest.fixture
def hook(review, monkeypatch):
    """Run the hook with these bytes on stdin."""

    def run(data, *words):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return review("--hook", *words)

    return run


def test_the_hook_tells_the_agent_about_a_mistake(hook):
    status, out, err = hook(json.dumps(event("app/profile.py", MISTAKE)).encode())
    answer = json.loads(out)["hookSpecificOutput"]

    assert (status, err, answer["hookEventName"]) == (0, "", "PostToolUse")
    assert re.search(r"^app/profile.py:\d+: TMKB-AUTH-006 \w.*\. ", answer["additionalContext"], re.M)
    assert "tmkb get ID" in answer["additionalContext"]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("app/money.py", HARMLESS),
        ("tests/test_profile.py", MISTAKE),
        ("notes.txt", MISTAKE),
        ("app/profile.py", MISTAKE.replace("items():", "items():  # tmkb: ignore[6] the model has only a name")),
        ("app/profile.py", ""),
    ],
)
def test_the_hook_is_silent_when_there_is_nothing_to_say(hook, path, content):
    assert hook(json.dumps(event(path, content)).encode()) == (0, "", "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({**event("a.py", "a"), "tool_response": None}).encode(),
        json.dumps({**event("a.py", "a"), "tool_response": {"filePath": "/a.py", "structuredPatch": [1]}}).encode(),
        json.dumps({**event("a.py", "a"), "cwd": "\0"}).encode(),
        json.dumps(event("a\nb\0.py", MISTAKE)).encode(),
        json.dumps(event("a.py", 7)).encode(),
    ],
    ids=lambda data: data[:12].decode("latin-1"),
)
def test_the_hook_never_stops_an_agent(hook, data):
    status, out, err = hook(data)

    assert (status, "Traceback" in err) == (0, False)
    assert out == "" or json.loads(out)


def test_the_hook_survives_faulty_patterns(hook, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = hook(json.dumps(event("app/profile.py", MISTAKE)).encode(), "--patterns", str(tmp_path / "file"))

    assert (status, out) == (0, "") and err.startswith("tmkb: ")

"""Answers of language models: what is read from them, and what is said about those that cannot be read."""

import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.review import changes, reviewer
from tmkb.review.prompt import Prompt
from tmkb.review.reviewer import ReviewerError

DIFF = """--- a/app/api.py
+++ b/app/api.py
@@ -10,3 +10,4 @@ def show(id):
     login()
-    doc = mine(id)
+    doc = Doc.query.get(id)
+    log(doc)
     return doc
@@ -40,2 +41,3 @@ def other(id):
     login()
+    send(id)
     return 1
"""
PROMPT = Prompt("prompt", dict(enumerate(changes.of_diff(DIFF), 1)))
IDS = ["TMKB-AUTH-006", "TMKB-AUTH-007", "ACME-001"]
GOOD = {"section": 1, "line": 11, "pattern": "TMKB-AUTH-007", "who": "Any user reads it.", "reason": "No condition."}


def read(*comments):
    """Read an answer with these comments; gives those that can be used, and the faults."""
    return reviewer.read(json.dumps(comments), PROMPT, IDS)


def test_a_comment_is_read():
    (found,), faults = read(GOOD)

    assert faults == []
    assert (found.section, found.line, found.pattern) == (PROMPT.sections[1], 11, "TMKB-AUTH-007")
    assert (found.who, found.reason) == ("Any user reads it.", "No condition.")


@pytest.mark.parametrize(
    "answer",
    [
        "{0}",
        "```json\n{0}\n```",
        "The list [1, 2] is in [x for x in y].\n\n{0}\n\nDone.",
        "[]\n{0}",
        '[{{"section": 9}}] was a draft.\n{0}',
        '{{"comments": {0}}}',
        "[[[\n{0}",
    ],
)
def test_what_stands_around_the_array_does_not_count(answer):
    (found,), faults = reviewer.read(answer.format(json.dumps([GOOD])), PROMPT, IDS)

    assert (found.line, faults) == (11, [])


def test_an_empty_array_is_no_comment():
    assert reviewer.read("Nothing to say: []", PROMPT, IDS) == ([], [])


@pytest.mark.parametrize(
    ("change", "line", "pattern"),
    [
        ({"section": "1"}, 11, "TMKB-AUTH-007"),
        ({"section": "section 1"}, 11, "TMKB-AUTH-007"),
        ({"pattern": "tmkb-auth-007"}, 11, "TMKB-AUTH-007"),
        ({"pattern": 7}, 11, "TMKB-AUTH-007"),
        ({"pattern": "acme-001"}, 11, "ACME-001"),
        ({"line": "12"}, 12, "TMKB-AUTH-007"),
        ({"line": 13}, 13, "TMKB-AUTH-007"),
        ({"line": 900}, 12, "TMKB-AUTH-007"),
        ({"line": 1}, 11, "TMKB-AUTH-007"),
        ({"line": None}, 11, "TMKB-AUTH-007"),
    ],
)
def test_values_in_other_forms_are_understood_and_lines_outside_become_the_nearest(change, line, pattern):
    (found,), faults = read({**GOOD, **change})

    assert (found.line, found.pattern, faults) == (line, pattern, [])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"section": 3}, "there is no section 3"),
        ({"section": None}, "there is no section None"),
        ({"section": True}, "there is no section True"),
        ({"pattern": "TMKB-AUTH-999"}, "there is no pattern 'TMKB-AUTH-999' (app/api.py, section 1)"),
        ({"pattern": ["7"]}, "there is no pattern ['7'] (app/api.py, section 1)"),
        ({"who": " "}, "`who` is missing (app/api.py, section 1, TMKB-AUTH-007)"),
        ({"reason": 3}, "`reason` is missing (app/api.py, section 1, TMKB-AUTH-007)"),
    ],
)
def test_a_comment_that_cannot_be_used_is_named_and_the_others_stay(change, fault):
    found, faults = read({**GOOD, **change}, {**GOOD, "section": 2, "line": 42})

    assert [each.line for each in found] == [42]
    assert faults == [f"Comment 1 of the answer cannot be used: {fault}."]


def test_the_first_comment_on_a_section_counts():
    (found,), faults = read(GOOD, {**GOOD, "pattern": "TMKB-AUTH-006"})

    assert (found.pattern, faults) == ("TMKB-AUTH-007", [])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "it is empty"),
        ("I found\nnothing.", "I found nothing"),
        ("x" * 300, "x" * 200 + "…"),
        ("[1, 2]", "[1, 2]"),
        ('{"section": 1}', '{"section": 1}'),
        ("[" * 100_000, "[" * 200 + "…"),
    ],
)
def test_an_answer_without_an_array_is_an_error(answer, said):
    with pytest.raises(ReviewerError) as caught:
        reviewer.read(answer, PROMPT, IDS)

    assert str(caught.value) == f"The answer has no JSON array of comments: {said}."


def test_an_endless_answer_is_an_error():
    with pytest.raises(ReviewerError, match="longer than"):
        reviewer.read("[] " * 400_000, PROMPT, IDS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([1, 2, 11, "7", *IDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner, max_size=6),
    max_leaves=12,
)
COMMENTS = st.lists(st.fixed_dictionaries({key: st.just(value) | VALUES for key, value in GOOD.items()}), max_size=3)


@given(st.text() | st.tuples(st.text(), COMMENTS.map(json.dumps) | VALUES.map(json.dumps), st.text()).map("".join))
def test_every_answer_gives_comments_of_the_change_or_an_error(answer):
    try:
        found, faults = reviewer.read(answer, PROMPT, IDS)
    except ReviewerError as error:
        assert str(error).startswith("The answer has no JSON array of comments: ")
        return
    for each in found:
        assert each.section in PROMPT.sections.values() and each.pattern in IDS
        assert each.line in {line.number for line in each.section.lines}
        assert each.who and each.reason and "\n" not in each.who + each.reason
    assert all(fault.startswith("Comment ") for fault in faults)


# The command


@pytest.mark.parametrize(("command", "start"), [("", "The command is empty"), ("a 'b", "`a 'b` cannot be split")])
def test_a_command_without_words_is_an_error(command, start):
    with pytest.raises(ReviewerError, match=start):
        reviewer.words(command)


def ask(code, timeout=60.0, prompt="Ü?"):
    return reviewer.ask([sys.executable, "-c", code], prompt, timeout)


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read() + b' yes')", " yes"),
        ("print('[]')", "[]\n"),
        ("import sys; sys.stdout.buffer.write(b'\\xff[]')", "\ufffd[]"),
        ("import sys; sys.exit(0)", ""),
    ],
)
def test_the_output_is_the_answer_without_the_prompt(code, answer):
    assert ask(code) == answer
    assert ask(code, prompt="Ü?" * 100_000) == answer


@pytest.mark.process
def test_no_shell_reads_the_command(tmp_path):
    words = reviewer.words(f"{sys.executable} -c 'import sys; print(sys.argv[1:])' '$HOME' ';' 'a b' > {tmp_path}/x")

    assert reviewer.ask(words, "", 60) == f"['$HOME', ';', 'a b', '>', '{tmp_path}/x']\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('out'); sys.exit('No   key.')", "returned the exit status 1: No key."),
        ("import sys; print('only out'); sys.exit(3)", "returned the exit status 3: only out."),
        ("import sys; sys.exit(4)", "returned the exit status 4: it wrote nothing."),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "returned the exit status -9: it wrote nothing."),
    ],
)
def test_a_command_that_fails_is_named_with_what_it_wrote(code, said):
    with pytest.raises(ReviewerError) as caught:
        ask(code)

    assert str(caught.value) == f"`{sys.executable}` {said}"


@pytest.mark.process
def test_a_command_that_cannot_be_started_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_text("#!/bin/sh\n")
    (tmp_path / "model").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.defpath]))

    with pytest.raises(ReviewerError, match=r"^`model` is not on PATH\.$"):
        reviewer.ask(["model"], "", 60)
    with pytest.raises(ReviewerError, match=r"^`./no` cannot be started: No such file or directory\.$"):
        reviewer.ask(["./no"], "", 60)
    assert reviewer.ask(["./model"], "", 60) == ""


@pytest.mark.process
def test_a_command_that_takes_too_long_ends_with_what_it_started(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    lock = tmp_path / "lock"
    lock.touch()
    child = f"import fcntl, time; f = open({str(lock)!r}); fcntl.flock(f, fcntl.LOCK_EX); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    with pytest.raises(ReviewerError, match="took longer than 2 seconds; see --reviewer-timeout"):
        ask(code, timeout=2.0)
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for the end of the child

"""Tests that are made of proofs: what they say, and that they fail until somebody has filled them in."""

import ast
import re
import subprocess
import sys

import pytest

from tmkb.authoring import skeleton
from tmkb.knowledge import examples, library, pattern

PACKAGED = library.load(None).found
WITH_CODE = [each for each in PACKAGED if each.pattern is not None and "code" in each.pattern]


def made(folder):
    return skeleton.tests(str(folder), pattern.read(str(folder)).pattern)


def functions(text):
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def wanted(found):
    """The names of the tests that a pattern should give."""
    proof = examples.source(found.folder, found.pattern["code"].get("proof", "proof.py"), "").text
    return [f"test_{name}" for name in functions(proof) if name.startswith(("exploit_", "legitimate_"))]


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001") / "acme_auth_001"


@pytest.fixture
def spoilt(folder):
    """The tests made of the proof of ACME-AUTH-001 with ``text`` at its end."""

    def write(text):
        path = folder / "proof.py"
        path.write_text(path.read_text() + text)
        return made(folder)

    return write


@pytest.mark.process
def test_every_packaged_pattern_gives_tests_that_fail(tmp_path):
    expected = set()
    for found in WITH_CODE:
        name = f"test_{found.pattern['id'].lower().replace('-', '_')}.py"
        text = skeleton.tests(found.folder, found.pattern)
        compile(text, name, "exec")
        (tmp_path / name).write_text(text, encoding="utf-8")
        expected |= {f"FAILED {name}::{test}" for test in wanted(found)}
        assert [test for test in functions(text) if test.startswith("test_")] == wanted(found), name
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "."]
    done = subprocess.run([*command, "-c", "/dev/null"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert set(re.findall(r"^(?:FAILED|PASSED|ERROR) [^ \n]+", done.stdout, re.M)) == expected, done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("found", WITH_CODE, ids=lambda found: found.pattern["id"])
def test_every_packaged_exploit_has_its_refusal(found):
    text = skeleton.tests(found.folder, found.pattern)

    assert text.count("\n    assert ") == sum(name.startswith("test_exploit_") for name in wanted(found))


def test_few_refusals_cannot_be_told_without_running_the_proof():
    texts = [skeleton.tests(found.folder, found.pattern) for found in WITH_CODE]
    told = sum(text.count("\n    assert ") for text in texts)

    assert sum(text.count("\n    assert refused\n") for text in texts) < told / 10


def test_the_head_names_pattern_version_and_fix(folder):
    head = made(folder).partition("\n\n\n")[0]

    assert "# Tests for ACME-AUTH-001: " in head
    assert "# Pattern version 1.0, reviewed 20" in head
    assert "# Fix: Enqueue the actor's id;" in head
    assert "`tmkb get ACME-AUTH-001 --test`" in head


def test_an_attempt_is_followed_to_what_it_comes_to(folder):
    test = re.search(r"^def test_exploit_removed_member.*?\n\n\n", made(folder), re.S | re.M).group()

    assert test.rstrip() == (
        "def test_exploit_removed_member(project):\n"
        '    """Bob has a document published and is removed from Acme before the worker comes to it; the job still runs."""\n'
        "    acme, globex = project.tenants()\n"
        "    bob, mallory = project.users(acme, globex)\n"
        "    as_bob, as_mallory = project.client(bob), project.client(mallory)\n"
        "    # The attempt, as the proof makes it:\n"
        "    #   assert s.client('bob').post(f'/documents/{ACME}/publish').status_code == 202\n"
        "    #   with s.app.app_context():\n"
        "    #       db.session.get(User, BOB).organization_id = None\n"
        "    #       db.session.commit()\n"
        "    #   result, = s.work()\n"
        "    #   reached = state(s, ACME)\n"
        "    # It has succeeded if:\n"
        "    #   reached == 'published'\n"
        '    pytest.fail("ACME-AUTH-001: make this attempt, with your application, in place of this line")\n'
        "    # It was refused if:\n"
        "    assert isinstance(result, PermissionError) and reached == 'new'"
    )


def test_what_the_attempts_refer_to_stands_at_the_end(folder):
    end = made(folder).partition("# What the proof uses:")[2]

    assert "#   def state(s: Stage, document_id: int) -> str:" in end
    assert "def exploit_" not in end
    assert "# The code that it attacks:" in end and "# The same, mended:" in end


@pytest.mark.process
def test_a_filled_in_test_passes_or_fails_by_its_assertion(folder, tmp_path):
    text = made(folder)
    for what in ("tenants", "users"):
        text = re.sub(rf'pytest.fail\("Project.{what} .*', "return 1, 2", text)
    text = re.sub(r'pytest.fail\("Project.client .*', "return user", text)
    text = re.sub(r'pytest.fail\("ACME-AUTH-001: make this .*', 'result, reached = PermissionError(), "new"', text)
    (tmp_path / "test_filled.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-c", "/dev/null"]
    said = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert set(re.findall(r"^(PASSED|FAILED|ERROR) \S+::test_(exploit|legitimate)", said, re.M)) == {
        ("PASSED", "exploit"),
        ("FAILED", "legitimate"),
    }


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        ('def exploit_q(example):\n    """He says \\"now\\""""\n    return outcome(gained=1, refused=2)\n', "assert 2"),
        ('def exploit_q(example):\n    """A \\\\ and \\t."""\n    return outcome(gained=1, refused=2)\n', "assert 2"),
        ('def exploit_q(example):\n    """Once."""\n    return exploit_q(example)\n', "assert refused"),
        ('def exploit_q(example):\n    """Nothing."""\n', "assert refused"),
        ('def exploit_q(example): "Short."; return outcome(gained=1, refused=2)\n', "assert 2"),
        (
            "def seen(a, *b, c=3, d=4, **e):\n    return outcome(gained=a, refused=(b, c, d, e) == a)\n"
            'def exploit_q(example):\n    """All kinds."""\n    return seen(1, 2, d=5, f=6)\n',
            "assert ((2,), 3, 5, {'f': 6}) == 1",
        ),
        (
            "def seen(a):\n    return outcome(gained=a, refused=a)\n"
            'def exploit_q(example):\n    """Cannot be told."""\n    return seen(*[1])\n',
            "assert refused",
        ),
    ],
)
def test_proofs_of_every_form(spoilt, proof, said):
    text = spoilt(f"\n\n{proof}")
    compile(text, "test_it.py", "exec")
    test = text.partition("def test_exploit_q")[2]

    assert f"\n    {said}\n" in test
    assert next(
        ast.get_docstring(node) for node in ast.parse(text).body if getattr(node, "name", "") == "test_exploit_q"
    )


def test_without_code_there_is_nothing_to_make_tests_of(folder):
    found = pattern.read(str(folder)).pattern
    (folder / "proof.py").unlink()

    assert skeleton.tests(str(folder), found) is None
    assert skeleton.tests(str(folder), {key: value for key, value in found.items() if key != "code"}) is None

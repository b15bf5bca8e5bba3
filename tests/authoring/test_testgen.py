"""Tests generated from proofs: their content, and that they fail until completed."""

import ast
import re
import subprocess
import sys

import pytest

from tmkb.authoring import testgen
from tmkb.knowledge import examples, library, pattern

PACKAGED = library.load(None).folders
WITH_CODE = [each for each in PACKAGED if each.pattern is not None and "code" in each.pattern]


def generated(folder):
    return testgen.tests(str(folder), pattern.read(str(folder)).pattern)


def functions(text):
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def expected_tests(each):
    """Return the names of the tests that a pattern should produce."""
    proof = examples.read(each.path, each.pattern["code"].get("proof", "proof.py"), "").text
    return [f"test_{name}" for name in functions(proof) if name.startswith(("exploit_", "legitimate_"))]


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001") / "acme_auth_001"


@pytest.fixture
def append(folder):
    """Append ``text`` to the proof of ACME-AUTH-001, and generate tests."""

    def write(text):
        path = folder / "proof.py"
        path.write_text(path.read_text() + text)
        return generated(folder)

    return write


@pytest.mark.process
def test_generated_tests_of_packaged_patterns_fail(tmp_path):
    expected = set()
    for each in WITH_CODE:
        name = f"test_{each.pattern['id'].lower().replace('-', '_')}.py"
        text = testgen.tests(each.path, each.pattern)
        compile(text, name, "exec")
        (tmp_path / name).write_text(text, encoding="utf-8")
        expected |= {f"FAILED {name}::{test}" for test in expected_tests(each)}
        assert [test for test in functions(text) if test.startswith("test_")] == expected_tests(each), name
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "."]
    done = subprocess.run([*command, "-c", "/dev/null"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert set(re.findall(r"^(?:FAILED|PASSED|ERROR) [^ \n]+", done.stdout, re.M)) == expected, done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("each", WITH_CODE, ids=lambda each: each.pattern["id"])
def test_every_packaged_exploit_has_an_assertion(each):
    text = testgen.tests(each.path, each.pattern)

    assert text.count("\n    assert ") == sum(name.startswith("test_exploit_") for name in expected_tests(each))


def test_few_refusals_cannot_be_derived_from_the_text():
    texts = [testgen.tests(each.path, each.pattern) for each in WITH_CODE]
    assertions = sum(text.count("\n    assert ") for text in texts)

    assert sum(text.count("\n    assert refused\n") for text in texts) < assertions / 10


def test_head(folder):
    head = generated(folder).partition("\n\n\n")[0]

    assert "# Tests for ACME-AUTH-001: " in head
    assert "# Pattern version 1.0, reviewed 20" in head
    assert "# Fix: Enqueue the actor's id;" in head
    assert "`tmkb get ACME-AUTH-001 --test`" in head


def test_calls_are_inlined_up_to_the_outcome(folder):
    test = re.search(r"^def test_exploit_removed_member.*?\n\n\n", generated(folder), re.S | re.M).group()

    assert test.rstrip() == (
        "def test_exploit_removed_member(project):\n"
        '    """Bob has a document published and is removed from Acme before the worker comes to it; the job still runs."""\n'
        "    acme, globex = project.tenants()\n"
        "    bob, mallory = project.users(acme, globex)\n"
        "    as_bob, as_mallory = project.client(bob), project.client(mallory)\n"
        "    # The attempt in the proof:\n"
        "    #   assert s.client('bob').post(f'/documents/{ACME}/publish').status_code == 202\n"
        "    #   with s.app.app_context():\n"
        "    #       db.session.get(User, BOB).organization_id = None\n"
        "    #       db.session.commit()\n"
        "    #   result, = s.work()\n"
        "    #   reached = state(s, ACME)\n"
        "    # It succeeded if:\n"
        "    #   reached == 'published'\n"
        '    pytest.fail("ACME-AUTH-001: replace this line: make this attempt, with your application")\n'
        "    # It was refused if:\n"
        "    assert isinstance(result, PermissionError) and reached == 'new'"
    )


def test_definitions_are_at_the_end(folder):
    end = generated(folder).partition("# Definitions in the proof:")[2]

    assert "#   def state(s: Stage, document_id: int) -> str:" in end
    assert "def exploit_" not in end
    assert "# The vulnerable code:" in end and "# The secure code:" in end


@pytest.mark.process
def test_a_completed_test_passes_or_fails_by_its_assertion(folder, tmp_path):
    text = generated(folder)
    for what in ("tenants", "users"):
        text = re.sub(rf'pytest.fail\("Write Project.{what}: .*', "return 1, 2", text)
    text = re.sub(r'pytest.fail\("Write Project.client: .*', "return user", text)
    text = re.sub(
        r'pytest.fail\("ACME-AUTH-001: replace this line: make this .*',
        'result, reached = PermissionError(), "new"',
        text,
    )
    (tmp_path / "test_filled.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-c", "/dev/null"]
    output = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert set(re.findall(r"^(PASSED|FAILED|ERROR) \S+::test_(exploit|legitimate)", output, re.M)) == {
        ("PASSED", "exploit"),
        ("FAILED", "legitimate"),
    }


@pytest.mark.parametrize(
    ("proof", "assertion"),
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
            'def exploit_q(example):\n    """Hidden arguments."""\n    return seen(*[1])\n',
            "assert refused",
        ),
    ],
)
def test_forms_of_proofs(append, proof, assertion):
    text = append(f"\n\n{proof}")
    compile(text, "test_it.py", "exec")
    test = text.partition("def test_exploit_q")[2]

    assert f"\n    {assertion}\n" in test
    assert next(
        ast.get_docstring(node) for node in ast.parse(text).body if getattr(node, "name", "") == "test_exploit_q"
    )


def test_without_code_or_proof_there_are_no_tests(folder):
    value = pattern.read(str(folder)).pattern
    (folder / "proof.py").unlink()

    assert testgen.tests(str(folder), value) is None
    assert testgen.tests(str(folder), {key: inner for key, inner in value.items() if key != "code"}) is None

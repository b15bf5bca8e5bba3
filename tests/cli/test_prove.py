"""`tmkb prove`."""

import json
import os
import re
import subprocess
import sys

import pytest

from tmkb.authoring.proofs import runner
from tmkb.cli import main, prove
from tmkb.schema import installation

pytestmark = [pytest.mark.full, pytest.mark.needs("flask")]


@pytest.fixture
def command(capsys, monkeypatch):
    monkeypatch.setenv("TMKB_PATTERNS", "/no/such/folder")

    def run(*words):
        status = main.main(["prove", *map(str, words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_a_line_for_each_pattern(command, patterns):
    folder = patterns("acme_auth_026")
    status, out, err = command("acme-auth-026", "--no-mutants", "--patterns", folder)

    assert (status, err) == (0, f"Running the Python code in {folder}\n")
    line, total = out.splitlines()
    assert re.match(r"ACME-AUTH-026  1✓ 2✓ 3✓ 4✓  \d attacks  0 wrong fixes  0 mutants  9 runs  ", line)
    assert line.endswith(" s  proven")
    assert total == "1 of 1 proven"


def test_every_function_is_shown_on_request(command):
    _, out, _ = command("TMKB-AUTH-007", "--no-mutants", "--verbose")

    assert "    leg 1 counting on vulnerable: expected gained, was gained (" in out


def test_json_output(command):
    status, out, _ = command("TMKB-AUTH-007", "--no-mutants", "--json")
    (report,) = json.loads(out)

    assert (status, report["id"], report["proven"], report["legs"]) == (
        0,
        "TMKB-AUTH-007",
        True,
        {"1": True, "2": True, "3": True, "4": True},
    )
    assert set(report["cells"][0]) == {"leg", "function", "variant", "expected", "status", "detail", "seconds"}


def test_an_unproven_pattern_is_exit_status_1(command, patterns):
    folder = patterns("acme_auth_026")
    path = folder / "acme_auth_026" / "secure.py"
    path.write_text(path.read_text().replace('user.role != "admin"', "False"))
    status, out, err = command("--patterns", folder)

    assert (status, err) == (1, f"Running the Python code in {folder}\n")
    assert "1✓ 2✗ 3✗" in out and "NOT PROVEN" in out
    assert "leg 2 exploit_demoted on secure: expected refused, was gained" in out
    assert out.endswith("0 of 1 proven\n")


def test_proven_patterns_are_recorded(command, patterns):
    folder = patterns("acme_auth_024", "acme_auth_026")
    path = folder / "acme_auth_026" / "secure.py"
    path.write_text(path.read_text().replace('user.role != "admin"', "False"))
    status, out, err = command("--patterns", folder, "--record")
    record = folder / "_proven.yaml"

    assert status == 1 and out.endswith("1 of 2 proven\n")
    assert err.endswith("_proven.yaml written\n")
    assert re.fullmatch(
        r"# Written by .*\nkind: proven\npatterns:\n"
        r'  ACME-AUTH-024: {sha256: "[0-9a-f]{64}", date: "20\d\d-\d\d-\d\d", tmkb: "\d.*"}\n',
        record.read_text(),
    )


def test_patterns_changed_during_the_run_are_not_recorded(command, patterns, monkeypatch):
    folder = patterns("acme_auth_026")

    def changing(*given):
        path = folder / "acme_auth_026" / "secure.py"
        path.write_text(path.read_text() + "# more\n")
        return runner.prove_all(*given)

    monkeypatch.setattr(prove, "prove_all", changing)
    status, _, err = command("--patterns", folder, "--record")

    assert status == 0
    assert "tmkb: ACME-AUTH-026 changed during the run and is not recorded.\n" in err
    assert "patterns: {}" in (folder / "_proven.yaml").read_text()


def test_only_idioms_are_recorded(command, patterns):
    folder = patterns("acme_auth_026")
    path = folder / "acme_auth_026" / "idioms.yaml"
    path.write_text("kind: idioms\nstacks:\n  django: {code: x = 1}\n")
    record = folder / "_proven.yaml"
    record.write_text(
        f'kind: proven\npatterns:\n  ACME-AUTH-026: {{sha256: "{"0" * 64}", date: "2026-01-02", tmkb: "1.0"}}\n'
    )
    status, out, _ = command("--patterns", folder, "--idioms", "--record")

    assert (status, out) == (0, "ACME-AUTH-026  idioms: 1 of 1 compiled\n")
    assert f'sha256: "{"0" * 64}", date: "2026-01-02", tmkb: "1.0", compiled: {{"django": ' in record.read_text()


def test_an_idiom_that_is_not_correct_is_exit_status_1(command, patterns):
    folder = patterns("acme_auth_026")
    (folder / "acme_auth_026" / "idioms.yaml").write_text("kind: idioms\nstacks:\n  django: {code: x = = 1}\n")
    status, out, _ = command("--patterns", folder, "--idioms")

    assert status == 1
    assert out.splitlines()[1] == "    django does not compile: line 1: invalid syntax"


def test_an_incomplete_run_is_not_recorded(command, patterns):
    with pytest.raises(SystemExit) as exit:
        command("--patterns", patterns("acme_auth_026"), "--record", "--no-mutants")

    assert exit.value.code == 2


def test_an_unwritable_record_is_reported(command, patterns):
    folder = patterns("acme_auth_024")
    (folder / "_proven.yaml").mkdir()
    status, _, err = command("--patterns", folder, "--record")

    assert status == 2
    assert f"tmkb: Cannot write {folder}/_proven.yaml: " in err


def test_missing_code_is_not_a_failure_in_a_users_folder(command, patterns):
    folder = patterns("acme_auth_024")
    path = folder / "acme_auth_024" / "pattern.yaml"
    path.write_text(
        path.read_text()
        .replace("code: {vulnerable: vulnerable.py, proof: proof.py}\n", "")
        .replace("    example: secure.py\n", "")
    )

    assert command("--patterns", folder)[:2] == (0, "ACME-AUTH-024  unproven: no code\n0 of 1 proven\n")


def test_an_invalid_pattern_is_reported(command, patterns):
    folder = patterns("acme_auth_024", "acme_auth_026")
    (folder / "acme_auth_024" / "secure.py").unlink()
    status, out, err = command("--patterns", folder, "--no-mutants")

    assert status == 1
    assert "This folder has no .py file secure.py." in err
    assert out.endswith("1 of 1 proven\n")


def test_an_unknown_id_is_reported_like_get(command):
    assert command("TMKB-AUTHZ-026") == (
        1,
        "",
        "tmkb: There is no pattern TMKB-AUTHZ-026. Did you mean TMKB-AUTH-026?\n",
    )


@pytest.mark.parametrize("word", ["24", "acme-auth-24"])
def test_short_ids_are_accepted_like_get(command, patterns, word):
    status, out, _ = command(word, "--no-mutants", "--patterns", str(patterns("acme_auth_024")))

    assert (status, out.splitlines()[-1]) == (0, "1 of 1 proven")


def test_without_the_extra_the_message_names_it(command, monkeypatch):
    monkeypatch.setattr(prove, "NEEDED", ("flask", "no_such_package"))

    assert command() == (
        2,
        "",
        f"tmkb: tmkb prove needs the extra `proofs`. Install it with: {installation.command('proofs')}\n",
    )


def test_any_encoding_of_stdout_works(patterns):
    command = [sys.executable, "-m", "tmkb", "prove", "--no-mutants", "--patterns", str(patterns("acme_auth_024"))]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)

    assert done.returncode == 0, done.stderr
    assert b"1\\u2713 2\\u2713 3\\u2713" in done.stdout

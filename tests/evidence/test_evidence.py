"""The references show that no attack is unfair and none is dead."""

import os
import subprocess

import pytest

from tests.evidence import page, prepare, run, scenarios
from tmkb.schema import paths

REFERENCES = os.path.join(os.path.dirname(__file__), "references")
ATTACKS = {(number, name) for number in scenarios.ALL for name in scenarios.attacks(number).refusals}

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "flask_login", "flask_sqlalchemy", "time_machine")]


def by_result(name):
    """Result → the attacks on a reference that came to it; and the legitimate uses that it does not serve."""
    results, unserved = run.attack(os.path.join(REFERENCES, f"{name}.diff"))
    found = {}
    for number, attacks in results.items():
        for attack, result in attacks.items():
            found.setdefault(result.result, set()).add((number, attack))
    return found, unserved


def test_the_careful_reference_refuses_all_attacks_and_serves_all_uses():
    assert by_result("careful") == ({run.REFUSED: ATTACKS}, {})


def test_the_naive_reference_falls_to_all_attacks_and_serves_all_uses():
    assert by_result("naive") == ({run.MISSED: ATTACKS}, {})


def test_what_is_not_written_is_not_implemented():
    results, _ = run.attack(run.PRODUCT, ["003", "036"])

    assert {result.result for attacks in results.values() for result in attacks.values()} == {run.NOT_IMPLEMENTED}


def test_a_product_that_does_not_start_is_not_implemented(tmp_path):
    folder = tmp_path / "broken"
    prepare.prepare(1, str(folder))
    (folder / "worklane" / "__init__.py").write_text("import missing_module\n")
    results, unserved = run.attack(str(folder), ["003"])

    assert {result.result for result in results["003"].values()} == {run.NOT_IMPLEMENTED}
    assert "missing_module" in unserved["003"]["bob_pin"]


@pytest.mark.parametrize("batch", scenarios.BATCHES)
def test_an_author_gets_the_product_and_ten_tickets_and_nothing_else(batch, tmp_path):
    folder = tmp_path / "author"
    prepare.prepare(batch, str(folder))
    listed = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True).stdout.split()

    assert len([name for name in listed if name.startswith("tickets/")]) == 10
    top = {name.partition("/")[0] for name in listed}
    assert top == {"BRIEF.md", "README.md", "worklane", "tests", "tickets", ".gitignore"}


def test_the_product_passes_its_tests_in_the_environment_of_an_author(tmp_path):
    folder = tmp_path / "author"
    prepare.prepare(1, str(folder))
    prepare.add_environment(str(folder))
    command = [str(folder / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]

    assert subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 0


def test_every_scenario_is_in_one_batch():
    written = {
        name.removeprefix("tmkb_auth_")
        for name in os.listdir(paths.PATTERNS)
        if os.path.exists(os.path.join(paths.PATTERNS, name, "scenario.yaml"))
    }

    assert sorted(scenarios.ALL) == sorted(written)


@pytest.mark.parametrize("arm", page.ARMS)
def test_the_first_implementation_still_gets_its_recorded_results(arm):
    first = page.diffs(arm)[0]
    number = scenarios.BATCHES[1][0]
    results, _ = run.attack(first, [number])
    recorded = {name: each[arm][0] for name, each in page.read()[number].items()}

    assert {name: result.result for name, result in results[number].items()} == recorded


def test_the_page_shows_the_recorded_results():
    with open(page.PAGE, encoding="utf-8") as file:
        assert file.read() == page.text(page.read())

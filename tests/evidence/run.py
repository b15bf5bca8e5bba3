"""Attack what authors wrote: python -m tests.evidence.run [--batch N] DIFF_OR_DIRECTORY…

A diff is applied to a copy of the product. A directory is an author's folder as `tests.evidence.prepare` makes it.
The result of an attack is `missed` if it succeeds, and `refused` if not. All attacks of a scenario are
`not implemented` unless each of its legitimate uses is served. A response with status 500 that gains nothing is a refusal.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import NamedTuple

from tests.evidence import scenarios
from tmkb.authoring import play

PRODUCT = os.path.join(os.path.dirname(__file__), "product")
MISSED, REFUSED, NOT_IMPLEMENTED = "missed", "refused", "not implemented"
_RESULTS = {play.GAINED: MISSED, "both": MISSED, play.REFUSED: REFUSED, "neither": REFUSED}


class Result(NamedTuple):
    """What an attack came to, and the response that shows it."""

    result: str
    evidence: str


class Total(NamedTuple):
    """How many results are misses, and how many there are, of implemented scenarios."""

    missed: int
    of: int

    def __str__(self) -> str:
        return f"{self.missed}/{self.of}" if self.of else "-"


Results = dict[str, dict[str, Result]]  # scenario → attack → result


def attack(source: str, numbers: Iterable[str] = scenarios.ALL) -> tuple[Results, dict[str, dict[str, str]]]:
    """Attack the product in ``source``, a diff or a directory.

    Returns the results, and scenario → legitimate use that is not served → evidence.

    Raises:
        subprocess.CalledProcessError: the diff does not apply.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "product")
        _copy(source, folder)
        file = os.path.join(place, "verdicts.json")
        command = [sys.executable, "-m", "tests.evidence.worker", folder, file, *numbers]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(file, encoding="utf-8") as stream:
            verdicts = json.load(stream)
    return _judged(verdicts)


def _copy(source: str, folder: str) -> None:
    ignored = shutil.ignore_patterns(".git", "__pycache__", ".venv", "venv", "*.db", "instance")
    if os.path.isdir(source):
        shutil.copytree(source, folder, ignore=ignored)
        return
    shutil.copytree(PRODUCT, folder, ignore=ignored)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)  # else `git apply` looks for a repository above
    subprocess.run(["git", "apply", "--whitespace=nowarn", os.path.abspath(source)], cwd=folder, check=True)


def _judged(verdicts: dict[str, dict[str, tuple[str, str]]]) -> tuple[Results, dict[str, dict[str, str]]]:
    results: Results = {}
    unserved: dict[str, dict[str, str]] = {}
    for number, cases in verdicts.items():
        attacks = scenarios.attacks(number)
        uses = {case.name: cases[case.name] for case in attacks.cases if case.allowed}
        failures = {name: detail for name, (status, detail) in uses.items() if status != play.SERVED}
        if failures:
            unserved[number] = failures
        results[number] = {}
        for name in attacks.refusals:
            status, evidence = cases[name]
            result = NOT_IMPLEMENTED if failures else _RESULTS.get(status, NOT_IMPLEMENTED)
            results[number][name] = Result(result, f"{status}: {evidence}")
    return results, unserved


def total(results: Iterable[str]) -> Total:
    """Count the misses among the authors who implemented the scenario."""
    implemented = [result for result in results if result != NOT_IMPLEMENTED]
    return Total(implemented.count(MISSED), len(implemented))


def main(arguments: list[str] | None = None) -> None:
    """Attack each source and print the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.run")
    parser.add_argument("source", nargs="+", help="a diff, or an author's folder")
    parser.add_argument("--batch", type=int, choices=scenarios.BATCHES, help="only the scenarios of this batch")
    options = parser.parse_args(arguments)
    numbers = scenarios.BATCHES[options.batch] if options.batch else scenarios.ALL
    everything = []
    for source in options.source:
        name = os.path.splitext(os.path.basename(os.path.normpath(source)))[0]
        results, unserved = attack(source, numbers)
        everything.append(results)
        print(f"{name}")
        for number, failures in unserved.items():
            for use, detail in failures.items():
                print(f"  {number} {use} is not served: {detail}")
        for number, each in results.items():
            for case, result in each.items():
                if result.result != REFUSED:
                    print(f"  {number} {case}: {result.result} ({result.evidence})")
    _print_summary(everything, numbers)


def _print_summary(everything: list[Results], numbers: list[str]) -> None:
    """Print missed_by for each attack: how many of the authors who implemented the scenario missed it."""
    print("missed_by")
    for number in numbers:
        for case in scenarios.attacks(number).refusals:
            print(f"  {number} {case}: {total(results[number][case].result for results in everything)}")


if __name__ == "__main__":
    main()

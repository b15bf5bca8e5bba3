"""Attack all delivered implementations, and write the results: python -m tests.evidence.page

`results.yaml` has the result of each attack, `patterns/_evidence.yaml` the sums of each pattern, `docs/evidence.md` both.

`implementations/without` has what authors wrote without the knowledge base, `implementations/with` what other authors wrote
who asked it first. The name of a diff ends with its batch. With `--page`, only the sums and the page are written.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from tests.evidence import run, scenarios
from tests.evidence.run import Total, total
from tmkb.knowledge import evidence, library
from tmkb.knowledge.answer import unwrap
from tmkb.schema import metaschema, paths

HERE = os.path.dirname(__file__)
RESULTS = os.path.join(HERE, "results.yaml")
PAGE = os.path.join(paths.ROOT, "docs", "evidence.md")
SUMS = os.path.join(paths.PATTERNS, "_evidence.yaml")
ARMS = ("without", "with")

Counts = dict[str, dict[str, dict[str, list[str]]]]  # scenario → attack → arm → result of each author


def diffs(arm: str) -> list[str]:
    """Return the paths of the implementations of an arm."""
    folder = os.path.join(HERE, "implementations", arm)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".diff")]


def measure() -> Counts:
    """Attack every implementation."""
    counts: Counts = {}
    for arm in ARMS:
        for path in diffs(arm):
            batch = int(os.path.splitext(path)[0][-1])
            results, _ = run.attack(path, scenarios.BATCHES[batch])
            for number, attacks in results.items():
                for name, result in attacks.items():
                    counts.setdefault(number, {}).setdefault(name, {}).setdefault(arm, []).append(result.result)
    return counts


def read() -> Counts:
    """Return the recorded results."""
    with open(RESULTS, encoding="utf-8") as file:
        counts: Counts = yaml.safe_load(file)
    return counts


def text(counts: Counts) -> str:
    """Return the page."""
    return "\n".join(_lines(counts)) + "\n"


def _lines(counts: Counts) -> Iterator[str]:
    patterns = {each.pattern["id"][-3:]: each.pattern for each in library.load(None).folders if each.pattern}
    every = [attack for attacks in counts.values() for attack in attacks.values()]
    missed = [_sum(total(attack.get(arm, [])) for attack in every) for arm in ARMS]
    with open(os.path.join(HERE, "evidence.md"), encoding="utf-8") as file:
        head = file.read().replace("{authors}", ", ".join(f"{len(diffs(arm))} {arm}" for arm in ARMS))
    yield head.replace("{missed}", ", ".join(f"{each} {arm}" for each, arm in zip(missed, ARMS, strict=True)))
    yield "## By pattern\n"
    yield "| pattern | attacks | missed without | missed with | authors with a miss, without | with |"
    yield "|---|---|---|---|---|---|"
    for number in sorted(counts):
        attacks = counts[number]
        sums = [_sum(total(each.get(arm, [])) for each in attacks.values()) for arm in ARMS]
        authors = [_authors(attacks, arm) for arm in ARMS]
        yield _row(f"{patterns[number]['id']} {unwrap(patterns[number]['name'])}", len(attacks), *sums, *authors)
    yield _row(
        "**all**",
        len(every),
        *missed,
        *(_sum(_authors(attacks, arm) for attacks in counts.values()) for arm in ARMS),
    )
    yield "\n## Attacks that somebody missed\n"
    yield from _missed(counts, {number: patterns[number]["id"] for number in counts}) or ["None."]


def sums(counts: Counts) -> str:
    """Return the content of `_evidence.yaml`."""
    ids = {each["id"][-3:]: each["id"] for each in library.load(None).patterns}
    lines = ["# Written by `python -m tests.evidence.page`, never by hand.", "kind: evidence", "patterns:"]
    for number in sorted(counts):
        attacks = counts[number].values()
        shares = {arm: _sum(total(each.get(arm, [])) for each in attacks) for arm in ARMS}
        shown = ", ".join(f"{arm}: [{share.missed}, {share.of}]" for arm, share in shares.items())
        lines.append(f"  {ids[number]}: {{attacks: {len(attacks)}, {shown}}}")
    return metaschema.pointed("\n".join(lines) + "\n", evidence.SCHEMA, SUMS)


def _missed(counts: Counts, ids: dict[str, str]) -> list[str]:
    """Return the table of the attacks that somebody missed; empty if there are none."""
    rows = []
    for number in sorted(counts):
        stories = _stories(number)
        for name, each in counts[number].items():
            sums = [total(each.get(arm, [])) for arm in ARMS]
            if any(one.missed for one in sums):
                rows.append(_row(ids[number], f"`{name}`", *sums, stories.get(name, "a cell of the access matrix")))
    head = ["| pattern | attack | missed without | missed with | what happens |", "|---|---|---|---|---|"]
    return [*head, *rows] if rows else []


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _sum(totals: Iterator[Total]) -> Total:
    each = list(totals)
    return Total(sum(one.missed for one in each), sum(one.of for one in each))


def _authors(attacks: dict[str, Any], arm: str) -> Total:
    """Count the authors with at least one miss, among those who implemented the scenario."""
    by_author = list(zip(*(attack.get(arm, []) for attack in attacks.values()), strict=True))
    implemented = [results for results in by_author if run.NOT_IMPLEMENTED not in results]
    return Total(sum(run.MISSED in results for results in implemented), len(implemented))


def _stories(number: str) -> dict[str, str]:
    attacks = scenarios.attacks(number).value["attacks"]
    return {name: unwrap(attack["story"]) for name, attack in attacks.items()}


def main(arguments: list[str]) -> None:
    """Measure unless `--page` is given, and write the page."""
    if "--page" not in arguments:
        counts = measure()
        with open(RESULTS, "w", encoding="utf-8") as file:
            file.write("# Written by `python -m tests.evidence.page`, never by hand.\n")
            yaml.safe_dump(counts, file, default_flow_style=None, width=120, sort_keys=True)
    with open(SUMS, "w", encoding="utf-8") as file:
        file.write(sums(read()))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text(read()))


if __name__ == "__main__":
    main(sys.argv[1:])

"""`docs/proofs.md` lists what every packaged pattern is proven against. `python tests/authoring/test_proofs_page.py` writes it."""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tmkb.knowledge import attacks, library
from tmkb.knowledge.answer import unwrap
from tmkb.schema import paths

PAGE = os.path.join(paths.ROOT, "docs", "proofs.md")
_NAMES = {"celery": "Celery worker", "postgresql": "PostgreSQL", "redis": "Redis"}
HEAD = """# What the patterns are proven against

`tmkb prove` plays the cases of each pattern's `attacks.yaml` against every version of its code. Each attack succeeds on the
vulnerable version and is refused by the secure one, unless the vulnerable version refuses it too. Legitimate uses are served
by all versions. Each wrong fix serves the legitimate uses and falls to exactly the attacks that it lists.
Most cases run on SQLite in one process. Those on a real service need its row locks, its cache, or a worker of its own;
two requests that race are two processes there.
[Write a pattern](pattern-guide.md) explains the format. A test keeps this page equal to the patterns.
"""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    found = [(each.pattern, attacks.read(each.path)[0]) for each in library.load(None).folders if each.pattern]
    proven = [(pattern, each) for pattern, each in found if "attacks" in pattern.get("code", {}) and each]
    yield HEAD
    counts = [(len(each.refusals), len(each.cases) - len(each.refusals), len(each.wrong)) for _, each in proven]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    yield f"{len(proven)} patterns: {totals[0]} attacks, {totals[1]} legitimate uses, {totals[2]} wrong fixes.\n"
    yield "| pattern | attacks | legitimate uses | wrong fixes | cases on a real service |"
    yield "|---|---|---|---|---|"
    for (pattern, attacks_), (refused, allowed, wrong_fixes) in zip(proven, counts, strict=True):
        services = Counter(service for case in attacks_.cases for service in case.services)
        real = ", ".join(f"{_NAMES[name]} {count}" for name, count in sorted(services.items()))
        yield f"| {pattern['id']} {unwrap(pattern['name'])} | {refused} | {allowed} | {wrong_fixes} | {real} |"
    yield "\n## Wrong fixes\n"
    yield "Fixes that people write, why they write them, and an attack that succeeds against each."
    for pattern, each in proven:
        yield f"\n**{pattern['id']}**\n"
        for name, wrong in each.wrong.items():
            first = next(case for case in each.refusals if case in wrong.falls_to)
            yield f"- `{name}`: {unwrap(wrong.why)} Falls to `{first}`."


@pytest.mark.full
def test_the_page_is_current() -> None:
    with open(PAGE, encoding="utf-8") as file:
        assert file.read() == page()


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())

"""`docs/idioms.md` lists what is recorded about each idiom. `python tests/authoring/test_idioms_page.py` writes it."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tmkb.knowledge import idioms, library, stacks
from tmkb.knowledge.answer import unwrap
from tmkb.schema import paths

PAGE = os.path.join(paths.ROOT, "docs", "idioms.md")
HEAD = """# The fixes in other stacks

Each pattern shows its fix in the idiom of several frameworks and platforms. `_proven.yaml` records how each was checked:

- **proven**: all cases of the pattern's `attacks.yaml` were played on a real application that contains this code.
- **compiled**: the parser of its language accepts the code. Nothing has executed it.
- **text**: people have written and read it. An application on which some cases cannot be played, such as races, does not
  count as proven.

`tmkb prove` checks them; [Write a pattern](pattern-guide.md#idioms-in-other-stacks) explains how to write them. A test keeps
this page equal to the record.
"""
VARIANTS = """## With another library

A variant is a stack with a certain library, or in a certain form. Words of the question or of its `framework` choose it,
such as `knex(` or "express knex". Where it has no idiom for a pattern, that of another library in the question is shown, or
else that of the stack, which may be written with that library.
"""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    folders = [each for each in library.load(None).folders if each.pattern]
    served = {each.path: idioms.served(each.path, each.pattern) for each in folders}
    known = stacks.packaged().stacks
    shown = {stack for each in served.values() for stack in each}
    main = {stack: each["name"] for stack, each in known.items() if "of" not in each and stack in shown}
    variants = {stack: each["name"] for stack, each in known.items() if "of" in each}
    counts = Counter(idiom["status"] for each in served.values() for idiom in each.values())
    yield HEAD
    yield f"{', '.join(f'{counts[status]} {status}' for status in ('proven', 'compiled', 'text'))}.\n"
    yield from _table(folders, served, main)
    yield f"\n{VARIANTS}"
    yield from _variants(folders, served, variants)


def _variants(folders: list[Any], served: dict[str, Any], names: dict[str, str]) -> Iterator[str]:
    yield "| variant | patterns that have an idiom for it |"
    yield "|---|---|"
    for stack, name in names.items():
        numbers = [_number(each, served[each.path][stack]) for each in folders if stack in served[each.path]]
        yield f"| {name} | {', '.join(numbers) or 'those of its stack'} |"


def _number(folder: Any, idiom: dict[str, str]) -> str:
    status = "" if idiom["status"] == "compiled" else f" ({idiom['status']})"
    return folder.pattern["id"].removeprefix("TMKB-AUTH-") + status


def _table(folders: list[Any], served: dict[str, Any], names: dict[str, str]) -> Iterator[str]:
    yield f"| pattern | {' | '.join(names.values())} |"
    yield f"|---{'|---' * len(names)}|"
    for each in folders:
        cells = [served[each.path].get(stack, {}).get("status", "") for stack in names]
        yield f"| {each.pattern['id']} {unwrap(each.pattern['name'])} | {' | '.join(cells)} |"


@pytest.mark.full
def test_the_page_is_current() -> None:
    with open(PAGE, encoding="utf-8") as file:
        assert file.read() == page()


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())

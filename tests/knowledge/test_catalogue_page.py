"""`docs/catalogue.md` and README list the patterns by family. `python tests/knowledge/test_catalogue_page.py` writes them."""

import os
import re
from collections.abc import Iterator, Mapping

from tmkb.knowledge import idioms, library, stacks
from tmkb.knowledge.pattern import Pattern, PatternFolder
from tmkb.schema import paths

PAGE = os.path.join(paths.ROOT, "docs", "catalogue.md")
README = os.path.join(paths.ROOT, "README.md")
LIST = re.compile(r"\| family \|.*?\n(?=\n)", re.S)
HEAD = """# All patterns by family

A family is the `category` of a pattern. `tmkb get ID` shows a pattern in full, `tmkb list --category NAME` a family. The columns
are the id, what goes wrong, the severity, and the number of stacks in whose idiom there is a fix.
A test keeps this page equal to the patterns.
"""


def families() -> Mapping[str, list[tuple[PatternFolder, Pattern]]]:
    found: dict[str, list[tuple[PatternFolder, Pattern]]] = {}
    for folder in library.load(None).folders:
        if folder.pattern:
            found.setdefault(folder.pattern["category"], []).append((folder, folder.pattern))
    return dict(sorted(found.items()))


def title(category: str) -> str:
    return category.replace("-", " ").capitalize().replace("Ai ", "AI ")


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    known = stacks.packaged().stacks
    yield HEAD
    for category, members in families().items():
        yield f"## {title(category)}\n"
        yield "| pattern | threat | severity | stacks |"
        yield "|---|---|---|---|"
        for folder, pattern in members:
            count = sum("of" not in known.get(stack, {}) for stack in idioms.served(folder.path, pattern))
            threat = pattern["agent_summary"]["threat"]
            yield f"| {pattern['id']} {pattern['name']} | {threat} | {pattern['severity']} | {count} |"
        yield ""


def readme_list() -> str:
    lines = ["| family | patterns | for example |", "|---|--:|---|"]
    for category, members in families().items():
        first = members[0][1]
        link = f"[{title(category)}](docs/catalogue.md#{title(category).lower().replace(' ', '-')})"
        lines.append(f"| {link} | {len(members)} | {first['name']} |")
    return "\n".join(lines) + "\n"


def test_the_page_is_current() -> None:
    with open(PAGE, encoding="utf-8") as file:
        assert file.read() == page()


def test_the_list_in_the_readme_is_current() -> None:
    with open(README, encoding="utf-8") as file:
        shown = LIST.search(file.read())
    assert shown and shown[0] == readme_list()


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())
    with open(README, encoding="utf-8") as file:
        text = file.read()
    with open(README, "w", encoding="utf-8") as file:
        file.write(LIST.sub(lambda _: readme_list(), text))

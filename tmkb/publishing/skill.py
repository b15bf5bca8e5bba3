"""An Agent Skill: SKILL.md with an index of the patterns, and a file for each pattern that agents load on demand.

The format is that of https://agentskills.io/specification. The name of the skill must be that of its folder.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from tmkb import __version__
from tmkb.knowledge import stacks
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern
from tmkb.publishing.entry import Entry, by_family, family_title
from tmkb.schema import template

FOLDER = "tmkb-authorization"  # also the name of the skill
_TEXT = os.path.join(os.path.dirname(__file__), "templates", "skill.md")
_SUMMARY = ("threat", "check", "principle")
_OWN = ("fix", "caution")  # of the pattern's own stack


def files(patterns: Mapping[str, tuple[str, Pattern]]) -> dict[str, str]:
    """Return the files of the skill.

    Args:
        patterns: id → folder and pattern.

    Returns:
        Path → content. Equal patterns make equal files.

    Raises:
        SpecError: a packaged file beside the patterns is invalid.
    """
    families = by_family(Entry(*each) for each in patterns.values())
    entries = [entry for members in families.values() for entry in members]
    known = stacks.packaged().stacks
    names = {known[name]["name"] for entry in entries for name in entry.idioms if name in known}
    with open(_TEXT, encoding="utf-8") as file:
        text = file.read()
    values = {
        "name": FOLDER,
        "version": __version__,
        "stacks": ", ".join(sorted(names, key=str.lower)) or "none",
        "index": "\n\n".join(itertools.starmap(_section, families.items())),
    }
    return {
        "SKILL.md": template.fill(text, values),
        **{_path(entry): "\n".join(_page(entry, patterns, known)) + "\n" for entry in entries},
    }


def _path(entry: Entry) -> str:
    return f"references/{entry.id}.md"


def _section(family: str, members: Sequence[Entry]) -> str:
    """Return the part of the index about a family: for each pattern its file, its name, and when to read it."""
    lines = [f"## {family_title(family)}", ""]
    for entry in members:
        work = "; ".join(map(unwrap, entry.pattern["triggers"].get("actions", ())))
        lines.append(f"- {_path(entry)} {entry.name}" + (f" ({work})" if work else ""))
    return "\n".join(lines)


def _page(entry: Entry, ids: Collection[str], known: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of the file of a pattern. The code is at the end, so that readers can stop before it.

    Args:
        entry: the pattern.
        ids: the ids of all patterns that are exported.
        known: the names and languages of stacks.
    """
    pattern, summary = entry.pattern, entry.summary
    related = [each for each in pattern.get("related_patterns", ()) if each["id"] in ids]
    keys = _SUMMARY if entry.own_stack else (*_SUMMARY, *_OWN)
    yield from (f"# {entry.id}: {entry.name}", "")
    yield from (f"Severity {pattern['severity']}, likelihood {pattern['likelihood']}.", "")
    yield from (f"- **{key.capitalize()}**: {unwrap(summary[key])}" for key in keys if key in summary)
    yield from ("", unwrap(pattern["description"]))
    yield from _list("What to test", pattern.get("testing", ()))
    yield from _list("Attacks that must fail", [story.text for story in entry.stories])
    yield from _list("Why people write wrong fixes", [wrong.why for wrong in entry.wrong.values()])
    yield from _list("Related patterns", [_reference(each) for each in related])
    if entry.idioms:
        yield from ("", "## Code")
    for name, idiom in entry.idioms.items():
        stack = known.get(name, {"name": name, "language": pattern["language"]})  # a pattern's own can be any
        yield from ("", f"### {stack['name']} ({idiom['status']})", "")
        if name == entry.own_stack:
            yield from (unwrap(summary["fix"]), "")
        if "caution" in idiom:
            yield from (f"Caution: {unwrap(idiom['caution'])}", "")
        yield from (f"```{stack['language']}", idiom["code"].rstrip("\n"), "```")


def _reference(related: Mapping[str, str]) -> str:
    link = f"[{related['id']}]({related['id']}.md)"
    return f"{link}: {related['why']}" if "why" in related else link


def _list(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from ("", f"## {heading}", "", *(f"- {unwrap(item)}" for item in items))

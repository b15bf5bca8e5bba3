"""``tmkb schema diff``: compare two files or two schema folders by the impact on clients.

Exit status: 0 without breaking changes, 1 with breaking changes, 2 if the comparison is impossible.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

from tmkb.cli import layout, output
from tmkb.cli.edits import Place
from tmkb.schema import diff as difference
from tmkb.schema import documents, impact, load, paths
from tmkb.schema.diff import Change
from tmkb.schema.documents import Schemas
from tmkb.server import sources

_PACKAGED = "packaged"
_NAMING = (("revision",), ("name",))  # keys that always differ between two names
_LONGEST = 120  # characters of a map or list in one line


def configure(actions: Any, place: Place) -> None:
    """Add the action and its options; ``place`` finds a file by its name."""
    diff = actions.add_parser(
        "diff",
        help="compare two files or folders by the impact on clients",
        description="List changes by their impact on clients: breaking, additive, cosmetic or unseen. "
        "Exit status 1 if any is breaking.",
    )
    diff.add_argument("old", metavar="OLD", help="a name as in `show`, a folder of schemas, or `packaged`")
    diff.add_argument("new", metavar="NEW", help="as OLD")
    diff.set_defaults(act=_diff, place=place)
    sources.configure_schemas(diff)
    output.configure(diff)


def _diff(args: argparse.Namespace) -> int:
    """Print the changes. Return 1 if any is breaking, 2 if the schemas have problems or a name is unknown."""
    below = paths.named(args.schemas, "TMKB_SCHEMAS")
    known = {word for at in documents.places(below) for word in (at, documents.name(at))}
    folders = [word not in known and (word == _PACKAGED or os.path.isdir(word)) for word in (args.old, args.new)]
    # TMKB_SCHEMAS is ignored between folders: it would lie below both sides.
    changes = _of_folders(args, known) if any(folders) else _of_names(args, below)
    if changes is None:
        return 2
    counts = {level: sum(each.impact == level for each in changes) for level in impact.IMPACTS}
    text = "\n".join(_sections(changes)) or "No differences."
    value = {"old": args.old, "new": args.new, "counts": counts, "changes": [_value(each) for each in changes]}
    output.write(args, value, layout.code(text, "text"))
    return 1 if counts[impact.BREAKING] else 0


def _of_folders(args: argparse.Namespace, known: set[str]) -> list[Change] | None:
    for word, other in ((args.old, args.new), (args.new, args.old)):
        if word in known:
            output.fail(f"{word} is a schema, {other} a folder. To compare a folder named {word}, write ./{word}.")
            return None
    sides = [
        load.read([*([] if word == _PACKAGED else [word]), *(args.schemas or [])], sources.names())
        for word in (args.old, args.new)
    ]
    return difference.served(*sides) if _valid(args, sides) else None


def _of_names(args: argparse.Namespace, below: list[str]) -> list[Change] | None:
    schemas = load.read(below, sources.names())
    if not _valid(args, [schemas]):
        return None
    places = [args.place(schemas, name) for name in (args.old, args.new)]
    if None in places:
        return None
    kinds = [documents.kind(place) for place in places]
    if kinds[0] != kinds[1]:
        output.fail(f"{args.old} is a {kinds[0]}, {args.new} a {kinds[1]}. Compare two files of one kind.")
        return None
    changes = difference.between(str(kinds[0]), *(schemas.documents[place] for place in places))
    return difference.ordered(each for each in changes if each.path not in _NAMING)


def _valid(args: argparse.Namespace, sides: list[Schemas]) -> bool:
    """Return whether both sides are valid; print every problem once."""
    problems = [*{repr(problem): problem for side in sides for problem in side.problems}.values()]
    if problems:
        output.write(args, {"problems": output.problem_values(problems)}, output.problem_lines(problems))
    return not problems


def _sections(changes: list[Change]) -> Iterator[str]:
    for level in impact.IMPACTS:
        if of_level := [each for each in changes if each.impact == level]:
            yield f"{level} ({len(of_level)})"
            yield from (f"  {each.at.file}:{each.at.line}  {line(each)}" for each in of_level)


def line(change: Change) -> str:
    """Return a change as one line: its sign, its path, the values, and the servers."""
    before, after = (_shown(value) for value in (change.before, change.after))
    values = {"+": after, "-": before, "~": f"{before} → {after}"}[change.sign]
    of = f"  [{', '.join(change.servers)}]" if change.servers else ""
    return f"{change.sign} {'.'.join(map(str, change.path)) or 'the file'}: {values}{of}"


def _shown(value: object) -> str:
    """Return ``value`` in one line. Strings are not cut, because they can differ anywhere."""
    text = json.dumps(value, ensure_ascii=False)
    return text if isinstance(value, str) or len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _value(change: Change) -> dict[str, object]:
    return {
        "impact": change.impact,
        "sign": change.sign,
        "file": change.at.file,
        "line": change.at.line,
        "path": [*map(str, change.path)],
        "before": change.before,
        "after": change.after,
        "servers": [*change.servers],
    }

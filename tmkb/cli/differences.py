"""``tmkb schema diff``: how clients notice what changes from one file, or one folder of schemas, to another.

The exit status is that of a gate: 0 where nothing is breaking, 1 where something is, 2 where there is no answer.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

from tmkb.cli import output
from tmkb.cli.edits import Place
from tmkb.schema import diff as difference
from tmkb.schema import documents, load, paths
from tmkb.schema import impact as notice
from tmkb.schema.diff import Change
from tmkb.schema.documents import Schemas
from tmkb.server import sources

_PACKAGED = "packaged"
_NAMING = (("revision",), ("name",))  # what two files that are compared by name differ in anyway
_LONGEST = 120  # of a map or a list that is shown in a line


def configure(actions: Any, place: Place) -> None:
    """The action and its options; ``place`` finds the file that is called by a name."""
    diff = actions.add_parser(
        "diff",
        help="say how clients notice what changes from one file or folder to another",
        description="Changes by what they mean for clients: breaking, additive, cosmetic, or unseen. "
        "Exit status 1 where any is breaking.",
    )
    diff.add_argument("old", metavar="OLD", help="a name as in `show`, a folder of schemas, or `packaged`")
    diff.add_argument("new", metavar="NEW", help="likewise")
    diff.set_defaults(act=_diff, place=place)
    sources.configure_schemas(diff)
    output.configure(diff)


def _diff(args: argparse.Namespace) -> int:
    """Print the changes. 1 where any is breaking; 2 where the schemas have problems, or there is nothing of a name."""
    under = paths.named(args.schemas, "TMKB_SCHEMAS")
    known = {word for at in documents.places(under) for word in (at, documents.name(at))}
    folders = [word not in known and (word == _PACKAGED or os.path.isdir(word)) for word in (args.old, args.new)]
    # Between folders the environment would lie under both sides, and hide what one of them is.
    found = _of_folders(args, known) if any(folders) else _of_names(args, under)
    if found is None:
        return 2
    counts = {impact: sum(each.impact == impact for each in found) for impact in notice.IMPACTS}
    text = "\n".join(_sections(found)) or "Nothing differs."
    value = {"old": args.old, "new": args.new, "counts": counts, "changes": [_value(each) for each in found]}
    output.write(args, value, output.code(text, "text"))
    return 1 if counts[notice.BREAKING] else 0


def _of_folders(args: argparse.Namespace, known: set[str]) -> list[Change] | None:
    for word, other in ((args.old, args.new), (args.new, args.old)):
        if word in known:
            output.fail(f"{word} is a schema, {other} a folder. A folder of the name {word} is ./{word}.")
            return None
    sides = [
        load.read([*([] if word == _PACKAGED else [word]), *(args.schemas or [])], sources.names())
        for word in (args.old, args.new)
    ]
    return difference.served(*sides) if _sound(args, sides) else None


def _of_names(args: argparse.Namespace, under: list[str]) -> list[Change] | None:
    found = load.read(under, sources.names())
    if not _sound(args, [found]):
        return None
    places = [args.place(found, name) for name in (args.old, args.new)]
    if None in places:
        return None
    kinds = [documents.kind(place) for place in places]
    if kinds[0] != kinds[1]:
        output.fail(f"{args.old} is a {kinds[0]}, {args.new} a {kinds[1]}. Compare two of a kind.")
        return None
    changes = difference.between(str(kinds[0]), *(found.documents[place] for place in places))
    return difference.ordered(each for each in changes if each.path not in _NAMING)


def _sound(args: argparse.Namespace, sides: list[Schemas]) -> bool:
    """Whether nothing is wrong with any side; what is, is printed once."""
    problems = [*{repr(problem): problem for side in sides for problem in side.problems}.values()]
    if problems:
        output.write(args, {"problems": output.problem_values(problems)}, output.problem_lines(problems))
    return not problems


def _sections(found: list[Change]) -> Iterator[str]:
    for impact in notice.IMPACTS:
        told = [each for each in found if each.impact == impact]
        if told:
            yield f"{impact} ({len(told)})"
            yield from (f"  {each.at.file}:{each.at.line}  {_line(each)}" for each in told)


def _line(change: Change) -> str:
    before, after = (_shown(value) for value in (change.before, change.after))
    values = {"+": after, "-": before, "~": f"{before} → {after}"}[change.sign]
    of = f"  [{', '.join(change.servers)}]" if change.servers else ""
    return f"{change.sign} {'.'.join(map(str, change.path)) or 'the file'}: {values}{of}"


def _shown(value: object) -> str:
    """``value`` in a line. Texts are whole, as they may differ anywhere."""
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

"""``tmkb diff``: compare what two servers offer, by the impact on a client that worked with the old one.

Exit status: 0 without changes of the level `--fail-on`, 1 with some, 2 if the comparison is impossible.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tmkb.cli import connection, differences, layout, output, target
from tmkb.conformance import difference, report, surface, targets, transcript
from tmkb.conformance.client import Client, ClientError
from tmkb.conformance.difference import Comparison
from tmkb.conformance.surface import Surface
from tmkb.errors import DocumentError
from tmkb.schema import hidden, impact
from tmkb.schema.diff import Change
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject
from tmkb.server import server

T = TypeVar("T")
_LEVELS = impact.IMPACTS[:3]  # `unseen` does not occur: only what clients see is compared
_HELP = "a recording (a file *.yaml), the command of a server, or the URL of one"
_ANNOTATIONS = {True: "error", False: "notice"}  # whether the level fails → the level of GitHub


class _Side(NamedTuple):
    """One side: `kind` is ``recording``, ``command`` or ``url``."""

    word: str
    kind: str


class _Impossible(Exception):
    """The comparison is impossible. The message says why."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("old", type=_side, metavar="OLD", help=_HELP)
    parser.add_argument("new", type=_side, metavar="NEW", help="as OLD")
    parser.add_argument(
        "--fail-on",
        choices=_LEVELS,
        default=impact.BREAKING,
        help="exit with status 1 if there is a change of this level, or of one before it in the list "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--revision", metavar="DATE", help="compare under this revision (default: the newest in common)"
    )
    target.configure_connection(parser)
    output.configure(parser)
    parser.add_argument("--github", action="store_true", help="print annotations for GitHub Actions")


def run(args: argparse.Namespace) -> int:
    """Print the changes. Return 1 if any is as severe as ``--fail-on``, 2 if a side cannot be read."""
    try:
        comparison = _compared(args, server.protocol())
    except (_Impossible, RecursionError) as error:
        output.fail(str(error) if isinstance(error, _Impossible) else "The schemas are nested too deeply to compare.")
        return 2
    changes = comparison.changes
    failing = _LEVELS[: _LEVELS.index(args.fail_on) + 1]
    if args.github:
        for each in changes:
            print(_annotation(each, failing))
    counts = {level: sum(each.impact == level for each in changes) for level in _LEVELS}
    value = {
        "old": args.old.word,
        "new": args.new.word,
        "counts": counts,
        "changes": [_value(each) for each in changes],
        "not_covered": comparison.uncovered,
    }
    if not args.github or args.json:
        output.write(args, value, layout.code("\n".join(_lines(comparison)), "text"))
    return 1 if any(counts[level] for level in failing) else 0


def _side(word: str) -> _Side:
    """Find out what ``word`` is. Raises argparse.ArgumentTypeError."""
    if re.match(r"https?://", word):
        return _Side(target.url(word), "url")
    is_data = os.path.isfile(word) and not os.access(word, os.X_OK)
    if is_data or (word.endswith((".yaml", ".yml")) and " " not in word):
        return _Side(word, "recording")
    words = target.words(word)
    if len(words) > 1 or shutil.which(words[0]):
        return _Side(word, "command")
    raise argparse.ArgumentTypeError(
        f"'{word}' is no recording (*.yaml), no URL (http://…) and no command: there is no program of this name"
    )


# --- Reading both sides


def _compared(args: argparse.Namespace, spec: Spec) -> Comparison:
    """Read both sides under the newest revision that they have in common, and compare them."""
    if args.revision is not None and args.revision not in spec["revisions"]:
        raise _Impossible(f"Unknown revision {args.revision}. Known: {', '.join(sorted(spec['revisions']))}.")
    sides = {"OLD": args.old, "NEW": args.new}
    known = {name: _blamed(name, side, functools.partial(_revisions, args, side, spec)) for name, side in sides.items()}
    spoken = [{name for name, speaks in each.items() if speaks} for each in known.values()]
    common = max(spoken[0] & spoken[1], default=None)
    capabilities = _declared(sides.values(), spec, common)
    read = [
        _blamed(
            name, side, functools.partial(_read, args, side, spec, common or max(speaks), known[name], capabilities)
        )
        for (name, side), speaks in zip(sides.items(), spoken, strict=True)
    ]
    comparison = difference.compare(*read)
    if common is None:
        revisions = f"OLD was read under {read[0].revision}, NEW under {read[1].revision}"
        comparison.uncovered.insert(0, f"{revisions}: they have no revision in common")
    return comparison


def _blamed(name: str, side: _Side, read: Callable[[], T]) -> T:
    """Return ``read()``; raise _Impossible with the name of the side if it fails."""
    try:
        return read()
    except ClientError as error:
        raise _Impossible(f"{name}: {connection.sentence(error)}") from error
    except OSError as error:
        raise _Impossible(f"{name}: {target.unreachable(side.word, error)}") from error
    except DocumentError as error:
        problems = output.problem_lines(error.problems)
        if side.kind != "recording":
            raise _Impossible(f"{name}: {problems}") from error
        is_named = side.word.endswith((".yaml", ".yml"))
        hint = "" if is_named else ", and a command begins with a program, as in 'python server.py'"
        raise _Impossible(f"{name} is no recording{hint}:\n{problems}") from error


def _revisions(args: argparse.Namespace, side: _Side, spec: Spec) -> dict[str, bool]:
    """Return which revisions the side speaks; of a recording, those that it contains."""
    if side.kind == "recording":
        contained = transcript.read(side.word).revisions
        chosen = [each for each in contained if args.revision in (None, each)]
        if not chosen:
            raise _Impossible(
                f"{side.word} contains no conversation under {args.revision}; only {', '.join(contained)}."
            )
        return dict.fromkeys(chosen, True)
    if args.revision is not None:
        return {args.revision: True}
    return surface.supported(functools.partial(_connect, args, side, spec), spec)


def _declared(sides: Iterable[_Side], spec: Spec, revision: str | None) -> JsonObject:
    """Return the capabilities of the recorded client: servers offer more to clients that declare more."""
    recordings = [each for each in sides if each.kind == "recording"]
    if revision is None or not recordings:
        return {}
    return surface.declared(transcript.read(recordings[0].word), spec, revision)


def _read(
    args: argparse.Namespace,
    side: _Side,
    spec: Spec,
    revision: str,
    known: Mapping[str, bool],
    capabilities: JsonObject,
) -> Surface:
    """Read a side under ``revision``. ``capabilities``: what the client of a running server declares."""
    if side.kind == "recording":
        return surface.recorded(transcript.read(side.word), spec, revision)
    client = Client(_connect(args, side, spec), spec, revision, capabilities)
    try:
        client.open()
        return surface.live(client, known)
    except ClientError as error:
        notes = client.close() if error.code is None else []
        raise ClientError("\n".join([error.message, *notes]), error.code, error.data) from error
    finally:
        client.close()


def _connect(args: argparse.Namespace, side: _Side, spec: Spec) -> targets.Target:
    """Start a new connection. Raises OSError if the server cannot be started or reached."""
    command = target.words(side.word) if side.kind == "command" else None
    return target.connect(command, side.word, lambda: spec, args.timeout, args.header)


# --- Showing changes


def _lines(comparison: Comparison) -> Iterator[str]:
    for level in _LEVELS:
        if of_level := [each for each in comparison.changes if each.impact == level]:
            yield f"{level} ({len(of_level)})"
            yield from (f"  {_line(each)}" for each in of_level)
    if not comparison.changes:
        yield "No differences."
    yield from (f"not covered: {each}" for each in comparison.uncovered)


def _line(change: Change) -> str:
    """Return a change as one line; of a whole tool, prompt or resource only its name."""
    whole = isinstance(change.before or change.after, dict) and len(change.path) == 2 and change.sign != "~"
    return hidden.line(f"{change.sign} {'.'.join(map(str, change.path))}" if whole else differences.line(change))


def _annotation(change: Change, failing: tuple[str, ...]) -> str:
    """Return the workflow command of GitHub Actions for a change."""
    level = _ANNOTATIONS[change.impact in failing]
    return report.annotation(level, {"title": f"MCP server, {change.impact} change"}, _line(change))


def _value(change: Change) -> dict[str, object]:
    return {
        "impact": change.impact,
        "sign": change.sign,
        "path": [*map(str, change.path)],
        "before": change.before,
        "after": change.after,
    }

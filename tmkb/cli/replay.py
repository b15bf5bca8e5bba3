"""``tmkb replay``: replay recorded conversations against our engine, or another server over stdio or HTTP."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tmkb.cli import output, target
from tmkb.cli.conversations import Conversation, Replayer
from tmkb.conformance import report, transcript
from tmkb.conformance.transcript import Transcript
from tmkb.errors import DocumentError
from tmkb.schema import documents, hidden, paths
from tmkb.schema.values import JsonValue
from tmkb.server import sources
from tmkb.server.server import protocol


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a transcript or a folder of them (default: the packaged ones)"
    )
    target.configure(parser)
    parser.add_argument("--server", metavar="NAME", help="only conversations recorded with this server")
    parser.add_argument(
        "--revision", metavar="DATE", help="only under this revision; a recording is translated to it if necessary"
    )
    parser.add_argument(
        "--quiet",
        type=target.seconds,
        metavar="SECONDS",
        help="with --command: end a turn after this long without a message, instead of using ping",
    )
    parser.add_argument("--update", action="store_true", help="write the actual messages into the transcripts at PATH")
    sources.configure_schemas(parser)
    sources.configure_python(parser)
    printed = parser.add_mutually_exclusive_group()
    output.configure(printed)
    printed.add_argument("--github", action="store_true", help="also print annotations for GitHub Actions")
    parser.add_argument("--junit", metavar="FILE", help="also write the results as JUnit XML")
    parser.add_argument("--html", metavar="FILE", help="also write the results as one HTML page")


def run(args: argparse.Namespace) -> int:
    """Print the differences. Return 1 if there are any, 2 for a usage error or if there is nothing to replay."""
    if args.update and not args.paths:
        output.fail("--update needs PATH, the transcripts to update.")
        return 2
    if not (args.paths or args.command or args.url):
        output.fail("No PATH, --command or --url: the packaged conversations are replayed on our own servers.")
    started = time.monotonic()
    try:
        files = {path: transcript.find(path) for path in args.paths or [paths.CONFORMANCE]}
        missing = [path for path, found in files.items() if not found]
        for path in missing:
            output.fail(f"There is no transcript at {path}.")
        transcripts = [transcript.read(file) for each in files.values() for file in each]
        if missing or not _can_replay(args, transcripts):
            return 2
        conversations = list(_replayed(args, transcripts))
    except DocumentError as error:
        print(output.problem_lines(error.problems), file=sys.stderr)
        return 2
    except OSError as error:
        output.fail(target.unreachable(target.shown(args), error))
        return 2
    if not conversations:
        if transcripts:
            output.fail("No transcript here was recorded with this server and runs under this revision.")
        return 2
    return _update(conversations) if args.update else _report(args, conversations, time.monotonic() - started)


def _can_replay(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> bool:
    """Report transcripts that are cut off, and return whether each has a server."""
    for each in (each for each in transcripts if each.is_cut_off):
        output.fail(f"{each.path}: the last line is incomplete and is left out; the recorder was killed.")
    refusals = [*_unknown_revision(args, transcripts), *_without_server(args, transcripts)]
    for refusal in refusals:
        output.fail(refusal)
    return not refusals


def _unknown_revision(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> Iterator[str]:
    """Yield a sentence if a recording would be translated to a revision that does not exist."""
    if args.revision is None or not any(
        each.is_recorded and args.revision not in each.revisions for each in transcripts
    ):
        return
    if args.revision not in (known := protocol(args.schemas)["revisions"]):
        hint = output.did_you_mean(args.revision, known, f"Revisions: {', '.join(sorted(known))}.")
        yield f"There is no revision {args.revision}. {hint}"


def _without_server(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> Iterator[str]:
    """Yield a sentence for each transcript of a server that is not ours, if no server is chosen."""
    if args.command or args.url:
        return
    ours = documents.servers(paths.named(args.schemas, "TMKB_SCHEMAS"))
    for each in transcripts:
        recorded: Any = each.value.get("recorded", {})
        command, url = recorded.get("command"), recorded.get("url")
        if command or url or each.value["server"] not in ours:
            option = f"--url {shlex.quote(url)}" if url else f"--command {shlex.quote(command or 'COMMAND')}"
            more = "" if command or url else " or --url URL"
            yield f"{each.path} was recorded with the server {each.value['server']!r}. Add {option}{more}."


def _report(args: argparse.Namespace, conversations: Sequence[Conversation], seconds: float) -> int:
    """Print and write the results. Return 1 if there are differences, 2 if a file cannot be written."""
    suites = [each.suite() for each in conversations]
    failed = sum(suite.failed for suite in suites)
    summary = f"{len(suites) - failed} of {len(suites)} conversations are as recorded ({seconds:.1f} s)."
    lines = [line for suite in suites for line in report.text(suite)]
    if args.github:
        print("".join(f"{line}\n" for line in report.github(suites)), end="")
    output.write(args, [each.value() for each in conversations], "\n".join([*lines, summary]))
    files: dict[str, bytes] = {}
    if args.junit:
        files[args.junit] = report.junit("tmkb replay", suites)
    if args.html:
        files[args.html] = report.page("Replay", summary, suites).encode()
    if not output.save(files):
        return 2
    return 1 if failed else 0


def _replayed(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> Iterator[Conversation]:
    starter = Replayer(args)
    planned: list[tuple[Transcript, str]] = []
    for each in transcripts:
        if not (args.command or args.url) and each.missing_modules:
            output.fail(
                f"{each.name} is skipped: it needs {' and '.join(each.missing_modules)}, which is not installed."
            )
        elif args.server in (None, each.value["server"]):
            planned += [(each, revision) for revision in _revisions(args, each)]
    with output.progress() as show:
        for number, (each, revision) in enumerate(planned, 1):
            show(f"{number} of {len(planned)}: {each.name} ({revision})")
            yield starter.replay(each, revision)


def _revisions(args: argparse.Namespace, each: Transcript) -> list[str]:
    """Return the revisions to replay a transcript under. A recording can be translated to any."""
    if args.revision is None or args.revision in each.revisions:
        return [args.revision] if args.revision else each.revisions
    return [args.revision] if each.is_recorded else []


def _update(conversations: Sequence[Conversation]) -> int:
    """Write the actual messages; return 1 if a file or a turn was not updated."""
    actual: dict[str, dict[int, dict[str, list[JsonValue]]]] = {}
    paths_ = [*dict.fromkeys(each.transcript.path for each in conversations)]
    refused = {path: ["is a link; --update writes to plain files"] for path in paths_ if os.path.islink(path)}
    for each in conversations:
        path = each.transcript.path
        if reasons := _not_recorded(each):
            refused[path] = reasons
        for result in each.results[: len(each.transcript.value["exchanges"])]:
            actual.setdefault(path, {}).setdefault(result.number, {})[each.revision] = result.actual
    changed, disputed = transcript.rewrite_all({path: each for path, each in actual.items() if path not in refused})
    for path in changed:
        print(hidden.line(f"{path}: rewritten"))
    print(f"{len(changed)} of {len(paths_)} files rewritten.")
    for path, (reason, *details) in refused.items():
        output.fail(f"{path}: not rewritten: {reason}.")
        sys.stderr.write("".join(f"  {hidden.line(each)}\n" for each in details))
    for path, numbers in disputed.items():
        for number in numbers:
            output.fail(f"{path}: revisions differ in turn {number}: use separate transcripts.")
    return 1 if refused or disputed else 0


def _not_recorded(conversation: Conversation) -> list[str]:
    """Return why the messages of a conversation cannot be written, and details; an empty list if they can."""
    if conversation.revision not in conversation.transcript.revisions:
        return [f"it does not list the revision {conversation.revision}"]
    for result in conversation.results:
        if not transcript.is_writable(result.actual):
            return [f"the messages of turn {result.number} {transcript.UNWRITABLE}"]
    unanswered = next((result for result in conversation.results if not result.answered), None)
    if unanswered is None:
        return []
    at = f"turn {unanswered.number}" if unanswered.number else "the opening"
    details = [*unanswered.differences, *conversation.notes]
    return [f"{at} ({conversation.revision}) has no response to record", *details]

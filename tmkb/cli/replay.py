"""``tmkb replay``: replay recorded conversations against our engine, or another server over stdio or HTTP."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shlex
import shutil
import sys
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tmkb.cli import output
from tmkb.conformance import replay, transcript
from tmkb.conformance.replay import Result
from tmkb.conformance.transcript import Transcript
from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import library
from tmkb.schema import documents, hidden, paths
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonValue
from tmkb.server import log, sources
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a transcript or a folder of them (default: all)")
    parser.add_argument(
        "--command", type=_words, metavar="CMD", help="start this server for each conversation, instead of our engine"
    )
    parser.add_argument("--http", type=_url, metavar="URL", help="the URL of a running server, instead of our engine")
    parser.add_argument("--server", metavar="NAME", help="only conversations recorded with this server")
    parser.add_argument("--revision", metavar="DATE", help="only under this revision")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=replay.TIMEOUT,
        metavar="SECONDS",
        help="timeout for one turn, and for the server to exit (default: %(default)g)",
    )
    parser.add_argument(
        "--quiet",
        type=_seconds,
        metavar="SECONDS",
        help="with --command: end a turn after this long without a message, instead of using ping",
    )
    parser.add_argument("--update", action="store_true", help="write the actual messages into the transcripts at PATH")
    sources.configure_schemas(parser)
    sources.configure_python(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the differences. Return 1 if there are any, 2 for a usage error or if there is nothing to replay."""
    if args.update and not args.paths:
        output.fail("--update needs PATH, the transcripts to update.")
        return 2
    try:
        files = {path: transcript.find(path) for path in args.paths or [paths.CONFORMANCE]}
        for path in (path for path in files if not files[path]):
            output.fail(f"There is no transcript at {path}.")
        transcripts = [transcript.read(file) for each in files.values() for file in each]
        conversations = list(_replayed(args, transcripts))
    except DocumentError as error:
        print(output.problem_lines(error.problems), file=sys.stderr)
        return 2
    except OSError as error:
        output.fail(f"Cannot reach {args.http or shlex.join(args.command)}: {error.strerror or error}.")
        return 2
    if not conversations:
        if transcripts:
            output.fail("No transcript here was recorded with this server and runs under this revision.")
        return 2
    if args.update:
        return _update(conversations)
    failed = [conversation for conversation in conversations if conversation.differing]
    summary = f"{len(conversations) - len(failed)} of {len(conversations)} conversations are as recorded."
    report = [line for conversation in failed for line in conversation.report()]
    output.write(args, [conversation.value() for conversation in conversations], "\n".join([*report, summary]))
    return 1 if failed else 0


def _replayed(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> Iterator[Conversation]:
    starter = _Starter(args)
    planned = []
    for each in transcripts:
        if not (args.command or args.http) and each.missing_modules:
            output.fail(
                f"{each.name} is skipped: it needs {' and '.join(each.missing_modules)}, which is not installed."
            )
            continue
        planned += [
            (each, revision)
            for revision in each.revisions
            if args.server in (None, each.value["server"]) and args.revision in (None, revision)
        ]
    with _progress() as show:
        for number, (each, revision) in enumerate(planned, 1):
            show(f"{number} of {len(planned)}: {each.name} ({revision})")
            target = starter.start(each)
            results = list(replay.replay(each, revision, target, record=args.update))
            yield Conversation(each, revision, results, target.notes())


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Provide a function that shows a status line on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    width = shutil.get_terminal_size().columns - 1
    try:
        yield lambda text: print(f"\r{hidden.escape(text)[:width]:<{width}}", end="", file=sys.stderr, flush=True)
    finally:
        print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)


def _words(text: str) -> list[str]:
    try:
        if words := shlex.split(text):
            return words
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: {text}") from error
    raise argparse.ArgumentTypeError("the command is empty")


def _url(text: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        if parts.scheme == "http" and parts.hostname and parts.port != 0:
            return text
    except ValueError:  # brackets that do not close, or a port that is no number
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not the URL of an HTTP server. Write it like http://HOST:PORT/mcp")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


class Conversation(NamedTuple):
    """One replayed transcript under one revision. ``notes``: further hints for a failure."""

    transcript: Transcript
    revision: str
    results: list[Result]
    notes: Sequence[str]

    @property
    def differing(self) -> list[Result]:
        """The turns that are not as recorded."""
        return [result for result in self.results if result.differences]

    def report(self) -> Iterator[str]:
        """Yield the differences as text."""
        yield f"{self.transcript.path} ({self.revision}): {self.transcript.value['title']}"
        for result in self.differing:
            place = f"turn {result.number}" if result.number else ""
            yield f"  {place}{place and result.about and ': '}{result.about}"
            yield from (f"    {difference}" for difference in result.differences)
        yield from (f"  {note}" for note in self.notes if self.differing)

    def value(self) -> dict[str, object]:
        """Return the differences as a JSON value."""
        differing = {str(result.number): result.differences for result in self.differing}
        notes = {"notes": [*self.notes]} if self.notes and differing else {}
        return {"transcript": self.transcript.name, "revision": self.revision, "differences": differing, **notes}


class _Starter:
    """Provides a new target for each conversation: a process, a URL, or a connection to our engine."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.reached = False  # whether the URL has answered
        self.last: replay.Command | None = None
        self.runtimes: dict[tuple[str, str | None], Runtime] = {}

    def start(self, each: Transcript) -> replay.Target:
        args = self.args
        if args.command:
            pings = None if self.last is None else self.last.pings
            self.last = replay.Command(args.command, args.timeout, args.quiet, pings)
            return self.last
        server = str(each.value["server"])
        if args.http:
            try:
                from tmkb.conformance.http import Http
            except ImportError as error:
                problem = Problem.of_argument("extra_missing", "--http", extra="replay", module=error.name)
                raise DocumentError([problem]) from error

            target = Http(args.http, self._spec(server, each.config), args.timeout)
            if not self.reached:
                target.check_connection()
                self.reached = True
            return target
        key = server, each.config
        if key not in self.runtimes:
            served = self._server(server, each.config, [library.PACKAGED])
            quiet = log.Log(served.spec["server"]["log"], fd=os.open(os.devnull, os.O_WRONLY))
            self.runtimes[key] = served.runtime(quiet)
        return replay.InProcess(self.runtimes[key], args.timeout)

    def _spec(self, server: str, config: str | None) -> Spec:
        """Return the spec of ``server``; of an unknown server, the default one, which has all headers."""
        if server in documents.servers(paths.named(self.args.schemas, "TMKB_SCHEMAS")):
            return self._server(server, config).spec
        return Server.load(schemas=self.args.schemas).spec

    def _server(self, name: str, config: str | None, patterns: list[str] | None = None) -> Server:
        schemas, allow_python = self.args.schemas, self.args.allow_python
        return Server.load(name, schemas=schemas, patterns=patterns, config=config, allow_python=allow_python)


def _update(conversations: Sequence[Conversation]) -> int:
    """Write the actual messages; return 1 if a file or a turn was not updated."""
    actual: dict[str, dict[int, dict[str, list[JsonValue]]]] = {}
    transcripts = {each.transcript.path: each.transcript for each in conversations}
    refused = {path: "is a link; --update writes to plain files" for path in transcripts if os.path.islink(path)}
    for each in conversations:
        path = each.transcript.path
        if unanswered := next((result for result in each.results if not result.answered), None):
            at = f"turn {unanswered.number}" if unanswered.number else "the opening"
            reasons = [*unanswered.differences, *each.notes]
            refused[path] = "; ".join([f"{at} ({each.revision}) has no answer to record", *reasons])
        for result in each.results[: len(each.transcript.value["exchanges"])]:
            actual.setdefault(path, {}).setdefault(result.number, {})[each.revision] = result.actual
    before = {path: each.value for path, each in transcripts.items()}
    disputed = {
        path: transcript.rewrite(transcripts[path], results) for path, results in actual.items() if path not in refused
    }
    changed = [path for path in before if path not in refused and transcript.read(path).value != before[path]]
    for path in changed:
        print(hidden.line(f"{path}: rewritten"))
    print(f"{len(changed)} of {len(before)} files rewritten.")
    for path, reason in refused.items():
        output.fail(f"{path}: not rewritten: {reason}.")
    for path, numbers in disputed.items():
        for number in numbers:
            output.fail(f"{path}: revisions differ in turn {number}: use separate transcripts.")
    return 1 if refused or any(disputed.values()) else 0

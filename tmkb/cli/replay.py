"""``tmkb replay``: recorded conversations against our engine, or against any other server over stdio or HTTP."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Iterator

from tmkb import log, paths
from tmkb.cli import output, service, sources
from tmkb.conformance import replay, transcript
from tmkb.conformance.replay import Replayed
from tmkb.conformance.transcript import Transcript
from tmkb.errors import DocumentError
from tmkb.knowledge import library
from tmkb.runtime import Runtime
from tmkb.values import JsonValue


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a transcript or a folder of them (default: all)")
    parser.add_argument(
        "--command", metavar="CMD", help="a server to start for each conversation, instead of our engine"
    )
    parser.add_argument("--http", metavar="URL", help="a server that is running, instead of our engine")
    parser.add_argument("--server", metavar="NAME", help="only what was recorded with this server")
    parser.add_argument("--revision", metavar="DATE", help="only under this revision")
    parser.add_argument("--update", action="store_true", help="write what came back into the transcripts")
    sources.configure_schemas(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print what differs. 1 where anything does; 2 where there is nothing to replay."""
    try:
        transcripts = [transcript.read(file) for path in args.paths or [paths.CONFORMANCE] for file in _find(path)]
        conversations = list(_replayed(args, transcripts))
    except DocumentError as error:
        print(output.problem_lines(error.problems), file=sys.stderr)
        return 2
    except OSError as error:
        output.fail(f"Cannot reach {args.http or args.command}: {error.strerror}.")
        return 2
    if not conversations:
        if transcripts:
            output.fail("No transcript here was recorded with this server and runs under this revision.")
        return 2
    if args.update:
        return _update(conversations)
    failed = [conversation for conversation in conversations if conversation.differing]
    said = f"{len(conversations) - len(failed)} of {len(conversations)} conversations are as recorded."
    report = [line for conversation in failed for line in conversation.report()]
    output.write(args, [conversation.value() for conversation in conversations], "\n".join([*report, said]))
    return 1 if failed else 0


def _replayed(args: argparse.Namespace, transcripts: Iterable[Transcript]) -> Iterator[Conversation]:
    starter = _Starter(args)
    for each in transcripts:
        if not (args.command or args.http) and each.lacking:
            output.fail(f"{each.name} is left out: it needs {' and '.join(each.lacking)}, which is not installed.")
            continue
        for revision in each.revisions if args.server in (None, each.value["server"]) else ():
            if args.revision in (None, revision):
                yield Conversation(each, revision, list(replay.replay(each, revision, starter.start(each))))


class Conversation:
    """One transcript under one revision, replayed."""

    def __init__(self, replayed: Transcript, revision: str, results: list[Replayed]) -> None:
        self.transcript = replayed
        self.revision = revision
        self.results = results
        self.differing = [result for result in results if result.differences]

    def report(self) -> Iterator[str]:
        """What differs, for people."""
        yield f"{self.transcript.path} ({self.revision}): {self.transcript.value['title']}"
        for result in self.differing:
            yield f"  exchange {result.number}{result.about and ': '}{result.about}"
            yield from (f"    {difference}" for difference in result.differences)

    def value(self) -> dict[str, object]:
        """What differs, for programs."""
        differing = {str(result.number): result.differences for result in self.differing}
        return {"transcript": self.transcript.name, "revision": self.revision, "differences": differing}


class _Starter:
    """Makes a new server for each conversation: the command, or a connection to our engine."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.command = shlex.split(args.command) if args.command else None
        self.address = args.http
        self.schemas = args.schemas
        self.runtimes: dict[tuple[str, str | None], Runtime] = {}

    def start(self, each: Transcript) -> replay.Target:
        if self.command:
            return replay.Command(self.command)
        server = str(each.value["server"])
        if self.address:
            from tmkb.conformance.http import Http

            return Http(self.address, service.service(server, self.schemas, config=each.config).spec)
        key = server, each.config
        if key not in self.runtimes:
            found = service.service(server, self.schemas, [library.PACKAGED], config=each.config)
            quiet = log.Log(found.spec["server"]["log"], fd=os.open(os.devnull, os.O_WRONLY))
            self.runtimes[key] = Runtime(found.spec, found.provider, quiet)
        return replay.InProcess(self.runtimes[key])


def _find(path: str) -> list[str]:
    found = transcript.find(path)
    if not found:
        output.fail(f"There is no transcript at {path}.")
    return found


def _update(conversations: Iterable[Conversation]) -> int:
    """Write what came back; 1 where revisions disagree about an exchange, which is then left as it is."""
    actual: dict[str, dict[int, dict[str, list[JsonValue]]]] = {}
    transcripts = {each.transcript.path: each.transcript for each in conversations}
    for each in conversations:
        for result in each.results[: len(each.transcript.value["exchanges"])]:
            numbers = actual.setdefault(each.transcript.path, {})
            numbers.setdefault(result.number, {})[each.revision] = result.actual
    before = {path: each.value for path, each in transcripts.items()}
    refused = {path: transcript.rewrite(transcripts[path], numbers) for path, numbers in actual.items()}
    changed = [path for path in before if transcript.read(path).value != before[path]]
    print("\n".join([*(f"{path}: rewritten" for path in changed), f"{len(changed)} of {len(before)} files rewritten."]))
    for path, disputed in refused.items():
        for number in disputed:
            output.fail(f"{path}: revisions disagree about exchange {number}: give them transcripts of their own.")
    return 1 if any(refused.values()) else 0

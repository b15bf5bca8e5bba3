"""Replay transcripts on the server that the options of a command choose, and collect the results for reports."""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from tmkb.cli import target
from tmkb.conformance import replay, report, targets, translation
from tmkb.conformance.replay import Result
from tmkb.conformance.transcript import Transcript
from tmkb.knowledge import library
from tmkb.schema import documents, paths
from tmkb.schema.model import Spec
from tmkb.server import log
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server, protocol


class Conversation(NamedTuple):
    """One replayed transcript under one revision.

    ``remarks``: how it was replayed, if not as recorded; ``notes``: further hints for a failure.
    """

    transcript: Transcript
    revision: str
    results: list[Result]
    notes: Sequence[str]
    remarks: Sequence[str] = ()

    def suite(self) -> report.Suite:
        """Return the results for a report."""
        name = f"{self.transcript.path} ({self.revision})"
        cases = [*map(self._case, self.results)]
        title = str(self.transcript.value["title"])
        file, remarks = paths.shown(self.transcript.path), [*self.remarks, *self._unrecorded()]
        return report.Suite(name, title, file, cases, remarks, self.notes)

    def _unrecorded(self) -> list[str]:
        """Return a remark about the notifications that the recording does not have, if there were any."""
        counted = collections.Counter(method for result in self.results for method in result.unrecorded)
        listed = ", ".join(f"{method} ({number})" for method, number in counted.items())
        return [f"not in the recording, and belonging to no request: {listed}"] if counted else []

    def _case(self, result: Result) -> report.Case:
        place = f"turn {result.number}" if result.number else ""
        name = f"{place}{place and result.about and ': '}{result.about}"
        lines = self.transcript.lines
        line = lines[min(result.number or 1, len(lines)) - 1] if lines else 0
        sent, expected, actual, seconds = result.sent, result.expected, result.actual, result.seconds
        if result.skipped:
            return report.Case(name, "skipped", [result.skipped], line=line)
        outcome: Any = "failed" if result.differences else "passed"
        return report.Case(name, outcome, result.differences, seconds, line, sent, expected, actual)

    def value(self) -> dict[str, object]:
        """Return the differences as a JSON value."""
        differing = {str(result.number): result.differences for result in self.results if result.differences}
        notes = {"notes": [*self.notes]} if self.notes and differing else {}
        remarked = [*self.remarks, *self._unrecorded()]
        remarks = {"remarks": remarked} if remarked else {}
        return {
            "transcript": self.transcript.name,
            "revision": self.revision,
            "differences": differing,
            **remarks,
            **notes,
        }


class Replayer:
    """Replays each conversation on a new target: a process, a URL, or a connection to our engine."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.ours = documents.servers(paths.named(args.schemas, "TMKB_SCHEMAS"))
        self.reached = False  # whether the URL has answered
        self.last: targets.Command | None = None
        self.runtimes: dict[tuple[str, str | None], Runtime] = {}
        self.specs: dict[tuple[str, str | None] | None, Spec] = {}  # None: the rules of all revisions

    def replay(self, each: Transcript, revision: str) -> Conversation:
        """Replay a transcript. A recording is translated to ``revision``, or to one that the server speaks."""
        if revision not in each.revisions:
            return self._translated(each, revision)
        connection = self.start(each)
        results = list(replay.replay(each, revision, connection, record=self.args.update))
        remarks = self._remarks(each)
        conversation = Conversation(each, revision, results, connection.notes(), remarks)
        if each.is_recorded and not self.args.update and self.args.revision is None:
            spec = self._spec(str(each.value["server"]), each.config)
            if (other := translation.spoken(each, revision, results, spec)) is not None:
                translated = self._translated(each, other)
                return translated if not any(result.number == 0 for result in translated.results) else conversation
        return conversation

    def _translated(self, each: Transcript, revision: str) -> Conversation:
        translated = translation.translate(each, self._spec(str(each.value["server"]), each.config), revision)
        connection = self.start(each)
        results = list(replay.replay_translated(each, translated, connection))
        remarks = [*self._remarks(each), *translated.remarks]
        return Conversation(each, revision, results, connection.notes(), remarks)

    def _remarks(self, each: Transcript) -> list[str]:
        recorded: Any = each.value.get("recorded", {})
        over = {"stdio": "http", "http": "stdio"}.get(recorded.get("over"))
        used = "http" if self.args.url else "stdio" if self.args.command else None
        remarks = [f"recorded over {recorded['over']}, replayed over {used}"] if used == over is not None else []
        if count := each.redacted_turns:
            turns = "1 turn sends" if count == 1 else f"{count} turns send"
            remarks.append(f"{turns} placeholders such as REDACTED-1, because the recorder replaced the secrets")
        return remarks

    def start(self, each: Transcript) -> targets.Target:
        """Return a new target for a transcript."""
        args = self.args
        if args.command:
            pings = None if self.last is None else self.last.pings
            self.last = targets.Command(args.command, args.timeout, args.quiet, pings)
            return self.last
        server = str(each.value["server"])
        if args.url:
            connection = target.http(args.url, self._spec(server, each.config), args.timeout, args.header)
            if not self.reached:
                connection.check_connection()
                self.reached = True
            return connection
        key = server, each.config
        if key not in self.runtimes:
            served = self._server(server, each.config, [library.PACKAGED])
            quiet = log.Log(served.spec["server"]["log"], fd=os.open(os.devnull, os.O_WRONLY))
            self.runtimes[key] = served.runtime(quiet)
        return targets.InProcess(self.runtimes[key], args.timeout)

    def _spec(self, server: str, config: str | None) -> Spec:
        """Return the spec of ``server``; of a server of others, the rules of all revisions."""
        key = (server, config) if server in self.ours else None
        if key not in self.specs:
            self.specs[key] = protocol(self.args.schemas) if key is None else self._server(server, config).spec
        return self.specs[key]

    def _server(self, name: str, config: str | None, patterns: list[str] | None = None) -> Server:
        schemas, allow_python = self.args.schemas, self.args.allow_python
        return Server.load(name, schemas=schemas, patterns=patterns, config=config, allow_python=allow_python)

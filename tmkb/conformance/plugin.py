"""The pytest plugin: each exchange of a ``*.transcript.yaml`` file is a test; fixtures provide servers and mocks.

pytest imports this module in every environment that has TMKB. So it imports the rest of TMKB only when it collects a
transcript or sets up a fixture.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tmkb.conformance.client import Client
    from tmkb.conformance.fixtures import Mock
    from tmkb.conformance.replay import Result
    from tmkb.conformance.targets import Target
    from tmkb.conformance.transcript import Transcript
    from tmkb.schema.values import JsonValue

    # path, number of a turn, revision, messages; None if there is no response to record
    Recorded = tuple[str, int, str, list[JsonValue] | None]

_SUFFIX = ".transcript.yaml"
_TITLE_CHARACTERS = 80
_RECORDED = pytest.StashKey["list[Recorded]"]()  # with --snapshot-update
_SUMMARY = pytest.StashKey[list[str]]()  # lines
_OUTPUT = "tmkb_recorded"  # key of what a worker of pytest-xdist sends


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the server."""
    group = parser.getgroup("mcp", "MCP servers")
    for name, metavar, about in (
        ("command", "CMD", "the command of the MCP server under test, which speaks over stdio"),
        ("url", "URL", "the URL of the MCP server under test"),
    ):
        group.addoption(f"--mcp-{name}", metavar=metavar, help=f"{about}; overrides the configuration file")
        parser.addini(f"mcp_{name}", about, default="")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TranscriptFile | None:
    """Collect ``*.transcript.yaml``."""
    return TranscriptFile.from_parent(parent, path=file_path) if file_path.name.endswith(_SUFFIX) else None


@pytest.fixture
def mcp_server(request: pytest.FixtureRequest) -> Iterator[Client]:
    """An open `tmkb.conformance.client.Client` of the server under test; each test gets a new connection."""
    from tmkb.conformance import fixtures
    from tmkb.conformance.client import Client, ClientError

    try:
        client = Client(fixtures.connect(request.config), fixtures.spec())
    except OSError as error:
        pytest.fail(str(error), pytrace=False)
    failure = None
    try:
        client.open()
        yield client
    except ClientError as error:
        failure = str(error)
    finally:
        notes = "\n".join(client.close())
    if failure is not None:
        pytest.fail(f"{failure}\n{notes}", pytrace=False)
    request.node.add_report_section("teardown", "MCP server", notes)


@pytest.fixture
def mcp_mock(request: pytest.FixtureRequest) -> Iterator[Callable[..., Mock]]:
    """A function that serves a recording: ``mcp_mock("weather.transcript.yaml").command``, or ``.url`` over HTTP.

    The path starts at the folder of the test. ``lenient`` and ``faults`` are as in `tmkb mock`. The test fails if a
    client sent something else than the recording has to a URL.
    """
    from tmkb.conformance import fixtures

    mocks: list[Mock] = []

    def serve(path: str | os.PathLike[str], *, lenient: bool = False, faults: str | None = None) -> Mock:
        mocks.append(fixtures.Mock(str(request.path.parent), os.fspath(path), lenient, faults))
        return mocks[-1]

    yield serve
    if failures := [failure for mock in mocks if (failure := mock.stop())]:
        pytest.fail("\n".join(failures), pytrace=False)


class TranscriptFile(pytest.File):
    """A transcript. It contains one test for each exchange and revision."""

    conversations: tuple[Conversation, ...] = ()

    def collect(self) -> Iterator[Exchange]:
        """Yield the tests. Raises CollectError with all problems of the file."""
        from tmkb.conformance import transcript
        from tmkb.errors import DocumentError
        from tmkb.schema import hidden, problems

        try:
            found = transcript.read(str(self.path))
        except DocumentError as error:
            raise self.CollectError("\n".join(map(problems.line, error.problems))) from None
        self.conversations = tuple(Conversation(found, revision, self.config) for revision in found.revisions)
        for conversation in self.conversations:
            suffix = f" [{conversation.revision}]" if len(self.conversations) > 1 else ""
            for number, exchange in enumerate(found.value["exchanges"], 1):
                about = transcript.title(exchange)[:_TITLE_CHARACTERS]
                about = hidden.line(about).replace("::", ":")  # pytest separates the parts of a name by `::`
                name = f"turn {number}: {about}{suffix}"
                yield Exchange.from_parent(self, name=name, number=number, conversation=conversation)

    def teardown(self) -> None:
        """End the connections that are still open, because not all tests ran."""
        for conversation in self.conversations:
            conversation.close()


class Exchange(pytest.Item):
    """The test of one exchange."""

    def __init__(self, *, number: int, conversation: Conversation, **options: Any) -> None:
        super().__init__(**options)
        self.number, self.conversation = number, conversation

    def runtest(self) -> None:
        """Replay the conversation up to this exchange. Raises DifferentError if its messages are not as recorded."""
        conversation = self.conversation
        result = conversation.result(self.number)
        if result.skipped:
            raise pytest.skip.Exception(result.skipped, _use_item_location=True)
        is_answered = result.answered and result.number == self.number
        if conversation.is_recording:
            actual = result.actual if is_answered else None
            recorded = str(self.path), self.number, conversation.revision, actual
            self.config.stash.setdefault(_RECORDED, []).append(recorded)
        if not is_answered or (result.differences and not conversation.is_recording):
            raise DifferentError(conversation.report(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the differences without a traceback."""
        return str(excinfo.value) if isinstance(excinfo.value, DifferentError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place and the name of the test for reports."""
        return self.path, self.conversation.transcript.lines[self.number - 1] - 1, self.name


class DifferentError(Exception):
    """The messages of a server are not as recorded. The text is the report for people."""


class Conversation:
    """The replay of a transcript under one revision. It goes on when a test asks for a later turn."""

    def __init__(self, transcript: Transcript, revision: str, config: pytest.Config) -> None:
        self.transcript, self.revision, self.config = transcript, revision, config
        self.is_recording = bool(config.getoption("update_snapshots", False))  # --snapshot-update of syrupy
        self._target: Target | None = None
        self._replay: Generator[Result] | None = None
        self._results: dict[int, Result] = {}
        self._last: Result | None = None  # the result that ended the connection early
        self._is_last_reported = False
        self._reported: set[str] = set()  # notes on the server in earlier reports

    def result(self, number: int) -> Result:
        """Return the result of a turn; first replay the turns before it, as far as this has not happened.

        If the connection ended before the turn, the first test returns the result that ended it, and fails. The tests
        after it are skipped.
        """
        while number not in self._results and self._last is None:
            self._advance()
        result = self._results.get(number, self._last)
        assert result is not None
        if result is self._last:
            if self._is_last_reported and number != result.number:
                reason = f"the connection ended in {self._place(result)}" if self._target else "there is no connection"
                raise pytest.skip.Exception(reason, _use_item_location=True)
            self._is_last_reported = True
        return result

    def report(self, result: Result) -> str:
        """Return the differences in ``result``, and what is newly known about the server, as text for people."""
        from tmkb.schema import hidden

        path = os.path.relpath(self.transcript.path, self.config.invocation_params.dir)
        line = self.transcript.lines[result.number - 1] if result.number else 1
        notes = [each for each in self._notes() if each not in self._reported]
        lines = [
            *(result.differences or ["There is no response to record."]),
            f"{path}:{line}: {self._place(result)} of '{self.transcript.value['title']}' ({self.revision})",
            *notes,
        ]
        self._reported.update(notes)
        return "\n".join(map(hidden.line, lines))

    def close(self) -> None:
        """End the connection if not all turns have run; then a later test starts again."""
        if self._replay is not None and self._last is None and len(self._results) < self._turns:
            self._replay.close()
            self._replay, self._results = None, {}

    @staticmethod
    def _place(result: Result) -> str:
        return f"turn {result.number}" if result.number else "the opening"

    @property
    def _turns(self) -> int:
        return len(self.transcript.value["exchanges"])

    def _advance(self) -> None:
        """Connect, or replay one turn."""
        from tmkb.conformance import fixtures, replay

        if self._replay is None:
            try:
                self._target = fixtures.connect(self.config)
            except OSError as error:
                self._last = replay.Result(0, "", [], [str(error)], answered=False)
                return
            self._replay = replay.replay(self.transcript, self.revision, self._target, record=self.is_recording)
        result = next(self._replay)
        if result.number == self._turns:
            late = [f"after the end of input: {each}" for more in self._replay for each in more.differences]
            result = dataclasses.replace(result, differences=[*result.differences, *late])
        elif result.number == 0 or (self._target is not None and self._target.ended):
            result = dataclasses.replace(result, differences=result.differences or ["The server ended the connection."])
            self._last = result
            self._replay.close()
        self._results[result.number] = result

    def _notes(self) -> list[str]:
        if self._target is None:
            return []
        if self._last is not None or len(self._results) == self._turns:
            return self._target.notes()
        return [f"stderr: {line}" for line in getattr(self._target, "stderr", ())]


# --- Updates


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the recorded messages into the transcripts; a worker of pytest-xdist sends them instead."""
    config = session.config
    recorded = config.stash.get(_RECORDED, [])
    if hasattr(config, "workeroutput"):
        config.workeroutput[_OUTPUT] = json.dumps(recorded)
    elif recorded:
        config.stash[_SUMMARY], is_complete = _write(recorded)
        if not is_complete:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the recorded messages of a worker of pytest-xdist."""
    recorded = json.loads(getattr(node, "workeroutput", {}).get(_OUTPUT, "[]"))
    node.config.stash.setdefault(_RECORDED, []).extend(recorded)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the transcripts that were rewritten, and those that could not be."""
    for line in config.stash.get(_SUMMARY, []):
        terminalreporter.write_line(line)


def _write(recorded: list[Recorded]) -> tuple[list[str], bool]:
    """Write messages into the transcripts; return lines for people, and whether everything was written."""
    from tmkb.conformance import transcript
    from tmkb.schema import hidden

    turns: dict[str, dict[int, dict[str, list[JsonValue]]]] = {}
    refused = {path: "is a link; only plain files are rewritten" for path, *_ in recorded if os.path.islink(path)}
    for path, number, revision, messages in recorded:
        if messages is None:
            refused.setdefault(path, f"turn {number} ({revision}) has no response to record")
        elif not transcript.is_writable(messages):
            refused.setdefault(path, f"the messages of turn {number} ({revision}) {transcript.UNWRITABLE}")
        else:
            turns.setdefault(path, {}).setdefault(number, {})[revision] = messages
    lines = [f"{path}: not rewritten: {reason}." for path, reason in refused.items()]
    changed, disputed = transcript.rewrite_all({path: turns[path] for path in sorted(turns.keys() - refused.keys())})
    for path, numbers in disputed.items():
        lines += [f"{path}: revisions differ in turn {each}: use separate transcripts." for each in numbers]
    lines += [f"{path}: rewritten" for path in changed if path not in disputed]
    return list(map(hidden.line, lines)), not (refused or disputed)

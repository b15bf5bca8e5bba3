"""Play the cases of a pattern on the applications of its idioms."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tmkb.authoring.process import DIED, Process
from tmkb.authoring.proofs.worker import MEMORY
from tmkb.authoring.stacks import express
from tmkb.authoring.stacks.worker import UNPLAYED, expected
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples, idioms
from tmkb.knowledge.attacks import Attacks
from tmkb.knowledge.idioms import Idiom
from tmkb.schema import installation, packed

STACKS = ("django", "express", "fastapi")  # that have a stage


@dataclass(frozen=True, slots=True)
class Cell:
    """The expected and the observed status of one case on the application of one stack."""

    stack: str
    case: str
    expected: str
    status: str
    detail: str

    @property
    def ok(self) -> bool:
        """Whether the status is the expected one."""
        return self.status == self.expected

    @property
    def failed(self) -> bool:
        """Whether the case was played with another status than the expected one."""
        return not self.ok and self.status != UNPLAYED

    def __str__(self) -> str:
        return f"{self.stack} {self.case}: expected {self.expected}, was {self.status} ({self.detail})"


@dataclass(slots=True)
class Result:
    """What the cases came to on one application; no cells if something is missing."""

    stack: str
    digest: str  # of what was played
    cells: list[Cell] = field(default_factory=list)
    missing: str = ""

    @property
    def proven(self) -> bool:
        """Whether all cases were played with the expected status."""
        return bool(self.cells) and all(cell.ok for cell in self.cells)

    def __str__(self) -> str:
        if self.missing:
            return f"{self.stack} not proven: needs {self.missing}"
        return f"{self.stack} {sum(cell.ok for cell in self.cells)}/{len(self.cells)}"


class Workers:
    """Processes that play cases, each of one stack. They are started when necessary, and end with the context."""

    def __enter__(self) -> Workers:
        self._open = contextlib.ExitStack()
        self._folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="tmkb-idioms-", dir=MEMORY))
        self._idle: dict[str, list[Process]] = {stack: [] for stack in STACKS}
        self._started: list[Process] = []
        self._terminated = False
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def terminate(self) -> None:
        """Stop all processes: each case that has no answer yet gets `DIED`."""
        self._terminated = True
        for each in self._started:
            each.terminate()

    def answers(self, request: dict[str, object], cases: Sequence[str]) -> Iterator[dict[str, str]]:
        """Yield the answer to each case. ``request``: see `tmkb.authoring.stacks.worker`."""
        for group in [list(cases)] if sys.platform != "win32" else [[case] for case in cases]:
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                found = self._answers(str(request["stack"]), {**request, "folder": folder, "cases": group})
            yield from itertools.islice(itertools.chain(found, itertools.repeat(DIED)), len(group))

    def _answers(self, stack: str, request: dict[str, object]) -> list[dict[str, str]]:
        """Let a process answer ``request``."""
        if self._terminated:
            return []
        try:
            while (process := self._idle[stack].pop()).ended:
                pass
        except IndexError:
            process = self._start(stack)
        answers = [*process.answers(request)]
        if sys.platform != "win32":
            self._idle[stack].append(process)
        return answers

    def _start(self, stack: str) -> Process:
        folder = tempfile.mkdtemp(dir=self._folder)
        process = Process("tmkb.authoring.stacks.worker", stack, folder=folder)
        self._open.callback(process.close)
        self._started.append(process)
        if self._terminated:
            process.terminate()
        return process


def play_idioms(
    folder: str, timeout: float = 20.0, workers: Workers | None = None, separate: bool = False
) -> list[Result]:
    """Play all cases of the pattern in ``folder`` on each of its applications.

    ``timeout``: seconds for one case. ``workers``: by default they run for these applications only. ``separate``: play
    each case in a process of its own, for a comparison.
    """
    if workers is None:
        with Workers() as own:
            return play_idioms(folder, timeout, own, separate)
    attacks, _ = attacks_file.read(folder) if packed.exists(os.path.join(folder, attacks_file.NAME)) else (None, [])
    if attacks is None:
        return []
    found = idioms.read(folder)[0]
    options = {"attacks": attacks.value, "timeout": timeout, "separate": separate}
    return [_played(folder, stack, idiom, attacks, options, workers) for stack, idiom in found.items() if idiom.app]


def _played(
    folder: str, stack: str, idiom: Idiom, attacks: Attacks, options: dict[str, object], workers: Workers
) -> Result:
    result = Result(stack, idioms.digest(folder, stack, idiom), missing=_missing(stack))
    if result.missing:
        return result
    file = os.path.abspath(os.path.join(folder, str(idiom.app)))
    source = examples.read(folder, str(idiom.app), file)
    assert source is not None  # else the idiom could not be served
    request = {"stack": stack, "file": file, "source": source.text, **options}
    names = [case.name for case in attacks.cases]
    for case, answer in zip(attacks.cases, workers.answers(request, names), strict=True):
        result.cells.append(Cell(stack, case.name, expected(case), answer["status"], answer["detail"]))
    return result


def _missing(stack: str) -> str:
    """Return what is needed to play on applications of ``stack`` and is not installed."""
    if stack not in STACKS:
        return f"a stage; there are stages for {', '.join(STACKS)}"
    if stack == "express":
        return express.missing()
    return "" if importlib.util.find_spec(stack) else f"{stack}: {installation.command('proofs')}"

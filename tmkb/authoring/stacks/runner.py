"""Play the cases of a pattern on the applications of its idioms."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tmkb.authoring.proofs.runner import import_path
from tmkb.authoring.stacks.worker import UNPLAYED
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import idioms


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
        """Whether the status is the expected one, or the stage cannot play the case."""
        return self.status in (self.expected, UNPLAYED)

    def __str__(self) -> str:
        return f"{self.stack} {self.case}: expected {self.expected}, was {self.status} ({self.detail})"


@dataclass(slots=True)
class Result:
    """The cells of one application."""

    stack: str
    cells: list[Cell] = field(default_factory=list)
    missing: str = ""  # what the stack needs and is not installed

    @property
    def played(self) -> int:
        """The number of cases that were played as expected."""
        return sum(cell.status == cell.expected for cell in self.cells)

    @property
    def proven(self) -> bool:
        """Whether all cases were played as expected."""
        return bool(self.cells) and self.played == len(self.cells)

    def __str__(self) -> str:
        return f"{self.stack} {self.played}/{len(self.cells)}"


def play_idioms(folder: str, timeout: float = 20.0) -> list[Result]:
    """Play all cases of the pattern in ``folder`` on each of its applications."""
    apps = {stack: idiom.app for stack, idiom in idioms.read(folder)[0].items() if idiom.app}
    return [play_application(folder, stack, app, timeout) for stack, app in apps.items()]


def play_application(folder: str, stack: str, file: str, timeout: float = 20.0) -> Result:
    """Play all cases of the pattern in ``folder`` on the application ``file`` of ``stack``."""
    attacks, _ = attacks_file.read(folder)
    assert attacks is not None
    path = os.path.abspath(os.path.join(folder, file))
    with open(path, encoding="utf-8") as stream:
        source = stream.read()
    request = {"stack": stack, "file": path, "source": source, "attacks": dict(attacks.value), "timeout": timeout}
    result = Result(stack)
    names = [case.name for case in attacks.cases]
    for case, answer in zip(attacks.cases, _answers(request, names), strict=False):
        expected = "served" if case.allowed else "refused"
        result.cells.append(Cell(stack, case.name, expected, answer["status"], answer["detail"]))
    return result


def _answers(request: dict[str, object], cases: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the answer to each case."""
    groups = [list(cases)] if hasattr(os, "fork") else [[case] for case in cases]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(import_path())}
    command = [sys.executable, "-P", "-m", "tmkb.authoring.stacks.worker"]
    for group in groups:
        text = json.dumps({**request, "cases": group})
        with tempfile.TemporaryDirectory(prefix="tmkb-idiom-") as cwd:
            done = subprocess.run(
                command, input=text, text=True, stdout=subprocess.PIPE, check=False, cwd=cwd, env=environment
            )
        lines = done.stdout.splitlines()
        died = {"status": "error", "detail": "the process died"}
        yield from (json.loads(lines[at]) if at < len(lines) else died for at in range(len(group)))

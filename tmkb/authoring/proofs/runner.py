"""Judges proofs. Imports no example and no proof itself: worker processes do, and are told what to run.

Three legs: 1, each exploit succeeds on the vulnerable version; 2, each is refused by every mitigation's example, unless
that says it leaves it; 3, legitimate use works on all of them. Then the code is weakened, and the proof has to notice.
A version is told to nobody: what is run is called the same whichever it is, so only its code can make the difference.
"""

from __future__ import annotations

import ast
import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tmkb.authoring.proofs import mutants
from tmkb.authoring.proofs.worker import EXAMPLE
from tmkb.knowledge import examples
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import paths

LEGS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Cell:
    """One function of a proof on one version of the code: what was expected and what was observed."""

    leg: int
    function: str
    variant: str
    expected: str
    status: str
    detail: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it came as expected."""
        return self.status == self.expected

    def __str__(self) -> str:
        said = f"expected {self.expected}, was {self.status} ({self.detail})"
        return f"leg {self.leg} {self.function} on {self.variant}: {said}"


@dataclass(slots=True)
class Report:
    """What became of one pattern's proof; `faults` are what is wrong beyond single cells."""

    id: str
    cells: list[Cell] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    mutants: int = 0
    runs: int = 0
    seconds: float = 0.0
    has_code: bool = True

    @property
    def proven(self) -> bool:
        """Whether every claim was shown."""
        return self.has_code and not self.faults and all(cell.ok for cell in self.cells)

    def legs(self) -> dict[int, bool]:
        """Leg → whether all of it came as expected."""
        return {leg: all(cell.ok for cell in self.cells if cell.leg == leg) for leg in LEGS}


class Worker:
    """A process that executes; it is asked one thing at a time."""

    def __init__(self, timeout: float = 20.0, spawn: bool = False) -> None:
        """``timeout``: seconds that one function may take. ``spawn``: a fresh interpreter each, instead of a fork."""
        self.timeout = timeout
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        command = [sys.executable, "-P", "-m", "tmkb.authoring.proofs.worker", *(["--spawn"] if spawn else [])]
        self.process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer to ``request``, to which the time limit is added."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({**request, "timeout": self.timeout}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def _import_path() -> list[str]:
    """Return the folders that a worker imports from: those of this process, absolute, but not the current folder.

    The current folder may hold a module of the name of a library's. It stays where tmkb itself is imported from it.
    """
    here, ours = paths.current(), os.path.dirname(os.path.dirname(paths.PROOF))
    folders = [paths.absolute(folder) for folder in sys.path if folder]
    return [each for each in folders if os.path.isabs(each) and (each != here or each == ours)]


class Proof:
    """A pattern with its files: the versions of its code, what each of them leaves open, and the functions to run."""

    def __init__(self, folder: str, pattern: Pattern) -> None:
        code = pattern["code"]
        self.folder = folder
        self.files = {"vulnerable": code["vulnerable"]}
        self.leaves: dict[str, set[str]] = {}
        self.unproven: dict[str, set[str]] = {}
        for mitigation in pattern["mitigations"]:
            if (name := mitigation.get("example")) is not None:
                variant = name.removesuffix(".py")
                self.files[variant] = name
                self.leaves[variant] = set(mitigation.get("leaves", []))
                self.unproven[variant] = {each["text"] for each in mitigation.get("unproven", [])}
        self.sources = {variant: self._text(name) for variant, name in self.files.items()}
        self.file = code.get("proof", "proof.py")
        self.source = self._text(self.file)
        functions = [node.name for node in ast.parse(self.source).body if isinstance(node, ast.FunctionDef)]
        self.exploits = [name for name in functions if name.startswith("exploit_")]
        self.uses = [name for name in functions if name.startswith("legitimate_")]
        self.functions = [*self.exploits, *self.uses]

    def run(self, worker: Worker, variant: str, source: str, functions: Iterable[str]) -> Iterator[Cell]:
        """Each of ``functions`` on ``source``, which stands for ``variant``, one after the other."""
        for function in functions:
            leg, expected = self._expected(function, variant)
            answer = worker.ask(self._request(source, function))
            detail = answer["detail"].replace(EXAMPLE, self.files[variant])
            yield Cell(leg, function, variant, expected, answer["status"], detail, answer["seconds"])

    def _expected(self, function: str, variant: str) -> tuple[int, str]:
        if function in self.uses:
            return 3, "served"
        if variant == "vulnerable":
            return 1, "gained"
        return 2, "gained" if function.removeprefix("exploit_") in self.leaves[variant] else "refused"

    def _request(self, source: str, function: str) -> dict[str, Any]:
        return {
            "source": source,
            "proof_source": self.source,
            "proof_file": os.path.join(self.folder, self.file),
            "function": function,
        }

    def _text(self, name: str) -> str:
        found = examples.source(self.folder, name, paths.shown(os.path.join(self.folder, name)))
        assert found is not None  # the pattern would not have been read
        return found.text


class Weakening:
    """Makes the secure versions of one proof worse, and tells what of that it does not notice."""

    def __init__(self, proof: Proof, worker: Worker, report: Report) -> None:
        self.proof = proof
        self.worker = worker
        self.report = report
        self.noticed: dict[str, str] = {}  # what was weakened → the function that noticed it in another version

    def unnoticed(self, variant: str) -> Iterator[str]:
        """The faults of ``variant``: uses that survive hollow functions, weakened code that nothing notices."""
        proof, secure = self.proof, self.proof.sources[variant]
        self.report.mutants += 1
        for cell in self._run(variant, mutants.hollow(secure), proof.uses):
            if cell.ok:
                yield f"{cell.function} is served by {variant} even when every function in it refuses"
        stale = set(proof.unproven[variant])
        for mutant in mutants.mutants(proof.sources["vulnerable"], secure):
            self.report.mutants += 1
            if not self._notices(variant, mutant):
                if mutant.text not in stale:
                    yield f"{proof.files[variant]}: not proven: {mutant}"
                stale.discard(mutant.text)
        for text in sorted(stale):
            yield f"{proof.files[variant]}: listed as unproven, but it is proven or gone: {text}"

    def _notices(self, variant: str, mutant: mutants.Mutant) -> bool:
        """Whether a function does; the first is enough, so the likeliest is asked first."""
        likely = self.noticed.get(mutant.text)
        functions = sorted(self.proof.functions, key=lambda function: function != likely)
        for cell in self._run(variant, mutant.source, functions):
            if not cell.ok:
                self.noticed[mutant.text] = cell.function
                return True
        return False

    def _run(self, variant: str, source: str, functions: Iterable[str]) -> Iterator[Cell]:
        for cell in self.proof.run(self.worker, variant, source, functions):
            self.report.runs += 1
            yield cell


def prove(folder: str, pattern: Pattern, worker: Worker, mutate: bool = True) -> Report:
    """Run the proof of the pattern in ``folder``; with ``mutate``, also make sure that it would notice worse code."""
    report = Report(pattern["id"], has_code="code" in pattern)
    if not report.has_code:
        return report
    began = time.perf_counter()
    proof = Proof(folder, pattern)
    if not proof.uses:
        report.faults.append(f"{proof.file} has no function legitimate_…")
    for variant, source in proof.sources.items():
        report.cells += proof.run(worker, variant, source, proof.functions)
    report.runs = len(report.cells)
    if mutate and report.proven:
        weakening = Weakening(proof, worker, report)
        for variant in proof.leaves:
            report.faults += weakening.unnoticed(variant)
    report.seconds = time.perf_counter() - began
    return report


def prove_all(
    found: Sequence[tuple[str, Pattern]], jobs: int, mutate: bool = True, timeout: float = 20.0, spawn: bool = False
) -> Iterator[Report]:
    """Reports for (folder, pattern) in their order, each as soon as it and those before it are finished."""
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    workers = [Worker(timeout, spawn) for _ in range(max(1, min(jobs, len(found))))]
    for worker in workers:
        idle.put(worker)

    def one(each: tuple[str, Pattern]) -> Report:
        worker = idle.get()
        try:
            return prove(*each, worker, mutate=mutate)
        finally:
            idle.put(worker)

    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            yield from pool.map(one, found)
    finally:
        for worker in workers:
            worker.close()

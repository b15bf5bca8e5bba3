"""Run proofs in worker processes, and report what they show. This process imports no example and no proof.

A proof has three legs. 1: each exploit succeeds on the vulnerable version. 2: each mitigation's example refuses it,
unless the mitigation lists it in `leaves`. 3: legitimate use works on all versions. Then the secure code is weakened,
and the proof must detect it. Every version runs under the same file name, so a proof can only react to its code.
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
    """The expected and the observed status of one function of a proof on one version of the code."""

    leg: int
    function: str
    variant: str
    expected: str
    status: str
    detail: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the status is the expected one."""
        return self.status == self.expected

    def __str__(self) -> str:
        status = f"expected {self.expected}, was {self.status} ({self.detail})"
        return f"leg {self.leg} {self.function} on {self.variant}: {status}"


@dataclass(slots=True)
class Report:
    """The result of one pattern's proof; `faults` are problems that belong to no single cell."""

    id: str
    cells: list[Cell] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    mutants: int = 0
    runs: int = 0
    seconds: float = 0.0
    has_code: bool = True

    @property
    def proven(self) -> bool:
        """Whether the proof shows every claim."""
        return self.has_code and not self.faults and all(cell.ok for cell in self.cells)

    def legs(self) -> dict[int, bool]:
        """Return for each leg whether all its cells are as expected."""
        return {leg: all(cell.ok for cell in self.cells if cell.leg == leg) for leg in LEGS}


class Worker:
    """A process that executes one function of a proof at a time."""

    def __init__(self, timeout: float = 20.0, spawn: bool = False) -> None:
        """``timeout``: seconds for one function. ``spawn``: run each in a new interpreter instead of a fork."""
        self.timeout = timeout
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        command = [sys.executable, "-P", "-m", "tmkb.authoring.proofs.worker", *(["--spawn"] if spawn else [])]
        self.process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send ``request`` with the timeout, and return the answer."""
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
    """Return the absolute import path of this process without the current folder, for a worker.

    The current folder may contain a module with the name of a library. It stays if tmkb itself is imported from there.
    """
    here, ours = paths.current(), os.path.dirname(os.path.dirname(paths.PROOF))
    folders = [paths.absolute(folder) for folder in sys.path if folder]
    return [each for each in folders if os.path.isabs(each) and (each != here or each == ours)]


class Proof:
    """The files of a pattern: all versions of its code with their remaining exploits, and the functions to run."""

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
        """Run each of ``functions`` on ``source``, a version of ``variant``."""
        request = {"proof_source": self.source, "proof_file": os.path.join(self.folder, self.file)}
        for function in functions:
            leg, expected = self._expected(function, variant)
            answer = worker.ask({**request, "source": source, "function": function})
            detail = answer["detail"].replace(EXAMPLE, self.files[variant])
            yield Cell(leg, function, variant, expected, answer["status"], detail, answer["seconds"])

    def _expected(self, function: str, variant: str) -> tuple[int, str]:
        if function in self.uses:
            return 3, "served"
        if variant == "vulnerable":
            return 1, "gained"
        return 2, "gained" if function.removeprefix("exploit_") in self.leaves[variant] else "refused"

    def _text(self, name: str) -> str:
        source = examples.read(self.folder, name, paths.shown(os.path.join(self.folder, name)))
        assert source is not None  # else the pattern could not be served
        return source.text


class _Mutation:
    """Runs a proof on mutants of its secure versions, and reports those that it does not detect."""

    def __init__(self, proof: Proof, worker: Worker, report: Report) -> None:
        self.proof = proof
        self.worker = worker
        self.report = report
        self.detected: dict[str, str] = {}  # text of a mutant → the function that detected it in another version

    def faults(self, variant: str) -> Iterator[str]:
        """Yield the faults of ``variant``: uses that hollow functions serve, and mutants that nothing detects."""
        proof, secure = self.proof, self.proof.sources[variant]
        self.report.mutants += 1
        for cell in self._run(variant, mutants.hollow(secure), proof.uses):
            if cell.ok:
                yield f"{cell.function} is served by {variant} even when every function in it refuses"
        stale = set(proof.unproven[variant])
        for mutant in mutants.mutants(proof.sources["vulnerable"], secure):
            self.report.mutants += 1
            if not self._detects(variant, mutant):
                if mutant.text not in stale:
                    yield f"{proof.files[variant]}: not proven: {mutant}"
                stale.discard(mutant.text)
        for text in sorted(stale):
            yield f"{proof.files[variant]}: listed as unproven, but it is proven or gone: {text}"

    def _detects(self, variant: str, mutant: mutants.Mutant) -> bool:
        """Return whether a function detects ``mutant``; the one that did in another version runs first."""
        likely = self.detected.get(mutant.text)
        functions = sorted(self.proof.functions, key=lambda function: function != likely)
        for cell in self._run(variant, mutant.source, functions):
            if not cell.ok:
                self.detected[mutant.text] = cell.function
                return True
        return False

    def _run(self, variant: str, source: str, functions: Iterable[str]) -> Iterator[Cell]:
        for cell in self.proof.run(self.worker, variant, source, functions):
            self.report.runs += 1
            yield cell


def prove(folder: str, pattern: Pattern, worker: Worker, mutate: bool = True) -> Report:
    """Run the proof of the pattern in ``folder``; with ``mutate``, also on mutants of the secure code."""
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
        mutation = _Mutation(proof, worker, report)
        for variant in proof.leaves:
            report.faults += mutation.faults(variant)
    report.seconds = time.perf_counter() - began
    return report


def prove_all(
    patterns: Sequence[tuple[str, Pattern]], jobs: int, mutate: bool = True, timeout: float = 20.0, spawn: bool = False
) -> Iterator[Report]:
    """Yield the reports of ``patterns``, which are (folder, pattern), in order, each as soon as it is finished."""
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    workers = [Worker(timeout, spawn) for _ in range(max(1, min(jobs, len(patterns))))]
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
            yield from pool.map(one, patterns)
    finally:
        for worker in workers:
            worker.close()

"""Run proofs in worker processes, and report what they show. This process imports no example and no proof.

A proof has four legs. 1: each attack succeeds on the vulnerable version. 2: each mitigation's example refuses it,
unless the mitigation lists it in `leaves`. 3: legitimate use works on all versions, wrong fixes included. 4: each wrong
fix falls to exactly the attacks that it lists. Then the secure code is weakened, and a case must detect it. Every
version runs under the same file name, so a case can only react to its code.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import os
import queue
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmkb.authoring import play
from tmkb.authoring.process import DIED, Process
from tmkb.authoring.proofs import mutants, reach, services
from tmkb.authoring.proofs.worker import EXAMPLE, FUNCTIONS
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import paths

LEGS = (1, 2, 3, 4)
_CLEAR = {play.SERVED, play.GAINED, play.REFUSED}  # statuses of cases that ran to their end


@dataclass(frozen=True, slots=True)
class Cell:
    """The expected and the observed status of one case on one version of the code."""

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
        result = f"expected {self.expected}, was {self.status} ({self.detail})"
        return f"leg {self.leg} {self.function} on {self.variant}: {result}"


@dataclass(slots=True)
class Report:
    """The result of one pattern's proof; `faults` are problems that belong to no single cell.

    ``unavailable`` names what is missing: a service, whose cases have no cells, or the wrong fixes, without which
    nothing runs.
    """

    id: str
    cells: list[Cell] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    mutants: int = 0
    runs: int = 0
    seconds: float = 0.0
    has_code: bool = True
    attacks: int = 0
    allowed: int = 0
    wrong_fixes: int = 0
    unavailable: str = ""

    @property
    def proven(self) -> bool:
        """Whether the proof shows every claim."""
        return self.has_code and not self.unavailable and not self.faults and all(cell.ok for cell in self.cells)

    def legs(self) -> dict[int, bool]:
        """Return for each leg whether all its cells are as expected."""
        shown = bool(self.cells) and not self.unavailable
        return {leg: shown and all(cell.ok for cell in self.cells if cell.leg == leg) for leg in LEGS}


_numbers = itertools.count()


class WorkerError(Exception):
    """A worker cannot execute any version."""


class Worker:
    """A process that executes one version of the code at a time."""

    def __init__(self, timeout: float = 20.0, spawn: bool = False, separate: bool = False) -> None:
        """``timeout``: seconds for one case. ``spawn``: run each in a new interpreter instead of a fork.

        ``separate``: execute each version in a process of its own, for a comparison.
        """
        number = next(_numbers) % services.REDIS_DATABASES
        self._shared = {"timeout": timeout, "number": number, "separate": separate}
        self.process = Process("tmkb.authoring.proofs.worker", *(["--spawn"] if spawn else []))

    def run(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the answer for each case of ``request``; fewer if one ends the run.

        Raises:
            WorkerError: the process has died.
        """
        answers = [*self.process.answers({**request, **self._shared})]
        if answers and answers[-1] is DIED:
            raise WorkerError("the worker process died")
        return answers

    def close(self) -> None:
        """End the process."""
        self.process.close()


class _Task(NamedTuple):
    """A version of a variant on which cases are run, with the leg and the expected status of each."""

    variant: str
    source: str
    expected: Mapping[str, tuple[int, str]]
    to_the_end: bool  # also after an unexpected result
    version: reach.Version | None  # None for a syntax error

    def is_unexpected(self, case: str, answer: Mapping[str, Any]) -> bool:
        """Return whether ``answer`` has another status than the expected one of ``case``."""
        return bool(answer["status"] != self.expected[case][1])


class Proof:
    """The files of a pattern: all versions of its code with the attacks that succeed on each, and the cases to run."""

    def __init__(self, folder: str, pattern: Pattern) -> None:
        code = pattern["code"]
        self.folder = folder
        self.files = {"vulnerable": code["vulnerable"]}
        self.leaves: dict[str, set[str]] = {}
        self.unproven: dict[str, set[str]] = {}
        self.secure: list[str] = []
        for mitigation in pattern["mitigations"]:
            if (name := mitigation.get("example")) is not None:
                variant = name.removesuffix(".py")
                self.secure.append(variant)
                self.files[variant] = name
                self.leaves[variant] = set(mitigation.get("leaves", []))
                self.unproven[variant] = {each["text"] for each in mitigation.get("unproven", [])}
        self.app_file, self.proof_file = code.get("app", ""), examples.proof_file(code)
        self.app, self.proof = self._text(self.app_file), self._text(self.proof_file)
        functions = [node.name for node in ast.parse(self.proof).body if isinstance(node, ast.FunctionDef)]
        self.attacks = [name for name in functions if name.startswith("exploit_")]
        self.uses = [name for name in functions if name.startswith("legitimate_")]
        self.refused_before: set[str] = set()
        self.services: dict[str, tuple[str, ...]] = {}  # case → the services that it needs; absent for none
        self.addresses: dict[tuple[str, ...], services.Addresses] = {}  # of those that run, for each of these values
        self.data = self._read_attacks(folder) if "attacks" in code else None
        self.sources = {variant: self._text(name) for variant, name in self.files.items()}
        self.results = reach.results(self.app, self.proof, json.dumps(self.data))
        self.wrong = [variant for variant in self.files if variant not in ("vulnerable", *self.secure)]

    def _read_attacks(self, folder: str) -> dict[str, Any]:
        attacks, _ = attacks_file.read(folder)
        assert attacks is not None  # else the pattern could not be served
        self.uses += [case.name for case in attacks.cases if case.allowed]
        self.attacks += attacks.refusals
        self.services = {case.name: case.services for case in attacks.cases}
        self.refused_before = {case.name for case in attacks.cases if case.refused_before}
        for name, wrong in attacks.wrong.items():
            self.files[f"wrong {name}"] = wrong.file
            self.leaves[f"wrong {name}"] = set(wrong.falls_to)
        return dict(attacks.value)

    @property
    def cases(self) -> list[str]:
        """All cases, attacks first."""
        return [*self.attacks, *self.uses]

    def start_services(self, running: services.Services) -> str:
        """Start the services, and return which one is missing; the cases that need it are removed."""
        missing = ""
        for names in {self.services.get(case, ()) for case in self.cases}:
            try:
                self.addresses[names] = running.addresses(names)
            except services.UnavailableError as error:
                missing = str(error)
        for cases in (self.attacks, self.uses):
            cases[:] = [case for case in cases if self.services.get(case, ()) in self.addresses]
        return missing

    def run(
        self, worker: Worker, variant: str, source: str, cases: Sequence[str], to_the_end: bool = True
    ) -> list[Cell]:
        """Run ``cases`` on ``source``, a version of ``variant``. ``to_the_end``: also after an unexpected result.

        The result of a case is taken from another version if it must be the same. One case is run all the same, because
        it shows that the version can be executed. If it cannot, all are.
        """
        expected = {case: self._expected(case, variant) for case in cases}
        known: dict[str, reach.Result] = {}
        version = None
        with contextlib.suppress(SyntaxError):  # the result of all cases
            version = reach.Version(source)
            result = self.results.reader(version)
            known = {case: found for case in cases if (found := result(case)) is not None}
        if len(known) == len(cases) and (
            to_the_end or all(known[case]["status"] == expected[case][1] for case in cases)
        ):
            del known[min(cases, key=lambda case: len(self.services.get(case, ())))]
        task = _Task(variant, source, expected, to_the_end, version)
        cells = [*self._cells(worker, task, known)]
        if known and any(cell.status not in _CLEAR for cell in cells):
            cells = [*self._cells(worker, task, {})]
        return cells

    def _cells(self, worker: Worker, task: _Task, known: Mapping[str, reach.Result]) -> Iterator[Cell]:
        """Yield the cells of ``task``, and run the cases whose result is not ``known``."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for case in task.expected:
            groups.setdefault(self.services.get(case, ()), []).append(case)
        for names, cases in groups.items():
            group = sorted(cases, key=lambda case: case.startswith(FUNCTIONS) != cases[0].startswith(FUNCTIONS))
            if not task.to_the_end:  # then no case is run after a known result that ends the task
                ends = (n for n, case in enumerate(group, 1) if case in known and task.is_unexpected(case, known[case]))
                del group[next(ends, len(group)) :]
            unknown = [case for case in group if case not in known]
            run = dict(zip(unknown, self._run(worker, task, unknown, self.addresses[names]), strict=False))
            for case in group:
                if (answer := run.get(case) or known.get(case)) is None:
                    return  # a case before it has ended the run
                if task.version is not None and case in run and "reached" in answer and answer["status"] in _CLEAR:
                    self.results.add(case, task.version, answer["reached"], {**answer, "seconds": 0.0})
                leg, status = task.expected[case]
                detail = answer["detail"].replace(EXAMPLE, self.files[task.variant])
                yield Cell(leg, case, task.variant, status, answer["status"], detail, answer["seconds"])
                if not task.to_the_end and task.is_unexpected(case, answer):
                    return

    def _run(
        self, worker: Worker, task: _Task, cases: Sequence[str], addresses: services.Addresses
    ) -> list[dict[str, Any]]:
        """Return the answers to ``cases``, which need the same services."""
        request = {
            "app": self.app,
            "app_file": self.app_file and os.path.join(self.folder, self.app_file),
            "source": task.source,
            "proof": self.proof,
            "proof_file": self.proof_file and os.path.join(self.folder, self.proof_file),
            "attacks": self.data,
            "services": addresses,
            "cases": cases,
            "expected": None if task.to_the_end else {case: task.expected[case][1] for case in cases},
        }
        return worker.run(request) if cases else []

    def _expected(self, case: str, variant: str) -> tuple[int, str]:
        if case in self.uses:
            return 3, "served"
        if variant == "vulnerable":
            return 1, "refused" if case in self.refused_before else "gained"
        leg = 2 if variant in self.secure else 4
        return leg, "gained" if case.removeprefix("exploit_") in self.leaves[variant] else "refused"

    def _text(self, name: str) -> str:
        if not name:
            return ""
        source = examples.read(self.folder, name, paths.shown(os.path.join(self.folder, name)))
        assert source is not None  # else the pattern could not be served
        return source.text


class _Mutation:
    """Runs a proof on mutants of its secure versions, and reports those that it does not detect."""

    def __init__(self, proof: Proof, worker: Worker, report: Report) -> None:
        self.proof = proof
        self.worker = worker
        self.report = report
        self.detected: dict[str, str] = {}  # text of a mutant → the case that detected it in another version
        self.successes = Counter(case for name in proof.wrong for case in proof.leaves[name])  # of each case

    def faults(self, variant: str) -> Iterator[str]:
        """Yield the faults of ``variant``: uses that hollow functions serve, and mutants that nothing detects."""
        proof, secure = self.proof, self.proof.sources[variant]
        self.report.mutants += 1
        for cell in self._run(variant, mutants.hollow(secure), proof.uses, True):
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
        """Return whether a case detects ``mutant``.

        The one that did in another version runs first. Then those that detected most mutants and wrong fixes run, first
        without real services, which cost most.
        """
        likely, services_ = self.detected.get(mutant.text), self.proof.services
        order = sorted(self.proof.cases, key=lambda case: (len(services_.get(case, ())), -self.successes[case]))
        cases = sorted(order, key=lambda case: case != likely)
        for cell in self._run(variant, mutant.source, cases, False):
            if not cell.ok:
                self.detected[mutant.text] = cell.function
                self.successes[cell.function] += 1
                return True
        return False

    def _run(self, variant: str, source: str, cases: Sequence[str], to_the_end: bool) -> Iterator[Cell]:
        for cell in self.proof.run(self.worker, variant, source, cases, to_the_end):
            self.report.runs += 1
            yield cell


def prove(
    folder: str, pattern: Pattern, worker: Worker, mutate: bool = True, running: services.Services | None = None
) -> Report:
    """Run the proof of the pattern in ``folder``; with ``mutate``, also on mutants of the secure code.

    ``running`` starts the services that the pattern needs; by default they run for this proof only.
    """
    if running is None:
        with services.Services() as own:
            return prove(folder, pattern, worker, mutate, own)
    report = Report(pattern["id"], has_code="code" in pattern)
    if not report.has_code:
        return report
    if not attacks_file.has_wrong_fixes(folder):
        report.unavailable = (
            "its wrong fixes are not in this installation. Run `tmkb prove --patterns patterns` in a checkout."
        )
        return report
    began = time.perf_counter()
    proof = Proof(folder, pattern)
    report.attacks, report.allowed, report.wrong_fixes = len(proof.attacks), len(proof.uses), len(proof.wrong)
    report.unavailable = proof.start_services(running)
    if not proof.cases:
        return report
    if not proof.uses:
        report.faults.append("the pattern has no legitimate use: no function legitimate_… and no allowed cell")
    try:
        _run_all(proof, worker, report, mutate)
    except WorkerError as error:
        report.faults.append(str(error))
    report.seconds = time.perf_counter() - began
    return report


def _effort(folder: str, pattern: Pattern) -> int:
    """Return a number that is higher for a proof that takes longer: one that is started late would end last."""
    attacks = attacks_file.read(folder)[0] if "attacks" in pattern.get("code", {}) else None
    if attacks is None:
        return 0
    versions = 1 + len(pattern["mitigations"]) + len(attacks.wrong)
    return versions * sum(8 if case.services else 1 for case in attacks.cases)


def _run_all(proof: Proof, worker: Worker, report: Report, mutate: bool) -> None:
    for variant, source in proof.sources.items():
        report.cells += proof.run(worker, variant, source, proof.cases)
    report.runs = len(report.cells)
    if mutate and report.proven:
        mutation = _Mutation(proof, worker, report)
        for variant in proof.secure:
            report.faults += mutation.faults(variant)


def prove_all(
    patterns: Sequence[tuple[str, Pattern]], jobs: int, mutate: bool = True, timeout: float = 20.0, spawn: bool = False
) -> Iterator[Report]:
    """Yield the reports of ``patterns``, which are (folder, pattern), in order, each as soon as it is finished."""
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    workers = [Worker(timeout, spawn) for _ in range(max(1, min(jobs, len(patterns))))]
    for worker in workers:
        idle.put(worker)

    running = services.Services()

    def one(each: tuple[str, Pattern]) -> Report:
        worker = idle.get()
        try:
            if worker.process.ended:
                workers.append(worker := Worker(timeout, spawn))
            return prove(*each, worker, mutate=mutate, running=running)
        finally:
            idle.put(worker)

    try:
        with running, ThreadPoolExecutor(len(workers)) as pool:
            order = sorted(range(len(patterns)), key=lambda number: -_effort(*patterns[number]))
            started = {number: pool.submit(one, patterns[number]) for number in order}
            try:
                for number in range(len(patterns)):
                    yield started[number].result()
            except BaseException:  # the pool would wait until its threads are done
                for each in started.values():
                    each.cancel()
                for worker in workers:
                    worker.process.terminate()
                raise
    finally:
        for worker in workers:
            worker.close()

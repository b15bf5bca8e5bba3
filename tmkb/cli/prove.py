"""``tmkb prove``: run the proofs of patterns. Executes the Python code in the named folders, after a notice."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tmkb import __version__
from tmkb.authoring.idiom_checks import Checks, check_all
from tmkb.authoring.proofs.runner import Report, prove_all
from tmkb.cli import get, loader, output
from tmkb.knowledge import library, provenance
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import hidden, paths
from tmkb.server import sources

NEEDED = ("flask", "flask_sqlalchemy", "flask_login", "celery")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="only these patterns, for example TMKB-AUTH-007 or 7 (default: all)"
    )
    parser.add_argument(
        "--patterns",
        action="append",
        metavar="DIR",
        help="a folder of patterns whose Python code is run (default: packaged)",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="number of patterns in parallel"
    )
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument("--no-mutants", action="store_true", help="skip the mutation check of the proofs")
    whole.add_argument(
        "--record",
        action="store_true",
        help=f"record the result in {provenance.NAME} beside the patterns, for CI",
    )
    parser.add_argument("--idioms", action="store_true", help="only check the idioms in other stacks")
    parser.add_argument("--timeout", type=float, default=20.0, metavar="S", help="timeout of one function in seconds")
    parser.add_argument("--spawn", action="store_true", help="start a new interpreter for each function, as on Windows")
    parser.add_argument("--verbose", action="store_true", help="show every function for every version")
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each pattern. Return 1 for an unknown or unproven pattern, 2 without the extra ``proofs``."""
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        return output.lacks_extra("prove", "proofs")
    for folder in args.patterns or []:
        sys.stderr.write(f"Running the Python code in {folder}\n")
    # TMKB_PATTERNS is ignored: an environment variable must not decide which code runs.
    sources.require_folders(args.patterns or [library.PACKAGED])
    library_ = loader.library(args.patterns or [library.PACKAGED])
    patterns = {each.pattern["id"]: (each.path, each.pattern) for each in library_.folders if each.pattern is not None}
    if (ids := get.existing(args.ids, patterns)) is None:
        return 1
    chosen = {id_: patterns[id_] for id_ in ids or sorted(patterns)}
    before = {id_: provenance.digest(*each) for id_, each in chosen.items()} if args.record else {}
    reports = [] if args.idioms else _reports(args, list(chosen.values()))
    checks = _checks(args, chosen)
    _write(args, chosen, reports, checks)
    if args.record and not _record(chosen, before, reports, checks):
        return 2
    if any(each.failed for each in checks.values()):
        return 1
    unproven_is_fine = [r for r in reports if not r.has_code] if args.patterns else []
    proven = sum(report.proven for report in reports)
    return 0 if proven + len(unproven_is_fine) == len(reports) and not library_.problems else 1


def _reports(args: argparse.Namespace, chosen: Sequence[tuple[str, Pattern]]) -> list[Report]:
    """Run the proofs and print each result."""
    reports = []
    proving = prove_all(chosen, args.jobs, not args.no_mutants, args.timeout, args.spawn)
    for report in output.counted(proving, len(chosen), "Proving patterns"):
        reports.append(report)
        if not args.json:
            print("\n".join(map(hidden.line, _lines(report, args.verbose))), flush=True)
    return reports


def _checks(args: argparse.Namespace, chosen: Mapping[str, tuple[str, Pattern]]) -> dict[str, Checks]:
    """Check the idioms, and print each result."""
    checks = {}
    folders = {id_: folder for id_, (folder, _) in chosen.items()}
    for id_, each in output.counted(check_all(folders, args.jobs, args.timeout), len(folders), "Checking idioms"):
        checks[id_] = each
        if not args.json and (summary := each.summary()):
            print(hidden.line(f"{id_}  {summary}"), flush=True)
            for detail in each.details(args.verbose):
                print(hidden.line(f"    {detail}"), flush=True)
    return checks


def _write(
    args: argparse.Namespace, ids: Iterable[str], reports: Sequence[Report], checks: Mapping[str, Checks]
) -> None:
    """Print the last line, or all results as JSON."""
    if args.json:
        proofs = {report.id: _value(report) for report in reports}
        output.write(args, [{**proofs.get(id_, {"id": id_}), "idioms": _checked(checks[id_])} for id_ in ids], "")
    elif not args.idioms:
        print(f"{sum(report.proven for report in reports)} of {len(reports)} proven")


def _checked(checks: Checks) -> dict[str, object]:
    return {
        "summary": checks.summary(),
        "played": [dataclasses.asdict(each) for each in checks.played],
        "parsed": {stack: each._asdict() for stack, each in checks.parsed.items()},
    }


def _record(
    chosen: Mapping[str, tuple[str, Pattern]],
    before: Mapping[str, provenance.Digest],
    reports: Sequence[Report],
    checks: Mapping[str, Checks],
) -> bool:
    """Record the proven patterns that did not change since ``before``; return whether the record was written.

    A pattern without a report, because only idioms were checked, keeps what is recorded about its proof.
    """
    runs: dict[str, tuple[str, provenance.Digest | None]] = {}
    recorded = {id_: provenance.lookup(*each) or {} for id_, each in chosen.items()}
    for id_, (folder, _) in chosen.items():
        runs[id_] = (folder, provenance.proof(recorded[id_]) or None)
    for report in reports:
        same = before[report.id] == provenance.digest(*chosen[report.id])
        runs[report.id] = (chosen[report.id][0], before[report.id] if report.proven and same else None)
        if report.proven and not same:
            output.fail(f"{report.id} changed during the run and is not recorded.")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        idioms = {id_: each.record(recorded[id_]) for id_, each in checks.items()}
        written = provenance.record(runs, today, __version__, idioms)
    except OSError as error:
        output.fail(f"Cannot write {paths.shown(str(error.filename))}: {error.strerror}.")
        return False
    for path in written:
        sys.stderr.write(f"{paths.shown(path)} written\n")
    return True


def _lines(report: Report, verbose: bool) -> Iterator[str]:
    if not report.has_code:
        yield f"{report.id}  unproven: no code"
        return
    if report.unavailable:
        yield f"{report.id}  not proven: {report.unavailable}"
        yield from (f"    {cell}" for cell in report.cells if verbose or not cell.ok)
        return
    legs = " ".join(f"{leg}{'✓' if ok else '✗'}" for leg, ok in report.legs().items())
    verdict = "proven" if report.proven else "NOT PROVEN"
    counts = f"{report.attacks} attacks  {report.wrong_fixes} wrong fixes  {report.mutants} mutants  {report.runs} runs"
    yield f"{report.id}  {legs}  {counts}  {report.seconds:.2f} s  {verdict}"
    yield from (f"    {cell}" for cell in report.cells if verbose or not cell.ok)
    yield from (f"    {fault}" for fault in report.faults)


def _value(report: Report) -> dict[str, object]:
    return {
        "id": report.id,
        "proven": report.proven,
        "legs": {str(leg): ok for leg, ok in report.legs().items()},
        "cells": [dataclasses.asdict(cell) for cell in report.cells],
        "faults": [report.unavailable, *report.faults] if report.unavailable else report.faults,
        "attacks": report.attacks,
        "allowed": report.allowed,
        "wrong_fixes": report.wrong_fixes,
        "mutants": report.mutants,
        "runs": report.runs,
        "seconds": round(report.seconds, 3),
    }

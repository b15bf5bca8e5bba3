"""Every packaged pattern is proven, and a sample has the same results if every run is a run of its own.

Each pattern is a test of its own.

Mutants are run again only if the pattern or the code that runs its proof differs from what `tmkb prove --record` recorded:
they take half of the time, and depend on nothing else.
"""

import dataclasses
import os
import random

import pytest

from tmkb.authoring.proofs import reach, runner
from tmkb.knowledge import pattern, provenance
from tmkb.schema import paths

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

PATTERNS = sorted(name for name in os.listdir(paths.PATTERNS) if not name.startswith("_"))


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_proven(prove, name):
    folder = os.path.join(paths.PATTERNS, name)
    is_changed = provenance.status(folder, pattern.read(folder).pattern) != "proven"
    report = prove(folder, mutate=is_changed)

    assert [str(cell) for cell in report.cells if not cell.ok] + report.faults == []
    if report.unavailable:  # a gate without it would hide that nothing was shown
        (pytest.fail if os.environ.get("CI") else pytest.skip)(report.unavailable)
    assert report.proven


SAMPLE = random.Random(3).sample(PATTERNS, 2)


@pytest.mark.parametrize("name", SAMPLE)
def test_results_without_any_run_that_is_left_out(name, prove, running, monkeypatch):
    """No result is used for another version, and every version is executed in a process of its own."""
    folder = os.path.join(paths.PATTERNS, name)
    found = prove(folder)
    monkeypatch.setattr(reach.Results, "reader", lambda *_: lambda _: None)
    worker = runner.Worker(separate=True)
    try:
        everything = runner.prove(folder, pattern.read(folder).pattern, worker, running=running)
    finally:
        worker.close()

    assert _shown(found) == _shown(everything)


def _shown(report):
    """Return the report without times, and without details, which can have random tokens."""
    cells = [(cell.leg, cell.function, cell.variant, cell.expected, cell.status) for cell in report.cells]
    return {**dataclasses.asdict(report), "seconds": 0.0, "cells": cells}

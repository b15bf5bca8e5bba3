"""Every packaged pattern is proven, and the proof refuses its mutants; one test for each, so that a failure names it."""

import os

import pytest

from tmkb.schema import paths

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

PATTERNS = sorted(name for name in os.listdir(paths.PATTERNS) if not name.startswith("_"))


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_proven(prove, name):
    report = prove(os.path.join(paths.PATTERNS, name))

    assert [str(cell) for cell in report.cells if not cell.ok] + report.faults == []
    assert report.proven

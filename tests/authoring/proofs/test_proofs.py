"""Every packaged pattern is proven, and its proof detects all mutants. Each pattern is a test of its own."""

import os

import pytest

from tmkb.schema import paths

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

PATTERNS = sorted(name for name in os.listdir(paths.PATTERNS) if not name.startswith("_"))


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_proven(prove, name):
    report = prove(os.path.join(paths.PATTERNS, name))

    assert [str(cell) for cell in report.cells if not cell.ok] + report.faults == []
    if report.unavailable:  # a gate without it would hide that nothing was shown
        (pytest.fail if os.environ.get("CI") else pytest.skip)(report.unavailable)
    assert report.proven

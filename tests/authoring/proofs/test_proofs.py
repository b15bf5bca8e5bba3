"""Every packaged pattern is proven. Each pattern is a test of its own.

Mutants are run again only if the pattern or the code that runs its proof differs from what `tmkb prove --record` recorded:
they take half of the time, and depend on nothing else.
"""

import os

import pytest

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

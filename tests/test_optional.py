"""Optional dependencies are hidden: every test module is collected or skipped with a reason.

Each package is hidden in half of the groups, and no two packages in the same ones. So for any two packages, the first is
hidden once while the second is there (Sperner's theorem: no other choice needs fewer groups).
"""

import itertools
import math
import os
import subprocess
import sys

import pytest

from tests.support import optional
from tests.support.repository import ROOT

pytestmark = pytest.mark.full

NAMES = sorted(optional.FROM)
UNTESTED = [name for name in NAMES if name not in ("hypothesis", "syrupy", "xdist")]  # that the extra `test` lacks
NUMBER = next(number for number in itertools.count() if math.comb(number, number // 2) >= len(NAMES))
HIDDEN_IN = dict(zip(NAMES, itertools.combinations(range(NUMBER), NUMBER // 2), strict=False))
GROUPS = {
    "all": NAMES,
    "all but test": UNTESTED,
    **{f"group {group}": [name for name in NAMES if group in HIDDEN_IN[name]] for group in range(NUMBER)},
}


def test_any_package_is_hidden_while_any_other_is_there():
    hidden = [set(names) for names in GROUPS.values()]

    for first, second in itertools.permutations(NAMES, 2):
        assert any(first in names and second not in names for names in hidden), (first, second)


@pytest.mark.parametrize("group", GROUPS)
def test_collection_without(group):
    plugins = ["-p", "tests.support.block_import"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--collect-only", "-qq", "-m", ""],
        cwd=ROOT,
        env={**os.environ, "BLOCKED": ",".join(GROUPS[group]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr

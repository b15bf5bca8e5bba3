"""The tests that `tmkb get ID --test` writes: they fail until completed, then pass on secure and fail on vulnerable code."""

import glob
import os
import re
import subprocess
import sys

import pytest

from tmkb.authoring import application_tests
from tmkb.knowledge import attacks, pattern
from tmkb.schema import paths

FOLDER = f"{paths.PATTERNS}/tmkb_auth_007"
WITH_ATTACKS = sorted(glob.glob(os.path.join(glob.escape(paths.PATTERNS), "tmkb_*", attacks.NAME)))
REFUSED = ["mallory", "colleague", "bob_replaced", "alice_demoted", "bob_left", "bob_moved"]
ADAPTER = """class App:
    def __init__(self):
        sys.path.insert(0, FOLDER)
        example = importlib.import_module(VERSION)
        self.stage = contextlib.ExitStack().enter_context(stage(example))

    def __getattr__(self, name):
        return getattr(self.stage, name)

"""


def run(tmp_path, text):
    """Return the outcome of each test by its case."""
    (tmp_path / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "--tb=line",
        "-c",
        "/dev/null",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return {name: outcome for outcome, name in re.findall(r"^(\w+) test_it\.py::\w+\[(\w+)\]", done.stdout, re.M)}


@pytest.mark.parametrize("file", WITH_ATTACKS, ids=lambda file: os.path.basename(os.path.dirname(file)))
def test_every_packaged_pattern_gives_valid_tests(file):
    folder = pattern.read(os.path.dirname(file))
    text = application_tests.tests(folder.path, folder.pattern)
    cases = attacks.Attacks.parse(text.partition('r"""\n')[2].partition('"""')[0]).cases

    compile(text, "test_it.py", "exec")
    assert [case.name for case in cases] == [case.name for case in attacks.read(folder.path)[0].cases]


@pytest.mark.process
def test_they_fail_until_completed(tmp_path):
    outcomes = run(tmp_path, application_tests.tests(FOLDER, pattern.read(FOLDER).pattern))

    assert set(outcomes.values()) == {"FAILED"}
    assert len(outcomes) == len(attacks.read(FOLDER)[0].cases)


@pytest.mark.process
@pytest.mark.needs("flask", "celery")
@pytest.mark.parametrize(
    ("version", "failing"),
    [
        ("secure", set()),
        (
            "vulnerable",
            {f"{actor}_{verb}" for actor in REFUSED for verb in ("show", "cancel")}
            | {"counting", "colleagues", "named_tenant"},
        ),
    ],
)
def test_an_application_is_attacked_through_a_few_lines(tmp_path, version, failing):
    text = application_tests.tests(FOLDER, pattern.read(FOLDER).pattern)
    head, _, rest = text.partition("class App:\n")
    _, mark, tail = rest.partition("\n@pytest.mark.parametrize")
    imports = "import contextlib\nimport importlib\nimport sys\n\nfrom tmkb.authoring.proofs.stage import stage\n"
    constants = f"FOLDER, VERSION = {FOLDER!r}, {version!r}\n\n\n"
    outcomes = run(
        tmp_path, head.replace("import pytest\n", f"{imports}import pytest\n") + constants + ADAPTER + mark + tail
    )

    assert {name for name, outcome in outcomes.items() if outcome == "FAILED"} == failing
    assert len(outcomes) == len(attacks.read(FOLDER)[0].cases)

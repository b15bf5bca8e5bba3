"""The wheel, installed outside the tree, serves and replays."""

import os
import shlex
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from tests.support.repository import ROOT
from tmkb import __version__
from tmkb.schema import export
from tmkb.server import sources

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs a command with the wheel unpacked in a folder of its own; dependencies come from the environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder / "site"), sysconfig.get_path("purelib")])

    def run(*words, **options):
        command = [sys.executable, "-S", "-m", "tmkb", *words]  # -S: the editable install is not seen
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **options
        )

    run.site, run.environment, run.folder = folder / "site", environment, folder
    return run


def test_the_wheel_holds_code_and_data_apart(installed):
    names = sorted(os.listdir(installed.site / "tmkb" / "_data"))

    assert names == ["conformance", "patterns", "schemas"]
    assert (installed.site / "tmkb" / "conformance" / "replay.py").is_file()
    assert not (installed.site / "tests").exists()


def test_the_wheel_contains_the_schemas_for_editors(installed):
    folder = installed.site / "tmkb" / "_data" / "schemas" / "editor"
    files = {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in folder.rglob("*.json")}

    assert files == dict(export.texts(sources.names()))


def test_it_runs_from_there(installed):
    code = "import tmkb, tmkb.schema.paths; print(tmkb.__file__, tmkb.schema.paths.ROOT, sep=chr(10))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=installed.folder,
        env=installed.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [
        str(installed.site / "tmkb" / "__init__.py"),
        str(installed.site / "tmkb" / "_data"),
    ]
    assert installed("version").stdout == f"tmkb {__version__}\n"


def test_it_answers(installed):
    done = installed("query", "background job processing")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("TMKB-AUTH-001  high")


def test_it_serves_and_replays(installed):
    done = installed(
        "replay",
        "--server",
        "tmkb",
        "--revision",
        "2025-11-25",
        "--command",
        shlex.join([sys.executable, "-S", "-m", "tmkb", "serve"]),
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("conversations are as recorded.\n")


def test_it_begins_a_pattern(installed):
    words = ("--id", "ACME-AUTH-001", "--name", "Mine", "--category", "object-level", "--dir", "my-patterns")

    assert installed("new", "pattern", *words).returncode == 0
    assert installed("validate", "my-patterns").stdout == "1 pattern, no problems.\n"
    assert "schema" not in (installed.folder / "my-patterns" / "acme_auth_001" / "pattern.yaml").read_text()


def test_its_patterns_are_valid(installed):
    assert installed("validate").stdout.endswith("patterns, no problems.\n")
    assert installed("schema", "check").returncode == 0

"""The wheel, installed outside the tree, serves and replays. Alone it is small, and needs no extra."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest

from deploy.bundle import build_wheel
from tests.support.repository import ROOT
from tmkb import __version__
from tmkb.schema import export, packed
from tmkb.server import sources

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs a command with the wheel unpacked in a folder of its own; dependencies come from the environment."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(folder)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder / "site"), sysconfig.get_path("purelib")])

    def run(*words, **options):
        command = [sys.executable, "-S", "-m", "tmkb", *words]  # -S: the editable install is not seen
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **options
        )

    run.site, run.environment, run.folder, run.wheel = folder / "site", environment, folder, wheel
    return run


def test_builds_at_other_times_and_places_are_equal(installed, tmp_path):
    """Of the source distribution, and of the wheel from it and from a checkout."""
    checkout = tmp_path / "another folder"
    left_out = shutil.ignore_patterns(".git", ".venv", ".cache", "node_modules", "dist", "__pycache__")
    shutil.copytree(ROOT, checkout, ignore=left_out, copy_function=shutil.copy)  # with new times
    files = {folder: built(folder, tmp_path / str(number)) for number, folder in enumerate((ROOT, checkout))}
    with tarfile.open(tmp_path / "0" / f"tmkb-{__version__}.tar.gz") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    of_source = built(tmp_path / "unpacked" / f"tmkb-{__version__}", tmp_path / "2", "wheel")

    assert files[ROOT] == files[checkout]
    assert files[ROOT].items() >= of_source.items()


def built(folder, target, *kinds):
    """Build a source distribution and a wheel of ``folder``, or one of them, and return their digests by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    for kind in kinds or ("sdist", "wheel"):
        subprocess.run([*command, "-t", kind], cwd=folder, check=True, capture_output=True)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in target.iterdir()}


def test_the_wheel_holds_code_and_data_apart(installed):
    names = sorted(os.listdir(installed.site / "tmkb" / "_data"))

    assert names == ["clients", "conformance", "patterns", "schemas"]
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
    assert "conversations are as recorded (" in done.stdout


def test_it_begins_a_pattern(installed):
    words = ("--id", "ACME-AUTH-001", "--name", "Mine", "--category", "object-level", "--dir", "my-patterns")

    assert installed("new", "pattern", *words).returncode == 0
    assert installed("validate", "my-patterns").stdout == "1 pattern, no problems.\n"
    assert "schema" not in (installed.folder / "my-patterns" / "acme_auth_001" / "pattern.yaml").read_text()


def test_its_patterns_are_valid(installed):
    assert installed("validate").stdout.endswith("patterns, no problems.\n")
    assert installed("schema", "check").returncode == 0


@pytest.mark.needs("jinja2")
def test_it_exports_the_site(installed):
    done = installed("export", "site", "-o", "pages", "7")

    assert done.returncode == 0, done.stderr
    page = (installed.folder / "pages" / "pattern" / "tmkb-auth-007.html").read_text(encoding="utf-8")
    assert "proven against" in page and "Only showing an invoice looks like a leak." in page


def test_wrong_fixes_are_left_out(installed):
    assert not [*(installed.site / "tmkb" / "_data" / "patterns").glob("tmkb_*/wrong")]
    assert {row["proof"] for row in json.loads(installed("list", "--json").stdout)} == {"proven"}

    done = installed("prove", "TMKB-AUTH-007")

    assert done.returncode == 1
    assert "TMKB-AUTH-007  not proven: its wrong fixes are not in this installation." in done.stdout


@pytest.fixture(scope="module")
def core(installed):
    """A new environment with only the wheel and what it requires, and the bytes that this took."""
    place = installed.folder / "core"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    before = size(place)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", installed.wheel], check=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COVERAGE", "PYTHONPATH", "TMKB_"))}

    def run(*words):
        command = [python, "-m", "tmkb", *words]
        return subprocess.run(
            command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    run.size, run.python, run.place = size(place) - before, python, place
    return run


def size(folder):
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_a_core_install_is_small(core):
    """Compiled bytecode included, which pip writes."""
    code = "import importlib.metadata as m; print(*(r for r in m.requires('tmkb') if 'extra ==' not in r), sep='\\n')"
    required = subprocess.run([core.python, "-c", code], capture_output=True, text=True, check=True).stdout

    assert core.size <= 18_500_000
    assert len(required.splitlines()) <= 5, required


def test_code_of_patterns_is_not_compiled(core):
    """Pip compiles every file whose name ends in .py."""
    (patterns,) = core.place.glob("**/tmkb/_data/patterns")

    assert (patterns / packed.NAME).is_file()
    assert not [*patterns.glob("**/*.py*")]


def test_a_core_install_answers_as_recorded(core):
    """No optional dependency changes an answer of the default server."""
    done = core("replay", "--server", "tmkb")

    assert done.returncode == 0, done.stdout
    assert "conversations are as recorded (" in done.stdout


@pytest.mark.parametrize(
    "words",
    ["query celery", "get 1", "list", "validate", "schema check", "schema show log", "completion bash", "serve"],
)
def test_a_core_install_runs(core, words):
    done = core(*words.split())

    assert done.returncode == 0, done.stderr
    assert done.stdout or words == "serve"


def test_a_core_install_edits_schemas(core, tmp_path):
    folder = str(tmp_path / "mine")

    assert core("schema", "eject", "errors", folder).returncode == 0
    done = core("schema", "set", "errors:errors.unknown_tool.message", "There is no {tool}.", "--schemas", folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("serve --http 127.0.0.1:0", "http"),
        ("serve --watch", "watch"),
        ("prove 1", "proofs"),
        ("export site -o pages", "site"),
    ],
)
def test_a_command_names_the_extra_it_lacks(core, words, extra):
    done = core(*words.split())

    assert done.returncode == 2
    assert f"the extra `{extra}`" in done.stderr and f"{core.python} -m pip install 'tmkb[{extra}]'" in done.stderr


def test_the_doctor_notices_a_damaged_file(installed):
    file = installed.site / "tmkb" / "_data" / "conformance" / packed.NAME
    content = file.read_bytes()

    def findings():
        values = json.loads(installed("doctor", "codex", "--json").stdout)
        return {each["id"]: each["cause"] for each in values["findings"] if each["subject"] == "tmkb"}

    assert findings()["patterns"].startswith("82 patterns, ")
    try:
        file.write_bytes(content[:-100])
        assert f"tmkb/_data/conformance/{packed.NAME}" in findings()["package-damaged"]
    finally:
        file.write_bytes(content)

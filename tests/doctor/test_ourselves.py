"""Staged failures of an installation: a copy of the package with damaged files, and caches that cannot be used."""

import base64
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.repository import ROOT
from tmkb import __version__
from tmkb.doctor import ourselves, program, report
from tmkb.doctor.examination import Check, Examined
from tmkb.server import cache

pytestmark = pytest.mark.process


def ids(findings):
    return {each.id: each for each in findings}


@pytest.fixture(scope="session")
def pristine(tmp_path_factory):
    """An installed package: a copy of this one, with the record of an installer. Gives its folder."""
    site = tmp_path_factory.mktemp("pristine")
    ignored = shutil.ignore_patterns("__pycache__", "editor", "wrong", "questions.yaml", "scenario.*")
    shutil.copytree(os.path.join(ROOT, "tmkb"), site / "tmkb", ignore=ignored)
    data = site / "tmkb" / "_data"
    for name in ("schemas", "clients", "patterns"):
        shutil.copytree(os.path.join(ROOT, name), data / name, ignore=ignored)
    (data / "conformance").symlink_to(os.path.join(ROOT, "conformance"))
    info = site / f"tmkb-{__version__}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.4\nName: tmkb\nVersion: {__version__}\nRequires-Dist: PyYAML>=6\n"
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(importlib.metadata.distribution("tmkb").read_text("entry_points.txt"))
    files = [path for path in site.rglob("*") if path.is_file() and info not in path.parents]
    (info / "RECORD").write_text("".join(f"{path.relative_to(site)},sha256={digest(path)},\n" for path in files))
    return site


@pytest.fixture
def installed(home, pristine, tmp_path):
    """An installed package whose schemas a test can damage. Gives its folder."""
    site = tmp_path / "site"
    data = site / "tmkb" / "_data"
    data.mkdir(parents=True)
    (info,) = pristine.glob("*.dist-info")
    for path in [info, *(pristine / "tmkb").iterdir(), *(pristine / "tmkb/_data").iterdir()]:
        if path.name not in ("_data", "schemas", "__pycache__"):
            (site / path.relative_to(pristine)).symlink_to(path)
    shutil.copytree(pristine / "tmkb/_data/schemas", data / "schemas")
    return site


def digest(path):
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()


def doctor(home, site, *words):
    """The findings of another installation of the package that are not fine, by id."""
    env = {**home.environment, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-m", "tmkb", "doctor", "--json", *words],
        env=env,
        cwd=home.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    values = json.loads(done.stdout)
    return done.returncode, {each["id"]: each for each in values["findings"] if each["level"] != "fine"}


def test_an_installation_without_damage(home, installed):
    home.claude(command=sys.executable, args=["-m", "tmkb", "serve"], env={"PYTHONPATH": str(installed)})

    status, found = doctor(home, installed, "claude-code")
    usual = {"installation-temporary", "command-elsewhere"}
    assert (status, {id_: each for id_, each in found.items() if id_ not in usual}) == (0, {})


def test_a_damaged_file_of_the_package(home, installed):
    (installed / "tmkb/_data/schemas/servers/tmkb/tools/tmkb_query.yaml").write_text("kind: tool\nname: [\n")

    status, found = doctor(home, installed)
    assert status == 1
    assert (
        "missing or changed (1): tmkb/_data/schemas/servers/tmkb/tools/tmkb_query.yaml"
        in found["package-damaged"]["cause"]
    )
    assert [each["level"] for each in found.values()].count("error") == 1


def damaged(site, name, text):
    """Write a file of an installed package whose folders are links."""
    file = site / name
    for folder in reversed([each for each in file.parents if site in each.parents]):
        if folder.is_symlink():
            target = folder.resolve()
            folder.unlink()
            folder.mkdir()
            for each in target.iterdir():
                (folder / each.name).symlink_to(each)
    if file.is_symlink():
        file.unlink()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


DAMAGED = {
    "a missing package": ("yaml.py", "raise ModuleNotFoundError(\"No module named 'yaml'\", name='yaml')", "yaml"),
    "a missing extension module": ("rpds/__init__.py", "from .rpds import *", "rpds"),
    "another module of the same name": ("yaml.py", "x = 1", "yaml"),
    "a half-written package": ("yaml.py", "def (", "yaml"),
}


@pytest.mark.parametrize(("file", "text", "package"), DAMAGED.values(), ids=DAMAGED)
def test_a_dependency_that_cannot_be_imported(home, installed, file, text, package):
    damaged(installed, file, text)

    status, found = doctor(home, installed, "claude-code")
    assert status == 1
    assert f"missing or damaged: {package}." in found["dependency-missing"]["cause"]
    assert "PYTHONPATH" in found["python-variables"]["cause"]


@pytest.mark.parametrize(
    "file", ["tmkb/server/server.py", "tmkb/doctor/web.py", "tmkb/schema/reader.py", "tmkb/cli/doctor.py"]
)
def test_a_module_that_is_half_written(home, installed, file):
    damaged(installed, file, "def (")

    status, found = doctor(home, installed, "claude-code")
    assert status == 1
    assert file in found["package-damaged"]["cause"]


@pytest.mark.parametrize("size", [0, 600, 9000, None])
def test_damaged_sentences(home, installed, size):
    file = installed / "tmkb/doctor/findings.yaml"
    damaged(installed, "tmkb/doctor/findings.yaml", file.read_text()[:size])
    if size is None:
        file.unlink()

    status, found = doctor(home, installed)
    assert status == 1
    assert "tmkb.doctor.findings" in found["package-damaged"]["cause"]


@pytest.mark.parametrize("words", [["serve"], ["list"], ["doctor"]], ids=str)
def test_a_command_of_an_installation_without_a_dependency(home, installed, words):
    damaged(installed, "yaml.py", "raise ModuleNotFoundError('No module named yaml', name='yaml')")
    done = subprocess.run(
        [sys.executable, "-m", "tmkb", *words],
        env={**home.environment, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(home.folder / "empty")},
        cwd=home.project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    assert done.returncode == (1 if words == ["doctor"] else 2)
    assert "Traceback" not in done.stderr
    assert "Required packages are missing or damaged: yaml." in done.stdout + done.stderr


def test_missing_rules_for_secrets(home, installed):
    home.claude(command=str(home.folder / "gone" / "tmkb"), args=["a=b", "-c"], env={"PASSPHRASE": "gone"})
    (installed / "tmkb/_data/conformance").unlink()

    _, found = doctor(home, installed, "claude-code")
    assert "conformance" in found["package-incomplete"]["cause"]
    assert "***/tmkb does not exist" in found["command-missing"]["cause"]


@pytest.mark.parametrize("name", ["problems.yaml", "meta/file.yaml", "protocol/2025-11-25.yaml", "errors.yaml"])
def test_a_missing_file_of_the_package(home, installed, name):
    (installed / "tmkb/_data/schemas" / name).unlink()

    status, found = doctor(home, installed)
    assert status == 1
    assert f"schemas/{name}" in found["package-damaged"]["cause"]


def test_missing_folders_of_the_package(home, installed):
    shutil.rmtree(installed / "tmkb/_data/schemas")
    for name in ("clients", "patterns"):
        (installed / "tmkb/_data" / name).unlink()

    status, found = doctor(home, installed)
    assert status == 1
    cause = found["package-incomplete"]["cause"]
    assert [name in cause for name in ("_data/schemas, ", "_data/patterns, ", "_data/clients")] == [True] * 3


def test_a_package_without_its_data(home, installed):
    shutil.rmtree(installed / "tmkb/_data")

    _, found = doctor(home, installed)
    assert found["package-incomplete"]["cause"].endswith("tmkb/_data.")


def test_missing_metadata_explain_missing_providers():
    check = Check("knowledge", "tmkb", tuple)
    found = [ourselves.TOPIC.found("metadata-missing", folder="x"), ourselves.TOPIC.found("schemas-invalid", count=1)]
    (section,) = report.sections([Examined(check, tuple(found))], {})

    assert [each.id for each in section.findings] == ["metadata-missing"]


def test_a_variable_of_the_shell_that_names_no_folder(home, monkeypatch):
    monkeypatch.setenv("TMKB_PATTERNS", "my-patterns:packaged")

    (found,) = ourselves.variables()
    assert found.cause == "The variable TMKB_PATTERNS of this shell names my-patterns, which is no folder."


def test_the_command_of_an_installation_that_is_not_on_the_path(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    program.name.cache_clear()

    name = program.name()
    program.name.cache_clear()
    assert os.path.isabs(name.split()[0])


def test_schemas_of_the_user_that_are_not_valid(home, overlay, monkeypatch):
    monkeypatch.setenv(
        "TMKB_SCHEMAS", overlay(**{"errors": "kind: errors\nextends: packaged\nerrors: {unkown_tool: {message: x}}\n"})
    )

    (found,) = ourselves.knowledge()
    assert (found.id, found.place.line) == ("schemas-invalid", 3)


def test_patterns_of_the_user_that_are_not_valid(home, monkeypatch):
    monkeypatch.setenv("TMKB_PATTERNS", str(home.folder / "nothing"))

    assert "nothing does not exist" in ids(ourselves.knowledge())["patterns-invalid"].details[0]


def test_the_folder_of_one_pattern_is_counted(home, monkeypatch, patterns):
    monkeypatch.setenv("TMKB_PATTERNS", str(patterns("acme_auth_001") / "acme_auth_001"))

    assert ids(ourselves.knowledge())["patterns"].cause.startswith("1 pattern")


def test_a_folder_of_patterns_that_is_a_file(home, monkeypatch):
    monkeypatch.setenv("TMKB_PATTERNS", str(home.write("file", "")))

    assert ids(ourselves.knowledge())["patterns"].cause.startswith("0 patterns")


def test_a_cache_whose_place_is_taken(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.folder / "taken"))
    home.write("taken", "")

    assert str(home.folder / "taken") in ids(ourselves.knowledge())["cache-blocked"].cause


def test_a_cache_that_others_can_write_to(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.folder / "shared"))
    (home.folder / "shared" / "tmkb").mkdir(parents=True)
    (home.folder / "shared" / "tmkb").chmod(0o777)

    assert "cache-shared" in ids(ourselves.knowledge())


def test_a_cache_that_is_not_writable(home, tmp_path, monkeypatch):
    folder = home.folder / "locked"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    if os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: not path.startswith(str(folder)))

    assert [each.id for each in ourselves.knowledge() if each.level != "fine"] == ["cache-unwritable"]


def test_a_cache_with_an_entry(home):
    found = ids(ourselves.knowledge())

    assert found["cache"].cause == f"The start-up cache is valid: {cache.folder()}."
    assert found["patterns"].cause.startswith("82 patterns, the latest reviewed on 20")


def test_another_tmkb_on_the_path(home, monkeypatch):
    monkeypatch.setenv("PATH", f"{home.folder}/bin")
    assert "command-not-on-path" in ids(ourselves.other_command())

    other = home.program("tmkb", "")
    assert other in ids(ourselves.other_command())["command-elsewhere"].cause


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setattr(ourselves.importlib.metadata, "requires", lambda _: ["no-such-package>=1", "x; extra == 'y'"])

    assert "no-such-package." in ids(ourselves.dependencies())["dependency-missing"].cause


def test_a_package_that_is_too_old(monkeypatch):
    monkeypatch.setattr(ourselves.importlib.metadata, "requires", lambda _: ["jsonschema>=4.23"])
    monkeypatch.setattr(ourselves.importlib.metadata, "version", lambda _: "3.2.0")

    assert "jsonschema 3.2.0 is installed" in ids(ourselves.dependencies())["dependency-old"].cause

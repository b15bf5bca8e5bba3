"""The command that installs an extra, where it was not installed as in `tests/test_installations.py`."""

import json
import shlex
import sys

import pytest

from tmkb import __version__
from tmkb.schema import installation, paths

PYTHON = shlex.quote(sys.executable)
FOLDER = installation._folder


class Distribution:
    """Metadata of a package: where it is from, and what it requires."""

    def __init__(self, origin=None):
        self.origin = origin

    def read_text(self, _):
        return self.origin and json.dumps(self.origin)


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """An installed package in an environment of its own. Returns a function that sets its origin."""
    requires = [
        "PyYAML>=6",
        "evtx>=0.14 ; extra == 'sysmcp'",
        "pywin32; (sys_platform == \"win32\") and extra == 'sysmcp'",
        "uvicorn>=0.30; extra == 'http'",
    ]
    monkeypatch.setattr(paths, "ROOT", paths.DATA)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["tmkb", "serve", "--http", "127.0.0.1:0"])
    monkeypatch.setattr(installation.metadata, "requires", lambda _: requires)
    monkeypatch.setattr(installation, "_folder", lambda: None)

    def come_from(origin):
        monkeypatch.setattr(installation.metadata, "distribution", lambda _: Distribution(origin))

    come_from(None)
    return come_from


def test_a_checkout_is_installed_again(monkeypatch):
    monkeypatch.setattr(paths, "ROOT", "/a checkout")

    assert installation.command("http") == f"{PYTHON} -m pip install -e '/a checkout[http]'"
    assert installation.command_for("ruff") == f"{PYTHON} -m pip install ruff"


def test_the_system_python_of_a_distribution_needs_a_flag(installed, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr(installation.sysconfig, "get_path", lambda _: str(tmp_path))
    assert installation.command("http") == f"{PYTHON} -m pip install 'tmkb[http]'"

    (tmp_path / "EXTERNALLY-MANAGED").touch()
    assert installation.command("http") == f"{PYTHON} -m pip install --break-system-packages 'tmkb[http]'"


def test_an_environment_of_its_own_is_not_that_of_the_system(installed, monkeypatch):
    assert installation.kind() == "venv"

    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert installation.kind() == "system"


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, f"tmkb=={__version__}"),
        ({"url": "file:///a%20folder/x.whl", "archive_info": {}}, "'/a folder/x.whl'"),
        ({"url": "https://host/x.whl", "archive_info": {}}, "'tmkb @ https://host/x.whl'"),
        (
            {"url": "https://host/x", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            "'tmkb @ git+https://host/x@0a1b'",
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="quoted for a shell of POSIX")
def test_a_new_environment_is_made_from_the_same_source(installed, monkeypatch, tmp_path, origin, source):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "x"))
    installed(origin)

    expected = f"uvx --with 'uvicorn>=0.30' --from {source} tmkb serve --http 127.0.0.1:0"
    assert installation.command("http") == expected


def test_packages_for_other_platforms_are_left_out(installed, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert installation.requirements("sysmcp") == ["evtx>=0.14"]
    monkeypatch.setattr(sys, "platform", "win32")
    assert installation.requirements("sysmcp") == ["evtx>=0.14", "pywin32"]


def test_the_command_is_quoted_for_windows(installed, monkeypatch, tmp_path):
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venvs" / "tmkb"))
    (tmp_path / "venvs" / "tmkb").mkdir(parents=True)
    (tmp_path / "venvs" / "tmkb" / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "platform", "win32")

    assert installation.command("http") == 'pipx inject tmkb "uvicorn>=0.30"'


def test_uv_keeps_what_was_added_to_a_tool(installed, tmp_path):
    (tmp_path / "uv-receipt.toml").write_text(
        '[tool]\nrequirements = [{name = "tmkb"}, {name = "redis", specifier = ">=5"}, {name = "httpx2"}]\n'
    )

    assert installation.kind() == "uv"
    assert installation.command("http") == (
        f"uv tool install --with 'redis>=5' --with httpx2 --with 'uvicorn>=0.30' tmkb=={__version__}"
    )
    assert installation.command_for("redis>=5").count("redis") == 1


def test_pipx_run_makes_a_new_environment(installed, tmp_path):
    (tmp_path / "pipx_metadata.json").touch()

    assert installation.kind() == "pipx run"
    assert installation.command("http") == (
        f"pipx run --spec 'tmkb[http]=={__version__}' tmkb serve --http 127.0.0.1:0"
    )
    assert installation.command_for("ruff") == f"{PYTHON} -m pip install ruff"


def test_an_environment_without_pip_is_of_uv(installed, monkeypatch):
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda _: None)

    assert installation.command("http") == f"uv pip install --python {PYTHON} 'tmkb[http]'"


def test_a_folder_of_packages_gets_more_packages(installed, monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "_folder", FOLDER)
    libraries = tmp_path / "some libraries"
    monkeypatch.setattr(paths, "ROOT", str(libraries / "tmkb" / "_data"))
    monkeypatch.setattr(paths, "DATA", paths.ROOT)

    assert installation.command("http") == f"{PYTHON} -m pip install --target '{libraries}' 'uvicorn>=0.30'"
    monkeypatch.setattr(paths, "DATA", str(tmp_path / "lib" / "site-packages" / "tmkb" / "_data"))
    monkeypatch.setattr(paths, "ROOT", paths.DATA)
    assert installation.command("http") == f"{PYTHON} -m pip install 'tmkb[http]'"


@pytest.mark.parametrize("text", ["", "{"])
def test_an_unreadable_origin_is_the_released_version(installed, monkeypatch, tmp_path, text):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "x"))
    monkeypatch.setattr(Distribution, "read_text", lambda *_: text)

    assert f"--from tmkb=={__version__} tmkb" in installation.command("http")


def test_links_of_the_project(monkeypatch):
    def missing(name):
        raise installation.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "metadata", missing)
    assert installation.links() == []

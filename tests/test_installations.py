"""However TMKB was installed, the command that it prints for an extra installs the extra. Each command is really run.

The extra is `watch`, which has one small package. pipx and uv come from the package index.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from deploy.bundle import build_wheel
from tests.support.repository import ROOT

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform == "win32", reason="shell commands of POSIX")]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The folder of the programs uv and pipx."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-qq", "uv>=0.9", "pipx>=1.8"], check=True)
    return str(folder / "bin")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The path of the wheel."""
    return str(build_wheel(tmp_path_factory.mktemp("wheel")))


class Machine:
    """A home folder, and the tools of Python."""

    def __init__(self, home, tools):
        self.home = home
        self.environment = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("COVERAGE", "PYTHONPATH", "TMKB_", "VIRTUAL_ENV"))
            },
            "HOME": str(home),
            "PATH": os.pathsep.join([f"{home}/.local/bin", tools, "/usr/bin", "/bin"]),
            "XDG_DATA_HOME": f"{home}/.local/share",
            "XDG_CACHE_HOME": f"{home}/.cache",
            "UV_CACHE_DIR": f"{home}/.cache/uv",
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
            "PIPX_DEFAULT_PYTHON": sys.executable,
        }

    def run(self, command):
        """Run a shell command, and return what it printed."""
        done = subprocess.run(
            command, shell=True, cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path, tools):
    return Machine(tmp_path, tools)


WAYS = {  # name → commands that install a wheel, the command that runs TMKB, the beginning of the printed command
    "venv": ([f"{sys.executable} -m venv v", "v/bin/python -m pip install -q WHEEL"], "v/bin/tmkb", "HOME/v/bin/python -m pip install 'tmkb["),
    "venv without pip": (["uv venv -q v", "uv pip install -q --python v/bin/python WHEEL"], "v/bin/tmkb", "uv pip install --python HOME/v/bin/python"),
    "folder": ([f"{sys.executable} -m venv v", "v/bin/python -m pip install -q --target packages WHEEL"], "PYTHONPATH=packages v/bin/python -m tmkb", "HOME/v/bin/python -m pip install --target HOME/packages"),
    "pipx": (["pipx install -q WHEEL"], "tmkb", "pipx inject tmkb 'watchfiles"),
    "pipx run": ([], "pipx run -q --spec WHEEL tmkb", "pipx run --spec "),
    "uv tool": (["uv tool install -q WHEEL"], "tmkb", "uv tool install --with 'watchfiles"),
    "uv tool with a package": (["uv tool install -q --with 'h11>=0.14' WHEEL"], "tmkb", "uv tool install --with 'h11>=0.14' --with 'watchfiles"),
    "uvx": ([], "uvx -q --from WHEEL tmkb", "uvx --with 'watchfiles"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_printed_command_installs_the_extra(machine, wheel, way):
    install, tmkb, expected = WAYS[way]
    for command in install:
        status, printed = machine.run(command.replace("WHEEL", wheel))
        assert status == 0, printed
    serve = tmkb.replace("WHEEL", wheel) + " serve --watch"
    status, printed = machine.run(serve)
    assert status == 2, printed
    hint = re.search(r"Install the extra `watch`: (.*)", printed)[1]
    assert hint.startswith(expected.replace("HOME", str(machine.home))), hint

    status, printed = machine.run(hint)
    assert status == 0, printed
    if " serve" in hint:  # the command for a new environment already serves
        assert "MCP server shutdown" in printed
        return
    status, printed = machine.run(serve)
    assert (status, "MCP server shutdown" in printed) == (0, True), printed


def test_in_an_editable_installation(machine):
    checkout = machine.home / "a checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".*", "node_modules", "dist", "tests"))
    status, printed = machine.run(f"{sys.executable} -m venv v && v/bin/python -m pip install -q -e 'a checkout'")
    assert status == 0, printed
    status, printed = machine.run("v/bin/tmkb serve --watch")
    hint = re.search(r"Install the extra `watch`: (.*)", printed)[1]
    assert hint == f"{machine.home}/v/bin/python -m pip install -e '{checkout}[watch]'"

    status, printed = machine.run(hint)
    assert status == 0, printed
    status, printed = machine.run("v/bin/tmkb serve --watch")
    assert (status, "MCP server shutdown" in printed) == (0, True), printed

"""The completion script, in a real shell."""

import os
import shutil
import subprocess
import sys

import pytest

from tmkb.knowledge import stacks

pytestmark = pytest.mark.process

FASTAPI = sorted(name for name in stacks.packaged().stacks if name.startswith("fas"))

TRY = """
source "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_shtab_tmkb tmkb "${@: -1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The file with the script for bash."""
    done = subprocess.run([sys.executable, "-m", "tmkb", "completion", "bash"], capture_output=True, check=True)
    path = tmp_path_factory.mktemp("completion") / "script"
    path.write_bytes(done.stdout)
    return path


@pytest.fixture
def complete(script, tmp_path):
    """What bash offers for the last of the words."""
    if not (bash := shutil.which("bash")):
        pytest.skip("needs bash")

    def run(*words):
        command = [bash, "-c", TRY, "bash", "tmkb", *words]
        (tmp_path / "schemas").mkdir(exist_ok=True)
        environment = {**os.environ, "SCRIPT": str(script)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return run


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["se"], ["serve"]),
        (["serve", "--lo"], ["--log-level"]),
        (["serve", "--log-level", "w"], ["warning"]),
        (["serve", "--schemas", "sch"], ["schemas"]),
        (["schema", "c"], ["check"]),
        (["schema", "ge"], ["get"]),
        (["schema", "new", "ser"], ["server"]),
        (["schema", "set", "--dry"], ["--dry-run"]),
        (["schema", "eject", "log", "sch"], ["schemas"]),
        (["install", "curs"], ["cursor"]),
        (["completion", "z"], ["zsh"]),
        (["get", "TMKB-AUTH-00"], [f"TMKB-AUTH-00{number}" for number in range(1, 10)]),
        (["prove", "TMKB-AUTH-05"], [f"TMKB-AUTH-05{number}" for number in range(10)]),
        (["serve", "--server", "sys"], ["sysmcp"]),
        (["list", "--category", "object"], ["object-level"]),
        (["query", "x", "--framework", "fas"], FASTAPI),
        (["query", "x", "--language", "py"], ["python"]),
        (["list", "--framework", "fl"], ["flask"]),
        (["install", "claude-d"], ["claude-desktop"]),
        (["ne"], ["new"]),
        (["new", "p"], ["pattern"]),
        (["new", "pattern", "--cat"], ["--category"]),
        (["new", "pattern", "--severity", "c"], ["critical"]),
        (["new", "pattern", "--dir", "sch"], ["schemas"]),
    ],
)
def test_bash_completions(complete, words, offered):
    assert complete(*words) == offered


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_every_shell_has_a_script(shell):
    done = subprocess.run(
        [sys.executable, "-m", "tmkb", "completion", shell], capture_output=True, text=True, check=True
    )

    assert "tmkb" in done.stdout
    assert "--log-level" in done.stdout


def test_an_unknown_shell_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "tmkb", "completion", "cmd"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "bash" in done.stderr

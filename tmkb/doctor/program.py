"""The command of this installation, as a user types it in a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache

from tmkb.clients import launch


@cache
def name() -> str:
    """Return `tmkb` if that is this installation on PATH, else the absolute command."""
    found = shutil.which("tmkb")
    if found is not None and is_same_environment(found):
        return "tmkb"
    program, words = launch.command()
    return subprocess.list2cmdline([program, *words]) if sys.platform == "win32" else shlex.join([program, *words])


def is_same_environment(command: str) -> bool:
    """Return whether a console script is one of this environment, directly or through links."""
    scripts = os.path.dirname(os.path.abspath(sys.executable))
    return scripts in (os.path.dirname(os.path.abspath(command)), os.path.dirname(os.path.realpath(command)))

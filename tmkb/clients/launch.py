"""The command that starts this server from anywhere: for the entries of clients."""

from __future__ import annotations

import os
import re
import sys
import tempfile

from tmkb.schema import installation
from tmkb.schema.values import JsonObject

PORTABLE = "tmkb"  # in a file that is shared: every reader has tmkb elsewhere
_PROGRAM = re.compile(r"(?:.*[/\\])?tmkb(?:\.exe|\.cmd)?")
# In the arguments of an interpreter, `uvx` or a shell. A folder called tmkb is not followed by `serve`.
_LINE = re.compile(r"""(?:^|[\s/\\"'])tmkb(?:\.exe|\.cmd)?(?:[\[=@]\S*)?["']?\s+serve\b""")


def command() -> tuple[str, list[str]]:
    """Return the absolute path of a program and the arguments that make it this tmkb.

    It is the script of the virtual environment, whose links are not resolved. Elsewhere it is the interpreter, with
    `-P` because clients start it in a project, whose modules must not be imported.
    """
    interpreter = os.path.abspath(sys.executable)
    script = os.path.join(os.path.dirname(interpreter), "tmkb.exe" if sys.platform == "win32" else "tmkb")
    if sys.prefix != sys.base_prefix and os.access(script, os.X_OK):
        return script, []
    return interpreter, ["-P", "-m", "tmkb"]


def temporary_folder() -> str | None:
    """Return the folder of this Python if it will be deleted soon, as that of `uvx` and of a build; else None."""
    is_temporary = os.path.realpath(sys.prefix).startswith(os.path.realpath(tempfile.gettempdir()) + os.sep)
    return sys.prefix if is_temporary or installation.kind() in ("uvx", "pipx run") else None


def is_gone(server: JsonObject) -> bool:
    """Return whether the command of an entry, as `Client.normalised` returns it, is a path where nothing is."""
    command = server.get("command")
    return isinstance(command, str) and os.path.isabs(command) and not os.path.lexists(command)


def is_ours(name: str, server: JsonObject) -> bool:
    """Return whether an entry, as `Client.normalised` returns it, starts tmkb, or has its name."""
    return name == PORTABLE or starts_tmkb(server)


def starts_tmkb(server: JsonObject) -> bool:
    """Return whether an entry, as `Client.normalised` returns it, starts tmkb."""
    command, args = server.get("command"), server.get("args")
    words = [str(each) for each in (command, *(args if isinstance(args, list) else []))]
    return bool(_PROGRAM.fullmatch(words[0]) or _LINE.search(" ".join(words)))

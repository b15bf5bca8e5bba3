"""How a client starts a server, and what can be said about it without starting it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tmkb.doctor.finding import Finding, Topic

SHORT_PATH = "/usr/bin:/bin"  # of a program that was started from a dock or a menu
_KEPT = ("HOME", "LANG", "LOGNAME", "SHELL", "TMPDIR", "USER")  # what such a program inherits besides
_SHEBANG = 4096  # bytes of a file that can name its interpreter
# What pip writes for an interpreter whose path is too long for the first line, or has spaces.
_TRAMPOLINE = re.compile(rb"""#!/bin/sh\n'{3}exec' (?:"(?P<quoted>[^"\n]+)"|(?P<plain>\S+)) """)


@dataclass(frozen=True)
class Launch:
    """A command with its surroundings.

    Attributes:
        argv: the command and its arguments.
        environment: all variables of the process.
        folder: its working directory.
        path: the PATH of the user's shell.
        is_desktop: whether these are the surroundings of a program from a dock or menu, not those of a shell.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    path: str
    is_desktop: bool = False


def from_shell(argv: Sequence[str], user: Mapping[str, str], own: Mapping[str, str], folder: str) -> Launch:
    """Return how a client in a terminal starts a command.

    Args:
        argv: the command and its arguments.
        user: the environment of the user's shell.
        own: the variables of the entry.
        folder: the working directory.
    """
    return Launch(tuple(argv), {**user, **own}, folder, user.get("PATH", ""))


def from_desktop(
    argv: Sequence[str], user: Mapping[str, str], own: Mapping[str, str], folder: str = "", path: str = SHORT_PATH
) -> Launch:
    """Return how a client in a dock or menu starts a command.

    Args:
        argv: the command and its arguments.
        user: the environment of the user's shell.
        own: the variables of the entry.
        folder: the working directory; the root folder by default.
        path: the PATH of the client.
    """
    root, usual = os.path.abspath(os.sep), user.get("PATH", "")
    if sys.platform == "win32":  # a program there gets the variables of the user, wherever it is started
        return Launch(tuple(argv), {**user, **own}, folder or root, usual, True)
    kept = {name: user[name] for name in _KEPT if name in user}
    return Launch(tuple(argv), {**kept, "PATH": path, **own}, folder or root, usual, True)


def defects(launch: Launch, topic: Topic) -> Iterator[Finding]:
    """Yield why the command cannot be started."""
    command = launch.argv[0]
    program = command.partition(" ")[0]
    if program != command and not shutil.which(command, path=launch.path) and shutil.which(program, path=launch.path):
        yield topic.found("command-with-arguments", command=command, program=program)
        return
    if not os.path.dirname(command):
        yield from _without_folder(launch, topic)
        return
    path = os.path.join(launch.folder, command)
    if not os.path.exists(path):
        if os.path.islink(path):
            yield topic.found("command-link-broken", path=path, target=os.readlink(path))
        else:
            yield topic.found("command-missing", path=command)
    elif os.path.isdir(path):
        yield topic.found("command-is-folder", path=command)
    elif not os.access(path, os.X_OK):
        yield topic.found("command-not-executable", path=command)
    elif (interpreter := _interpreter(path)) and not os.path.exists(interpreter):
        yield topic.found("interpreter-missing", path=command, interpreter=interpreter)


def _without_folder(launch: Launch, topic: Topic) -> Iterator[Finding]:
    command = launch.argv[0]
    if shutil.which(command, path=launch.environment.get("PATH", os.defpath)):
        return
    usual = shutil.which(command, path=launch.path)
    if usual is None:
        yield topic.found("command-unknown", command=command)
    elif launch.is_desktop:
        yield topic.found("command-needs-path", command=command, path=usual, short=SHORT_PATH)
    else:
        yield topic.found("command-outside-path", command=command, path=usual)


def _interpreter(path: str) -> str:
    """Return the interpreter in the first line of a script; empty for other files, and for what env(1) looks up."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return ""
    try:
        with open(path, "rb") as file:
            head = file.read(_SHEBANG)
    except OSError:
        return ""
    if match := _TRAMPOLINE.match(head):
        return os.fsdecode(match["quoted"] or match["plain"])
    words = head[2:].partition(b"\n")[0].split(None, 1) if head.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""

"""Say how to add an extra to this installation: a command that can be pasted into a shell.

What is right depends on how TMKB was installed. pipx and uv keep an environment for each tool and restore it from their
own records, so packages are added with them; `uvx` and `pipx run` make a new environment for each command. An
environment can lack pip. Commands name the interpreter, because the `pip` of a shell can belong to another one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from tmkb import __version__
from tmkb.errors import Problem
from tmkb.schema import paths

NAME = __name__.partition(".")[0]  # of the package
_UV_RECEIPT = "uv-receipt.toml"  # of `uv tool install`
_UV_CACHE = re.compile(r"(?:archive|builds|environments)-v\d+")  # folders of uv's cache
_PLAIN = re.compile(r"[\w\\/:.=@+-]+")
_EXTRA = re.compile(r"""extra == ['"]([^'"]+)""")
_PLATFORM = re.compile(r"""sys_platform == ['"](\w+)""")


class Requirement(NamedTuple):
    """A requirement: its text without conditions, the package, and the extra and platform that it is for, or ""."""

    text: str
    package: str
    extra: str
    platform: str


def missing(option: str, extra: str, module: str | None) -> Problem:
    """Return the problem that ``option`` needs an extra. ``module``: what cannot be imported."""
    return Problem.of_argument("extra_missing", option, **lacks(extra, module))


def lacks(extra: str, module: str | None) -> dict[str, str]:
    """Return the fields of the problem `extra_missing`. ``module``: what cannot be imported."""
    return {"extra": extra, "module": module or extra, "command": command(extra)}


def command(extra: str) -> str:
    """Return the command that adds ``extra`` to this installation, quoted for the shell of the platform."""
    return _quoted(_words(extra, requirements(extra)))


def command_for(package: str) -> str:
    """Return the command that adds another ``package``, as `command` does."""
    return _quoted(_words("", [package]))


def _quoted(words: Sequence[str]) -> str:
    if str(sys.platform) != "win32":  # a type checker knows the one that it runs on
        return shlex.join(words)
    return " ".join(word if _PLAIN.fullmatch(word) else f'"{word}"' for word in words)  # for cmd and PowerShell


def _words(extra: str, packages: Sequence[str]) -> list[str]:
    """Return the command that adds ``extra``, whose packages are ``packages``; no extra stands for any packages."""
    if extra and paths.ROOT != paths.DATA:  # a checkout, which an editable installation or PYTHONPATH finds
        return [*_pip(), "-e", f"{paths.ROOT}[{extra}]"]
    if (words := _of_tool(extra, packages)) is not None:
        return words
    if (folder := _folder()) is not None:
        return [*_pip(), "--target", folder, *packages]
    return [*_pip(), *([f"{NAME}[{extra}]"] if extra else packages)]  # pip reads the metadata of what is installed


def _of_tool(extra: str, packages: Sequence[str]) -> list[str] | None:
    """Return the command for an environment that uv or pipx made for TMKB; None in others."""
    made, arguments = kind(), sys.argv[1:]
    if made == "uv":
        return ["uv", "tool", "install", *_with([*_added(), *packages]), _source()]
    if made == "uvx":
        return ["uvx", *_with(packages), "--from", _source(), NAME, *arguments]
    if made == "pipx":
        return ["pipx", "inject", os.path.basename(sys.prefix), *packages]
    if made == "pipx run" and extra:
        return ["pipx", "run", "--spec", _source(extra), NAME, *arguments]
    return None


def kind() -> str:
    """Return what manages this environment: `uv`, `uvx`, `pipx`, `pipx run`, `venv`, or `system`.

    `uvx` and `pipx run` make an environment for one command, and delete it later.
    """
    if os.path.isfile(os.path.join(sys.prefix, _UV_RECEIPT)):
        return "uv"
    if any(map(_UV_CACHE.fullmatch, re.split(r"[\\/]", sys.prefix))):
        return "uvx"
    if os.path.isfile(os.path.join(sys.prefix, "pipx_metadata.json")):
        return "pipx" if os.path.basename(os.path.dirname(sys.prefix)) == "venvs" else "pipx run"
    return "venv" if sys.prefix != sys.base_prefix else "system"


def requirements(extra: str) -> list[str]:
    """Return the packages of ``extra`` for this platform, with their versions."""
    return [each.text for each in required() if each.extra == extra and each.platform in ("", sys.platform)]


def required() -> Iterator[Requirement]:
    """Yield what the metadata of this installation requires. Raises PackageNotFoundError if there is none."""
    for line in metadata.requires(NAME) or []:
        text, _, marker = line.partition(";")
        extra, platform = _EXTRA.search(marker), _PLATFORM.search(marker)
        package = re.match(r"[\w.-]+", text)
        if package:
            yield Requirement(text.strip(), package[0], extra[1] if extra else "", platform[1] if platform else "")


def links() -> list[str]:
    """Return the addresses of the project, each as `NAME, URL`; none without metadata."""
    try:
        return metadata.metadata(NAME).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return []


def _pip() -> list[str]:
    """Return the words that install packages for this interpreter."""
    if not importlib.util.find_spec("pip"):
        return ["uv", "pip", "install", "--python", sys.executable]
    words = [sys.executable, "-m", "pip", "install"]
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")  # PEP 668
    return [*words, "--break-system-packages"] if sys.prefix == sys.base_prefix and os.path.exists(marker) else words


def _source(extra: str = "") -> str:
    """Return what the package was installed from: a path, the URL of a repository, or its name and version."""
    brackets = f"[{extra}]" if extra else ""
    try:
        origin = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
    except ValueError:
        origin = {}
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"{NAME}{brackets} @ {origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    if url.startswith("file:"):
        return url2pathname(urlsplit(url).path) + brackets
    return f"{NAME}{brackets} @ {url}" if url else f"{NAME}{brackets}=={__version__}"


def _added() -> Iterator[str]:
    """Yield the packages that uv has added to a tool: installing it again removes what is not named."""
    import tomllib

    with open(os.path.join(sys.prefix, _UV_RECEIPT), "rb") as file:
        listed = tomllib.load(file).get("tool", {}).get("requirements", [])
    for requirement in listed:
        if requirement["name"] != NAME:
            yield requirement["name"] + requirement.get("specifier", "")


def _with(packages: Sequence[str]) -> list[str]:
    return [word for package in dict.fromkeys(packages) for word in ("--with", package)]


def _folder() -> str | None:
    """Return the folder of `pip install --target`, if we are in one; None in an environment or a checkout."""
    if paths.ROOT != paths.DATA:
        return None
    here = os.path.dirname(os.path.dirname(paths.DATA))
    schemes = [sysconfig.get_paths(), sysconfig.get_paths(sysconfig.get_preferred_scheme("user"))]
    known = {os.path.realpath(scheme[key]) for scheme in schemes for key in ("purelib", "platlib")}
    parts = os.path.realpath(here).replace("\\", "/").split("/")
    return None if os.path.realpath(here) in known or {"site-packages", "dist-packages"} & {*parts} else here

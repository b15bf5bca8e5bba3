"""Read what every form of the package says about itself: `pyproject.toml` and `tmkb.__version__` are the one place."""

import functools
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tmkb

ROOT = Path(__file__).resolve().parent.parent
TITLE = "TMKB"
VERSION = tmkb.__version__


@functools.cache
def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def url(name: str) -> str:
    """Return the URL ``name`` of the project."""
    return str(project()["urls"][name])


def registry_name() -> str:
    """Return the name of the server in the MCP registry, which grants `io.github.OWNER/…` to owners of repositories."""
    return "io.github." + urlsplit(url("Repository")).path.strip("/")


def image() -> str:
    """Return the name of the image with its version. Names of images have no upper case."""
    return "ghcr.io" + urlsplit(url("Repository")).path.lower() + f":{VERSION}"

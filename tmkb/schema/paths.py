"""Locate the data folders: in an installed package, at the top of a checkout, or as options name them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(_HERE, "_data")  # only in an installed package
ROOT = DATA if os.path.isdir(DATA) else os.path.dirname(_HERE)

SCHEMAS = os.path.join(ROOT, "schemas")
PATTERNS = os.path.join(ROOT, "patterns")
CONFORMANCE = os.path.join(ROOT, "conformance")
CLIENTS = os.path.join(ROOT, "clients")
PROOF = os.path.join(_HERE, "authoring", "proofs")  # imported by proofs; only `tmkb prove` runs it

ALIASES: dict[str, str] = {}  # a folder → its name in messages, if its path says nothing to users


def is_installed(path: str) -> bool:
    """Return whether ``path`` is in the data of an installed package, which has fewer files than a checkout."""
    return os.path.abspath(path).startswith(DATA + os.sep)


def meta_schemas() -> dict[str, str]:
    """Return the meta-schema file of each kind of file; of the settings of a provider under `providers/NAME`."""
    import glob

    files = {}
    for folder, form in ((os.path.join(SCHEMAS, "meta"), "**/*.yaml"), (CONFORMANCE, "*.schema.yaml")):
        for name in glob.glob(form, root_dir=folder, recursive=True):
            kind = name.removesuffix(".yaml").removesuffix(".schema").replace(os.sep, "/")
            files[kind] = os.path.join(folder, name)
    return dict(sorted(files.items()))


def shown(path: str) -> str:
    """Return ``path`` for messages: relative if it is below the current folder, and with the aliases of folders."""
    for folder, alias in ALIASES.items():
        if path == folder or path.startswith(os.path.join(folder, "")):
            return alias + path[len(folder) :]
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # Windows: another drive; or the current folder was deleted
        return path
    is_in_root = os.path.join(os.sep, relative) == path  # where a relative path would only lack the first character
    return path if relative.startswith("..") or is_in_root else relative


def is_below(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it, with all links resolved."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))


def current() -> str | None:
    """Return the current folder; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def absolute(path: str) -> str:
    """Return the absolute ``path``; unchanged if the current folder was deleted."""
    return path if current() is None else os.path.abspath(path)


def named(flags: Sequence[str] | None, variable: str) -> list[str]:
    """Return the folders from ``flags``, else from the environment ``variable``; an empty list if both are empty."""
    return list(flags or [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder])

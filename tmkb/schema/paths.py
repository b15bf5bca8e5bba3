"""Where the data is: beside this file in an installed package, at the top of a checkout, or where a user says."""

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
PROOF = os.path.join(_HERE, "authoring", "proofs")  # what proofs stand on; read as text by all but `tmkb prove`


def meta_schemas() -> dict[str, str]:
    """Kind of file → the file that says what it may hold; `providers/NAME` → the same of the settings of a provider."""
    import glob

    found = {}
    for folder, form in ((os.path.join(SCHEMAS, "meta"), "**/*.yaml"), (CONFORMANCE, "*.schema.yaml")):
        for name in glob.glob(form, root_dir=folder, recursive=True):
            kind = name.removesuffix(".yaml").removesuffix(".schema").replace(os.sep, "/")
            found[kind] = os.path.join(folder, name)
    return dict(sorted(found.items()))


def shown(path: str) -> str:
    """``path`` as a person would write it: relative when it lies below the current folder."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # Windows: another drive; or the current folder has been deleted
        return path
    return path if relative.startswith("..") else relative


def current() -> str | None:
    """The current folder; None where it has been deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def absolute(path: str) -> str:
    """``path`` seen from the root; as it is where the current folder has been deleted, as nothing is there then."""
    return path if current() is None else os.path.abspath(path)


def named(flags: Sequence[str] | None, variable: str) -> list[str]:
    """The folders that are named by ``flags``, else by the environment ``variable``; none where neither names any."""
    return list(flags or [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder])

"""Folders of patterns → the patterns that can be served, and what is wrong with the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tmkb.errors import Problem
from tmkb.knowledge import pattern
from tmkb.knowledge.pattern import Found, Pattern
from tmkb.schema import paths

PACKAGED = "packaged"  # the word that names the packaged folder


class Library:
    """`patterns` in the order of their ids, `problems` of what was left out, folders that were `missing` or `empty`."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.closed: list[Problem] = []
        self.missing: list[str] = []
        self.empty: list[str] = []

    @property
    def patterns(self) -> list[Pattern]:
        """The patterns that can be served, by id."""
        return sorted((f.pattern for f in self.found if f.pattern is not None), key=lambda p: p["id"])

    @property
    def problems(self) -> list[Problem]:
        """Everything that is wrong with what was found."""
        return self.closed + [problem for found in self.found for problem in found.problems]


def folders(named: Sequence[str] | None) -> list[str]:
    """The paths of the folders that are ``named``; the word "packaged", or no name at all, means the packaged one."""
    return [paths.PATTERNS if folder == PACKAGED else paths.absolute(folder) for folder in named or [PACKAGED]]


def load(named: Sequence[str] | None) -> Library:
    """Read every pattern of the folders that are ``named``, in their order.

    Of two patterns with one id the later is left out. Nothing is raised: one broken pattern must not silence the rest.
    """
    library = Library()
    by_id: dict[str, Found] = {}
    for folder, path in zip(named or [PACKAGED], folders(named), strict=True):
        name = folder if folder == PACKAGED else paths.shown(path)
        if not os.path.isdir(path):
            library.missing.append(name)
            continue
        try:
            found = [pattern.read(inside) for inside in _inside(path)]
        except OSError as error:
            library.closed.append(
                Problem("no_entry", paths.shown(path), folder=paths.shown(path), reason=error.strerror)
            )
            continue
        if not found:
            library.empty.append(name)
        for each in found:
            _refuse_twin(each, by_id)
        library.found += found
    return library


def collections(library: Library) -> dict[str, list[Found]]:
    """Folder → all that is found right below it, also what was not asked for, where something in it was."""
    asked = {found.folder: found for found in library.found}
    return {
        parent: [asked.get(path) or pattern.read(path) for path in _below(parent)]
        for parent in sorted({os.path.dirname(folder) for folder in asked})
    }


def _inside(folder: str) -> list[str]:
    """The pattern folders of ``folder``: itself, or those right below it."""
    return [folder] if os.path.lexists(os.path.join(folder, "pattern.yaml")) else _below(folder)


def _below(folder: str) -> list[str]:
    """The pattern folders right below ``folder``, sorted; names that begin with _ are passed over.

    A pattern.yaml that is no regular file counts, so that reading it reports that.
    """
    names = sorted(name for name in os.listdir(folder) if not name.startswith("_"))
    return [os.path.join(folder, n) for n in names if os.path.lexists(os.path.join(folder, n, "pattern.yaml"))]


def _refuse_twin(found: Found, by_id: dict[str, Found]) -> None:
    if found.pattern is None or found.document is None:
        return
    id_ = found.pattern["id"]
    other = by_id.setdefault(id_, found)
    if other is not found:
        found.problems.append(found.document.problem("twice", ("id",), id=id_, other=other.file))
        found.pattern = None

"""Load patterns from folders, and report problems of those that cannot be served."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tmkb.errors import Problem
from tmkb.knowledge import house, pattern
from tmkb.knowledge.house import House
from tmkb.knowledge.pattern import Pattern, PatternFolder
from tmkb.schema import packed, paths

PACKAGED = "packaged"  # the name of the packaged folder


@dataclass(slots=True)
class Library:
    """Loaded patterns. `missing` and `empty` are folders that do not exist or contain no patterns.

    `unreadable` are problems of folders and of changes to patterns.
    """

    folders: list[PatternFolder] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    @property
    def patterns(self) -> list[Pattern]:
        """The patterns that can be served, sorted by id."""
        return sorted((f.pattern for f in self.folders if f.pattern is not None), key=lambda p: p["id"])

    @property
    def absent(self) -> list[Problem]:
        """Problems of the folders in `missing` and `empty`."""
        missing = [Problem("no_folder", folder, 0, 0, path=folder) for folder in self.missing]
        return [*missing, *(Problem("nothing_found", folder) for folder in self.empty)]

    @property
    def problems(self) -> list[Problem]:
        """All problems of the folders and their patterns."""
        return self.unreadable + [problem for folder in self.folders for problem in folder.problems]


def resolve(names: Sequence[str] | None) -> list[str]:
    """Return the paths of folders; "packaged", or no names at all, stands for the packaged one."""
    return [paths.PATTERNS if name == PACKAGED else paths.absolute(name) for name in names or [PACKAGED]]


def load(names: Sequence[str] | None) -> Library:
    """Read all patterns of the folders ``names``, in order. See `resolve`.

    Of two patterns with the same id, the later one is left out. Nothing is raised: one broken pattern must not hide the
    others. Then the changes of organizations are applied to all patterns.
    """
    library = Library()
    houses: list[House] = []
    by_id: dict[str, PatternFolder] = {}
    for name, path in zip(names or [PACKAGED], resolve(names), strict=True):
        shown = paths.shown(path)
        if not packed.is_folder(path):
            library.missing.append(name if name == PACKAGED else shown)
            continue
        try:
            found = [pattern.read(folder) for folder in pattern_folders(path)]
        except OSError as error:
            library.unreadable.append(Problem("no_entry", shown, folder=shown, reason=error.strerror))
            continue
        changes, problems = house.read(path)
        library.unreadable += problems
        houses += [changes] if changes else []
        if not found and not house.exists(path):
            library.empty.append(name if name == PACKAGED else shown)
        for folder in found:
            _check_id(folder, by_id)
        library.folders += found
    for each in houses:
        library.unreadable += _change(each, by_id)
    return library


def collections(library: Library) -> dict[str, list[PatternFolder]]:
    """Return the patterns of each parent folder, including those that were not loaded into ``library``."""
    loaded = {folder.path: folder for folder in library.folders}
    return {
        parent: [loaded.get(path) or pattern.read(path) for path in _children(parent)]
        for parent in sorted({os.path.dirname(path) for path in loaded})
    }


def pattern_folders(path: str) -> list[str]:
    """Return the pattern folders of the folder ``path``, on disk or packed: itself, or those in it. Raises OSError."""
    return [path] if packed.exists(os.path.join(path, "pattern.yaml")) else _children(path)


def _children(path: str) -> list[str]:
    """Return the pattern folders directly inside ``path``, sorted, without names that begin with _.

    A pattern.yaml that is not a regular file counts, so that reading it reports the problem.
    """
    folders = [os.path.join(path, name) for name in packed.names(path) if not name.startswith("_")]
    return [folder for folder in folders if packed.exists(os.path.join(folder, "pattern.yaml"))]


def _change(changes: House, by_id: Mapping[str, PatternFolder]) -> list[Problem]:
    """Change the patterns in ``by_id``. Report ids that neither it nor the packaged folder has."""
    for id_, change in changes.changes.items():
        folder = by_id.get(id_)
        if folder is None or folder.pattern is None:
            continue
        house.apply(change, folder.pattern)
        if change.get("hidden"):
            folder.pattern = None
    packaged = {os.path.basename(path).upper().replace("_", "-") for path in _children(paths.PATTERNS)}
    return [*changes.unknown({*by_id, *packaged})]


def _check_id(folder: PatternFolder, by_id: dict[str, PatternFolder]) -> None:
    """Leave out a pattern whose id is already in ``by_id``."""
    if folder.pattern is None or folder.document is None:
        return
    id_ = folder.pattern["id"]
    other = by_id.setdefault(id_, folder)
    if other is not folder:
        folder.problems.append(folder.document.problem("twice", ("id",), id=id_, other=other.file))
        folder.pattern = None

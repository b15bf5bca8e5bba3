"""The documents of a search path of schema folders, read and resolved. The layout of a folder is the registry.

A file in a user's folder replaces the packaged one of the same path, or, with ``extends: packaged``, is merged into it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from tmkb import document, metaschema, paths
from tmkb.document import Document
from tmkb.errors import DocumentError, Problem
from tmkb.spec import resolve

# Where a file may lie below a schemas folder (without its suffix) → the kind it is of.
PLACES = {
    "errors": "errors",
    "limits": "limits",
    "log": "log",
    "protocol/*": "revision",
    "lifecycle/*": "lifecycle",
    "servers/*/server": "server",
    "servers/*/errors": "errors",
    "servers/*/tools/*": "tool",
    "servers/*/prompts/*": "prompt",
    "servers/*/resources/*": "resource",
}


class Schemas:
    """`layers` as they were read (lowest first), `documents` resolved, both by place; `problems` with any of them."""

    def __init__(self) -> None:
        self.layers: dict[str, list[Document]] = {}
        self.documents: dict[str, Document] = {}
        self.problems: list[Problem] = []

    def error_table(self, server: str, revision: str) -> Document:
        """The errors a peer of ``server`` can meet under ``revision``: the general, the revision's, the server's."""
        of_revision = self.documents[f"protocol/{revision}"].part(("errors",)).under("errors")
        place = f"servers/{server}/errors"
        if place not in self.layers:
            return of_revision
        return resolve.resolve(place, self.layers, of_revision, []) or of_revision


def read(folders: Sequence[str], servers: Sequence[str] | None = None) -> Schemas:
    """Read and resolve every document on the path ``folders`` + packaged; of servers only ``servers``, if given.

    Nothing is raised: problems are in the result. Files that cannot be read stop before anything is resolved.
    """
    schemas = Schemas()
    _read(schemas, folders, servers)
    if not schemas.problems:
        for place in schemas.layers:  # sorted: the general tables come before those who build on them
            resolved = resolve.resolve(place, schemas.layers, _base(schemas, place), schemas.problems)
            if resolved is not None:
                schemas.documents[place] = resolved
    return schemas


def kind(place: str) -> str | None:
    """The kind of file that lies at ``place``; None where no file has a place."""
    parts = place.split("/")
    for form, found in PLACES.items():
        wanted = form.split("/")
        if len(parts) == len(wanted) and all(w in ("*", part) for part, w in zip(parts, wanted, strict=True)):
            return found
    return None


def name(place: str) -> str:
    """What a file at ``place`` is called: its own name, or for a server that of its folder."""
    parts = place.split("/")
    return parts[-2] if parts[-1] == "server" else parts[-1]


def servers(folders: Sequence[str]) -> list[str]:
    """The names of the servers on the path, sorted."""
    return sorted({name(place) for place in _places(folders) if kind(place) == "server"})


def _base(schemas: Schemas, place: str) -> Document | None:
    """What every file of this kind builds on."""
    log, limits, errors = (schemas.documents.get(general) for general in ("log", "limits", "errors"))
    if kind(place) == "server" and log and limits:
        return resolve.merge(limits.part(("limits",)).under("limits"), log.part(("lines",)).under("log"), [])
    if kind(place) == "tool" and log:
        return log.part(("lines", "called")).under("log")
    if place != "errors" and kind(place) in ("revision", "errors") and errors:
        return errors.part(("errors",)).under("errors")
    return None


def _read(schemas: Schemas, folders: Sequence[str], servers: Sequence[str] | None) -> None:
    found: dict[str, list[str]] = {}
    for folder in (*folders, paths.SCHEMAS):
        if not os.path.isdir(folder):
            schemas.problems.append(Problem("not_a_folder", paths.shown(folder), folder=paths.shown(folder)))
        for place, file in _files(folder, schemas.problems):
            if kind(place) is None:
                if folder != paths.SCHEMAS:  # the packaged folder also holds meta-schemas and problems.yaml
                    hint = metaschema.near(place, _places([])) | {"known": ", ".join(PLACES)}
                    schemas.problems.append(Problem("misplaced", paths.shown(file), path=place, **hint))
            elif servers is None or not place.startswith("servers/") or place.split("/")[1] in servers:
                found.setdefault(place, []).append(file)
    for place in sorted(found):
        if layers := list(_down(place, found[place], schemas.problems)):
            schemas.layers[place] = layers[::-1]


def _down(place: str, files: list[str], problems: list[Problem]) -> Iterator[Document]:
    """The documents of one place from the top file down, as long as each extends what lies under it."""
    for index, file in enumerate(files):
        try:
            doc = document.read(file, paths.shown(file))
        except DocumentError as error:
            problems.extend(error.problems)
            return
        yield doc
        if doc.mapping().get("extends") != "packaged":
            return
        if index + 1 == len(files):
            nearest = metaschema.nearest(place, _places([]))
            problems.append(doc.problem("nothing_to_extend", ("extends",), path=place, nearest=nearest))


def _places(folders: Sequence[str]) -> list[str]:
    found = {place for folder in (*folders, paths.SCHEMAS) for place, _ in _files(folder, [])}
    return sorted(place for place in found if kind(place))


def _files(folder: str, problems: list[Problem]) -> list[tuple[str, str]]:
    """(place, file) of every document below ``folder``, sorted; a place is the path in it without the suffix."""

    def note(error: OSError) -> None:
        shown = paths.shown(str(error.filename))
        if not isinstance(error, FileNotFoundError):
            problems.append(Problem("no_entry", shown, folder=shown, reason=error.strerror))

    found = []
    for root, _, files in os.walk(folder, onerror=note):
        for file in files:
            stem, suffix = os.path.splitext(os.path.join(root, file))
            if suffix in document.SUFFIXES:
                found.append((os.path.relpath(stem, folder).replace(os.sep, "/"), os.path.join(root, file)))
    return sorted(found)

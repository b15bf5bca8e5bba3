"""The documents of a search path of schema folders, read and resolved. The layout of a folder is the registry.

A file in a user's folder replaces the packaged one of the same path, or, with ``extends: packaged``, is merged into it.
A server that extends another has the files of that one too; one of its own at the same path replaces it, or, with
``extends``, is merged into it.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import merge, metaschema, paths, reader
from tmkb.schema.reader import Document
from tmkb.schema.values import JsonValue

_PACKAGED = "packaged"  # the word that means the file underneath

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
    "servers/*/services/*": "service",
}
# Where documents stand that no file is: a server's own view of a revision.
DERIVED = {"servers/*/protocol/*": "revision"}


class Schemas:
    """`layers` as they were read (lowest first), `documents` resolved, both by place; `problems` with any of them.

    `places` are all that have a file, read or not; `inherited` those that have none of their own; `replaced` those
    whose file stands alone although another lies under it, with a name for that one. `warnings` name files that are not
    read, and what is most likely a mistake, but can be served. `offered`: server → the names that the code offers to
    it, where it names classes as providers.
    """

    def __init__(self) -> None:
        self.places: list[str] = []
        self.inherited: set[str] = set()
        self.layers: dict[str, list[Document]] = {}
        self.offered: dict[str, metaschema.Names] = {}
        self.documents: dict[str, Document] = {}
        self.problems: list[Problem] = []
        self.replaced: dict[str, str] = {}
        self.warnings: list[Problem] = []
        self._packaged: dict[str, Document] = {}

    def packaged(self, place: str) -> Document:
        """Return the packaged file at ``place``, which is read once."""
        if place not in self._packaged:
            self._packaged[place] = reader.read(os.path.join(paths.SCHEMAS, f"{place}.yaml"))
        return self._packaged[place]

    def revision(self, server: str, name: str) -> Document:
        """The revision ``name`` as ``server`` has it."""
        return self.documents.get(f"servers/{server}/protocol/{name}") or self.documents[f"protocol/{name}"]

    def error_table(self, server: str, revision: str) -> Document:
        """The errors a peer of ``server`` can meet under ``revision``: the general, the revision's, the server's."""
        of_revision = self.revision(server, revision).part(("errors",)).under("errors")
        place = f"servers/{server}/errors"
        if place not in self.layers:
            return of_revision
        return merge.resolve(server, self.neighbours(place), of_revision, []) or of_revision

    def neighbours(self, place: str) -> Mapping[str, Sequence[Document]]:
        """What a file at ``place`` can extend, by the name that it says: the file there of another server, or the
        others of its folder."""
        before, _, after = _around(place)
        found = {each: _around(each) for each in {*self.places, *self.layers}}
        return {name: self.layers.get(each, []) for each, (b, name, a) in found.items() if (b, a) == (before, after)}


def read(folders: Sequence[str], servers: Sequence[str] | None = None) -> Schemas:
    """Read and resolve every document on the path ``folders`` + packaged; of servers only ``servers``, if given, and
    those that they extend.

    Nothing is raised: problems are in the result. Files that cannot be read stop before anything is resolved.
    """
    schemas = Schemas()
    _read(schemas, folders, servers)
    if not schemas.problems:
        _inherit(schemas)
    if not schemas.problems:
        for place in schemas.layers:  # sorted: the general tables come before those who build on them
            neighbours = schemas.neighbours(place)
            resolved = merge.resolve(_around(place)[1], neighbours, base(schemas, place), schemas.problems)
            if resolved is not None:
                schemas.documents[place] = resolved
    return schemas


@cache
def kind(place: str) -> str | None:
    """The kind of document that stands at ``place``; None where none has a place."""
    return _kind(place, PLACES) or _kind(place, DERIVED)


def _kind(place: str, forms: Mapping[str, str]) -> str | None:
    parts = place.split("/")
    for form, found in forms.items():
        wanted = form.split("/")
        if len(parts) == len(wanted) and all(w in ("*", part) for part, w in zip(parts, wanted, strict=True)):
            return found
    return None


def name(place: str) -> str:
    """What a file at ``place`` is called: its own name, or for a server that of its folder."""
    parts = place.split("/")
    return parts[-2] if parts[-1] == "server" else parts[-1]


def places(folders: Sequence[str]) -> list[str]:
    """The places that have a file on the path, sorted."""
    found = {place for folder in (*folders, paths.SCHEMAS) for place, _ in _files(folder, [])}
    return sorted(place for place in found if kind(place))


def servers(folders: Sequence[str]) -> list[str]:
    """The names of the servers on the path, sorted."""
    return sorted({name(place) for place in places(folders) if kind(place) == "server"})


def base(schemas: Schemas, place: str) -> Document | None:
    """What every document of this kind builds on."""
    if kind(place) == "server":
        limits, lines = _table(schemas, "limits", "limits"), _table(schemas, "log", "lines")
        return merge.merge(limits.under("limits"), lines.under("log"), [])
    if kind(place) == "tool":
        return _table(schemas, "log", "lines", "called").under("log")
    if place != "errors" and kind(place) in ("revision", "errors"):
        return _table(schemas, "errors", "errors").under("errors")
    return None


def _table(schemas: Schemas, place: str, *path: str) -> Document:
    """Return the map at ``path`` of a general file.

    The packaged one replaces a value that is missing or no map: the check reports it where it stands.
    """
    doc = schemas.documents.get(place)
    value: Any = doc.value if doc else None
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if doc is None or not isinstance(value, dict):
        doc = schemas.packaged(place)
    return doc.part(path)


@cache
def _around(place: str) -> tuple[str, str, str]:
    """What stands before the name that neighbours call ``place`` by, that name, and what stands behind it."""
    if place.startswith("servers/"):
        server, slash, rest = place.removeprefix("servers/").partition("/")
        return "servers/", server, slash + rest
    folder, slash, file = place.rpartition("/")
    return folder + slash, file, ""


def _read(schemas: Schemas, folders: Sequence[str], servers: Sequence[str] | None) -> None:
    found = _found(folders, schemas.problems, schemas.warnings)
    schemas.places = sorted(found)
    known = [_server(place) for place in schemas.places if kind(place) == "server"]
    for place in schemas.places:
        if (server := _server(place)) not in ("", *known):
            hint = metaschema.near(server, known)
            schemas.problems.append(
                Problem("unknown_name", paths.shown(found[place][0]), kind="server", name=server, **hint)
            )
    wanted = ["", *(servers if servers is not None else {_server(place): None for place in schemas.places})]
    for server in wanted:  # which grows while it is gone through
        for place in [place for place in schemas.places if _server(place) == server]:
            if layers := list(_down(found[place], schemas.problems)):
                schemas.layers[place] = layers[::-1]
                if len(layers) < len(found[place]):
                    schemas.replaced[place] = "the packaged one"
            parent = _extends(layers[-1:])
            if server and parent not in (None, _PACKAGED, *wanted):
                wanted.append(str(parent))


def _found(folders: Sequence[str], problems: list[Problem], warnings: list[Problem]) -> dict[str, list[str]]:
    """Return for each place its files on the path, the top one first."""
    found: dict[str, list[str]] = {}
    packaged = dict(_files(paths.SCHEMAS, []))
    for folder in (*folders, paths.SCHEMAS):
        if not os.path.isdir(folder):
            problems.append(Problem("not_a_folder", paths.shown(folder), folder=paths.shown(folder)))
            continue
        for place, file in _files(folder, problems, warnings):
            if _kind(place, PLACES) is not None:
                above = found.setdefault(place, [])
                if above and os.path.dirname(above[-1]) == os.path.dirname(file) and above[-1] != file:
                    problems.append(Problem("same_place", paths.shown(file), other=paths.shown(above[-1])))
                above.append(file)
            elif place in packaged:  # meta-schemas, problems.yaml and the like, also in a copy of the packaged folder
                if not filecmp.cmp(file, packaged[place], shallow=False):
                    warnings.append(Problem("ignored_copy", paths.shown(file), path=place))
            else:
                known = ", ".join(PLACES)
                problems.append(Problem("misplaced", paths.shown(file), path=place, nearest=_meant(place), known=known))
    return found


def _meant(place: str) -> str:
    """Where a file at ``place``, which is none, was most likely meant to lie: deeper, less deep, or spelt otherwise."""
    parts = place.split("/")
    for meant in ("/".join(["servers", "NAME", *parts]), *("/".join(parts[depth:]) for depth in range(1, len(parts)))):
        if kind(meant):
            return meant
    forms = [form.split("/") for form in PLACES if form.count("/") == place.count("/")]
    alike = ["/".join(part if word == "*" else word for word, part in zip(form, parts, strict=True)) for form in forms]
    return metaschema.nearest(place, alike)


def _down(files: list[str], problems: list[Problem]) -> Iterator[Document]:
    """The documents of one place from the top file down, as long as each extends what lies under it."""
    for file in files:
        try:
            doc = reader.read(file, paths.shown(file))
        except DocumentError as error:
            problems.extend(error.problems)
            return
        if fault := metaschema.not_a_map(doc):
            problems.append(fault)
            return
        yield doc
        if _extends([doc]) != _PACKAGED:
            return


def _inherit(schemas: Schemas) -> None:
    """Give each server what those have that it extends, and find layers that lie on nothing."""
    for server in [name(place) for place in schemas.layers if kind(place) == "server"]:
        for parent in _ancestors(schemas.layers, server):
            for theirs in [place for place in schemas.layers if _server(place) == parent and kind(place) != "server"]:
                mine = f"servers/{server}{_around(theirs)[2]}"
                _inherit_file(schemas, mine, theirs)
    schemas.layers = dict(sorted(schemas.layers.items()))
    for place, layers in schemas.layers.items():
        if _extends(layers) == _PACKAGED and place not in schemas.inherited:
            nearest = metaschema.nearest(place, places([]))
            schemas.problems.append(layers[0].problem("nothing_to_extend", ("extends",), path=place, nearest=nearest))


def _inherit_file(schemas: Schemas, mine: str, theirs: str) -> None:
    """Put the file of a parent at ``theirs`` under that of a server at ``mine``, as far as that one wants it."""
    own = schemas.layers.get(mine)
    if own is None:
        schemas.inherited.add(mine)
        schemas.layers[mine] = schemas.layers[theirs]
        if theirs in schemas.replaced:
            schemas.replaced[mine] = schemas.replaced[theirs]
    elif _extends(own) == _PACKAGED:
        schemas.layers[mine] = [*schemas.layers[theirs], *own]
    elif _extends(own) is None:
        schemas.replaced.setdefault(mine, f"that of the server {_server(theirs)}")


def _ancestors(layers: Mapping[str, Sequence[Document]], server: str) -> list[str]:
    """The servers that ``server`` extends, the nearest first, as far as they are there."""
    line = [server]
    while True:
        parent = _extends(layers[f"servers/{line[-1]}/server"])
        if not isinstance(parent, str) or parent in line or f"servers/{parent}/server" not in layers:
            return line[1:]
        line.append(parent)


def _extends(layers: Sequence[Document]) -> JsonValue:
    """What the lowest of ``layers`` says that it extends."""
    return layers[0].mapping().get("extends") if layers else None


def _server(place: str) -> str:
    """The server that a file at ``place`` belongs to; an empty text where it is for all."""
    return _around(place)[1] if place.startswith("servers/") else ""


def _files(folder: str, problems: list[Problem], warnings: list[Problem] | None = None) -> list[tuple[str, str]]:
    """(place, file) of every document below ``folder``, sorted; a place is the path in it without the suffix.

    A file such as ``errors.yaml.txt`` is a warning: some editors add a suffix that their user does not see.

    What is hidden is none of ours: editors leave locks and copies beside a file that is open.
    """

    def note(error: OSError) -> None:
        shown = paths.shown(str(error.filename))
        if not isinstance(error, FileNotFoundError):
            problems.append(Problem("no_entry", shown, folder=shown, reason=error.strerror))

    found = []
    for root, inside, files in os.walk(folder, onerror=note):
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in inside:
            if name.endswith(reader.SUFFIXES):
                shown = paths.shown(os.path.join(root, name))
                problems.append(Problem("not_regular", shown, kind="folder"))
        for file in files:
            stem, suffix = os.path.splitext(os.path.join(root, file))
            if file.startswith("."):
                continue
            if suffix == ".txt" and stem.endswith(reader.SUFFIXES) and warnings is not None:
                shown = paths.shown(os.path.join(root, file))
                warnings.append(Problem("ignored_file", shown, nearest_name=os.path.basename(stem)))
            if suffix in reader.SUFFIXES:
                found.append((os.path.relpath(stem, folder).replace(os.sep, "/"), os.path.join(root, file)))
    return sorted(found)

"""Find, read and resolve the documents on a search path of schema folders. A file's path decides its kind.

A file in a user's folder replaces the packaged file of the same path; with ``extends: packaged`` it is merged into it.
A server that extends another inherits its files. Its own file at the same path replaces the inherited one, or with
``extends`` is merged into it.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import answer_files, merge, metaschema, paths, reader
from tmkb.schema.reader import Document
from tmkb.schema.values import JsonValue

_PACKAGED = "packaged"  # the value of `extends` for the file of the same path in the next folder

# Path below a schemas folder, without suffix → kind of file.
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
_EDITOR = "editor/"  # where `tmkb schema export` may have written schemas for editors, of any version
_OTHER_SUFFIXES = ("", ".toml", ".jsonc", ".json5")  # of files that an author may take for schemas
# Places of documents without a file: a revision as one server amends it.
DERIVED = {"servers/*/protocol/*": "revision"}


@dataclass
class Schemas:
    """All documents on a search path, by place: a path below a schemas folder, without suffix."""

    places: list[str] = field(default_factory=list)  # with a file, read or not
    layers: dict[str, list[Document]] = field(default_factory=dict)  # as read, lowest first
    documents: dict[str, Document] = field(default_factory=dict)  # resolved
    inherited: set[str] = field(default_factory=set)  # places whose file is inherited
    replaced: dict[str, str] = field(default_factory=dict)  # place of a file that replaces another → what it replaces
    offered: dict[str, metaschema.Names] = field(default_factory=dict)  # server with own classes → names it can use
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)  # ignored files, and likely mistakes that can be served
    _packaged: dict[str, Document] = field(default_factory=dict)

    def packaged(self, place: str) -> Document:
        """Return the packaged file at ``place``; it is read once."""
        if place not in self._packaged:
            self._packaged[place] = reader.read(os.path.join(paths.SCHEMAS, f"{place}.yaml"))
        return self._packaged[place]

    def revision(self, server: str, name: str) -> Document:
        """Return the revision ``name``, as ``server`` amends it."""
        return self.documents.get(f"servers/{server}/protocol/{name}") or self.documents[f"protocol/{name}"]

    def error_table(self, server: str, revision: str) -> Document:
        """Return the error table of ``server`` under ``revision``: the general one, the revision's, the server's."""
        of_revision = self.revision(server, revision).part(("errors",)).under("errors")
        place = f"servers/{server}/errors"
        if place not in self.layers:
            return of_revision
        return merge.resolve(server, self.neighbours(place), of_revision, []) or of_revision

    def neighbours(self, place: str) -> Mapping[str, Sequence[Document]]:
        """Return the layers of every file that ``place`` can extend, by name.

        These are the same file of other servers, or the other files of its folder.
        """
        before, _, after = _split(place)
        parts = {each: _split(each) for each in {*self.places, *self.layers}}
        return {name: self.layers.get(each, []) for each, (b, name, a) in parts.items() if (b, a) == (before, after)}


def read(folders: Sequence[str], servers: Sequence[str] | None = None) -> Schemas:
    """Read and resolve every document in ``folders`` and the packaged folder. Problems are in the result.

    ``servers``: read only these servers and those that they extend (default: all). Nothing is resolved if a file
    cannot be read.
    """
    schemas = Schemas()
    _read(schemas, folders, servers)
    if not schemas.problems:
        _inherit(schemas)
    if not schemas.problems:
        for place in schemas.layers:  # sorted: general tables come before the tables based on them
            neighbours = schemas.neighbours(place)
            resolved = merge.resolve(_split(place)[1], neighbours, base(schemas, place), schemas.problems)
            if resolved is not None:
                schemas.documents[place] = resolved
    return schemas


@cache
def kind(place: str) -> str | None:
    """Return the kind of document at ``place``; None if it is not a valid place."""
    return _kind(place, PLACES) or _kind(place, DERIVED)


def _kind(place: str, forms: Mapping[str, str]) -> str | None:
    parts = place.split("/")
    for form, kind_ in forms.items():
        steps = form.split("/")
        if len(parts) == len(steps) and all(step in ("*", part) for part, step in zip(parts, steps, strict=True)):
            return kind_
    return None


def name(place: str) -> str:
    """Return the name of the file at ``place``; for a server, of its folder."""
    parts = place.split("/")
    return parts[-2] if parts[-1] == "server" else parts[-1]


def places(folders: Sequence[str]) -> list[str]:
    """Return the places with a file in ``folders`` or the packaged folder, sorted."""
    all_places = {place for folder in (*folders, paths.SCHEMAS) for place, _ in _files(folder, [])}
    return sorted(place for place in all_places if kind(place))


def servers(folders: Sequence[str]) -> list[str]:
    """Return the names of the servers in ``folders`` and the packaged folder, sorted."""
    return sorted({name(place) for place in places(folders) if kind(place) == "server"})


def base(schemas: Schemas, place: str) -> Document | None:
    """Return the document that every document of this kind extends implicitly; None if there is none."""
    if kind(place) == "server":
        limits, lines = _table(schemas, "limits", "limits"), _table(schemas, "log", "lines")
        return merge.merge(limits.under("limits"), lines.under("log"), [])
    if kind(place) == "tool":
        return _table(schemas, "log", "lines", "called").under("log")
    if place != "errors" and kind(place) in ("revision", "errors"):
        return _table(schemas, "errors", "errors").under("errors")
    return None


def _table(schemas: Schemas, place: str, *path: str) -> Document:
    """Return the map at ``path`` of a general file; of the packaged one if it is missing or not a map.

    The check reports it.
    """
    doc = schemas.documents.get(place)
    value: Any = doc.value if doc else None
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if doc is None or not isinstance(value, dict):
        doc = schemas.packaged(place)
    return doc.part(path)


@cache
def _split(place: str) -> tuple[str, str, str]:
    """Return what comes before the name in ``place``, the name in `extends`, and what comes after it."""
    if place.startswith("servers/"):
        server, slash, rest = place.removeprefix("servers/").partition("/")
        return "servers/", server, slash + rest
    folder, slash, file = place.rpartition("/")
    return folder + slash, file, ""


def _read(schemas: Schemas, folders: Sequence[str], servers: Sequence[str] | None) -> None:
    files = _by_place(folders, schemas.problems, schemas.warnings)
    schemas.places = sorted(files)
    known = [_server(place) for place in schemas.places if kind(place) == "server"]
    for place in schemas.places:
        if (server := _server(place)) not in ("", *known):
            hint = metaschema.near(server, known)
            schemas.problems.append(
                Problem("unknown_name", paths.shown(files[place][0]), kind="server", name=server, **hint)
            )
    pending = ["", *(servers if servers is not None else {_server(place): None for place in schemas.places})]
    for server in pending:  # the loop appends the servers that these extend
        for place in [place for place in schemas.places if _server(place) == server]:
            if layers := list(_layers(files[place], schemas.problems)):
                schemas.layers[place] = layers[::-1]
                if len(layers) < len(files[place]):
                    schemas.replaced[place] = "the packaged file"
            parent = _extends(layers[-1:])
            if server and parent not in (None, _PACKAGED, *pending):
                pending.append(str(parent))


def _by_place(folders: Sequence[str], problems: list[Problem], warnings: list[Problem]) -> dict[str, list[str]]:
    """Return the files of each place, topmost first."""
    files: dict[str, list[str]] = {}
    packaged = dict(_files(paths.SCHEMAS, []))
    for folder in (*folders, paths.SCHEMAS):
        if not os.path.isdir(folder):
            rule, shown = "a_file" if os.path.exists(folder) else "not_a_folder", paths.shown(folder)
            problems.append(Problem(rule, shown, 0, 0, folder=shown))
            continue
        for place, file in _files(folder, problems, warnings):
            if _kind(place, PLACES) is not None:
                above = files.setdefault(place, [])
                if above and os.path.dirname(above[-1]) == os.path.dirname(file) and above[-1] != file:
                    problems.append(Problem("same_place", paths.shown(file), other=paths.shown(above[-1])))
                above.append(file)
            elif not place.startswith(_EDITOR):
                _report_stray(place, file, packaged, problems, warnings)
    return files


def _report_stray(
    place: str, file: str, packaged: Mapping[str, str], problems: list[Problem], warnings: list[Problem]
) -> None:
    """Report a file that is no schema, unless it is an unchanged copy of a packaged one."""
    if place not in packaged:
        known = ", ".join(PLACES)
        problems.append(Problem("misplaced", paths.shown(file), path=place, nearest=_nearest_place(place), known=known))
    elif not filecmp.cmp(file, packaged[place], shallow=False):  # such as a meta-schema, in a copy of the whole folder
        warnings.append(Problem("ignored_copy", paths.shown(file), path=place))


def _nearest_place(place: str) -> str:
    """Return the most likely place for a file at ``place``: deeper, less deep, or with another spelling."""
    parts = place.split("/")
    shorter = ["/".join(parts[depth:]) for depth in range(1, len(parts))]
    for candidate in ("/".join(["servers", "NAME", *parts]), *shorter):
        if kind(candidate):
            return candidate
    forms = [form.split("/") for form in PLACES if form.count("/") == place.count("/")]
    alike = ["/".join(part if word == "*" else word for word, part in zip(form, parts, strict=True)) for form in forms]
    return metaschema.nearest(place, alike)


def _layers(files: list[str], problems: list[Problem]) -> Iterator[Document]:
    """Yield the documents of one place, topmost first, as long as each extends the next."""
    for file in files:
        try:
            doc = reader.read(file, paths.shown(file))
        except DocumentError as error:
            problems.extend(error.problems)
            return
        problems.extend(answer_files.insert(doc, file))
        if fault := metaschema.not_a_map(doc):
            problems.append(fault)
            return
        yield doc
        if _extends([doc]) != _PACKAGED:
            return


def _inherit(schemas: Schemas) -> None:
    """Add inherited files to each server, and report layers without a file to extend."""
    for server in [name(place) for place in schemas.layers if kind(place) == "server"]:
        for parent in _ancestors(schemas.layers, server):
            for place in [place for place in schemas.layers if _server(place) == parent and kind(place) != "server"]:
                _inherit_file(schemas, f"servers/{server}{_split(place)[2]}", place)
    schemas.layers = dict(sorted(schemas.layers.items()))
    for place, layers in schemas.layers.items():
        if _extends(layers) == _PACKAGED and place not in schemas.inherited:
            nearest = metaschema.nearest(place, places([]))
            schemas.problems.append(layers[0].problem("nothing_to_extend", ("extends",), path=place, nearest=nearest))


def _inherit_file(schemas: Schemas, place: str, inherited: str) -> None:
    """Inherit the file at ``inherited`` as ``place``, unless a file at ``place`` replaces it."""
    own = schemas.layers.get(place)
    if own is None:
        schemas.inherited.add(place)
        schemas.layers[place] = schemas.layers[inherited]
        if inherited in schemas.replaced:
            schemas.replaced[place] = schemas.replaced[inherited]
    elif _extends(own) == _PACKAGED:
        schemas.layers[place] = [*schemas.layers[inherited], *own]
    elif _extends(own) is None:
        schemas.replaced.setdefault(place, f"the file of the server {_server(inherited)}")


def _ancestors(layers: Mapping[str, Sequence[Document]], server: str) -> list[str]:
    """Return the servers that ``server`` extends, nearest first."""
    chain = [server]
    while True:
        parent = _extends(layers[f"servers/{chain[-1]}/server"])
        if not isinstance(parent, str) or parent in chain or f"servers/{parent}/server" not in layers:
            return chain[1:]
        chain.append(parent)


def _extends(layers: Sequence[Document]) -> JsonValue:
    """Return the `extends` of the lowest of ``layers``."""
    return layers[0].mapping().get("extends") if layers else None


def _server(place: str) -> str:
    """Return the server of the file at ``place``; an empty string if it applies to all."""
    return _split(place)[1] if place.startswith("servers/") else ""


def _files(folder: str, problems: list[Problem], warnings: list[Problem] | None = None) -> list[tuple[str, str]]:
    """Return (place, file) of every document below ``folder``, sorted.

    A file such as ``errors.yaml.txt`` is a warning: some editors add a suffix that their user does not see. So is a
    folder with a misspelled name. Hidden files are skipped: editors leave locks and copies beside an open file.
    """

    def report(error: OSError) -> None:
        shown = paths.shown(str(error.filename))
        if not isinstance(error, FileNotFoundError):
            problems.append(Problem("no_entry", shown, 0, 0, folder=shown, reason=error.strerror))

    documents = []
    for root, inside, files in os.walk(folder, onerror=report):
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in inside:
            if warnings is not None and (right := _right_folder(os.path.relpath(os.path.join(root, name), folder))):
                shown = paths.shown(os.path.join(root, name))
                warnings.append(Problem("ignored_folder", shown, 0, 0, name=name, nearest=right))
            if name.endswith(reader.SUFFIXES):
                shown = paths.shown(os.path.join(root, name))
                problems.append(Problem("not_regular", shown, 0, 0, kind="folder"))
        for file in files:
            stem, suffix = os.path.splitext(os.path.join(root, file))
            if file.startswith("."):
                continue
            if warnings is not None and (right := _right_name(os.path.relpath(stem, folder), suffix)):
                warnings.append(Problem("ignored_file", paths.shown(os.path.join(root, file)), nearest_name=right))
            if suffix in reader.SUFFIXES:
                documents.append((os.path.relpath(stem, folder).replace(os.sep, "/"), os.path.join(root, file)))
    return sorted(documents)


def _right_name(stem: str, suffix: str) -> str:
    """Return the name with which a file that is not read would be; an empty string if it is no schema."""
    if suffix == ".txt" and stem.endswith(reader.SUFFIXES):
        return os.path.basename(stem)
    if suffix.lower() in reader.SUFFIXES and suffix not in reader.SUFFIXES:
        return os.path.basename(stem) + suffix.lower()
    is_schema = suffix in _OTHER_SUFFIXES and _kind(stem.replace(os.sep, "/"), PLACES) is not None
    return f"{os.path.basename(stem)}.yaml" if is_schema else ""


def _right_folder(path: str) -> str:
    """Return the name that the last folder of ``path`` is most likely a misspelling of, or an empty string."""
    parts = path.split(os.sep)
    forms = [form.split("/") for form in PLACES if form.count("/") >= len(parts)]
    names = {
        form[len(parts) - 1]
        for form in forms
        if all(word in ("*", part) for word, part in zip(form, parts[:-1], strict=False))
    }
    return "" if not names or "*" in names or parts[-1] in names else metaschema.alike(parts[-1], sorted(names))

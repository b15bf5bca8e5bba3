"""The file of ``--config``: what whoever runs a server sets for it, and the folder of services that come and go."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import check, documents, expand, merge, metaschema, paths, reader
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document

_SETTINGS = ("capabilities", "limits", "providers")  # what of a server is set here


def _is_writable(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK)


def _is_plain(file: str) -> bool:
    return os.path.isfile(file) and not os.path.islink(file)


def _is_log(file: str) -> bool:
    """Whether lines can be added to a file, or it can be made."""
    if "\0" in file:
        return False
    if os.path.lexists(file):
        return _is_plain(file) and os.access(file, os.W_OK)
    return _is_writable(os.path.dirname(file))


# What has to be at a path, by the format that its schema names, and the problem where it is not.
_FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "path": (lambda path: "\0" not in path, "no_path"),  # that may come later
    "folder": (os.path.isdir, "no_folder"),
    "writable_folder": (lambda folder: _is_writable(folder) and not os.path.islink(folder), "no_writable_folder"),
    "plain_file": (_is_plain, "no_plain_file"),
    "log": (_is_log, "no_log"),
}


class Config:
    """A configuration that obeys its meta-schema, for one server. `left_out`: why services are not served."""

    def __init__(self, doc: Document, folder: str, server: str) -> None:
        """``folder``: what relative paths start from."""
        self.doc = doc
        self.folder = folder
        self.server = server
        self.left_out: list[Problem] = []

    @property
    def services(self) -> str | None:
        """The folder of services that come and go, if there is one."""
        folder = self.doc.mapping().get("services")
        return None if folder is None else os.path.join(self.folder, str(folder))

    def apply(self, found: Schemas, names: Names) -> None:
        """Merge the settings into the server, whose check will hold them against what is permitted."""
        place = f"servers/{self.server}/server"
        for key in _SETTINGS:
            if place in found.documents and key in self.doc.mapping():
                settings = self._placed(key, found.offered.get(self.server, names), found.problems)
                found.documents[place] = merge.merge(found.documents[place], settings, found.problems)

        for index, name in enumerate(self._without()):
            place = f"servers/{self.server}/services/{name}"
            if place in found.documents:
                found.documents[place].mapping()["enabled"] = False
            else:
                known = [documents.name(place) for place in found.documents if documents.kind(place) == "service"]
                hint = metaschema.near(name, known)
                found.problems.append(
                    self.doc.problem("unknown_name", ("without", index), kind="service", name=name, **hint)
                )

    def _without(self) -> list[str]:
        without: Any = self.doc.mapping().get("without", [])
        return [str(name) for name in without]

    def _placed(self, key: str, names: Names, problems: list[Problem]) -> Document:
        """The settings under ``key``, their paths as seen from its folder; told is what is not there of them."""
        settings = self.doc.part((key,)).under(key)
        value: Any = settings.value
        settings.value = value = copy.deepcopy(value)
        for name, given in value["providers"].items() if key == "providers" else ():
            schema = metaschema.settings(name, names)
            marked = metaschema.paths_in(schema, given) if schema is not None else {}
            for path, form in marked.items():
                at = given
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = file = os.path.join(self.folder, at[path[-1]])
                is_there, rule = _FORMS[form]
                if not is_there(file):
                    problems.append(self.doc.problem(rule, (key, name, *path), path=paths.shown(file)))
        return settings

    def add_services(self, found: Schemas, names: Names) -> None:
        """Add each service of the folder that has no problem; what is wrong with another is kept."""
        for file in self._files():
            place = f"servers/{self.server}/services/{os.path.splitext(os.path.basename(file))[0]}"
            found.problems = []
            added = self._service(found, place, file)
            for other in added:
                found.problems += check.check_one(found, other, added[other], names)
            if found.problems:
                for other in added:
                    del found.documents[other]
            self.left_out += found.problems
        found.problems = []

    def _files(self) -> list[str]:
        """The files of the folder of services, sorted."""
        if self.services is None:
            return []
        try:
            names = sorted(os.listdir(self.services))
        except OSError as error:
            folder = paths.shown(self.services)
            self.left_out.append(self.doc.problem("no_entry", ("services",), folder=folder, reason=error.strerror))
            return []
        return [
            os.path.join(self.services, name) for name in names if name.endswith(reader.SUFFIXES) and name[0] != "."
        ]

    def _service(self, found: Schemas, place: str, file: str) -> dict[str, Document]:
        """The documents of the service in ``file``, added to ``found``."""
        try:
            doc = reader.read(file, paths.shown(file))
        except DocumentError as error:
            found.problems += error.problems
            return {}
        if place in found.documents:
            found.problems.append(doc.problem("service_taken", ("id",), name=place.rpartition("/")[2]))
            return {}
        if "extends" in doc.mapping():
            found.problems.append(doc.key_problem("nothing_to_extend", ("extends",), path=place, nearest=""))
            return {}
        added = {place: doc, **dict(expand.tools(found, place, doc))}
        found.documents |= added
        return added


def read(file: str, server: str) -> Config:
    """The configuration of ``server`` in ``file``. Raises SpecError with all that is wrong with its shape."""
    try:
        doc = reader.read(file, paths.shown(file))
    except DocumentError as error:
        raise SpecError(error.problems) from error
    if problems := metaschema.check(doc, os.path.join(paths.SCHEMAS, "meta", "config.yaml")):
        raise SpecError(problems)
    return Config(doc, os.path.dirname(os.path.abspath(file)), server)

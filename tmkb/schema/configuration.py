"""The file of ``--config``: an operator's settings for one server, and the folder of its dynamic services."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import answer_files, check, documents, expand, merge, metaschema, paths, reader
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document

_SETTINGS = ("capabilities", "limits", "providers")  # the keys of a server that a configuration can set


def _is_writable(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK)


def _is_plain(file: str) -> bool:
    return os.path.isfile(file) and not os.path.islink(file)


def _is_log(file: str) -> bool:
    """Return whether the process can append to ``file``, or create it."""
    if "\0" in file:
        return False
    if os.path.lexists(file):
        return _is_plain(file) and os.access(file, os.W_OK)
    return _is_writable(os.path.dirname(file))


# Format of a path in its schema → the test that the path must pass, and the problem if it does not.
_PATH_FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "path": (lambda path: "\0" not in path, "no_path"),  # need not exist yet
    "folder": (os.path.isdir, "no_folder"),
    "writable_folder": (lambda folder: _is_writable(folder) and not os.path.islink(folder), "no_writable_folder"),
    "plain_file": (_is_plain, "no_plain_file"),
    "log": (_is_log, "no_log"),
}


@dataclass
class Config:
    """A valid configuration of one server."""

    doc: Document
    folder: str  # relative paths start here
    server: str
    left_out: list[Problem] = field(default_factory=list)  # why services are not served

    @property
    def services(self) -> str | None:
        """The folder of dynamic services; None if there is none."""
        folder = self.doc.mapping().get("services")
        return None if folder is None else os.path.join(self.folder, str(folder))

    def apply(self, schemas: Schemas, names: Names) -> None:
        """Merge the settings into the server. The check of the server validates them."""
        place = f"servers/{self.server}/server"
        for key in _SETTINGS:
            if place in schemas.documents and key in self.doc.mapping():
                settings = self._settings(key, schemas.offered.get(self.server, names), schemas.problems)
                schemas.documents[place] = merge.merge(schemas.documents[place], settings, schemas.problems)

        disabled: Any = self.doc.mapping().get("without", [])
        for index, name in enumerate(map(str, disabled)):
            place = f"servers/{self.server}/services/{name}"
            if place in schemas.documents:
                schemas.documents[place].mapping()["enabled"] = False
            else:
                known = [documents.name(place) for place in schemas.documents if documents.kind(place) == "service"]
                hint = metaschema.near(name, known)
                schemas.problems.append(
                    self.doc.problem("unknown_name", ("without", index), kind="service", name=name, **hint)
                )

    def _settings(self, key: str, names: Names, problems: list[Problem]) -> Document:
        """Return the settings under ``key`` with paths relative to the folder resolved; report missing files."""
        settings = self.doc.part((key,)).under(key)
        value: Any = settings.value
        settings.value = value = copy.deepcopy(value)
        for name, of_provider in value["providers"].items() if key == "providers" else ():
            schema = metaschema.settings(name, names)
            formats = metaschema.paths_in(schema, of_provider) if schema is not None else {}
            for path, path_format in formats.items():
                parent = reader.at(of_provider, path[:-1])
                parent[path[-1]] = file = os.path.join(self.folder, parent[path[-1]])
                is_valid, rule = _PATH_FORMATS[path_format]
                if not is_valid(file):
                    problems.append(self.doc.problem(rule, (key, name, *path), path=paths.shown(file)))
        return settings

    def add_services(self, schemas: Schemas, names: Names) -> None:
        """Add each valid service of the folder; the problems of the others go to `left_out`."""
        for file in self._files():
            place = f"servers/{self.server}/services/{os.path.splitext(os.path.basename(file))[0]}"
            schemas.problems = []
            added = self._service(schemas, place, file)
            for other in added:
                schemas.problems += check.check_one(schemas, other, added[other], names)
            if schemas.problems:
                for other in added:
                    del schemas.documents[other]
            self.left_out += schemas.problems
        schemas.problems = []

    def _files(self) -> list[str]:
        """Return the files of the folder of services, sorted."""
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

    def _service(self, schemas: Schemas, place: str, file: str) -> dict[str, Document]:
        """Add the documents of the service in ``file`` to ``schemas``, and return them."""
        try:
            doc = reader.read(file, paths.shown(file))
        except DocumentError as error:
            schemas.problems += error.problems
            return {}
        schemas.problems += answer_files.insert(doc, file)
        if place in schemas.documents:
            schemas.problems.append(doc.problem("service_taken", ("id",), name=place.rpartition("/")[2]))
            return {}
        if "extends" in doc.mapping():
            schemas.problems.append(doc.key_problem("nothing_to_extend", ("extends",), path=place, nearest=""))
            return {}
        added = {place: doc, **dict(expand.tools(schemas, place, doc))}
        schemas.documents |= added
        return added


def read(file: str, server: str) -> Config:
    """Read the configuration of ``server`` from ``file``. Raises SpecError with every violation of its meta-schema."""
    doc = metaschema.read(file, os.path.join(paths.SCHEMAS, "meta", "config.yaml"))
    return Config(doc, os.path.dirname(os.path.abspath(file)), server)

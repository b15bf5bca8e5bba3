"""Edit a user's schema folder on top of the packaged schemas: create and change files, and check before writing."""

from __future__ import annotations

import copy
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import check, documents, edit, export, load, metaschema, paths, reader, textfile
from tmkb.schema.documents import Schemas
from tmkb.schema.edit import Text
from tmkb.schema.metaschema import Names, near
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonValue

TEMPLATES = os.path.join(paths.SCHEMAS, "templates")
_STEP = re.compile(r'"(?:[^"\\]|\\.)*"|[^.\[\]"]+')
_INDEX = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_EXTENDS = re.compile(r"^extends: packaged.*\n", re.M)
_NAME_IN_TEMPLATE = re.compile(r"(?<=\n)(.*)NAME(\S*) +#")

# Kind of new file → its place.
NEW_FILES = {
    "tool": "servers/{server}/tools/{name}",
    "prompt": "servers/{server}/prompts/{name}",
    "resource": "servers/{server}/resources/{name}",
    "server": "servers/{name}/server",
    "error": "errors",
    "revision": "protocol/{name}",
}


class Overlay:
    """A user's schema folder: the first of ``folders``, the others below it. ``names``: the names the code offers.

    Raises:
        SpecError: a folder is a file.
    """

    def __init__(self, folders: Sequence[str], names: Names) -> None:
        for folder in folders:
            if os.path.exists(folder) and not os.path.isdir(folder):
                raise SpecError([Problem.of_argument("not_a_place", "--schemas", folder=paths.shown(folder))])
        self.folder = folders[0]
        self.below = list(folders[1:])
        self.names = names

    @property
    def existing_folders(self) -> list[str]:
        """The folders that exist, topmost first."""
        return [folder for folder in (self.folder, *self.below) if os.path.isdir(folder)]

    def file(self, place: str) -> str:
        """Return the path of the file of ``place`` in the folder, whether or not it exists."""
        files = [os.path.join(self.folder, place + suffix) for suffix in reader.SUFFIXES]
        return next((file for file in files if os.path.exists(file)), files[0])

    def existing(self, place: str) -> str:
        """Return the file of ``place`` in the folder. Raises SpecError if it does not exist."""
        file = self.file(place)
        if not os.path.exists(file):
            raise SpecError([Problem("no_own_file", paths.shown(file))])
        return file

    def text(self, place: str) -> Text:
        """Return the text of the file of ``place``; if it does not exist, a new text with `extends: packaged`."""
        file = self.file(place)
        if os.path.exists(file):
            return edit.read(file)
        return Text(_pointed(f"kind: {documents.kind(place)}\nextends: packaged\n", place, file), file)

    def edit(self, schemas: Schemas, place: str, action: str, path: Path, value: JsonValue) -> Text:
        """Return the text of the file of ``place`` after ``action``: set, add or remove.

        An index after the last entry of a list appends. Raises SpecError.
        """
        text, doc = self.text(place), schemas.documents[place]
        before: Any = reader.at(doc.value, path[:-1])
        if not isinstance(before, dict) and not (isinstance(before, list) and isinstance(path[-1], int)):
            raise SpecError([_fault(place, path, False, before)])
        if action != "remove" and isinstance(before, list) and path[-1] == len(before):
            return self.edit(schemas, place, "add", path[:-1], value)
        exists = path[-1] in before if isinstance(before, dict) else path[-1] in range(len(before))
        current: Any = reader.at(before, path[-1:]) if exists else None
        if action == "add" and isinstance(current, list):
            if text.has(path):
                text.add((*path, len(current)), value)
                return text
            value = [*current, value]
        elif exists == (action == "add") or (isinstance(before, list) and not exists):
            raise SpecError([_fault(place, path, exists, before)])
        if action == "remove":
            self._remove(text, place, path, before)
        else:
            _put(text, path, value, doc.value)
        return text

    def check(self, texts: Mapping[str, str | None]) -> Schemas:
        """Load the schemas as if these files had these texts; None stands for a deleted file."""
        with tempfile.TemporaryDirectory() as scratch:
            if os.path.isdir(self.folder):
                shutil.copytree(self.folder, scratch, dirs_exist_ok=True, ignore=_ignored)
            for file, text in texts.items():
                textfile.save(os.path.join(scratch, os.path.relpath(file, self.folder)), text)
            schemas = load.read([scratch, *self.below], self.names)
            for problem in schemas.problems:
                problem.file = problem.file.replace(paths.shown(scratch), paths.shown(self.folder), 1)
            return schemas

    def faults(self, texts: Mapping[str, str | None], known: Sequence[Problem] = ()) -> list[Problem]:
        """Return the problems after a change that are not among the ``known`` ones."""
        old = {(p.file, p.rule, str(p.fields)) for p in known}
        return [p for p in self.check(texts).problems if (p.file, p.rule, str(p.fields)) not in old]

    def new_file(self, schemas: Schemas, kind: str, name: str, server: str | None) -> tuple[str, str]:
        """Return the path and the text of the file for a new ``kind`` with this ``name``. Raises SpecError."""
        if not _NAME.fullmatch(name):
            raise SpecError([Problem.of_argument("bad_file_name", "NAME", name=name)])
        known = [documents.name(place) for place in schemas.documents if documents.kind(place) == "server"]
        if server and kind != "server" and server not in known:
            raise SpecError([Problem.of_argument("no_server", "--server", name=server, **near(server, known))])
        place = NEW_FILES[kind].format(name=name, server=server)
        if kind == "error" and server:
            place = f"servers/{server}/errors"
        file = self.file(place)
        if kind == "error" and place in schemas.documents and name in schemas.documents[place].section("errors"):
            raise SpecError(
                [schemas.documents[place].key_problem("already_there", ("errors", name), place=f"errors.{name}")]
            )
        with open(os.path.join(TEMPLATES, f"{kind}.yaml"), encoding="utf-8") as source:
            text = _with_name(source.read(), name)
        if not os.path.exists(file):
            if kind == "error" and place not in schemas.layers:  # the first table of this server has nothing to extend
                text = _EXTENDS.sub("", text)
            return file, _pointed(text, place, file, self.folder)
        if kind != "error":
            raise SpecError([Problem("file_taken", paths.shown(file))])
        whole, new = edit.read(file), reader.at(reader.parse(text, "").value, ("errors", name))
        _put(whole, ("errors", name), new, {})
        return file, whole.text

    def with_capability(self, schemas: Schemas, kind: str, server: str) -> Text | None:
        """Return the server's file with the capability that ``kind`` needs; None if it already declares it."""
        place = f"servers/{server}/server"
        if kind not in check.CAPABILITIES or place not in schemas.documents:
            return None
        capability = check.CAPABILITIES[kind]
        declared: Any = schemas.documents[place].mapping().get("capabilities")
        if not isinstance(declared, dict) or capability in declared:
            return None
        return self.edit(schemas, place, "add", ("capabilities", capability), {})

    def eject(self, schemas: Schemas, place: str) -> tuple[str, str]:
        """Return the path of ``place`` in the folder, and the packaged text. Raises SpecError if the file exists."""
        file = self.file(place)
        if os.path.exists(file):
            raise SpecError([Problem("file_taken", paths.shown(file))])
        with open(os.path.abspath(schemas.layers[place][0].file), encoding="utf-8", newline="") as source:
            return file, _pointed(source.read(), place, file)

    def _remove(self, text: Text, place: str, path: Path, before: Any) -> None:
        """Remove the value at ``path``; write null if it comes from a lower folder."""
        if isinstance(before, list) and not text.has(path):
            rest = [value for step, value in enumerate(before) if step != path[-1]]
            _put(text, path[:-1], rest, {})
            return
        if text.has(path):
            text.remove(path)
        rest_of = self.check({self.file(place): text.text}).documents.get(place)
        if not isinstance(before, list) and rest_of is not None and has(rest_of.value, path):
            _put(text, path, None, rest_of.value)


def steps(value: JsonValue, text: str) -> Path:
    """Parse ``text`` as a path in ``value``: keys joined by dots, indices in brackets; keys with dots may be quoted."""
    words = _STEP.findall(text)
    path: list[str | int] = []
    here: Any = value
    while words:
        count = len(words)
        while count > 1 and not (isinstance(here, dict) and ".".join(words[:count]) in here):
            count -= 1
        word, words = ".".join(words[:count]), words[count:]
        if word.startswith('"'):
            word = _unquoted(word)
        step: str | int = int(word) if isinstance(here, list) and _INDEX.fullmatch(word) else word
        path.append(step)
        here = here[step] if has(here, (step,)) else None
    return tuple(path)


def _unquoted(word: str) -> str:
    """Return the key in double quotes. Raises SpecError if it has an invalid escape sequence."""
    try:
        return str(reader.parse(word, "").value)
    except DocumentError as error:
        raise SpecError([Problem.of_argument("bad_quoted_key", "PATH", text=word)]) from error


def dotted(path: Path) -> str:
    """Return ``path`` as keys joined by dots."""
    return ".".join(map(str, path))


def missing(schemas: Schemas, place: str, path: Path) -> Problem | None:
    """Return a problem for the first step of ``path`` that does not exist; None if all exist."""
    doc = schemas.documents[place]
    for count in range(1, len(path) + 1):
        if not has(doc.value, path[:count]):
            return _fault(place, path[:count], False, reader.at(doc.value, path[: count - 1]))
    return None


def _fault(place: str, path: Path, exists: bool, before: Any) -> Problem:
    if exists:
        return Problem.of_argument("already_there", "PATH", place=dotted(path))
    if not isinstance(before, dict | list):
        return Problem.of_argument("no_keys_inside", "PATH", place=dotted(path[:-1]), key=str(path[-1]))
    known = list(before) if isinstance(before, dict) else [str(n) for n in range(len(before))]
    fields = {"key": str(path[-1]), "place": dotted(path[:-1]) or place, **near(str(path[-1]), known)}
    return Problem.of_argument("no_such_key", "PATH", **fields)


def has(value: Any, path: Path) -> bool:
    """Return whether ``path`` exists in ``value``."""
    for step in path:
        if not (step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))):
            return False
        value = value[step]
    return True


def _put(text: Text, path: Path, value: JsonValue, resolved: JsonValue) -> None:
    """Write ``value`` at ``path`` with all missing parents. A list is written whole, because a merge replaces it."""
    if text.has(path):
        text.set(path, value)
        return
    depth = next(count for count in range(len(path), -1, -1) if text.has(path[:count]))
    number = next((at for at in range(depth, len(path)) if isinstance(path[at], int)), len(path))
    if number < len(path):
        path, value = path[:number], _with(reader.at(resolved, path[:number]), path[number:], value)
    for step in reversed(path[depth + 1 :]):
        value = {str(step): value}
    if isinstance(reader.at(reader.parse(text.text, text.file).value, path[:depth]), dict):
        text.add(path[: depth + 1], value)
    else:
        text.set(path[:depth], {str(path[depth]): value})


def _with(whole: Any, path: Path, value: JsonValue) -> Any:
    """Return a copy of ``whole`` with ``value`` at ``path``."""
    result = copy.deepcopy(whole)
    reader.at(result, path[:-1])[path[-1]] = value
    return result


def _pointed(text: str, place: str, file: str, folder: str | None = None) -> str:
    """Return ``text`` with a first line that names its schema for editors.

    Outside a checkout, only a new file in a user's ``folder`` gets one. It names the schema in the folder's
    ``.editor/`` or ``editor/`` (`tmkb schema export FOLDER/.editor`), else the packaged schema on this machine.
    """
    schema = f"{documents.kind(place)}.json"
    pointed = metaschema.pointed(text, os.path.join(export.EDITOR, schema), file)
    if folder is None or pointed.startswith(metaschema.POINTER) or file.endswith(".json"):
        return pointed
    exported = (os.path.join(folder, name, schema) for name in (".editor", "editor"))
    if own := next(filter(os.path.exists, exported), ""):
        target = os.path.relpath(own, os.path.dirname(file)).replace(os.sep, "/")
    else:
        packaged = os.path.abspath(os.path.join(export.EDITOR, schema))
        if not os.path.exists(packaged):  # a checkout in which nothing was exported yet
            return pointed
        target = pathlib.Path(packaged).as_uri()
    return f"{metaschema.POINTER}{target}\n{pointed}"


def _with_name(text: str, name: str) -> str:
    """Return ``text`` with ``name`` in place of NAME; comments after it keep their column."""
    aligned = _NAME_IN_TEMPLATE.sub(lambda m: f"{m[1]}{name}{m[2]}".ljust(len(m[0]) - 3) + "  #", text)
    return aligned.replace("NAME", name)


def _ignored(folder: str, files: list[str]) -> list[str]:
    """Return the files not to copy: hidden or special files, those too large to be read, packaged files in use."""
    packaged = ("meta", "editor", "templates", "problems.yaml") if os.path.samefile(folder, paths.SCHEMAS) else ()
    return [each for each in files if each in packaged or each.startswith(".") or not _is_read(folder, each)]


def _is_read(folder: str, name: str) -> bool:
    """Return whether ``name`` in ``folder`` may be read as a schema or as a text: a folder, or a regular file."""
    file = os.path.join(folder, name)
    is_small = os.path.isfile(file) and os.path.getsize(file) <= textfile.LARGEST
    return os.path.isdir(file) or name.endswith(reader.SUFFIXES) or is_small

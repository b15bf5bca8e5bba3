"""Read and check a transcript, select its turns for a revision, and update its expectations."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any

from tmkb.conformance import match
from tmkb.errors import DocumentError, Problem
from tmkb.protocol import messages as message
from tmkb.providers import registry
from tmkb.schema import edit, metaschema, paths, reader, textfile
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue


@dataclass(frozen=True, slots=True)
class Turn:
    """A line to send, and the messages that the server must send in return.

    Attributes:
        line: without its line end.
        request: the id of the request in the line; None if the line is not a request.
        refers_to: the id of another request that the params contain.
        is_response: whether the line is a response.
    """

    about: str
    line: bytes
    expect: list[JsonValue]
    request: str | int | None = None
    refers_to: JsonValue = None
    is_response: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """The content of a transcript file; `turns` returns its turns for one revision."""

    path: str
    value: dict[str, Any]

    @property
    def name(self) -> str:
        """The path without its suffix, relative to ``conformance/`` for packaged transcripts."""
        path = os.path.abspath(self.path)
        packaged = path.startswith(paths.CONFORMANCE + os.sep)
        shown = os.path.relpath(path, paths.CONFORMANCE) if packaged else paths.shown(path)
        return os.path.splitext(shown)[0].replace(os.sep, "/")

    @property
    def revisions(self) -> list[str]:
        """The revisions that it applies to."""
        return [str(revision) for revision in self.value["revisions"]]

    @property
    def config(self) -> str | None:
        """The path of the configuration that it was recorded with; None without one."""
        path = self.value.get("config")
        return None if path is None else os.path.normpath(os.path.join(os.path.dirname(self.path), str(path)))

    @property
    def missing_modules(self) -> list[str]:
        """The modules that it needs and that are not installed. Imports nothing."""
        return [str(name) for name in self.value.get("needs", []) if not _is_installed(str(name))]

    @property
    def arguments(self) -> list[str]:
        """The arguments for `tmkb serve`."""
        return ["--server", str(self.value["server"]), *(["--config", self.config] if self.config else [])]

    def turns(self, revision: str) -> list[Turn]:
        """Return its turns under ``revision``, without the opening."""
        return [_turn(each, revision) for each in self.value["exchanges"]]

    def opening(self, revision: str) -> list[Turn]:
        """Return the turns of its opening, which come first."""
        name = str(self.value["opening"])
        return [] if name == "none" else _turns(_openings(self.path)[name], "opening", revision)


def packaged_opening(opening: str, revision: str) -> list[Turn]:
    """Return the turns of a packaged opening under ``revision``. Raises DocumentError."""
    return _turns(os.path.join(_packaged_openings(), f"{opening}.yaml"), "opening", revision)


@functools.cache
def result_schema(method: str) -> Any:
    """Return the JSON Schema of the result of ``method`` in an opening; None for a method that openings do not use."""
    file = os.path.join(paths.CONFORMANCE, "opening.schema.yaml")
    definitions: Any = reader.read(file).mapping()["$defs"]
    return definitions["results"].get(method)


def read(path: str) -> Transcript:
    """Read the transcript at ``path``. Raises DocumentError with all its problems."""
    doc = _document(path, "transcript")
    transcript = Transcript(path, doc.mapping())
    if problems := [
        *_unknown_opening(transcript, doc),
        *_paths_outside(transcript, doc),
        *_unknown_types(doc),
    ]:
        raise DocumentError(problems)
    return transcript


def find(path: str) -> list[str]:
    """Return the transcript files at ``path``: the file itself, or all files below a folder, sorted.

    Skip openings, schemas, requirements, and folders named ``fixtures`` below ``path``.
    """
    if os.path.isfile(path):
        return [path]
    files = []
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if name not in ("openings", "fixtures")]
        files += [
            os.path.join(folder, name)
            for name in names
            if name.endswith(".yaml") and not name.endswith(".schema.yaml") and name != "requirements.yaml"
        ]
    return sorted(files)


def rewrite(transcript: Transcript, actual: Mapping[int, Mapping[str, list[JsonValue]]]) -> list[int]:
    """Replace the expectations in the file by ``actual``: turn number → revision → messages.

    Placeholders that still match stay.

    Returns:
        The numbers of the turns that were not changed because the revisions differ.
    """
    disputed, text = [], edit.read(transcript.path)
    for number, by_revision in actual.items():
        expect = transcript.value["exchanges"][number - 1]["expect"]
        first, *others = [match.update(expect, [*messages], revision) for revision, messages in by_revision.items()]
        if any(other != first for other in others):
            disputed.append(number)
        elif first != expect:
            text.set_block(("exchanges", number - 1, "expect"), first)
    textfile.save(transcript.path, text.text)
    return disputed


def _is_installed(name: str) -> bool:
    """Return whether the module ``name`` can be imported; `find_spec` would import its parent packages."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # already imported, but not by the import system
        return not inner
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return False
        top = f"{top}.{part}"
        spec = PathFinder.find_spec(top, spec.submodule_search_locations)
    return spec is not None


def _packaged_openings() -> str:
    return os.path.join(paths.CONFORMANCE, "openings")


def _openings(path: str) -> dict[str, str]:
    """Map the names of the openings for the transcript at ``path`` to their files.

    A folder ``openings`` beside the transcript, or one level up, overrides the packaged one.
    """
    here = os.path.dirname(os.path.abspath(path))
    folders = [_packaged_openings(), *(os.path.join(each, "openings") for each in (os.path.dirname(here), here))]
    return {
        name.removesuffix(".yaml"): os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in sorted(os.listdir(folder))
        if name.endswith(".yaml")
    }


def _unknown_opening(transcript: Transcript, doc: Document) -> Iterator[Problem]:
    known, name = ["none", *_openings(transcript.path)], str(transcript.value["opening"])
    if name not in known:
        yield doc.problem("unknown_name", ("opening",), kind="opening", name=name, **metaschema.near(name, known))
    elif name != "none":
        _checked(_openings(transcript.path)[name], "opening")


def _unknown_types(doc: Document) -> Iterator[Problem]:
    """Yield a problem for each `$any` whose value is not a JSON type."""
    turns: Any = doc.mapping()["exchanges"]
    for number, turn in enumerate(turns):
        for path, name in match.placeholder_types(turn["expect"], ("exchanges", number, "expect")):
            if name not in match.TYPES:
                hint = metaschema.near(str(name), match.TYPES)
                yield doc.problem("unknown_name", (*path, "$any"), kind="JSON type", name=str(name), **hint)


def _paths_outside(transcript: Transcript, doc: Document) -> Iterator[Problem]:
    """Yield a problem for each path outside the transcript's folder: its configuration, or a path in it.

    A transcript of another author must not make a replay read other files.
    """
    if transcript.config is None:
        return
    folder = os.path.dirname(os.path.abspath(transcript.path))
    if not _is_below(transcript.config, folder):
        yield _outside(doc, ("config",), transcript.config, folder)
        return
    config = reader.read(transcript.config, paths.shown(transcript.config))
    for at, path in _paths(config.mapping()):
        whole = os.path.join(os.path.dirname(os.path.abspath(transcript.config)), path)
        if not _is_below(whole, folder):
            yield _outside(config, at, whole, folder)


def _outside(doc: Document, at: Path, path: str, folder: str) -> Problem:
    return doc.problem("outside_folder", at, path=paths.shown(path), folder=paths.shown(folder))


def _paths(config: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the position and the value of each path in a configuration."""
    if isinstance(services := config.get("services"), str):
        yield ("services",), services
    providers = config.get("providers")
    names = registry.names() if providers else {}
    for name, settings in providers.items() if isinstance(providers, dict) else ():
        if (schema := metaschema.settings(name, names)) is not None:
            for at in metaschema.paths_in(schema, settings):
                yield ("providers", name, *at), reader.at(settings, at)


def _is_below(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it, with all links resolved."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))


def _document(path: str, kind: str) -> Document:
    doc = reader.read(path, paths.shown(path))
    if problems := metaschema.check(doc, os.path.join(paths.CONFORMANCE, f"{kind}.schema.yaml")):
        raise DocumentError(problems)
    return doc


def _checked(path: str, kind: str) -> dict[str, Any]:
    return _document(path, kind).mapping()


def _turns(path: str, kind: str, revision: str) -> list[Turn]:
    return [_turn(each, revision) for each in _checked(path, kind)["exchanges"]]


def _turn(value: dict[str, Any], revision: str) -> Turn:
    if "send_bytes" in value:
        line = bytes.fromhex(value["send_bytes"])
    elif "send_text" in value:
        line = value["send_text"].encode()
    else:
        line = message.encode(match.resolve(value["send"], revision))
    expect = [match.resolve(each, revision) for each in value["expect"]]
    return Turn(value.get("about", ""), line, expect, *_about(line))


def _about(line: bytes) -> tuple[str | int | None, JsonValue, bool]:
    """Return the values of `Turn.request`, `Turn.refers_to` and `Turn.is_response`."""
    try:
        sent: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None, None, False
    if not isinstance(sent, dict):
        return None, None, False
    params = sent.get("params")
    id_ = sent.get("id") if "method" in sent else None
    request = id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None
    refers_to = params.get("requestId") if isinstance(params, dict) else None
    return request, refers_to, "method" not in sent and ("result" in sent or "error" in sent)

"""One transcript: read from its file, checked, and ready to be sent under one of its revisions."""

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
from tmkb.schema import edit, metaschema, paths, reader
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue


@dataclass(frozen=True, slots=True)
class Exchange:
    """One line to send, without its end, and all messages that must come back.

    `request` is the id of the request that the line holds; None for any other line. `names` is the id of a request
    that the line's params name. `is_response`: the line holds a response.
    """

    about: str
    line: bytes
    expect: list[JsonValue]
    request: str | int | None = None
    names: JsonValue = None
    is_response: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as its file has it; `exchanges` gives it for one revision."""

    path: str
    value: dict[str, Any]

    @property
    def name(self) -> str:
        """The path without its suffix, for ours below ``conformance/``, else as `paths.shown` has it."""
        path = os.path.abspath(self.path)
        ours = path.startswith(paths.CONFORMANCE + os.sep)
        shown = os.path.relpath(path, paths.CONFORMANCE) if ours else paths.shown(path)
        return os.path.splitext(shown)[0].replace(os.sep, "/")

    @property
    def revisions(self) -> list[str]:
        """The revisions that it runs under."""
        return [str(revision) for revision in self.value["revisions"]]

    @property
    def config(self) -> str | None:
        """The file of the configuration it was recorded with, if there was one."""
        named = self.value.get("config")
        return None if named is None else os.path.normpath(os.path.join(os.path.dirname(self.path), str(named)))

    @property
    def lacking(self) -> list[str]:
        """The modules that it needs and that are not installed. Nothing is imported to find out."""
        return [str(name) for name in self.value.get("needs", []) if not _is_installed(str(name))]

    @property
    def arguments(self) -> list[str]:
        """What `tmkb serve` is to be told for it."""
        return ["--server", str(self.value["server"]), *(["--config", self.config] if self.config else [])]

    def exchanges(self, revision: str) -> list[Exchange]:
        """Its exchanges under ``revision``, without the opening."""
        return [_exchange(each, revision) for each in self.value["exchanges"]]

    def opening(self, revision: str) -> list[Exchange]:
        """The shared exchanges that come first."""
        name = str(self.value["opening"])
        return [] if name == "none" else _exchanges(_openings(self.path)[name], "opening", revision)


def shared(opening: str, revision: str) -> list[Exchange]:
    """Return the exchanges of a packaged opening under ``revision``. Raises DocumentError."""
    return _exchanges(os.path.join(_packaged_openings(), f"{opening}.yaml"), "opening", revision)


@functools.cache
def result_schema(method: str) -> Any:
    """Return the JSON Schema of the result of ``method`` in an opening; None for a method that openings do not use."""
    file = os.path.join(paths.CONFORMANCE, "opening.schema.yaml")
    found: Any = reader.read(file).mapping()["$defs"]
    return found["results"].get(method)


def read(path: str) -> Transcript:
    """Return the transcript in the file ``path``. Raises DocumentError with everything that is wrong with it."""
    doc = _document(path, "transcript")
    transcript = Transcript(path, doc.mapping())
    if problems := [*_unknown_opening(transcript, doc), *_strayed(transcript, doc), *_untyped(doc)]:
        raise DocumentError(problems)
    return transcript


def find(path: str) -> list[str]:
    """Return the files of the transcripts at ``path``: itself, or all below a folder, sorted.

    Openings, schemas, requirements and what lies in folders named ``fixtures`` are not transcripts. Only names below
    ``path`` count.
    """
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if name not in ("openings", "fixtures")]
        found += [
            os.path.join(folder, name)
            for name in names
            if name.endswith(".yaml") and not name.endswith(".schema.yaml") and name != "requirements.yaml"
        ]
    return sorted(found)


def rewrite(transcript: Transcript, actual: Mapping[int, Mapping[str, list[JsonValue]]]) -> list[int]:
    """Write what came back (exchange number → revision → messages) into the file; matchers that still match stay.

    Gives the numbers of the exchanges that were left alone, because revisions disagree about them.
    """
    refused = []
    for number, by_revision in actual.items():
        expect = transcript.value["exchanges"][number - 1]["expect"]
        wanted = [match.updated(expect, [*messages], revision) for revision, messages in by_revision.items()]
        if any(other != wanted[0] for other in wanted):
            refused.append(number)
        elif wanted[0] != expect:
            edit.replace(transcript.path, ("exchanges", number - 1, "expect"), wanted[0])
    return refused


def _is_installed(name: str) -> bool:
    """Whether the module ``name`` can be imported; `find_spec` would import the packages around it."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # imported, by something other than the import system
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
    """Return name → file of the openings for the transcript ``path``.

    A folder ``openings`` beside the transcript or one level up comes before the packaged one.
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


def _untyped(doc: Document) -> Iterator[Problem]:
    """Yield a problem for each `$any` in an `expect` that names no JSON type."""
    exchanges: Any = doc.mapping()["exchanges"]
    for number, exchange in enumerate(exchanges):
        for path, name in match.types(exchange["expect"], ("exchanges", number, "expect")):
            if name not in match.TYPES:
                hint = metaschema.near(str(name), match.TYPES)
                yield doc.problem("unknown_name", (*path, "$any"), kind="JSON type", name=str(name), **hint)


def _strayed(transcript: Transcript, doc: Document) -> Iterator[Problem]:
    """Yield a problem for each path outside the transcript's folder: its configuration, or one that this names.

    A replay must not reach files that its author could not have put beside the transcript.
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
    """Yield where a configuration names a file or a folder, and its path as it is written."""
    if isinstance(services := config.get("services"), str):
        yield ("services",), services
    providers = config.get("providers")
    names = registry.names() if providers else {}
    for name, settings in providers.items() if isinstance(providers, dict) else ():
        if (schema := metaschema.settings(name, names)) is not None:
            for at in metaschema.paths_in(schema, settings):
                value: Any = settings
                for step in at:
                    value = value[step]
                yield ("providers", name, *at), value


def _is_below(path: str, folder: str) -> bool:
    """Whether ``path``, with all links followed, is ``folder`` or lies below it."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))


def _document(path: str, kind: str) -> Document:
    doc = reader.read(path, paths.shown(path))
    if problems := metaschema.check(doc, os.path.join(paths.CONFORMANCE, f"{kind}.schema.yaml")):
        raise DocumentError(problems)
    return doc


def _checked(path: str, kind: str) -> dict[str, Any]:
    return _document(path, kind).mapping()


def _exchanges(path: str, kind: str, revision: str) -> list[Exchange]:
    return [_exchange(each, revision) for each in _checked(path, kind)["exchanges"]]


def _exchange(value: dict[str, Any], revision: str) -> Exchange:
    if "send_bytes" in value:
        line = bytes.fromhex(value["send_bytes"])
    elif "send_text" in value:
        line = value["send_text"].encode()
    else:
        line = message.encode(match.put(value["send"], revision))
    expect = [match.put(each, revision) for each in value["expect"]]
    return Exchange(value.get("about", ""), line, expect, *_about(line))


def _about(line: bytes) -> tuple[str | int | None, JsonValue, bool]:
    """Return the id of the request in ``line``, the id of a request that it names, and whether it is a response."""
    try:
        sent: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None, None, False
    if not isinstance(sent, dict):
        return None, None, False
    params = sent.get("params")
    id_ = sent.get("id") if "method" in sent else None
    request = id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None
    named = params.get("requestId") if isinstance(params, dict) else None
    return request, named, "method" not in sent and ("result" in sent or "error" in sent)

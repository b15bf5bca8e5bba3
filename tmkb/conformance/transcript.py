"""Read and check a transcript, select its turns for a revision, and update its expectations."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

from tmkb.conformance import match, matchers
from tmkb.conformance.matchers import Bindings
from tmkb.errors import DocumentError, Problem
from tmkb.protocol import messages as message
from tmkb.providers import registry
from tmkb.schema import edit, metaschema, packed, paths, reader, textfile
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue

_LARGEST, _VALUES = 1 << 27, 1_000_000  # bytes and values; a recording has all messages of a session
_KIND = re.compile(rb"""^[{ ]*["']?kind["']?: *["']?transcript\b""", re.M)
_TITLE = 80  # characters
_HEAD = 1 << 16  # bytes at the start of a file, in which its kind is


@dataclass(frozen=True, slots=True)
class Turn:
    """A line to send, and the messages that the server must send in return.

    Attributes:
        line: without its line end. If ``template`` is not None, `bound` returns the line to send.
        request: the id of the request in the line; None if the line is not a request.
        refers_to: the id of another request that the params contain.
        is_response: whether the line is a response.
        template: a message that contains captured values; None without such values.
        skipped: why a replay does not send the line; empty if it does.
    """

    about: str
    line: bytes
    expect: list[JsonValue]
    request: str | int | None = None
    refers_to: JsonValue = None
    is_response: bool = False
    template: JsonValue = None
    skipped: str = ""

    def bound(self, bindings: Bindings) -> bytes:
        """Return the line with captured values. Raises KeyError for a value that was not captured."""
        return self.line if self.template is None else message.encode(matchers.bind(self.template, bindings))


@dataclass(frozen=True, slots=True)
class Transcript:
    """The content of a transcript file; `turns` returns its turns for one revision.

    `lines`: the line in the file of each exchange, from 1. `is_cut_off`: whether an incomplete last line was left out,
    because the recorder was killed.
    """

    path: str
    value: dict[str, Any]
    lines: tuple[int, ...] = ()
    is_cut_off: bool = False

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
    def is_recorded(self) -> bool:
        """Whether it is an observation of a server, in which the order of independent messages is a coincidence."""
        return "recorded" in self.value

    @property
    def is_redacted(self) -> bool:
        """Whether the recorder has replaced secrets by placeholders."""
        recorded = self.value.get("recorded")
        return isinstance(recorded, dict) and bool(recorded.get("redacted"))

    @property
    def redacted_turns(self) -> int:
        """The number of turns that send placeholders, not the secrets."""
        if not self.is_redacted:
            return 0
        sent = [json.dumps(turn.get("send", turn.get("send_text"))) for turn in self.value["exchanges"]]
        return sum(matchers.PLACEHOLDER.search(each) is not None for each in sent)

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
        return [turn(each, revision) for each in self.value["exchanges"]]

    def opening(self, revision: str) -> list[Turn]:
        """Return the turns of its opening, which come first."""
        name = str(self.value["opening"])
        return [] if name == "none" else _turns(_openings(self.path)[name], "opening", revision)


def packaged_opening(opening: str, revision: str) -> list[Turn]:
    """Return the turns of a packaged opening under ``revision``. Raises DocumentError."""
    return _turns(os.path.join(_packaged_openings(), f"{opening}.yaml"), "opening", revision)


def packaged_exchanges(opening: str) -> list[dict[str, Any]]:
    """Return the content of a packaged opening. Raises DocumentError."""
    file = os.path.join(_packaged_openings(), f"{opening}.yaml")
    exchanges: list[dict[str, Any]] = checked(file, "opening")["exchanges"]
    return exchanges


def turn(value: dict[str, Any], revision: str) -> Turn:
    """Return the turn under ``revision`` that ``value``, an entry of ``exchanges``, describes."""
    template: JsonValue = None
    if "send_bytes" in value:
        line = bytes.fromhex(value["send_bytes"])
    elif "send_text" in value:
        line = value["send_text"].encode()
    else:
        sent = matchers.resolve(value["send"], revision)
        try:
            line = message.encode(matchers.bind(sent, {}))
        except KeyError:  # it contains values that are captured during the replay
            line, template = message.encode(sent), sent
    expect = [matchers.resolve(each, revision) for each in value["expect"]]
    return Turn(title(value), line, expect, *_about(line), template)


def title(exchange: Mapping[str, Any]) -> str:
    """Return what an exchange is about: ``about``, or the method, and the tool, prompt or resource that it names."""
    if about := str(exchange.get("about", "")):
        return about
    sent = exchange.get("send")
    if isinstance(sent, dict) and isinstance(sent.get("method"), str):
        params = sent.get("params")
        names = [params.get(key) for key in ("name", "uri")] if isinstance(params, dict) else []
        return " ".join([sent["method"], *(each for each in names if isinstance(each, str))])[:_TITLE]
    return "response" if isinstance(sent, dict) else "batch" if isinstance(sent, list) else "no message"


@functools.cache
def result_schema(method: str) -> Any:
    """Return the JSON Schema of the result of ``method`` in an opening; None for a method that openings do not use."""
    file = os.path.join(paths.CONFORMANCE, "opening.schema.yaml")
    definitions: Any = reader.read(file).mapping()["$defs"]
    return definitions["results"].get(method)


def read(path: str) -> Transcript:
    """Read the transcript at ``path``. Raises DocumentError with all its problems."""
    doc, is_cut_off = _recorded_document(path)
    exchanges: Any = doc.mapping()["exchanges"]
    lines = tuple(doc.origin(("exchanges", number)).line for number in range(len(exchanges)))
    transcript = Transcript(path, doc.mapping(), lines, is_cut_off)
    for each in exchanges if transcript.is_redacted else ():
        each["expect"] = matchers.redacted(each["expect"])
    if problems := [
        *_unknown_opening(transcript, doc),
        *_paths_outside(transcript, doc),
        *_matcher_problems(doc),
    ]:
        raise DocumentError(problems)
    return transcript


def find(path: str) -> list[str]:
    """Return the transcript files at ``path``: the file itself, or all transcripts below a folder, sorted.

    Below a folder, skip folders named ``openings`` or ``fixtures``, and YAML files of another kind, which are not named
    ``NAME.transcript.yaml``.
    """
    if os.path.isfile(path) or packed.read(path) is not None:
        return [path]
    files = {
        os.path.join(path, *name.split("/")) for name in packed.below(path) if not _is_beside(name.split("/")[:-1])
    }
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if not _is_beside([name])]
        files.update(os.path.join(folder, name) for name in names)
    return sorted(file for file in files if file.endswith(".transcript.yaml") or _is_transcript(file))


def _is_beside(folders: Sequence[str]) -> bool:
    """Return whether ``folders`` have the files that transcripts refer to."""
    return not {"openings", "fixtures"}.isdisjoint(folders)


def _is_transcript(path: str) -> bool:
    """Return whether a file has the kind of a transcript. One that cannot be read counts: the reader says why."""
    if not path.endswith(".yaml"):
        return False
    try:
        with open(path, "rb") as file:
            return _KIND.search(file.read(_HEAD)) is not None
    except OSError:
        return _KIND.search((packed.read(path) or b"kind: transcript")[:_HEAD]) is not None


class Rewritten(NamedTuple):
    """What `rewrite` did: whether the file has changed, and the turns that stayed because the revisions differ."""

    changed: bool
    disputed: list[int]


def rewrite(transcript: Transcript, actual: Mapping[int, Mapping[str, list[JsonValue]]]) -> Rewritten:
    """Replace the expectations in the file by ``actual``: turn number → revision → messages.

    Matchers that still match stay.
    """
    changed, disputed, text = False, [], edit.read(transcript.path)
    bindings: dict[str, Bindings] = {}
    for number, by_revision in sorted(actual.items()):
        expect = transcript.value["exchanges"][number - 1]["expect"]
        first, *others = [
            match.update(expect, [*messages], revision, bindings.setdefault(revision, {}))
            for revision, messages in by_revision.items()
        ]
        if any(other != first for other in others):
            disputed.append(number)
        elif first != expect:
            place = ("exchanges", number - 1, "expect")
            if not text.has(place):
                text.add(place, [])
            text.set_block(place, first)
            changed = True
    textfile.save(transcript.path, text.text)
    return Rewritten(changed, disputed)


UNWRITABLE = "are nested too deeply, or have numbers that are not finite"


def rewrite_all(
    actual: Mapping[str, Mapping[int, Mapping[str, list[JsonValue]]]],
) -> tuple[list[str], dict[str, list[int]]]:
    """Replace the expectations in several files, as `rewrite` does.

    ``actual``: path → turn number → revision → messages.

    Returns:
        The paths whose content has changed; and path → turns that were not changed because the revisions differ.

    Raises:
        DocumentError: if a file is no transcript.
    """
    changed, disputed = [], {}
    for path, turns in actual.items():
        rewritten = rewrite(read(path), turns)
        if rewritten.disputed:
            disputed[path] = rewritten.disputed
        if rewritten.changed:
            changed.append(path)
    return changed, disputed


def is_writable(messages: list[JsonValue]) -> bool:
    """Return whether a file can contain ``messages``: YAML files have a limited depth, and only finite numbers."""
    try:
        json.dumps(messages, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    level, depth = [*messages], len(("exchanges", 0, "expect", 0))
    while level:
        level, depth = [inner for value in level for _, inner in reader.entries(value)], depth + 1
    return depth < reader.DEEPEST


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
        if packed.exists(folder)
        for name in packed.names(folder)
        if name.endswith(".yaml")
    }


def _unknown_opening(transcript: Transcript, doc: Document) -> Iterator[Problem]:
    known, name = ["none", *_openings(transcript.path)], str(transcript.value["opening"])
    if name not in known:
        yield doc.problem("unknown_name", ("opening",), kind="opening", name=name, **metaschema.near(name, known))
    elif name != "none":
        checked(_openings(transcript.path)[name], "opening")


def _matcher_problems(doc: Document) -> Iterator[Problem]:
    """Yield a problem for each mistake in a matcher, in the order in which a replay captures values."""
    turns: Any = doc.mapping()["exchanges"]
    captured: set[str] = set()
    for number, turn in enumerate(turns):
        for key in ("send", "expect"):
            at = ("exchanges", number, key)
            for fault in matchers.faults(turn.get(key), at, captured, sent=key == "send"):
                problem = doc.key_problem if fault.of_key else doc.problem
                yield problem(fault.rule, fault.path, **fault.fields)


def _paths_outside(transcript: Transcript, doc: Document) -> Iterator[Problem]:
    """Yield a problem for each path outside the transcript's folder: its configuration, or a path in it.

    A transcript of another author must not make a replay read other files.
    """
    if transcript.config is None:
        return
    folder = os.path.dirname(os.path.abspath(transcript.path))
    if not paths.is_below(transcript.config, folder):
        yield _outside(doc, ("config",), transcript.config, folder)
        return
    config = reader.read(transcript.config, paths.shown(transcript.config))
    for at, path in _paths(config.mapping()):
        whole = os.path.join(os.path.dirname(os.path.abspath(transcript.config)), path)
        if not paths.is_below(whole, folder):
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


def _recorded_document(path: str) -> tuple[Document, bool]:
    """Return the transcript at ``path``, and whether it lacks an incomplete last line of a recording."""
    shown = paths.shown(path)
    text = textfile.read(path, shown, _LARGEST)
    try:
        return _checked(reader.parse(text, shown, _VALUES), "transcript"), False
    except DocumentError:
        complete = text[: text.rfind("\n") + 1]
        complete = complete.removesuffix("    expect:\n")
        if complete in ("", text) or "\nrecorded:" not in complete:
            raise
    return _checked(reader.parse(complete, shown, _VALUES), "transcript"), True


def _document(path: str, kind: str) -> Document:
    return _checked(reader.read(path, paths.shown(path), _VALUES, _LARGEST), kind)


def _checked(doc: Document, kind: str) -> Document:
    """Return ``doc`` if it is a file of this kind. Raises DocumentError. A turn that expects nothing may omit that."""
    exchanges = doc.mapping().get("exchanges")
    for each in exchanges if isinstance(exchanges, list) else ():
        if isinstance(each, dict):
            each.setdefault("expect", [])
    if problems := metaschema.check(doc, os.path.join(paths.CONFORMANCE, f"{kind}.schema.yaml")):
        raise DocumentError(problems)
    return doc


def checked(path: str, kind: str) -> dict[str, Any]:
    """Return the content of a file of this kind. Raises DocumentError with all its problems."""
    return _document(path, kind).mapping()


def _turns(path: str, kind: str, revision: str) -> list[Turn]:
    return [turn(each, revision) for each in checked(path, kind)["exchanges"]]


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
    return request, refers_to, message.is_response(sent)

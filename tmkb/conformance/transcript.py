"""One transcript: read from its file, checked, and ready to be sent under one of its revisions."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tmkb import document, metaschema, paths
from tmkb.conformance import match
from tmkb.engine import message
from tmkb.errors import DocumentError
from tmkb.spec import edit
from tmkb.values import JsonValue


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is sent (a line, without its end) and everything that has to come back."""

    about: str
    line: bytes
    expect: list[JsonValue]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as its file has it; `exchanges` gives it for one revision."""

    path: str
    value: dict[str, Any]

    @property
    def name(self) -> str:
        """The path below ``conformance/``, without the suffix: how a transcript is called."""
        return os.path.splitext(os.path.relpath(self.path, paths.CONFORMANCE))[0].replace(os.sep, "/")

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
        """The modules that it needs and that are not installed."""
        return [str(name) for name in self.value.get("needs", []) if importlib.util.find_spec(str(name)) is None]

    @property
    def arguments(self) -> list[str]:
        """What `tmkb serve` is to be told for it."""
        return ["--server", str(self.value["server"]), *(["--config", self.config] if self.config else [])]

    def exchanges(self, revision: str) -> list[Exchange]:
        """Its exchanges under ``revision``, without the opening."""
        return [_exchange(each, revision) for each in self.value["exchanges"]]

    def opening(self, revision: str) -> list[Exchange]:
        """The shared exchanges that come first."""
        return [] if self.value["opening"] == "none" else shared(self.value["opening"], revision)


def shared(opening: str, revision: str) -> list[Exchange]:
    """The exchanges of a file in ``openings/``. Raises DocumentError."""
    path = os.path.join(paths.CONFORMANCE, "openings", f"{opening}.yaml")
    return [_exchange(each, revision) for each in _checked(path, "opening")["exchanges"]]


def read(path: str) -> Transcript:
    """The transcript in the file ``path``. Raises DocumentError with everything that is wrong with it."""
    return Transcript(path, _checked(path, "transcript"))


def find(path: str) -> list[str]:
    """The files of the transcripts at ``path``: itself, or all below a folder, sorted."""
    if os.path.isfile(path):
        return [path]
    found = [os.path.join(root, name) for root, _, names in os.walk(path) for name in names if name.endswith(".yaml")]
    beside = ("openings", "requirements.yaml", f"{os.sep}fixtures{os.sep}")
    return sorted(p for p in found if not p.endswith(".schema.yaml") and not any(name in p for name in beside))


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


def requirements() -> dict[str, Any]:
    """Requirement id → what it says and where that stands. Raises DocumentError."""
    found: dict[str, Any] = _checked(os.path.join(paths.CONFORMANCE, "requirements.yaml"), "requirements")[
        "requirements"
    ]
    return found


def _checked(path: str, kind: str) -> dict[str, Any]:
    doc = document.read(path, paths.shown(path))
    if problems := metaschema.check(doc, os.path.join(paths.CONFORMANCE, f"{kind}.schema.yaml")):
        raise DocumentError(problems)
    return doc.mapping()


def _exchange(value: dict[str, Any], revision: str) -> Exchange:
    if "send_bytes" in value:
        line = bytes.fromhex(value["send_bytes"])
    elif "send_text" in value:
        line = value["send_text"].encode()
    else:
        line = message.encode(match.put(value["send"], revision))
    return Exchange(value.get("about", ""), line, [match.put(each, revision) for each in value["expect"]])

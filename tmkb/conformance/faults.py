"""Faults of a mock, as data: which requests they select, and what goes wrong with the response."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from tmkb.conformance import match
from tmkb.errors import DocumentError
from tmkb.protocol.messages import Request
from tmkb.schema import metaschema, paths, reader
from tmkb.schema.values import JsonObject, JsonValue

KINDS = ("delay", "error", "truncated", "close", "wrong_id", "duplicate", "not_json", "silence")


class Fault(NamedTuple):
    """What goes wrong with a request. ``value``: the seconds, the error or the text, else True."""

    kind: str
    value: JsonValue

    @property
    def seconds(self) -> float:
        """The delay; 0 for other faults."""
        return float(self.value) if self.kind == "delay" and isinstance(self.value, int | float) else 0.0


class Faults:
    """The entries of a file of faults. It counts the requests that each of them selects."""

    def __init__(self, entries: Sequence[JsonObject]) -> None:
        """``entries``: as ``conformance/faults.schema.yaml`` describes them."""
        self.entries = entries
        self.counts = [0] * len(entries)

    @classmethod
    def read(cls, path: str) -> Faults:
        """Read a file. Raises DocumentError with all its problems."""
        doc = reader.read(path, paths.shown(path))
        if problems := metaschema.check(doc, os.path.join(paths.CONFORMANCE, "faults.schema.yaml")):
            raise DocumentError(problems)
        entries: Any = doc.mapping()["faults"]
        return cls(entries)

    def of(self, request: Request) -> list[Fault]:
        """Return the faults of ``request``, and count it."""
        found = []
        for index, entry in enumerate(self.entries):
            if entry.get("method", request.method) != request.method:
                continue
            if any(match.differences({"$subset": entry.get("params", {})}, request.params)):
                continue
            self.counts[index] += 1
            if entry.get("nth", self.counts[index]) == self.counts[index]:
                found += [Fault(kind, entry[kind]) for kind in KINDS if kind in entry]
        return found

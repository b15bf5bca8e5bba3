"""Transcripts as syrupy's snapshots: what is expected is read from `conformance/`, and an update is written there."""

import functools
import os
from typing import Any

from syrupy.data import Snapshot, SnapshotCollection
from syrupy.extensions.base import AbstractSyrupyExtension

from tmkb.conformance import match, transcript
from tmkb.schema import paths

# (transcript, turn number, revision) ↔ the name of a snapshot
SEPARATOR = " | "
recorded = functools.cache(transcript.read)  # as they were before an update


def snapshot_name(name: str, number: int, revision: str) -> str:
    """How a turn of a transcript is called among the snapshots."""
    return SEPARATOR.join([name, str(number), revision])


def path_of(name: str) -> str:
    """The file of the transcript called ``name``."""
    return os.path.join(paths.CONFORMANCE, f"{name}.yaml")


class TranscriptExtension(AbstractSyrupyExtension):
    """Compares with placeholders; writes with `transcript.rewrite`, which keeps comments and placeholders."""

    def serialize(self, data, *, exclude=None, include=None, matcher=None) -> Any:
        return data

    @classmethod
    def get_snapshot_name(cls, *, test_location, index=0):
        return str(index)

    @classmethod
    def get_location(cls, *, test_location, index):
        return path_of(str(index).split(SEPARATOR, maxsplit=1)[0])

    @classmethod
    def matches_test_location(cls, *, test_location, snapshot_location):
        return True  # one file serves many tests, none of which is called like it

    def discover_snapshots(self, *, test_location, ignore_extensions=None):
        from syrupy.data import SnapshotCollections

        return SnapshotCollections()  # transcripts are never left over: each is a test

    def read_snapshot_data_from_location(self, *, snapshot_location, snapshot_name, session_id):
        _, number, revision = snapshot_name.split(SEPARATOR)
        turns = recorded(snapshot_location).turns(revision)
        return turns[int(number) - 1].expect if int(number) <= len(turns) else []

    def matches(self, *, serialized_data, snapshot_data) -> bool:
        return not list(match.differences(snapshot_data, serialized_data))

    def diff_lines(self, serialized_data, snapshot_data):
        yield from match.differences(snapshot_data, serialized_data)

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection, name_order=None):
        found = transcript.read(snapshot_collection.location)
        actual: dict[int, dict[str, Any]] = {}
        for snapshot in snapshot_collection:
            _, number, revision = snapshot.name.split(SEPARATOR)
            actual.setdefault(int(number), {})[revision] = snapshot.data
        disputed = transcript.rewrite(found, actual).disputed
        assert not disputed, f"{found.path}: revisions disagree about the turns {disputed}"

    def read_snapshot_collection(self, *, snapshot_location):
        collection = SnapshotCollection(location=snapshot_location)
        collection.add(Snapshot(name=snapshot_location))
        return collection

    def delete_snapshots(self, *, snapshot_location, snapshot_names):
        """Transcripts are deleted by hand."""

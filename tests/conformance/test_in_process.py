"""Every packaged transcript under each of its revisions, replayed in this process."""

import itertools
import os

import pytest

from tests.conformance.conversations import CASES, TRANSCRIPTS
from tests.support.emitted import Noted
from tests.support.transcripts import TranscriptExtension, path_of, snapshot_name
from tmkb.conformance import replay, targets
from tmkb.schema import metaschema, paths, reader


@pytest.mark.parametrize(("name", "revision"), CASES, ids=str)
def test_conversation(runtimes, snapshot, name, revision):
    each = TRANSCRIPTS[name]
    target = Noted(targets.InProcess(runtimes(each.value["server"], each.config)))

    for result in replay.replay(each, revision, target):
        expected = snapshot(name=snapshot_name(name, result.number, revision), extension_class=TranscriptExtension)
        assert result.actual == expected, f"turn {result.number}"


def test_titles_are_unique():
    titles = [each.value["title"] for each in TRANSCRIPTS.values()]

    assert sorted(titles) == sorted(set(titles))


def test_transcripts_cover_all_requirements():
    requirements = reader.read(os.path.join(paths.CONFORMANCE, "requirements.yaml"))

    assert not metaschema.check(requirements, os.path.join(paths.CONFORMANCE, "requirements.schema.yaml"))
    assert {each.value["requirement"] for each in TRANSCRIPTS.values()} == set(requirements.mapping()["requirements"])


def test_transcripts_cover_all_revisions(spec):
    assert set(itertools.chain.from_iterable(each.revisions for each in TRANSCRIPTS.values())) == set(spec["revisions"])


def test_transcript_names_lead_to_their_files():
    assert all(path_of(name) == each.path for name, each in TRANSCRIPTS.items())

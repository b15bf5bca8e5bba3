"""The packaged transcripts, as a list of (name, revision)."""

import pytest

from tmkb.conformance import transcript
from tmkb.schema import paths

TRANSCRIPTS = {each.name: each for each in map(transcript.read, transcript.find(paths.CONFORMANCE))}
CONVERSATIONS = [(name, revision) for name, each in TRANSCRIPTS.items() for revision in each.revisions]
CASES = [  # as parameters of a test
    pytest.param(name, revision, marks=pytest.mark.needs("Registry", "evtx") if name.startswith("sysmcp/") else ())
    for name, revision in CONVERSATIONS
]

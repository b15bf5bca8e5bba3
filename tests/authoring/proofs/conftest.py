"""A worker for all proofs of a test session, and fixtures that prove modified patterns."""

import pytest

from tmkb.authoring.proofs import runner, services
from tmkb.knowledge import pattern


@pytest.fixture(scope="session")
def worker():
    worker = runner.Worker(timeout=5)
    yield worker
    worker.close()


@pytest.fixture(scope="session")
def running():
    """The services of all proofs."""
    with services.Services() as running:
        yield running


@pytest.fixture
def prove(worker, running):
    """Prove the pattern in a folder, and return the report."""

    def run(folder, mutate=True):
        read = pattern.read(str(folder))
        assert read.pattern is not None, read.problems
        return runner.prove(str(folder), read.pattern, worker, mutate=mutate, running=running)

    return run


@pytest.fixture
def prove_with(patterns, prove):
    """Replace ``old`` by ``new`` in a file of a pattern, prove it, and return the report."""

    def run(name, file, old, new, mutate=True):
        path = patterns(name) / name / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return prove(path.parent, mutate)

    return run

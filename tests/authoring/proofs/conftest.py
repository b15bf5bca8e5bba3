"""A worker for all proofs of a test session, and a way to spoil a pattern."""

import pytest

from tmkb.authoring.proofs import runner
from tmkb.knowledge import pattern


@pytest.fixture(scope="session")
def worker():
    made = runner.Worker(timeout=5)
    yield made
    made.close()


@pytest.fixture
def prove(worker):
    """The report on the pattern in a folder."""

    def run(folder, mutate=True):
        found = pattern.read(str(folder))
        assert found.pattern is not None, found.problems
        return runner.prove(str(folder), found.pattern, worker, mutate=mutate)

    return run


@pytest.fixture
def spoilt(patterns, prove):
    """The report on a packaged pattern in whose file ``old`` has become ``new``."""

    def run(name, file, old, new, mutate=True):
        path = patterns(name) / name / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return prove(path.parent, mutate)

    return run

"""Fixtures of many tests: the checked spec, runtimes of it, and folders of schemas and patterns.

Three rules hold for every test. One without the marker `process` or `full` starts no process. A module whose optional
import is missing is skipped with a reason. Hypothesis has no deadline, and tries more in the tier `full`.
"""

import contextlib
import dataclasses
import functools
import gc
import os
import pickle
import re
import shutil
import sys
import textwrap

import pytest

from tests.support import optional
from tmkb.knowledge import pattern, questions
from tmkb.schema import load, metaschema, paths, problems, reader
from tmkb.server import log, sources
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server

with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile("tmkb", deadline=None, max_examples=20)
    hypothesis.settings.register_profile("full", deadline=None, max_examples=100)
    hypothesis.settings.load_profile("tmkb")

STARTS = frozenset(["subprocess.Popen", "os.fork", "os.posix_spawn"])  # audit events
gc.set_threshold(20_000, 50, 100)  # a run keeps many objects: patterns, schemas, the tests themselves
running = {"may_start": True}  # what the test that runs now may do


def pytest_configure(config):
    """Let idle workers take tests from others, so that most modules run in one worker. Without xdist there are none."""
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "worksteal"


def refuse_processes(event, _arguments):
    """Raise when a test of the default tier starts a process."""
    if event in STARTS and not running["may_start"]:
        raise AssertionError("This test starts a process: mark it with `process` or `full`")


sys.addaudithook(refuse_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    running["may_start"] = any(item.iter_markers("process")) or any(item.iter_markers("full"))
    try:
        return (yield)
    finally:
        running["may_start"] = True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return optional.skip_instead(collector, report)


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if reason := optional.missing(name):  # a gate without it would hide that nothing was shown
                (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Nothing is read from, or left in, the cache of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMKB_TRACEBACK", "1")  # an error that no command expects fails a test with its traceback
        folder = tmp_path_factory.mktemp("cache")
        for variable in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
            patch.setenv(variable, str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def packaged_patterns_are_read_once():
    """Reading all packaged patterns takes seconds, and no test changes them."""
    known = {}

    def read(folder):
        if os.path.dirname(folder) != paths.PATTERNS:
            return original(folder)
        if folder not in known:
            known[folder] = original(folder)
        return dataclasses.replace(known[folder], problems=[*known[folder].problems])

    original = pattern.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern, "read", read)
        yield


@pytest.fixture(scope="session", autouse=True)
def packaged_schemas_are_read_once():
    """Each test that loads schemas would read and check all packaged ones again, for a fifth of a second."""
    documents, valid = {}, set()

    def read(path, *arguments):
        if not path.startswith(paths.SCHEMAS + os.sep):
            return original_read(path, *arguments)
        key = (path, arguments)
        if key not in documents:
            documents[key] = pickle.dumps(original_read(path, *arguments))
        return pickle.loads(documents[key])  # callers change what they read

    def check(doc, schema, names=None, at=()):
        if not schema.startswith(paths.SCHEMAS + os.sep):
            return original_check(doc, schema, names, at)
        known = {kind: [*each] for kind, each in (names or {}).items()}
        key = hash(pickle.dumps((schema, doc.value, known, at)))
        if key in valid:
            return []
        found = original_check(doc, schema, names, at)
        if not found:
            valid.add(key)
        return found

    original_read, original_check = reader.read, metaschema.check
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "read", read)
        patch.setattr(metaschema, "check", check)
        yield


@pytest.fixture(scope="session", autouse=True)
def files_survive_no_power_failure():
    """A disk that is busy takes longer to write the files of clients than all else that their tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: os.fstat(fd) and None)  # a wrong descriptor is still an error
        yield


@functools.cache  # not a fixture: mutmut runs pytest again and again in forks of one process, which inherit this
def loaded(server, config=None):
    """Load a packaged server with the packaged patterns."""
    return Server.load(server, patterns=["packaged"], config=config)


@pytest.fixture(scope="session")
def found():
    """The packaged server, with the packaged patterns."""
    return loaded("tmkb")


@pytest.fixture(scope="session")
def full_server():
    """The server with all tools, with the packaged patterns."""
    return loaded("tmkb-full")


@pytest.fixture(scope="session")
def packaged_questions():
    """The questions that the packaged models are trained on."""
    return questions.read([paths.PATTERNS]).questions


@pytest.fixture(scope="session")
def spec(found):
    return found.spec


@pytest.fixture(scope="session")
def runtimes(quiet):
    """A runtime of the server of that name, with that configuration."""

    @functools.cache
    def runtime(server, config=None):
        found = loaded(server, config)
        return Runtime(found.spec, found.provider, quiet(found.spec))

    return runtime


@pytest.fixture(scope="session")
def quiet():
    """A log that is not read."""
    with open(os.devnull, "wb") as sink:
        yield lambda spec: log.Log(spec["server"]["log"], fd=sink.fileno())


@pytest.fixture(scope="session")
def runtime(runtimes):
    return runtimes("tmkb")


@pytest.fixture(scope="session")
def ids():
    """The ids of the packaged patterns, sorted."""
    return sorted(name.upper().replace("_", "-") for name in os.listdir(paths.PATTERNS) if not name.startswith("_"))


@pytest.fixture
def run_tmkb(capsys):
    """Run a command of `tmkb` in this process; gives exit status, stdout, stderr."""
    from tmkb.cli import main

    def run(*words):
        try:
            status = main.main([*map(str, words)])
        except SystemExit as exit:
            status = exit.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def overlay(tmp_path):
    """Write files (path → text) into a folder of schemas; gives the folder."""
    folder = tmp_path / "schemas"
    folder.mkdir()

    def write(**files):
        for path, text in files.items():
            target = folder / path.replace("__", "/")
            target = target.with_suffix(target.suffix or ".yaml")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(folder)

    return write


@pytest.fixture
def complaints(overlay):
    """Return the problems of an overlay of these files, checked with the servers that they are of, else with `tmkb`."""

    def check(**files):
        folder = overlay(**files)
        owners = re.findall(r"^servers(?:__|/)(.+?)(?:__|/)", "\n".join(files), re.M)
        found = load.read([folder], sources.names(), owners or ["tmkb"])
        return [problems.line(problem).replace(paths.shown(folder) + "/", "") for problem in found.problems]

    return check


@pytest.fixture
def patterns(tmp_path):
    """A folder with a copy of these patterns of `tests/data`, which stay as they are when packaged ones get better."""
    folder = tmp_path / "patterns"

    def copy(*names):
        for name in names:
            shutil.copytree(os.path.join(os.path.dirname(__file__), "data", "patterns", name), folder / name)
        return folder

    return copy

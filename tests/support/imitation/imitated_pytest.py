"""A pytest plugin: fixtures as they are on the imitated system. Run ``pytest -p imitated_pytest`` in such a process."""

import builtins
import os
import sys

import imitated_system
import pytest

SYSTEM = os.environ["IMITATED_SYSTEM"]


def imitated(name):
    """A module as `tmkb` and `tests` import it."""
    return builtins.__import__(name, {"__package__": "tests"}, None, ("*",), 0)


def path(real):
    """A path of this machine as the system has it."""
    text = str(real)
    return imitated("pathlib").Path(imitated_system.windows_path(text) if SYSTEM == "win32" else text)


class Folders:
    """The factory of folders, which `tmp_path` uses too."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def mktemp(self, *names, **options):
        """Create a folder, and return its path as the system has it."""
        return path(self.real.mktemp(*names, **options))


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory):
    """The factory of folders."""
    return Folders(tmp_path_factory)


class Patch(pytest.MonkeyPatch):
    """Changes the modules that `tmkb` and `tests` see."""

    def setattr(self, target, name, *rest, **options):
        if isinstance(target, str):
            module, _, attribute = target.rpartition(".")
            if module in ("os", "sys", "select", "signal", "os.path", "subprocess", "shutil", "tempfile"):
                return super().setattr(imitated(module), attribute, name, *rest, **options)
        return super().setattr(target, name, *rest, **options)

    def chdir(self, path):
        super().chdir(imitated_system.native(path, SYSTEM))


@pytest.fixture
def monkeypatch():
    patch = Patch()
    yield patch
    patch.undo()


sys.modules["pytest"].MonkeyPatch = Patch

"""Read what is reviewed: changes that Git knows, diffs, files and folders.

Paths are relative to the repository, or to the current folder outside of one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence

from tmkb.errors import DocumentError, Problem
from tmkb.review import changes
from tmkb.review.changes import Section
from tmkb.schema import textfile

_CONTEXT = 8  # unchanged lines around a change, which can contain the check
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the tree without files, with which Git compares a first commit
_LARGEST = 2_000_000  # bytes of a file


class GitError(Exception):
    """Git refused a command, or is missing."""


class Reader:
    """Reads sections.

    Args:
        is_code: whether a file with this path is reviewed. A file that is named is always reviewed.
        with_removed: whether the sections of removed files are read, in which no comment can stand.

    Attributes:
        problems: what could not be read of a folder or of new files; the rest was.
    """

    def __init__(self, is_code: Callable[[str], bool], with_removed: bool = False) -> None:
        self.is_code = is_code
        self.with_removed = with_removed
        self.problems: list[Problem] = []
        self._end = ""  # of the last range of commits

    def uncommitted(self) -> Iterator[Section]:
        """Yield the sections of the changes since the last commit, and of new files that Git does not ignore.

        Raises:
            GitError: Git refused.
        """
        try:
            _git("rev-parse", "--verify", "--quiet", "HEAD")
            commit = "HEAD"
        except GitError:
            commit = _EMPTY
        yield from self.commits(commit)
        root = _root()
        names = _git("-C", root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
        yield from self._files(os.path.join(root, name) for name in names if name)

    def commits(self, commits: str) -> Iterator[Section]:
        """Yield the sections of a range of commits, or of the changes since one. Raises GitError and DocumentError."""
        self._end = (commits.rpartition("..")[2].lstrip(".") or "HEAD") if ".." in commits else ""
        _root()  # outside of a repository, `git diff` compares files
        options = [
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ]
        options += ["--find-renames", "--submodule=short", f"--unified={_CONTEXT}", "--end-of-options", commits, "--"]
        yield from self.diff(_git("-c", "core.quotePath=false", "diff", *options), commits)

    def diff(self, text: str, name: str) -> Iterator[Section]:
        """Yield the sections of a diff that is called ``name``. Raises DocumentError."""
        sections = changes.of_diff(text, name, self.with_removed)
        yield from (section for section in sections if self.is_code(section.path))

    def folder(self, path: str) -> Iterator[Section]:
        """Yield the sections of the files in a folder that Git does not ignore; elsewhere, of those not hidden."""
        try:
            names = _git("-C", path, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
            yield from self._files(os.path.join(path, name) for name in sorted({*names}) if name)
        except GitError:
            yield from self._files(_visible(path))

    def file(self, path: str) -> Iterator[Section]:
        """Yield the sections of one file. Raises DocumentError."""
        text = textfile.read_bytes(path, path, _LARGEST).decode("utf-8-sig", "replace")
        yield from changes.of_file(_from_root(path), text)

    def current(self, sections: Sequence[Section]) -> list[str] | None:
        """Return the lines of the new file of ``sections``, from the working tree or the last commits that were read.

        Each line of the sections must stand there at its place, so that a diff of another project shows no file of this
        one.
        """
        numbered = [(line.number, line.text) for each in sections for line in each.lines if line.number is not None]
        for text in self._versions(sections[0].path) if numbered else ():
            lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
            if all(number <= len(lines) and lines[number - 1] == text for number, text in numbered):
                return lines
        return None

    def _versions(self, path: str) -> Iterator[str]:
        """Yield the text of a file of the repository, or of the current folder outside of one."""
        top = os.path.realpath(_root_of(os.path.realpath(os.curdir)) or os.curdir)
        file = os.path.realpath(os.path.join(top, path))
        if file.startswith(top.rstrip(os.sep) + os.sep) and os.path.isfile(file):
            with contextlib.suppress(DocumentError):
                yield textfile.read_bytes(file, path, _LARGEST).decode("utf-8-sig", "replace")
        if self._end:
            with contextlib.suppress(GitError):
                yield _git("cat-file", "blob", f"{self._end}:{path}")  # without filters

    def _files(self, paths: Iterator[str]) -> Iterator[Section]:
        for path in paths:
            if self.is_code(_from_root(path)) and os.path.lexists(path):
                try:
                    yield from self.file(path)
                except DocumentError as error:
                    self.problems += error.problems


def _visible(folder: str) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(base, name) for name in sorted(names) if not name.startswith("."))


def _from_root(path: str) -> str:
    """Return ``path`` below the repository or the current folder, with slashes; elsewhere as it is."""
    whole = os.path.realpath(path)
    for top in filter(None, (_root_of(os.path.dirname(whole)), os.path.realpath(os.curdir))):
        if whole.startswith(top.rstrip(os.sep) + os.sep):
            return os.path.relpath(whole, top).replace(os.sep, "/")
    return whole.replace(os.sep, "/")


def _root_of(folder: str) -> str | None:
    """Return the nearest folder with a repository at or above ``folder``."""
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _root() -> str:
    return _git("rev-parse", "--show-toplevel").rstrip("\n")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise GitError("it is not installed. Pass files, or a diff on stdin with `-`.") from error
    if done.returncode:
        message = os.fsdecode(done.stderr).strip().split("\n")[0]
        raise GitError(message.removeprefix("fatal: ") or f"git {arguments[0]} failed")
    return os.fsdecode(done.stdout)

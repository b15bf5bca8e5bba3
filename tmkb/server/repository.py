"""Patterns in Git repositories: fetch the newest commit with the `git` command, and keep its files.

The cache folder has a folder for each source. It contains a folder for each kept commit, and the file `current`, which
names the commit to serve. Files are written by this module and not by a checkout, so neither hooks nor filters run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from tmkb.errors import Problem, SpecError
from tmkb.schema import hidden, paths, template
from tmkb.server import cache

TOKEN, USER = "TMKB_GIT_TOKEN", "TMKB_GIT_USER"  # names of variables
MAX_BYTES = 64 << 20  # of everything that git transfers, and of the files of a commit
MAX_FILES = 20_000  # of a commit
_MAX_TARGET = 4095  # bytes of a link; PATH_MAX of Linux without the NUL at the end
SECONDS = 60.0  # of one git command
_KEPT = 2  # commits of a source: other processes may still read the one before
_ABANDONED = 600  # seconds after which no process uses a temporary folder
_POLL = 0.02  # seconds between looks at a git command
_CURRENT, _BELL, _VERSION, _FILES, _TEMPORARY = "current", "pull", "version.json", "files", "tmp-"

_FORM = re.compile(
    r"git\+(?P<scheme>https|ssh|file)://(?P<authority>[^/#?\s]*)(?P<path>/[^#?\s]+)"
    r"(?:#(?P<ref>[^:]*)(?::(?P<folder>.*))?)?"
)
_AUTHORITY = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
)
_REF = re.compile(r"(?!.*(?:\.\.|//|/\.))[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}(?<![/.])")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ENTRY = re.compile(rb"(?P<mode>[0-7]{6}) (?P<type>[a-z]+) (?P<id>[0-9a-f]+) +(?P<size>[0-9]+|-)\t(?P<path>[^\0]+)\0")
# With the user, in a URL. Over HTTP, the user alone can be a token.
_PASSWORD = re.compile(r"(?:(?<=//)[^/@\s]*:|(?<=http://)|(?<=https://))[^/\s]*@", re.IGNORECASE)

# Configuration of every command. Other settings, such as helpers for credentials and proxies, are the user's.
_SETTINGS = (
    "core.hooksPath=" + os.devnull,
    "core.fsmonitor=false",
    "core.bigFileThreshold=1m",  # larger files are not held in memory
    "fetch.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
)
# Variables that choose another repository (git rev-parse --local-env-vars), ask a person, or show credentials.
_REMOVED = (
    *("GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE"),
    *("SSH_ASKPASS", "DISPLAY", "GIT_TRACE", "GIT_TRACE_CURL", "GIT_TRACE_PACKET", "GIT_CURL_VERBOSE"),
)


class Source(NamedTuple):
    """A folder of a branch, tag or commit.

    ``text`` is the source as users write it. ``verified``: whether only commits with a valid signature are served.
    """

    text: str
    scheme: str
    url: str
    ref: str
    folder: str
    verified: bool


class Version(NamedTuple):
    """The files of a commit. ``date``: of the commit, in ISO 8601; ``files``: the folder that contains the patterns."""

    source: Source
    commit: str
    date: str
    files: str


def parse(text: str, verified: bool = False) -> Source:
    """Return the source ``git+https://HOST/PATH#REF:FOLDER``; also with ``ssh`` and ``file``. Raises SpecError.

    REF is a branch, a tag or a complete commit id, by default HEAD of the repository. FOLDER is by default the whole
    repository. The fragment has the form that Docker uses for build contexts.
    """
    form = _FORM.fullmatch(text)
    shown = hide_secrets(text)
    if form is None or not text.isprintable():
        raise SpecError([Problem.of_argument("bad_source", shown)])
    scheme, authority = form["scheme"], form["authority"]
    user, at, _ = authority.rpartition("@")
    if ":" in user or (scheme == "https" and at):
        raise SpecError([Problem.of_argument("password_in_source", shown, variable=TOKEN)])
    ref, folder = form["ref"] or "HEAD", (form["folder"] or "").strip("/")
    valid = _AUTHORITY.fullmatch(authority) if scheme != "file" else not authority
    if not valid or not _REF.fullmatch(ref) or {"", ".", ".."} & {*folder.split("/")} - ({""} if not folder else set()):
        raise SpecError([Problem.of_argument("bad_source", shown)])
    return Source(text, scheme, f"{scheme}://{authority}{form['path']}", ref, folder, verified)


def hide_secrets(text: str) -> str:
    """Return ``text`` without the passwords of URLs, and without the value of ``TMKB_GIT_TOKEN``."""
    token = os.environ.get(TOKEN)
    return _PASSWORD.sub("…@", text.replace(token, "…") if token else text)


def current(source: Source) -> Version | None:
    """Return the version to serve, the last good one; None if there is none."""
    with suppress(OSError), open(os.path.join(_home(source), _CURRENT), encoding="ascii") as file:
        return _kept(source, file.read())
    return None


def age(source: Source) -> float:
    """Return the seconds since `accept`; infinity if no version was accepted."""
    with suppress(OSError):
        return abs(time.time() - os.stat(os.path.join(_home(source), _CURRENT)).st_mtime)
    return float("inf")


def fetch(source: Source) -> Version:
    """Return the newest commit of ``source``. It is transferred unless its files are kept. See `accept`.

    Raises:
        SpecError: with the reason, which contains no credentials.
    """
    home = _home(source)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        _remove_abandoned(home)
        scratch = tempfile.mkdtemp(prefix=_TEMPORARY, dir=home)
    except OSError as error:
        raise failure(source, f"{cache.folder()} cannot be written ({error.strerror})") from error
    try:
        if not cache.is_folder_ours():
            raise failure(source, f"others can write to {cache.folder()}")
        return _fetch(source, scratch)
    except (OSError, ValueError) as error:  # ValueError: the commit has what this system cannot have
        raise failure(source, getattr(error, "strerror", None) or str(error)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def accept(version: Version) -> None:
    """Serve ``version`` from now on, also after a restart, and remove older ones. A failure to write is ignored."""
    home = _home(version.source)
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=home)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(version.commit)
        os.replace(temporary, os.path.join(home, _CURRENT))
        others = [each for each in os.scandir(home) if _COMMIT.fullmatch(each.name) and each.name != version.commit]
        for each in sorted(others, key=lambda each: -each.stat().st_mtime)[_KEPT - 1 :]:
            shutil.rmtree(each.path, ignore_errors=True)


def ring(source: Source) -> None:
    """Ask every process of this machine that serves ``source`` to pull soon."""
    with suppress(OSError), open(os.path.join(_home(source), _BELL), "ab") as bell:
        os.utime(bell.fileno() if os.utime in os.supports_fd else bell.name)


def rung(source: Source) -> int:
    """Return when `ring` was last called, in nanoseconds; 0 for never."""
    with suppress(OSError):
        return os.stat(os.path.join(_home(source), _BELL)).st_mtime_ns
    return 0


def facts(folder: str) -> dict[str, str] | None:
    """Return source, commit and date of the version whose files are in ``folder``; None if it is another folder."""
    root = os.path.join(_root(), "")
    if not folder.startswith(root):
        return None
    home, commit, *_ = [*folder.removeprefix(root).split(os.sep), ""]
    with suppress(OSError, ValueError), open(os.path.join(root, home, commit, _VERSION), encoding="utf-8") as file:
        value: dict[str, str] = json.load(file)
        return value
    return None


def failure(source: Source, reason: str) -> SpecError:
    """Return the error of a pull that failed."""
    return SpecError([Problem.of_argument("not_pulled", source.text, reason=hide_secrets(reason))])


def _root() -> str:
    return os.path.join(cache.folder(), "git")


def _home(source: Source) -> str:
    """Return the folder of ``source``. What was not verified is never served where signatures are required."""
    identity = json.dumps([source.url, source.ref, source.folder, source.verified])
    return os.path.join(_root(), hashlib.sha256(identity.encode()).hexdigest()[:32])


def _kept(source: Source, commit: str) -> Version | None:
    """Return the version of a commit whose files are kept, or None."""
    folder = os.path.join(_home(source), commit)
    if not _COMMIT.fullmatch(commit) or not cache.is_folder_ours():
        return None
    files = os.path.join(folder, _FILES)
    with suppress(OSError, ValueError, LookupError), open(os.path.join(folder, _VERSION), encoding="utf-8") as file:
        date = str(json.load(file)["date"])
        paths.ALIASES[files] = source.text
        return Version(source, commit, date, files)
    return None


def _remove_abandoned(home: str) -> None:
    """Remove what processes have left that were killed."""
    for entry in [*os.scandir(home)]:
        with suppress(OSError):
            if entry.name.startswith(_TEMPORARY) and time.time() - entry.stat().st_mtime > _ABANDONED:
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.remove(entry.path)


def _fetch(source: Source, scratch: str) -> Version:
    """Return the newest commit. New files are first written to the folder ``scratch``."""
    git = _Git(source, os.path.join(scratch, "repository"))
    git.run("init", "--quiet", "--bare", "--template=")
    name, commit = (source.ref, source.ref) if _COMMIT.fullmatch(source.ref) else _resolve(git, source)
    if kept := _kept(source, commit):
        return kept
    git.run("fetch", "--quiet", "--depth=1", "--no-tags", "--", source.url, f"+{name}:refs/tmkb/pulled")
    shown = git.run("show", "--no-patch", "--no-show-signature", "--format=%H %cI", "refs/tmkb/pulled^{commit}")
    commit, date = shown.decode().split()
    if kept := _kept(source, commit):  # the branch has moved since it was looked up
        return kept
    if source.verified:
        git.run("verify-commit", commit)
    made = os.path.join(scratch, "made")
    os.makedirs(os.path.join(made, _FILES))
    _write(git, source, commit, os.path.join(made, _FILES))
    with open(os.path.join(made, _VERSION), "w", encoding="utf-8") as file:
        json.dump({"source": source.text, "commit": commit, "date": date}, file)
    with suppress(OSError):  # another process was faster
        os.rename(made, os.path.join(_home(source), commit))
    if (version := _kept(source, commit)) is None:
        raise failure(source, f"{_home(source)} cannot be written")
    return version


def _resolve(git: _Git, source: Source) -> tuple[str, str]:
    """Return the full name and the commit of the ref, looked up in the order of gitrevisions(7). Raises SpecError."""
    listed = os.fsdecode(git.run("ls-remote", "--quiet", "--", source.url, source.ref, f"{source.ref}^{{}}"))
    refs = {name: commit for commit, _, name in (line.partition("\t") for line in listed.split("\n"))}
    for name in (source.ref, f"refs/{source.ref}", f"refs/tags/{source.ref}", f"refs/heads/{source.ref}"):
        if name in refs:
            return name, refs.get(f"{name}^{{}}", refs[name])
    raise failure(source, f"the repository has no branch and no tag {source.ref}")


class _Git:
    """Runs git commands in a bare repository, with limits on time and size."""

    def __init__(self, source: Source, repository: str) -> None:
        if (program := _program()) is None:
            raise SpecError([Problem.of_argument("no_git", source.text)])
        os.mkdir(repository)
        self.source = source
        self.repository = repository
        settings = [word for setting in (*_SETTINGS, *_credentials(source)) for word in ("-c", setting)]
        self.command = [program, *settings]
        self.environment = {name: value for name, value in os.environ.items() if name not in _REMOVED} | {
            "GIT_ALLOW_PROTOCOL": source.scheme,
            "GIT_ASKPASS": "",
            "GIT_DIR": repository,
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "SSH_ASKPASS_REQUIRE": "never",
        }

    def run(self, *words: str, given: bytes = b"") -> bytes:
        """Return the output of ``git WORDS`` for the input ``given``. Raises SpecError."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            source.write(given)
            source.seek(0)
            process = subprocess.Popen(
                [*self.command, *words],
                cwd=self.repository,
                env=self.environment,
                stdin=source,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # without a terminal, nothing can ask a person
            )
            try:
                self._wait(process, words[0], (output.fileno(), errors.fileno()))
            finally:
                _kill(process)
            for file in (output, errors):
                file.seek(0)
            if process.returncode:
                raise failure(self.source, _reason(errors.read(20_000)) or f"git {words[0]} failed")
            return output.read()

    def _wait(self, process: subprocess.Popen[bytes], command: str, outputs: Sequence[int]) -> None:
        """Wait for the end of a command. Raises SpecError if it takes too long or writes too much."""
        deadline = time.monotonic() + SECONDS
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)
            if sum(os.fstat(file).st_size for file in outputs) + _size(self.repository) > 2 * MAX_BYTES:
                raise failure(self.source, f"it is larger than {MAX_BYTES >> 20} MiB")
            if process.returncode is not None:
                return
            if time.monotonic() > deadline:
                raise failure(self.source, f"git {command} took longer than {SECONDS:g} seconds")


def _program() -> str | None:
    """Return the path of git; None if it is not installed. The current folder is never searched."""
    name = "git.exe" if sys.platform == "win32" else "git"
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    files = (os.path.join(folder, name) for folder in folders)
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), None)


def _credentials(source: Source) -> list[str]:
    """Return the setting of a helper that gives git the token of the environment, for the host of ``source`` only.

    The token itself is in no argument, because other users can see arguments.
    """
    if source.scheme != "https" or not os.environ.get(TOKEN):
        return []
    host = source.url.partition("//")[2].partition("/")[0]
    answer = (
        f"""!f() {{ test "$1" = get && printf 'username=%s\\npassword=%s\\n' "${{{USER}:-git}}" "${TOKEN}"; }}; f"""
    )
    return [f"credential.https://{host}.helper=", f"credential.https://{host}.helper={answer}"]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and the programs that it has started."""
    if sys.platform == "win32":
        process.kill()
    elif process.poll() is None:
        import signal

        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(errors: bytes) -> str:
    """Return the first line of git's messages that says what is wrong. The remote host may have written it."""
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ssh:", "gpg:"))] or lines
    return template.cut(hidden.line(wrong[0].removeprefix("fatal:").strip().rstrip("."))) if wrong else ""


def _size(folder: str) -> int:
    """Return the bytes of the files below ``folder``."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size


class _File(NamedTuple):
    mode: int
    blob: str
    size: int
    path: str


def _write(git: _Git, source: Source, commit: str, folder: str) -> None:
    """Write the files of ``commit`` below ``folder``. Submodules are left out. Raises SpecError and OSError."""
    listed = _listed(source, git.run("ls-tree", "-r", "-z", "-l", f"{commit}:{source.folder}"))
    if sum(file.size for file in listed) > MAX_BYTES:
        raise failure(source, f"its files are larger than {MAX_BYTES >> 20} MiB")
    listed.sort(key=lambda file: stat.S_ISLNK(file.mode))  # links last, so that no file is written through one
    for file, content in _contents(git, listed):
        path = os.path.join(folder, file.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if stat.S_ISLNK(file.mode):
            if not content or b"\0" in content or len(content) > _MAX_TARGET:
                raise failure(source, f"the link {file.path} has no valid target")
            os.symlink(os.fsdecode(content), path)
        else:
            with open(path, "xb") as target:
                target.write(content)
    for file in listed:
        if stat.S_ISLNK(file.mode) and not _is_inside(os.path.join(folder, file.path), folder):
            raise failure(source, f"the link {file.path} leads out of the folder")


def _is_inside(link: str, folder: str) -> bool:
    try:
        return paths.is_below(link, folder)
    except RecursionError:  # a chain of about a thousand links
        return False


def _listed(source: Source, listing: bytes) -> list[_File]:
    """Return the files of a listing of git-ls-tree(1). Raises SpecError."""
    entries = [*_ENTRY.finditer(listing)]
    if len(entries) > MAX_FILES:
        raise failure(source, f"it has more than {MAX_FILES} files")
    files = []
    for entry in entries:
        path = os.fsdecode(entry["path"])
        parts = path.replace("\\", "/").split("/") if sys.platform == "win32" else path.split("/")
        if {"", ".", "..", ".git"} & {*parts} or (sys.platform == "win32" and ":" in path):
            raise failure(source, f"it has a file with the path {path}")
        if entry["type"] == b"blob":
            files.append(_File(int(entry["mode"], 8), entry["id"].decode(), int(entry["size"]), path))
    return files


def _contents(git: _Git, files: Sequence[_File]) -> Iterator[tuple[_File, bytes]]:
    """Yield the content of each file (git-cat-file(1), Batch Output)."""
    packed = git.run("cat-file", "--batch", given="".join(f"{file.blob}\n" for file in files).encode())
    start = 0
    for file in files:
        start = packed.index(b"\n", start) + 1
        yield file, packed[start : start + file.size]
        start += file.size + 1

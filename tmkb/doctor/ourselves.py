"""Check this installation: interpreter, packages, data, schemas, patterns and the start-up cache."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator

import tmkb
from tmkb.clients import launch
from tmkb.clients.client import clients
from tmkb.doctor import program
from tmkb.doctor.finding import Finding, Topic
from tmkb.errors import DocumentError, SpecError
from tmkb.knowledge import library
from tmkb.schema import installation, paths, problems, textfile
from tmkb.server import cache
from tmkb.server.server import Server

TOPIC = Topic("tmkb")
_LISTED = 5  # files or problems that one finding names


def interpreter() -> Iterator[Finding]:
    """Name the Python that runs, and how TMKB was installed for it."""
    python = platform.python_version()
    yield TOPIC.found("python", version=python, path=sys.executable, system=platform.platform(terse=True))
    if folder := launch.temporary_folder():
        yield TOPIC.found("installation-temporary", folder=folder)
    else:
        kind = "a checkout" if paths.ROOT != paths.DATA else _KINDS[installation.kind()]
        yield TOPIC.found("installation", version=tmkb.__version__, kind=kind, folder=_package())


_KINDS = {
    "pipx": "pipx",
    "uv": "uv tool",
    "venv": "a virtual environment",
    "system": "the Python of the system",
}


def dependencies() -> Iterator[Finding]:
    """Look for the packages that a core installation requires."""
    try:
        required = [each for each in installation.required() if not each.extra]
    except importlib.metadata.PackageNotFoundError:
        yield TOPIC.found("metadata-missing", folder=_package())
        return
    versions = {each: _version(each.package) for each in required}
    wrong = False
    if missing := [each.package for each, version in versions.items() if version is None]:
        wrong = True
        yield TOPIC.found("dependency-missing", names=", ".join(missing), python=sys.executable)
    for each, version in versions.items():
        if version is not None and _is_older(version, each.text):
            wrong = True
            yield TOPIC.found(
                "dependency-old", package=each.package, version=version, required=each.text, python=sys.executable
            )
    if not wrong:
        yield TOPIC.found("dependencies", names=", ".join(each.package for each in required))


def package() -> Iterator[Finding]:
    """Compare the installed files with the record that the installer has left; a checkout has none."""
    folders = [paths.SCHEMAS, paths.PATTERNS, paths.CONFORMANCE, paths.CLIENTS]
    if paths.ROOT != paths.DATA and not os.path.isfile(os.path.join(paths.ROOT, "pyproject.toml")):
        folders = [paths.DATA]  # it is no checkout
    if missing := [folder for folder in folders if not os.path.isdir(folder)]:
        yield TOPIC.found("package-incomplete", folders=", ".join(missing))
        return
    if paths.ROOT != paths.DATA:
        yield TOPIC.found("package", files="of the checkout")
        return
    try:
        distribution = importlib.metadata.distribution(installation.NAME)
    except importlib.metadata.PackageNotFoundError:
        yield TOPIC.found("metadata-missing", folder=_package())
        return
    recorded = [each for each in distribution.files or [] if each.parts[0] == "tmkb" and each.hash is not None]
    damaged = [str(each) for each in recorded if not _is_intact(str(each.locate()), each.hash)]
    if damaged:
        names = ", ".join(damaged[:_LISTED]) + (", …" if len(damaged) > _LISTED else "")
        yield TOPIC.at(str(distribution.locate_file(damaged[0]))).found(
            "package-damaged", count=len(damaged), names=names
        )
    else:
        yield TOPIC.found("package", files=str(len(recorded)))


def variables() -> Iterator[Finding]:
    """Look for the folders that variables of the shell name."""
    for variable in ("TMKB_PATTERNS", "TMKB_SCHEMAS"):
        for folder in paths.named(None, variable):
            if folder != library.PACKAGED and not os.path.isdir(folder):
                yield TOPIC.found("variable-without-folder", variable=variable, path=folder)


def knowledge() -> Iterator[Finding]:
    """Load the server as `tmkb serve` does: check its schemas and patterns, and the cache that this writes."""
    try:
        server = Server.load()
    except SpecError as error:
        first = error.problems[0]
        lines = [problems.line(each) for each in error.problems[:_LISTED]]
        yield TOPIC.at(first.file, first.line, first.column).found("schemas-invalid", lines, count=len(error.problems))
        return
    yield TOPIC.found("schemas", folders=", ".join([*paths.named(None, "TMKB_SCHEMAS"), paths.SCHEMAS]))
    if server.warnings:
        log = server.spec["server"]["log"]
        yield TOPIC.found(
            "patterns-invalid",
            details=[_logged(log, *each) for each in server.warnings[:_LISTED]],
            count=len(server.warnings),
        )
    yield _summary()
    yield from _cache(server)


def descriptions() -> Iterator[Finding]:
    """Read the files that describe clients; the files of clients are checked only if they are valid."""
    try:
        names = ", ".join(each.name for each in clients())
    except (DocumentError, SpecError) as error:
        yield TOPIC.found("clients-invalid", [problems.line(each) for each in error.problems[:_LISTED]])
    else:
        yield TOPIC.found("clients", names=names)


def _summary() -> Finding:
    """Return how many patterns there are, when the latest was reviewed, and a digest of them."""
    digest, dates, count = hashlib.sha256(), [], 0
    for folder in library.resolve(paths.named(None, "TMKB_PATTERNS")):
        with contextlib.suppress(OSError, DocumentError):  # the warnings of the server name it
            for path in library.pattern_folders(folder):
                content = textfile.read_bytes(os.path.join(path, "pattern.yaml"), paths.shown(path))
                digest.update(f"{os.path.basename(path)}\0{len(content)}\0".encode() + content)
                dates += re.findall(rb'^reviewed: "?([0-9-]{10})', content, re.M)
                count += 1
    latest = max(dates, default=b"?").decode()
    return TOPIC.found("patterns", count=count, date=latest, digest=digest.hexdigest()[:12])


def _logged(lines: object, line: str, fields: object) -> str:
    from tmkb.schema import template

    assert isinstance(lines, dict) and isinstance(fields, dict)
    return template.fill(str(lines[line]["message"]), fields)


def _cache(server: Server) -> Iterator[Finding]:
    """Check that the next start finds what this one has written."""
    folder = cache.folder()
    existing = _existing(folder)
    if not os.path.isdir(existing):
        yield TOPIC.at(existing).found("cache-blocked", folder=folder, path=existing)
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield TOPIC.at(existing).found("cache-unwritable", folder=existing)
    elif os.path.lexists(folder) and not cache.is_folder_ours():
        yield TOPIC.at(folder).found("cache-shared", folder=folder)
    elif not server.is_cached():
        yield TOPIC.at(folder).found("cache-unused", folder=folder)
    else:
        yield TOPIC.found("cache", folder=folder)


def other_command() -> Iterator[Finding]:
    """Compare the command `tmkb` on PATH, which entries of projects use, with this installation."""
    command = shutil.which("tmkb")
    if command is None:
        yield TOPIC.found("command-not-on-path", command=program.name())
    elif not program.is_same_environment(command):
        yield TOPIC.found("command-elsewhere", command=command, python=sys.executable)
    else:
        yield TOPIC.found("command", command=command)


CHECKS = (interpreter, dependencies, package, variables, knowledge, descriptions, other_command)


def _package() -> str:
    return os.path.dirname(os.path.abspath(tmkb.__file__))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_older(version: str, requirement: str) -> bool:
    """Return whether ``version`` is below the least one of a requirement, such as ``jsonschema>=4.23``."""
    least = re.search(r">=\s*([\d.]+)", requirement)
    return least is not None and _numbers(version) < _numbers(least[1])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]


def _is_intact(file: str, recorded: importlib.metadata.FileHash | None) -> bool:
    if recorded is None or recorded.mode not in hashlib.algorithms_available:
        return os.path.isfile(file)
    try:
        with open(file, "rb") as source:
            actual = hashlib.new(recorded.mode, source.read()).digest()
    except OSError:
        return False
    return base64.urlsafe_b64encode(actual).rstrip(b"=").decode() == recorded.value


def _existing(folder: str) -> str:
    """Return ``folder``, or the nearest folder above it that exists."""
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder

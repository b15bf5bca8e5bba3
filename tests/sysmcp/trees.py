"""The provider of files with settings of a test's own, its operations run to their end, and trees for them."""

import contextlib
import os
import subprocess
import sys

import pytest

from tests.sysmcp.operations import run
from tmkb.errors import ToolError
from tmkb.schema import paths, reader
from tmkb.sysmcp.files.provider import Files

LIMITS = {
    "seconds": 60,
    "answer_bytes": 1 << 20,
    "file_bytes": 1 << 20,
    "hash_bytes": 1 << 26,
    "lines": 3,
    "line_characters": 200,
}
SWAP = os.path.join(os.path.dirname(__file__), "swap.py")
ERRORS = reader.read(os.path.join(paths.SCHEMAS, "servers", "sysmcp", "errors.yaml")).mapping()["errors"]


def served(*, settings=None, limits=None, **roots):
    """Return a provider with these roots."""
    plain = {"symlinks": "never", "one_file_system": True, "show_host_path": False}
    merged = {**plain, **(settings or {}), "limits": {**LIMITS, **(limits or {})}}
    return Files({**merged, "roots": {name: str(path) for name, path in roots.items()}}, None)


def refused(running):
    """Return id and fields of the ToolError, and check its fields against `errors.yaml`."""
    with pytest.raises(ToolError) as raised:
        run(running)
    assert set(raised.value.fields) == set(ERRORS[raised.value.error].get("fields", []))
    return raised.value.error, raised.value.fields


def search(files, pattern="*", **query):
    """Return a page of a search."""
    return run(files.search(pattern=pattern, **query))


def found(files, pattern="*", **query):
    """Return the paths of a search, in order."""
    return [each["path"] for each in search(files, pattern, **query)["files"]]


def pages(files, by="cursor", between=lambda: None, **query):
    """Return the files of all pages, and the last page; call ``between`` before each further page."""
    collected, beside = [], {}
    while True:
        page = run(files.search(**query, **beside))
        collected += page["files"]
        if page["complete"]:
            return collected, page
        beside = {"cursor": page["nextCursor"]} if by == "cursor" else {"offset": page["nextOffset"]}
        between()


def plant(folder, *names, text="inside\n"):
    """Create files with these paths, bytes or text; a path that ends in a slash is a folder."""
    for name in names:
        path = os.path.join(os.fsencode(folder), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not path.endswith(b"/"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


@contextlib.contextmanager
def swapping(one, other):
    """Let another process swap the two names in a loop."""
    process = subprocess.Popen(
        [sys.executable, SWAP, str(one), str(other)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield
        assert process.poll() is None
    finally:
        process.communicate()

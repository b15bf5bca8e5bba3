"""Untrusted files: special files and large files are refused before they are read."""

import os
import socket
import subprocess
import sys
import time

import pytest

from tests.support.process import SERVE
from tmkb.errors import DocumentError
from tmkb.schema import problems, reader, textfile


def fault(path, **options):
    """The rule and fields of the one problem of the file at ``path``."""
    with pytest.raises(DocumentError) as caught:
        textfile.read(str(path), "shown", **options)
    (problem,) = caught.value.problems
    assert problem.file == "shown" and problems.line(problem)
    return problem.rule, problem.fields


def special(path, kind):
    """Make something at ``path`` that is no regular file."""
    if kind == "folder":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))


KINDS = ["folder", pytest.param("FIFO"), pytest.param("device"), pytest.param("socket")]
if sys.platform == "win32":
    KINDS = ["folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_read(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    special(tmp_path / "odd", kind)

    assert fault("odd") == ("not_regular", {"kind": kind})


def test_a_file_is_read_up_to_its_limit(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfab\r\n")

    assert textfile.read(str(tmp_path / "a"), "", limit=7) == "ab\r\n"
    assert fault(tmp_path / "a", limit=6) == ("too_many_bytes", {"limit": 6})


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_no_text_have_their_place(tmp_path, mark):
    (tmp_path / "a").write_bytes(mark + "é\nab\nä".encode() + b"\xff")

    with pytest.raises(DocumentError) as caught:
        textfile.read(str(tmp_path / "a"), "shown")
    assert [(p.file, p.line, p.column) for p in caught.value.problems] == [("shown", 3, 2)]


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"12345")
    real = os.fstat

    def before(descriptor):
        status = list(real(descriptor))
        status[6] = 0
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", before)
    assert fault(tmp_path / "a", limit=4) == ("too_many_bytes", {"limit": 4})


def test_a_file_that_cannot_be_replaced_leaves_no_other_file(tmp_path):
    (tmp_path / "a.yaml").mkdir()

    with pytest.raises(OSError):
        textfile.save(str(tmp_path / "a.yaml"), "a: 1\n")
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


def test_a_large_file_is_refused_sooner_than_a_small_one_is_read(tmp_path):
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text("a:\n" + "- 1\n" * 20_000)
    with open(large, "wb") as file:
        file.truncate(20 << 20)
    began = time.perf_counter()
    reader.read(str(small))
    between = time.perf_counter()
    with pytest.raises(DocumentError):
        reader.read(str(large))

    assert time.perf_counter() - between < between - began


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_the_values_of_a_document_are_counted_while_they_are_read(name):
    with pytest.raises(DocumentError) as caught:
        reader.parse("[1,\n2,\n3]", name, values=3)

    assert [(p.rule, p.line) for p in caught.value.problems] == [("too_many_values", 3)]
    assert reader.parse("[1,\n2]", name, values=3).value == [1, 2]


def test_deep_json_is_reported_not_raised():
    with pytest.raises(DocumentError) as caught:
        reader.parse("[" * 100_000, "file.json")

    assert [p.rule for p in caught.value.problems] == ["too_deep"]


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="no FIFO, no /dev/zero")
@pytest.mark.parametrize("place", ["secure.py", "pattern.yaml", "schema", "config", "record"])
def test_a_start_with_an_odd_file_ends_or_serves_the_rest(tmp_path, patterns, place):
    """Nothing waits for the other end of a FIFO, and no child process stays behind."""
    folder = patterns("acme_auth_001", "acme_auth_024")
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    words = ["--schemas", str(schemas), "--patterns", str(folder), "--no-cache"]
    if place in ("secure.py", "pattern.yaml"):
        (folder / "acme_auth_001" / place).unlink()
        os.mkfifo(folder / "acme_auth_001" / place)
    elif place == "record":
        os.mkfifo(folder / "_proven.yaml")
    elif place == "schema":
        os.mkfifo(schemas / "errors.yaml")
    else:
        words += ["--config", "/dev/zero"]
    done = subprocess.run([*SERVE, *words], input=b"", capture_output=True, timeout=20, check=False)
    log = done.stderr.decode()

    assert b"Traceback" not in done.stderr
    assert done.returncode == (2 if place in ("schema", "config") else 0)
    if place != "record":
        assert "not a regular file. Put a regular file here" in log
    if place in ("secure.py", "pattern.yaml"):
        assert f"acme_auth_001/{place}:1:1: This is a FIFO" in log
        assert "1 patterns loaded" in log

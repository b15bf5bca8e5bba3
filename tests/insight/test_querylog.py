"""The query log: what a line has, files that only their owner reads, limits, and disks that are full."""

import errno
import json
import os
import stat
import sys

import pytest

from tests.insight.test_observer import Observed
from tmkb.insight import querylog
from tmkb.protocol.caller import Caller

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "Flask endpoint that exports  invoices"


class Lines(list):
    """A log that keeps the ids of its lines."""

    def write(self, line, **fields):
        self.append(line)


def lines(folder):
    """Every line of the folder, by file."""
    return [
        json.loads(line)
        for name in sorted(os.listdir(folder))
        for line in (folder / name).read_text("ascii").splitlines()
    ]


def logged(quiet, folder, caller=None, **settings):
    """The line of a query."""
    receiver = querylog.QueryLog(str(folder), Lines(), key=KEY, **settings)
    observed = Observed("tmkb-full", quiet, receiver)
    observed.connection.caller = caller or Caller()
    observed.call("tmkb_query", context=f" {SECRET} ", framework="Flask")
    receiver.close()
    (line,) = lines(folder)
    return line


def test_a_line_has_no_text_and_no_principal_by_default(quiet, tmp_path):
    line = logged(quiet, tmp_path / "log", Caller("ann", view="team"))

    assert line.pop("time").endswith("Z")
    assert line.pop("tokens") > 100
    assert [*line] == ["tool", "stack", "framework", "patterns"]
    assert (line["tool"], line["stack"], line["framework"]) == ("tmkb_query", "flask", "Flask")
    assert all(id_.startswith("TMKB-AUTH-") for id_ in line["patterns"]) and line["patterns"]


def test_text_hash_and_view_are_kept_by_choice(quiet, tmp_path):
    text = logged(quiet, tmp_path / "1", Caller("ann", view="team"), context="text", principal="view")
    hashed = logged(quiet, tmp_path / "2", Caller("ann"), context="hash", principal="hash")
    again = logged(quiet, tmp_path / "3", Caller("bob"), context="hash", principal="hash")
    anonymous = logged(quiet, tmp_path / "4", context="hash", principal="hash")

    assert (text["context"], text["view"]) == (SECRET, "team")
    assert hashed["context_hash"] == again["context_hash"] and len(hashed["context_hash"]) == 16
    assert hashed["principal_hash"] != again["principal_hash"]
    assert "ann" not in json.dumps(hashed) and "principal_hash" not in anonymous


def test_the_hash_depends_on_the_key(quiet, tmp_path):
    one = querylog.QueryLog(str(tmp_path / "1"), Lines(), key=KEY)
    two = querylog.QueryLog(str(tmp_path / "2"), Lines())

    assert one._hash("x") != two._hash("x")


def test_only_queries_are_logged(quiet, tmp_path):
    receiver = querylog.QueryLog(str(tmp_path), Lines())
    observed = Observed("tmkb-full", quiet, receiver)
    observed.call("tmkb_list")
    observed.call("tmkb_query")
    observed.call("unknown")

    assert os.listdir(tmp_path) == []


def test_text_of_clients_cannot_break_a_line(quiet, tmp_path):
    receiver = querylog.QueryLog(str(tmp_path), Lines(), context="text")
    observed = Observed("tmkb-full", quiet, receiver)
    hostile = "export invoices\n{}\x1b[31m\u202e\u2028\ud800" + "x" * 100_000
    observed.call("tmkb_query", context=hostile)
    receiver.close()
    (line,) = lines(tmp_path)

    assert line["context"] == hostile[:2000]


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
def test_files_are_private(quiet, tmp_path):
    logged(quiet, tmp_path / "log")
    (file,) = (tmp_path / "log").iterdir()

    assert stat.S_IMODE(os.stat(tmp_path / "log").st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_files_are_rotated_and_the_oldest_deleted(tmp_path):
    receiver = querylog.QueryLog(str(tmp_path), Lines(), megabytes=1)
    (tmp_path / "other.jsonl").write_bytes(b"x" * 2_000_000)
    line = b"x" * 10_000 + b"\n"
    for _ in range(200):
        receiver._write(line)
    receiver.close()
    ours = sorted(name for name in os.listdir(tmp_path) if querylog.is_log(name))
    sizes = [os.stat(tmp_path / name).st_size for name in ours]

    assert max(sizes) <= 100_000 and 800_000 <= sum(sizes) <= 1_000_000
    assert ours[0].endswith("-11.jsonl") or "-0.jsonl" not in ours[0]
    assert (tmp_path / "other.jsonl").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be deleted")
def test_a_deleted_file_is_replaced(tmp_path):
    receiver = querylog.QueryLog(str(tmp_path), Lines())
    receiver._write(b"1\n")
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    receiver._write(b"2\n")
    receiver.close()

    assert lines(tmp_path) == [2]


def test_a_full_disk_is_logged_once_and_does_not_stop_the_server(quiet, tmp_path, monkeypatch):
    log = Lines()
    receiver = querylog.QueryLog(str(tmp_path), log)
    observed = Observed("tmkb-full", quiet, receiver)
    write = os.write

    def full(fd, data):
        if fd != receiver.fd:
            return write(fd, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    answers = [observed.call("tmkb_query", id=number, context="export invoices") for number in range(3)]
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:20]) if fd == receiver.fd else write(fd, data))
    observed.call("tmkb_query", context="export invoices")
    monkeypatch.undo()
    observed.call("tmkb_query", context="export invoices")
    receiver.close()
    (name,) = os.listdir(tmp_path)
    cut, whole = (tmp_path / name).read_text().splitlines()

    assert all("result" in answer[0] for answer in answers)
    assert log == ["usage_not_written"]
    assert len(cut) == 20 and json.loads(whole)["tool"] == "tmkb_query"


def test_a_folder_that_cannot_be_used_is_an_error_at_the_start(found, run_tmkb, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    status, _, err = run_tmkb("serve", "--patterns", "packaged", "--usage", file)

    assert status == 2
    assert err == f"--usage: Queries cannot be logged in {file}: File exists. Choose another folder.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--usage-context", "text"], "--usage-context: This option is for the log of queries. Add --usage FOLDER."),
        (
            ["--usage", "x", "--usage-context", "all"],
            "--usage-context: 'all' is not a choice here. Choose one of none, hash, text.",
        ),
        (
            ["--usage", "x", "--usage-megabytes", "0"],
            "--usage-megabytes: '0' is not a size. Write a number of megabytes, at least 1.",
        ),
        (
            ["--metrics", "127.0.0.1:0"],
            "--metrics: This option is for servers over HTTP. Add --http HOST:PORT or --uds PATH.",
        ),
    ],
)
def test_wrong_options_are_reported(found, run_tmkb, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert run_tmkb("serve", "--patterns", "packaged", *words) == (2, "", message + "\n")


def test_a_short_key_is_reported(found, run_tmkb, tmp_path, monkeypatch):
    monkeypatch.setenv("TMKB_USAGE_KEY", "short")
    status, _, err = run_tmkb("serve", "--patterns", "packaged", "--usage", tmp_path / "log")

    assert (status, err) == (
        2,
        "TMKB_USAGE_KEY: A key of 5 characters can be guessed. Use at least 32 random characters.\n",
    )

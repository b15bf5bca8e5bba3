"""The audit log: its lines, and files that it does not write to."""

import json
import os
import stat
import sys
import threading

import pytest

from tmkb.errors import ToolError
from tmkb.sysmcp.audit import Audit

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "audit")


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def test_a_call_leaves_one_line(path):
    with Audit(path).call("fs_stat", {"path": "a"}):
        pass

    (line,) = lines(path)
    assert list(line) == ["ts", "tool", "args", "ref", "outcome", "ms"]
    assert (line["tool"], line["args"], line["outcome"]) == ("fs_stat", {"path": "a"}, "ok")
    assert line["ts"].endswith("Z") and line["ms"] >= 0


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ToolError("hive_busy"), "hive_busy"), (GeneratorExit(), "cancelled"), (KeyError(), "failed")],
)
def test_how_a_call_ended(path, error, outcome):
    with pytest.raises(type(error)), Audit(path).call("t", {}):
        raise error

    assert lines(path)[0]["outcome"] == outcome


def test_an_intent_comes_before_and_has_the_same_ref(path):
    audit = Audit(path)
    with audit.call("t", {}) as call:
        call.intend()
        assert [line["outcome"] for line in lines(path)] == ["intent"]
    with audit.call("t", {}):
        pass

    first, second, third = lines(path)
    assert first["ref"] == second["ref"] != third["ref"]


def test_without_a_path_there_is_no_log(tmp_path):
    with Audit(None).call("t", {}) as call:
        call.intend()

    assert os.listdir(tmp_path) == []


@posix
def test_the_file_is_its_owners_alone(path):
    with Audit(path).call("t", {}):
        pass

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@posix
def test_a_link_is_not_followed(path, tmp_path):
    (tmp_path / "other").write_text("")
    os.symlink(tmp_path / "other", path)
    with Audit(path).call("t", {}) as call, pytest.raises(OSError):
        call.intend()

    assert (tmp_path / "other").read_text() == ""


@posix
def test_a_pipe_without_a_reader_does_not_block(path):
    os.mkfifo(path)
    with Audit(path).call("t", {}) as call, pytest.raises(OSError):
        call.intend()


def test_lost_lines_are_counted_and_the_next_starts_on_a_new_line(path, tmp_path):
    audit = Audit(path)
    os.mkdir(path)
    for _ in range(3):
        with audit.call("t", {}):
            pass
    os.rmdir(path)
    (tmp_path / "audit").write_text('{"half": ')
    for _ in range(2):
        with audit.call("t", {}):
            pass

    half, *rest = (tmp_path / "audit").read_text().splitlines()
    assert half == '{"half": '
    assert [json.loads(line).get("lost") for line in rest] == [3, None]


def test_arguments_cannot_break_a_line(path):
    with Audit(path).call("t", {"path": 'a\n{"tool": "x"}\u2028\ud800'}):
        pass

    assert len(lines(path)) == 1


def test_many_writers_do_not_mix_their_lines(path):
    def write():
        audit = Audit(path)
        for _ in range(100):
            with audit.call("t", {"path": "x" * 5000}):
                pass

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert len(lines(path)) == 400

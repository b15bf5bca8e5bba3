"""A walk finds everything below a folder in the order of bytes, and can begin anywhere."""

import os
import random
import shutil
import socket
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sysmcp.trees import plant
from tmkb.sysmcp.files import beneath, names
from tmkb.sysmcp.files.walk import Skipped, Walk

pytestmark = pytest.mark.skipif(not beneath.IS_SUPPORTED, reason="files are served on Linux only")

NAME = st.sampled_from(
    [b"a", b"a.b", b"a b", b"b", "é".encode(), b"\xff", "\ue000".encode(), b"\\", b"\n", b".a", b"Z"]
)
TREES = st.lists(st.lists(NAME, min_size=1, max_size=4).map(b"/".join), max_size=12)


def walked(folder, after=(), depth=64, hidden=True, skipped=None):
    """Shown paths, in their order."""
    with beneath.closing_fd(os.open(folder, beneath.FOLDER)) as fd:
        walk = Walk(fd, depth, hidden, True, skipped or Skipped())
        return [entry.path for entry in walk.entries(after) if entry is not None]


def listed(folder):
    """The same by other means."""
    paths = [
        os.path.relpath(os.path.join(at, name), os.fsencode(folder)).split(b"/")
        for at, folders, files in os.walk(os.fsencode(folder))
        for name in folders + files
    ]
    return ["/".join(names.display(os.fsdecode(name)) for name in path) for path in sorted(paths)]


def grow(folder, tree):
    for path in tree:
        try:
            plant(folder, path)
        except (IsADirectoryError, FileExistsError, NotADirectoryError):  # another one has that name
            continue


@given(TREES)
def test_a_walk_finds_all_in_the_order_of_bytes(tree):
    with tempfile.TemporaryDirectory() as folder:
        grow(folder, tree)

        assert walked(folder) == listed(folder)


@given(TREES, st.randoms(use_true_random=False))
def test_a_walk_continues_after_any_path_despite_deletions(tree, chance):
    with tempfile.TemporaryDirectory() as folder:
        grow(folder, tree)
        for reached, path in enumerate(before := walked(folder)):
            assert walked(folder, names.split(path)) == before[reached + 1 :]
        if not before:
            return
        at = chance.randrange(len(before))
        remove(folder, chance.sample(before, chance.randrange(len(before) + 1)))
        left = set(listed(folder))

        assert walked(folder, names.split(before[at])) == [path for path in before[at + 1 :] if path in left]


def remove(folder, paths):
    for path in paths:
        gone = os.path.join(os.fsencode(folder), *map(os.fsencode, names.split(path)))
        if os.path.isdir(gone):
            shutil.rmtree(gone)
        elif os.path.lexists(gone):
            os.unlink(gone)


def test_a_walk_starts_after_a_path_that_does_not_exist(tmp_path):
    plant(tmp_path, "a/b", "c/d")

    assert walked(tmp_path, ["a", "z"]) == ["c", "c/d"]
    assert walked(tmp_path, ["b", "x", "y"]) == ["c", "c/d"]
    assert walked(tmp_path, ["c", "d", "e"]) == []


def test_links_are_listed_and_not_entered(tmp_path):
    plant(tmp_path, "folder/file")
    (tmp_path / "folder" / "loop").symlink_to("..")
    (tmp_path / "link").symlink_to("folder")

    assert walked(tmp_path) == ["folder", "folder/file", "folder/loop", "link"]


def test_hidden_names_are_left_out_with_their_content(tmp_path):
    plant(tmp_path, ".git/config", "a/.b", "a/c")

    assert walked(tmp_path, hidden=False) == ["a", "a/c"]


def test_the_depth_limits_a_walk(tmp_path):
    plant(tmp_path, "/".join(f"{level:02}" for level in range(80)))

    assert walked(tmp_path, depth=0) == ["00"]
    assert len(walked(tmp_path, depth=64)) == 65


def test_a_folder_with_too_long_a_path_is_counted(tmp_path):
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # of 250 bytes each
        os.mkdir("x" * 250, dir_fd=at)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    skipped = Skipped()

    assert max(map(len, walked(tmp_path, skipped=skipped))) < 4096 + 256
    assert skipped.counts["error"] == 1


def test_pipes_sockets_and_devices_are_listed_and_not_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")

    assert walked(tmp_path) == ["pipe", "socket"]
    assert {"null", "zero"} <= set(walked("/dev", depth=0))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_unreadable_folders_are_counted(tmp_path):
    plant(tmp_path, "a/file", "b/file", "c")
    tmp_path.chmod(0o755)
    (tmp_path / "b").chmod(0o700)
    skipped = Skipped()
    with beneath.closing_fd(os.open(tmp_path, beneath.FOLDER)) as fd:
        os.seteuid(65534)
        try:
            found = [entry.path for entry in Walk(fd, 64, False, True, skipped).entries() if entry is not None]
        finally:
            os.seteuid(0)

    assert found == ["a", "a/file", "b", "c"]
    assert skipped.counts == {"permission": 1, "error": 0, "binary": 0, "tooLarge": 0}


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no second file system")
def test_another_file_system_is_entered_only_if_permitted(tmp_path):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file, beneath.closing_fd(os.open("/dev", beneath.FOLDER)) as fd:
        name = os.path.basename(file.name)
        for one_file_system in (True, False):
            walk = Walk(fd, 1, False, one_file_system, Skipped())
            found = {entry.path for entry in walk.entries() if entry is not None}
            assert "shm" in found
            assert (f"shm/{name}" in found) is not one_file_system


def test_as_many_folders_are_open_as_it_is_deep_and_none_at_the_end(tmp_path):
    for number in range(30):
        plant(tmp_path, f"{number}/" + "x/" * 20)
    before = open_files()
    with beneath.closing_fd(os.open(tmp_path, beneath.FOLDER)) as fd:
        entries = Walk(fd, 64, False, True, Skipped()).entries()
        most = max(open_files() for _ in entries)
        abandoned = Walk(fd, 64, False, True, Skipped()).entries()
        for entry in abandoned:
            if entry is not None and entry.path.endswith("x/x/x"):
                break
        abandoned.close()

        assert before + 20 < most <= before + 1 + 22 + 1  # the first, the levels below, the one that is being listed
        assert open_files() == before + 1
    assert open_files() == before


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_folders_deleted_during_a_walk_cause_no_error(tmp_path):
    plant(tmp_path, *[f"{number:03}/file" for number in range(200)])
    chance, skipped, seen = random.Random(1), Skipped(), []
    with beneath.closing_fd(os.open(tmp_path, beneath.FOLDER)) as fd:
        for entry in Walk(fd, 64, False, True, skipped).entries():
            if entry is not None and "/" not in entry.path:
                seen.append(entry.path)
                shutil.rmtree(tmp_path / f"{chance.randrange(200):03}", ignore_errors=True)

    assert len(seen) == 200
    assert skipped.counts == {"permission": 0, "error": 0, "binary": 0, "tooLarge": 0}

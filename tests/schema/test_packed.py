"""Packed files are read like files on disk, which override them."""

import os

import pytest

from tmkb.schema import packed, paths, textfile

FILES = {"a/one.yaml": b"1", "b/one.yaml": b"", "b/deep/two.py": b"x = '\n'\n", "top.yaml": "é".encode()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of patterns, with packed files and one on disk."""
    monkeypatch.setattr(paths, "PATTERNS", str(tmp_path))
    (tmp_path / packed.NAME).write_bytes(packed.pack(FILES))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "other.yaml").write_text("2")
    return str(tmp_path)


def test_packed_files_are_read(folder):
    assert {name: packed.read(os.path.join(folder, name)) for name in FILES} == FILES
    assert textfile.read(os.path.join(folder, "top.yaml"), "top.yaml") == "é"
    assert packed.read(os.path.join(folder, "none.yaml")) is None
    assert packed.read(folder) is None


def test_folders_list_both(folder):
    assert packed.names(folder) == [packed.NAME, "a", "b", "top.yaml"]
    assert packed.names(os.path.join(folder, "a")) == ["one.yaml", "other.yaml"]
    assert packed.names(os.path.join(folder, "b")) == ["deep", "one.yaml"]
    assert packed.below(os.path.join(folder, "b")) == ["deep/two.py", "one.yaml"]
    assert [packed.exists(os.path.join(folder, name)) for name in ("a", "b/deep", "top.yaml", "bo", "c")] == [
        *[True] * 3,
        *[False] * 2,
    ]
    assert [packed.is_folder(os.path.join(folder, name)) for name in ("a", "b/deep", "top.yaml", "c")] == [
        *[True] * 2,
        *[False] * 2,
    ]


def test_a_file_on_disk_overrides_a_packed_one(folder):
    with open(os.path.join(folder, "top.yaml"), "w", encoding="utf-8") as file:
        file.write("new")

    assert textfile.read(os.path.join(folder, "top.yaml"), "") == "new"


def test_other_folders_have_no_packed_files(folder, tmp_path):
    assert packed.read(f"{folder}-other/top.yaml") is None
    with pytest.raises(FileNotFoundError):
        packed.names(f"{folder}-other")


def test_packing_does_not_depend_on_the_order_of_files():
    assert packed.pack(FILES) == packed.pack(dict(reversed(FILES.items())))

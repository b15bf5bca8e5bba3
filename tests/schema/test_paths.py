"""Paths in messages are short, and are named as users know them."""

import os

from tmkb.schema import paths


def test_paths_below_the_current_folder_are_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert paths.shown(str(tmp_path / "a" / "b.yaml")) == os.path.join("a", "b.yaml")
    assert paths.shown(str(tmp_path.parent / "b.yaml")) == str(tmp_path.parent / "b.yaml")
    monkeypatch.chdir(os.sep)
    assert paths.shown(os.path.join(os.sep, "a", "b.yaml")) == os.path.join(os.sep, "a", "b.yaml")


def test_files_of_an_installed_package(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", str(tmp_path / "data"))

    assert paths.is_installed(str(tmp_path / "data" / "a.yaml"))
    assert not paths.is_installed(str(tmp_path / "data.yaml"))


def test_a_folder_can_have_another_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "ALIASES", {str(tmp_path / "other"): "x", str(tmp_path / "a"): "git@host"})

    assert paths.shown(str(tmp_path / "a")) == "git@host"
    assert paths.shown(str(tmp_path / "a" / "b.yaml")) == os.path.join("git@host", "b.yaml")
    assert paths.shown(str(tmp_path / "ab.yaml")) == "ab.yaml"


def test_a_folder_whose_name_begins_with_that_of_another_is_not_below_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a")

    assert paths.is_below(str(tmp_path / "a"), str(tmp_path / "a"))
    assert paths.is_below(str(tmp_path / "link" / "b.yaml"), str(tmp_path / "a"))
    assert not paths.is_below(str(tmp_path / "ab"), str(tmp_path / "a"))
    assert not paths.is_below(str(tmp_path), str(tmp_path / "a"))

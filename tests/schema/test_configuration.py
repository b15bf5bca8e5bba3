"""The file of `--config`: problems of its paths and names have their place in it."""

import os

import pytest

from tmkb.providers import registry
from tmkb.schema import configuration, load, problems
from tmkb.server import sources


@pytest.fixture
def problems_of(tmp_path, monkeypatch):
    """Write a configuration of the server `sysmcp`, and return its problems."""
    monkeypatch.chdir(tmp_path)

    def read(text):
        (tmp_path / "config.yaml").write_text("kind: config\n" + text)
        config = configuration.read("config.yaml", "sysmcp")
        return [problems.line(each) for each in load.read([], sources.names(), ["sysmcp"], config).problems]

    return read


def test_folders_are_relative_to_the_file(problems_of, tmp_path):
    (tmp_path / "logs").mkdir()

    assert problems_of("providers: {files: {roots: {logs: logs}, audit: logs/audit.jsonl}}\n") == []
    assert problems_of("providers: {files: {roots: {logs: log}}}\n") == [
        "config.yaml:2:35: Folder log does not exist. Create it, or use another folder."
    ]


@pytest.mark.parametrize("path", ["missing/audit.jsonl", "link", "folder", '"a\\0b"'])
def test_an_audit_log_is_a_regular_file(problems_of, tmp_path, path):
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path / "target", tmp_path / "link")

    (line,) = problems_of(f"providers: {{files: {{audit: {path}}}}}\n")
    assert line.startswith("config.yaml:2:28: Cannot append to the log file ")


def test_an_existing_audit_log_is_continued(problems_of, tmp_path):
    (tmp_path / "audit.jsonl").write_text("{}\n")

    assert problems_of("providers: {files: {audit: audit.jsonl}}\n") == []


def test_only_services_can_be_left_out(problems_of):
    assert problems_of("without: [fs, file]\n") == [
        "config.yaml:2:15: There is no service 'file'. Known: eventlog, fs, reg."
    ]


def test_a_configuration_can_name_a_class(tmp_path):
    (tmp_path / "config.yaml").write_text("kind: config\nproviders: {house: {provider: 'json:loads'}}\n")
    config = configuration.read(str(tmp_path / "config.yaml"), "sysmcp")

    found = load.read([], sources.names(), ["sysmcp"], config, registry.offer).problems
    assert [(each.rule, each.line, each.column) for each in found] == [("bad_class", 2, 31)]

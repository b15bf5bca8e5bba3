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


TOOL = "  - {kind: tool, name: house_rules, description: The rules., provider: script.answer, input: {type: object}, answer: Ask.}\n"
SERVICE = "kind: service\nid: house\nname: House\nversion: '1'\ntools:\n" + TOOL


@pytest.fixture
def left_out(tmp_path, monkeypatch):
    """Return the problems of the services in a folder, and the tools of those without problems."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("kind: config\nservices: services\n")

    def read():
        config = configuration.read("config.yaml", "sysmcp")
        found = load.read([], sources.names(), ["sysmcp"], config)
        tools = [each.rpartition("/")[2] for each in found.documents if "/tools/house" in each]
        return [problems.line(each) for each in config.left_out], tools

    return read


def test_a_service_adds_its_tools(left_out, tmp_path):
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "house.yaml").write_text(SERVICE)

    assert left_out() == ([], ["house_rules"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SERVICE + TOOL, "7:24: A tool named 'house_rules' already exists. Use another name."),
        (SERVICE.replace("answer: Ask.", "answer: 5"), "6:118: answer must be a string or a map, not an integer."),
        (
            SERVICE.replace("id: house", "id: home"),
            "2:5: The file is named house, but its id is 'home'. Rename one of them.",
        ),
    ],
)
def test_a_wrong_service_is_left_out_as_a_whole(left_out, tmp_path, text, problem):
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "house.yaml").write_text(text)

    assert left_out() == ([f"services/house.yaml:{problem}"], [])


def test_a_missing_folder_of_services(left_out):
    assert left_out() == (["config.yaml:2:11: Cannot list services: No such file or directory."], [])

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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("providers: {files: {roots: {logs: log}}}\n", "2:35: Folder log does not exist. Create it, or use another folder."),
        ("providers: {files: {root: {}}}\n", "2:21: Unknown key 'root' in providers.files. Did you mean 'roots'?"),
        ("providers: {house: {provider: 'house:House'}}\n", "2:31: 'house:House' is Python code, which is not allowed here. Allow it with --allow-python, or install the provider as a package with an entry point."),
        ("limits: {runing: 5}\n", "2:10: Unknown key 'runing' in limits. Did you mean 'running'?"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_in_the_file(problems_of, text, problem):
    assert problems_of(text) == [f"config.yaml:{problem}"]


def test_a_service_without_which_others_are_served(tmp_path):
    (tmp_path / "config.yaml").write_text("kind: config\nwithout: [fs, reg]\nlimits: {running: 3}\n")
    config = configuration.read(str(tmp_path / "config.yaml"), "sysmcp")

    spec = load.load("sysmcp", [], sources.names(), config)
    assert {name.partition("_")[0] for name in spec["tools"]} == {"eventlog"}
    assert spec["server"]["limits"]["running"] == 3


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
        (
            SERVICE + "extends: packaged\n",
            "7:1: `extends: packaged`, but no packaged file has the path servers/sysmcp/services/house. Remove `extends` to add a new file.",
        ),
        (
            SERVICE.replace("answer: Ask.", "answer: {$file: rules.md}"),
            "6:126: Cannot read the file services/rules.md: No such file or directory. Write its path from the folder of this YAML file.",
        ),
        (
            SERVICE.replace("house_rules", "rules"),
            "6:24: 'rules' does not begin with 'house_'. Begin the names of tools with the id of their service.",
        ),
    ],
)
def test_a_wrong_service_is_left_out_as_a_whole(left_out, tmp_path, text, problem):
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "house.yaml").write_text(text)

    assert left_out() == ([f"services/house.yaml:{problem}"], [])


def test_an_answer_of_a_service_is_in_a_file_beside_it(left_out, tmp_path):
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "house.yaml").write_text(SERVICE.replace("Ask.", "{$file: rules.md}"))
    (tmp_path / "services" / "rules.md").write_text("Ask {who}.")

    assert left_out() == ([], ["house_rules"])


def test_the_name_of_a_service_is_taken(left_out, tmp_path):
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "fs.yaml").write_text(SERVICE)

    assert left_out() == (
        ["services/fs.yaml:2:5: A service named 'fs' already exists. Rename the file and its `id`."],
        [],
    )


def test_a_missing_folder_of_services(left_out):
    assert left_out() == (["config.yaml:2:11: Cannot list services: No such file or directory."], [])

"""``tmkb install``: what it prints, which files it changes, and how it ends."""

import json
import os
import sys
from typing import NamedTuple

import pytest

from tmkb.cli import install
from tmkb.clients import launch, processes
from tmkb.clients.client import client
from tmkb.clients.machine import Machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths are compared as POSIX writes them")


class Checker:
    """Finds nothing, and starts nothing."""

    def __init__(self, machine):
        pass

    def check(self, client):
        return []


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with Cursor and Codex; the current folder is a project in it."""
    for folder in ("home/.cursor", "home/.codex", "home/project"):
        (tmp_path / folder).mkdir(parents=True)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for variable in (
        "APPDATA",
        "LOCALAPPDATA",
        "XDG_CONFIG_HOME",
        "CODEX_HOME",
        "COPILOT_HOME",
        "CLINE_DIR",
        "CLAUDE_CONFIG_DIR",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path / "home" / "project")
    monkeypatch.setattr(launch, "command", lambda: ("/opt/tmkb/bin/tmkb", []))
    monkeypatch.setattr(launch, "temporary_folder", lambda: None)
    monkeypatch.setattr(processes, "is_running", lambda _: False)
    monkeypatch.setattr(install.doctor, "Checker", Checker)
    return tmp_path / "home"


def test_install_twice_and_uninstall(run_tmkb, home):
    file = home / ".cursor" / "mcp.json"
    file.write_text('{\n  // mine\n  "mcpServers": {}\n}\n')
    status, out, err = run_tmkb("install", "cursor")

    (backup,) = [name for name in os.listdir(file.parent) if name != "mcp.json"]
    assert (status, err) == (0, "")
    assert out == (
        f"Cursor: tmkb is added to ~/.cursor/mcp.json (backup: {backup}).\n"
        "  Switch the server on in Settings → MCP, or restart Cursor.\n"
    )
    assert '"tmkb": {\n      "command": "/opt/tmkb/bin/tmkb",\n      "args": ["serve"]\n    }' in file.read_text()
    assert run_tmkb("install", "cursor") == (0, "Cursor: tmkb is already installed in ~/.cursor/mcp.json.\n", "")
    status, out, _ = run_tmkb("install", "cursor", "--uninstall")
    assert status == 0
    assert out.startswith("Cursor: tmkb is removed from ~/.cursor/mcp.json (backup: mcp.json.tmkb-")
    assert file.read_text() == '{\n  // mine\n  "mcpServers": {}\n}\n'
    assert run_tmkb("install", "cursor", "--uninstall") == (0, "Cursor: tmkb is not in ~/.cursor/mcp.json.\n", "")


def test_several_clients_and_one_that_is_not_there(run_tmkb, home, monkeypatch):
    monkeypatch.setattr(launch, "is_gone", lambda _: False)
    status, out, err = run_tmkb("install", "cursor", "zed", "codex")

    assert (status, [line.partition(" (")[0] for line in out.splitlines()[::2]]) == (
        1,
        ["Cursor: tmkb is added to ~/.cursor/mcp.json.", "Codex: tmkb is added to ~/.codex/config.toml."],
    )
    assert err == (
        "tmkb: Zed does not seem to be installed: there is no ~/.config/zed. Start it once, or add --force to create the "
        "file all the same. Nothing was changed.\n"
    )
    assert run_tmkb("install", "--list")[1] == (
        "client  entry  scope  file\n"
        "codex   tmkb   user   ~/.codex/config.toml\n"
        "cursor  tmkb   user   ~/.cursor/mcp.json\n"
    )


def test_the_list_names_a_command_that_is_gone(run_tmkb, home):
    file = home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {"tmkb": {"command": "/gone/tmkb", "args": ["serve"]}}}')

    assert run_tmkb("install", "--list", "cursor")[1].splitlines()[1] == (
        "cursor  tmkb   user   ~/.cursor/mcp.json: The command /gone/tmkb does not exist."
    )


def test_the_list_has_an_entry_with_a_url(run_tmkb, home):
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"tmkb": {"url": "http://127.0.0.1:8000/mcp"}}}')

    assert run_tmkb("install", "--list", "cursor")[1].splitlines()[1] == "cursor  tmkb   user   ~/.cursor/mcp.json"


def test_all_clients_of_this_machine(run_tmkb, home):
    assert run_tmkb("install", "--list")[1].splitlines()[1:] == [
        "codex   -      -      not installed",
        "cursor  -      -      not installed",
    ]
    values = json.loads(run_tmkb("install", "--all", "--json")[1])
    assert [(value["client"], value["action"]) for value in values] == [("codex", "added"), ("cursor", "added")]
    values = json.loads(run_tmkb("install", "--all", "--uninstall", "--json")[1])
    assert [(value["client"], value["action"]) for value in values] == [("codex", "removed"), ("cursor", "removed")]


def test_options_of_the_server(run_tmkb, home):
    (home / "project" / "mine").mkdir()
    words = ("--name", "kb", "--server", "tmkb-full", "--patterns", "mine", "--patterns", "packaged")
    assert run_tmkb("install", "cursor", *words)[0] == 0

    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["kb"]
    folder = str(home / "project" / "mine")
    assert entry["args"] == ["serve", "--server", "tmkb-full", "--patterns", folder, "--patterns", "packaged"]


def test_a_project_gets_a_command_without_a_path(run_tmkb, home):
    status, out, _ = run_tmkb("install", "claude-code", "copilot-cli", "--scope", "project")

    assert status == 0
    assert out.splitlines() == [
        "Claude Code: tmkb is added to .mcp.json.",
        "  Run claude in this folder and approve the server once; /mcp lists it.",
        "Copilot CLI: tmkb is already installed in .mcp.json.",
    ]
    assert json.loads((home / "project" / ".mcp.json").read_text()) == {
        "mcpServers": {"tmkb": {"type": "stdio", "command": "tmkb", "args": ["serve"]}}
    }


def test_a_folder_of_this_machine_in_a_shared_file_is_told(run_tmkb, home):
    words = ("install", "cursor", "--scope", "project", "--no-check", "--patterns")

    assert run_tmkb(*words, "packaged")[2] == ""
    assert run_tmkb(*words, ".", "--force")[2] == (
        "tmkb: --patterns: The file is shared with others, who may not have the folder at this path.\n"
    )


def test_print_and_link_change_nothing(run_tmkb, home):
    before = sorted(home.rglob("*"))

    assert run_tmkb("install", "codex", "--print")[1] == (
        '[mcp_servers.tmkb]\ncommand = "/opt/tmkb/bin/tmkb"\nargs = ["serve"]\n'
    )
    assert json.loads(run_tmkb("install", "zed", "--print")[1])["context_servers"]["tmkb"]["source"] == "custom"
    assert run_tmkb("install", "vscode", "--link")[1].startswith("vscode:mcp/install?%7B%22name%22%3A%22tmkb%22")
    text, link = run_tmkb("install", "cursor", "--link", "--print")[1].rsplit("\n", 2)[:2]
    assert json.loads(text)["mcpServers"] and link.startswith(
        "cursor://anysphere.cursor-deeplink/mcp/install?name=tmkb&"
    )
    assert run_tmkb("install", "zed", "--link") == (
        2, "", "--link: Zed has no links that install a server. These have: cursor, vscode.\n",
    )  # fmt: skip
    assert sorted(home.rglob("*")) == before


def test_a_dry_run_shows_the_difference(run_tmkb, home):
    file = home / ".codex" / "config.toml"
    file.write_text("model = 'x'\n")
    status, out, _ = run_tmkb("install", "codex", "--dry-run")

    assert (status, file.read_bytes(), os.listdir(file.parent)) == (0, b"model = 'x'\n", ["config.toml"])
    assert out.startswith("Codex: tmkb would be added to ~/.codex/config.toml (backup: config.toml.tmkb-")
    assert out.splitlines()[1:] == [
        "--- ~/.codex/config.toml", "+++ ~/.codex/config.toml", "@@ -1 +1,5 @@", " model = 'x'", "+",
        "+[mcp_servers.tmkb]", '+command = "/opt/tmkb/bin/tmkb"', '+args = ["serve"]',
    ]  # fmt: skip


def test_another_entry_is_shown_and_replaced_by_force(run_tmkb, home):
    file = home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {"tmkb": {"command": "old"}}}')
    status, out, err = run_tmkb("install", "cursor")

    assert status == 1 and '-{"mcpServers": {"tmkb": {"command": "old"}}}' in out.splitlines()
    assert err == (
        "tmkb: ~/.cursor/mcp.json:1:17: There is another entry 'tmkb' here. --force replaces it, --name OTHER adds a "
        "second one. Nothing was changed.\n"
    )
    assert run_tmkb("install", "cursor", "--force")[1].startswith(
        "Cursor: tmkb is replaced in ~/.cursor/mcp.json (backup"
    )


def test_a_broken_file_is_named_with_the_text_to_paste(run_tmkb, home):
    (home / ".cursor" / "mcp.json").write_text('{\n  "a": 1\n  "b": 2\n}\n')
    status, out, err = run_tmkb("install", "cursor")

    assert (status, err) == (
        1,
        "tmkb: ~/.cursor/mcp.json:3:3: This file cannot be read: a comma or } is missing. Correct it. Nothing was changed.\n",
    )
    assert out.startswith(
        'To add the entry by hand, merge this into ~/.cursor/mcp.json:\n{\n  "mcpServers": {\n    "tmkb": {\n'
    )
    assert "~/.cursor/mcp.json:3:3: This file cannot be read" in run_tmkb("install", "--list")[1]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="links of POSIX")
def test_a_place_where_nothing_can_be_looked_for_is_no_success(run_tmkb, home):
    (home / ".cursor" / "mcp.json").symlink_to("mcp.json")

    for action in ("--uninstall", "--force"):
        status, _, err = run_tmkb("install", "cursor", action)
        assert status == 1 and err.startswith("tmkb: ~/.cursor/mcp.json: Cannot read this file: Too many levels of ")
        assert "Check the permissions, links and folders of its path." in err
    assert "Cannot read this file" in run_tmkb("install", "--list")[1]


def test_an_entry_of_others_is_shown_before_it_is_taken_out(run_tmkb, home):
    file = home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {"tmkb": {"command": "docker"}}}')
    status, out, err = run_tmkb("install", "cursor", "--uninstall")

    assert status == 1 and '-{"mcpServers": {"tmkb": {"command": "docker"}}}' in out.splitlines()
    assert err == (
        "tmkb: ~/.cursor/mcp.json:1:17: The entry 'tmkb' here does not start tmkb. --force takes it out all the same. "
        "Nothing was changed.\n"
    )
    assert run_tmkb("install", "cursor", "--uninstall", "--force")[0] == 0
    assert json.loads(file.read_text()) == {"mcpServers": {}}


def test_a_file_of_continue_with_more_than_the_entry(run_tmkb, home):
    file = home / ".continue" / "mcpServers" / "tmkb.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("name: mine\nmcpServers: []\n")

    assert run_tmkb("install", "continue") == (
        1,
        "",
        "tmkb: ~/.continue/mcpServers/tmkb.yaml: This file has more than the entry 'tmkb'. Move it away or edit it by "
        "hand. `tmkb install --name OTHER` writes another file. Nothing was changed.\n",
    )
    file.unlink()
    run_tmkb("install", "continue")
    file.write_text(file.read_text() + "  - name: other\n")
    assert (
        "has more than the entry 'tmkb'. Move it away or edit it by hand."
        in (run_tmkb("install", "continue", "--uninstall")[2])
    )


def test_nothing_to_uninstall_is_no_failure(run_tmkb, home):
    for folder in (".cursor", ".codex"):
        (home / folder).rmdir()

    assert run_tmkb("install", "--all", "--uninstall") == (0, "", "tmkb: No client is found on this machine.\n")
    assert run_tmkb("install", "--all")[0] == 1


def test_claude_code_is_never_started(run_tmkb, home):
    (home / ".claude").mkdir()
    file = home / ".claude.json"
    file.write_text('{"a": [1,\n2]}')
    assert run_tmkb("install", "claude-code", "--dry-run")[0] == 0
    assert run_tmkb("install", "claude-code")[::2] == (0, "")
    assert file.read_text().startswith('{"a": [1,\n2]')
    assert run_tmkb("install", "claude-code", "--uninstall")[0] == 0
    assert file.read_text() == '{"a": [1,\n2]}'


def test_a_file_of_another_client(run_tmkb, home):
    words = ("install", "--no-check", "--file", home / "other" / "mcp.json", "--format", "servers")

    assert run_tmkb(*words)[1] == "tmkb is added to ~/other/mcp.json.\n"
    assert json.loads((home / "other" / "mcp.json").read_text())["servers"]["tmkb"]["type"] == "stdio"
    assert run_tmkb(*words, "--uninstall")[1] == "tmkb is removed from ~/other/mcp.json.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "CLIENT: Name a client, or use --all, --list or --file."),
        (["curser"], "CLIENT: There is no client 'curser'. Did you mean 'cursor'?"),
        (["cursor", "--all"], "--all: Leave out the names of clients."),
        (["--file", "x"], "--file: Name its format with --format."),
        (["cursor", "--format", "servers"], "--format: Name the file with --file."),
        (["--file", "x", "--format", "server"], "--format: There is no format server. Did you mean servers?"),
        (["cursor", "--file", "x", "--format", "servers"], "--file: Leave out the names of clients."),
        (["--list", "--file", "x", "--format", "servers"], "--list: It does not go with --file."),
        (["--list", "--uninstall"], "--list: It does not go with --uninstall."),
        (["cursor", "--link", "--uninstall"], "--link: It does not go with --uninstall."),
        (["cursor", "--print", "--dry-run"], "--print: It does not go with --dry-run."),
        (["cursor", "--uninstall", "--server", "tmkb"], "--uninstall: It does not go with --server."),
        (["--file", "x", "--format", "servers", "--scope", "local"], "--scope: VS Code has no scope 'local'. Scopes: user, project."),
        (["cursor", "--print", "--uninstall"], "--print: It does not go with --uninstall."),
        (["windsurf", "--scope", "project"], "--scope: Windsurf has no scope 'project'. Scopes: user."),
        (["cursor", "--server", "tmbk"], "--server: There is no server tmbk. Did you mean tmkb?"),
        (["cursor", "--patterns", "none"], "--patterns: There is no folder none."),
        (["cursor", "--name", "a b"], "--name: 'a b' cannot be the name of an entry. Use letters, digits, - and _, at most 64."),
    ],
)  # fmt: skip
def test_a_usage_error_names_the_option(run_tmkb, home, words, sentence):
    assert run_tmkb("install", *words) == (2, "", f"{sentence}\n")


def test_the_home_folder_is_no_project(run_tmkb, home, monkeypatch):
    monkeypatch.chdir(home)

    assert run_tmkb("install", "cursor", "--scope", "project") == (
        2, "", "--scope: The current folder is your home folder. Change to a project, or leave out --scope.\n",
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="names are bytes")
def test_a_folder_whose_name_is_no_text(run_tmkb, home):
    folder = os.fsdecode(b"\xff")
    os.mkdir(folder)

    assert (
        run_tmkb("install", "cursor", "--patterns", folder)[2] == "--patterns: The path \\udcff is not valid UTF-8.\n"
    )


def test_a_folder_in_place_of_the_file(run_tmkb, home):
    (home / ".cursor" / "mcp.json").mkdir()
    status, _, err = run_tmkb("install", "cursor")

    assert (status, err.partition(" Nothing")[0]) == (
        1,
        "tmkb: ~/.cursor/mcp.json: This is a folder, not a regular file. Put a regular file here, or rename it so that "
        "it is not read.",
    )


def test_a_current_folder_that_is_gone(run_tmkb, home, monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert run_tmkb("install", "cursor")[::2] == (
        2,
        "the current folder: It cannot be found: No such file or directory. Change to a folder that exists.\n",
    )


def test_a_python_that_will_be_deleted_is_refused(run_tmkb, home, monkeypatch):
    monkeypatch.setattr(launch, "temporary_folder", lambda: "/tmp/x")

    status, out, err = run_tmkb("install", "cursor")
    assert (status, out) == (1, "")
    assert err.startswith("tmkb: This tmkb runs from /tmp/x, which is temporary, so the entry would soon stop working.")
    status, out, dry = run_tmkb("install", "cursor", "--dry-run")
    assert (status, dry) == (0, err) and "+" in out
    assert run_tmkb("install", "cursor", "--scope", "project")[0] == 0
    assert run_tmkb("install", "cursor", "--force")[0] == 0


def test_a_client_that_runs_is_named(run_tmkb, home, monkeypatch):
    os.makedirs(client("claude-desktop").locations("user", Machine.here())[0].folder)
    monkeypatch.setattr(processes, "is_running", lambda each: each.name == "claude-desktop")

    assert run_tmkb("install", "claude-desktop")[2] == (
        "tmkb: Claude Desktop runs, and may overwrite its file when it ends. Quit it, then look with --list.\n"
    )


def test_the_note_on_ai_assistant_is_printed(run_tmkb, home):
    assert "AI Assistant reads no file" in run_tmkb("install", "junie", "--force")[1]


class Found(NamedTuple):
    id: str
    level: str
    cause: str
    remedy: str
    place: str
    details: tuple[str, ...] = ()


def test_what_is_wrong_with_the_server_is_printed(run_tmkb, home, monkeypatch):
    found = [
        Found("server-answers", "fine", "It answers.", "", ""),
        Found("a", "error", "It exits.", "Do this.", "f:1", ("line of it",)),
    ]
    monkeypatch.setattr(Checker, "check", lambda *_: found)
    status, out, err = run_tmkb("install", "cursor")

    assert (status, out.splitlines()[-1], err) == (
        0,
        "  Tried: the server answers.",
        "tmkb: f:1: It exits. Do this.\n  | line of it\n",
    )
    (value,) = json.loads(run_tmkb("install", "cursor", "--server", "tmkb-full", "--force", "--json")[1])
    assert value["findings"][1] == {
        "id": "a",
        "level": "error",
        "cause": "It exits.",
        "remedy": "Do this.",
        "details": ["line of it"],
    }
    assert run_tmkb("install", "codex", "--no-check")[2] == ""

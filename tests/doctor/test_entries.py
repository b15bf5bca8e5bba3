"""Staged failures of entries and configuration files: each with real files, and processes where one is started."""

import dataclasses
import errno
import json
import os
import shutil
import sys

import pytest

import tmkb.doctor
from tests.doctor.conftest import SERVE
from tmkb.clients.client import client
from tmkb.clients.configuration import Configuration
from tmkb.conformance import client as conformance_client
from tmkb.doctor import client_entry, client_files, examination, inventory, probe
from tmkb.doctor.examination import Check, examine
from tmkb.doctor.variables import Expansion
from tmkb.server.server import protocol

pytestmark = pytest.mark.process

GONE = {"command": "/no/such/tmkb", "args": ["serve"]}  # for what needs no server


def test_an_entry_that_works_has_no_problem(home):
    home.claude(**SERVE)
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": SERVE}})

    assert home.wrong("claude-code") == {}
    fine = [each.cause for each in home.findings("claude-desktop") if each.id == "server-answers"]
    assert ["dock or menu (folder /, PATH /usr/bin:/bin)" in each for each in fine] == [True, False]
    assert "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28" in fine[0]


def test_a_command_that_was_deleted(home):
    home.claude(command=str(home.folder / "old" / "tmkb"), args=["serve"])

    found = home.wrong("claude-code")["command-missing"]
    assert str(home.folder / "old" / "tmkb") in found.cause
    assert found.remedy == "Run `tmkb install claude-code --force`."
    assert found.place.line == 3


def test_an_interpreter_that_was_deleted(home):
    gone = str(home.folder / "old" / "bin" / "python")
    home.claude(command=home.program("tmkb", "", gone), args=["serve"])

    assert gone in home.wrong("claude-code")["interpreter-missing"].cause


def test_an_interpreter_behind_a_long_path_that_was_deleted(home):
    script = home.program("tmkb", "", "/bin/sh")
    with open(script, "w") as file:
        file.write("#!/bin/sh\n'''exec' \"/no such/python\" \"$0\" \"$@\"\n' '''\n")
    home.claude(command=script, args=["serve"])

    assert "/no such/python" in home.wrong("claude-code")["interpreter-missing"].cause


def test_a_python_whose_link_leads_nowhere(home):
    link = home.folder / "venv" / "python"
    link.parent.mkdir()
    link.symlink_to("/usr/bin/python2.0")
    home.claude(command=str(link), args=["-m", "tmkb", "serve"])

    assert "/usr/bin/python2.0" in home.wrong("claude-code")["command-link-broken"].cause


def test_a_command_without_permission(home):
    home.claude(command=str(home.write("bin/tmkb", "#!/bin/sh\n")), args=["serve"])

    assert [*home.wrong("claude-code")] == ["command-not-executable"]


def test_a_relative_command(home):
    home.write(
        ".config/Claude/claude_desktop_config.json",
        {"mcpServers": {"tmkb": {"command": ".venv/bin/tmkb", "args": ["serve"]}}},
    )

    assert "command-relative" in home.wrong("claude-desktop")


def test_a_command_that_only_a_shell_finds(home):
    home.program("tmkb", "")
    home.environment["PATH"] = f"{home.folder}/bin:/usr/bin:/bin"
    entry = {"command": "tmkb", "args": ["serve"]}
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": entry}})
    home.claude(**entry)

    found = home.wrong("claude-desktop")["command-needs-path"]
    assert f"{home.folder}/bin/tmkb" in found.cause
    home.write(".cursor/mcp.json", {"mcpServers": {"tmkb": entry}})
    for client_with_the_path in ("claude-code", "cursor"):
        assert not [id_ for id_ in home.wrong(client_with_the_path) if id_.startswith("command-")]


def test_a_command_that_nothing_finds(home):
    home.claude(command="tmkb-of-nobody", args=["tmkb"])

    assert home.wrong("claude-code")["command-unknown"].cause == (
        "The command `tmkb-of-nobody` is not on PATH: `spawn tmkb-of-nobody ENOENT`."
    )


def test_a_shared_entry_whose_command_is_not_on_path(home):
    home.write(
        "../project/.mcp.json", {"mcpServers": {"tmkb": {"type": "stdio", "command": "tmkb", "args": ["serve"]}}}
    )
    home.environment["PATH"] = "/usr/bin:/bin"

    assert home.wrong("claude-code")["command-unknown"].remedy == (
        "Put tmkb on PATH, for example with `pipx install tmkb` or `uv tool install tmkb`."
    )


PLAIN = {"command": "tmkb", "args": ["serve"]}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "PROGRAM"}, "its command is not"),
        ({"command": "PROGRAM", "args": ["serve"]}, "its command is not"),
        ({"command": "sh", "args": ["-c", "PROGRAM tmkb serve"]}, "its command is not"),
        ({"command": "${TMKB:-tmkb}", "args": ["serve"]}, "its command is not"),
        ({"command": "tmkb", "args": ["serve", "--config", "/a.yaml"]}, "its command is not"),
        ({"command": "tmkb", "args": ["serve", "--patterns", "/a"]}, "its command is not"),
        ({**PLAIN, "env": {"PATH": "BIN"}}, "it has `env`"),
        ({**PLAIN, "cwd": "BIN"}, "it has `cwd`"),
        ({"type": "http", "url": "http://127.0.0.1:1/${SECRET}"}, "it has a URL"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["claude-code", "cursor"])
def test_a_project_does_not_choose_what_is_started(home, monkeypatch, name, entry, reason):
    mark = home.folder / "started"
    program = home.program("tmkb", f"open({str(mark)!r}, 'w').close()")
    text = json.dumps(entry).replace("PROGRAM", program).replace("BIN", os.path.dirname(program))
    monkeypatch.setattr(client_entry, "web", lambda *_: pytest.fail("connected"))
    for path in (".mcp.json", ".cursor/mcp.json"):
        home.write(str(home.project / path), {"mcpServers": {"tmkb": json.loads(text)}})
    found = home.wrong(name)

    assert not mark.exists()
    assert reason in found["entry-not-started"].cause


@pytest.mark.parametrize("form", ["{project}/bin", "bin", "", "{link}"])
def test_a_program_of_the_project_is_not_started(home, form):
    home.environment["PATH"] = os.pathsep.join(
        [form.format(project=home.project, link=home.folder / "link"), home.environment["PATH"]]
    )
    mark = home.folder / "started"
    program = home.program("tmkb", f"open({str(mark)!r}, 'w').close()")
    for folder in (home.project, home.project / "bin"):
        folder.mkdir(exist_ok=True)
        shutil.copy(program, folder)
    (home.folder / "link").symlink_to(home.project / "bin")
    home.write(str(home.project / ".mcp.json"), {"mcpServers": {"tmkb": PLAIN}})
    found = home.wrong("claude-code")

    assert not mark.exists()
    assert "in the folder of the project" in found["entry-not-started"].cause


def test_what_an_installation_writes_into_a_project_is_started(home):
    program = home.program("tmkb", "import sys\nfrom tmkb.cli.main import main\nsys.exit(main(sys.argv[1:]))\n")
    home.environment["PATH"] = os.pathsep.join([os.path.dirname(program), home.environment["PATH"]])
    args = ["serve", "--server", "tmkb-full", "--patterns", "packaged"]
    home.write(str(home.project / ".mcp.json"), {"mcpServers": {"tmkb": {"command": "tmkb", "args": args}}})

    assert "server-answers" in {each.id for each in home.findings("claude-code")}
    assert {*home.wrong("claude-code")} == {"approval-pending"}


def test_another_version(home):
    source = (
        "import tmkb, sys\ntmkb.__version__ = '0.0.1'\nfrom tmkb.cli.main import main\n"
        "import tmkb.server.server as s\nload = s.Server.load.__func__\n"
        "def old(*args, **kwargs):\n    found = load(s.Server, *args, **kwargs)\n"
        "    found.spec['server']['version'] = '0.0.1'\n    return found\n"
        "s.Server.load = old\nsys.exit(main(['serve']))\n"
    )
    home.claude(command=home.program("tmkb", source), args=["serve"])

    assert "The entry starts tmkb 0.0.1; this is tmkb" in home.wrong("claude-code")["version-differs"].cause


def test_broken_json(home):
    home.write(".claude.json", '{\n  "mcpServers": {\n    "tmkb" {"command": "tmkb"}\n  }\n}\n')

    (found,) = home.wrong("claude-code").values()
    assert (found.id, found.place.line, found.place.column) == ("configuration-broken", 3, 12)


@pytest.mark.parametrize(
    ("content", "id_", "remedy"),
    [
        ('{"mcpServers": {}}'.encode("utf-16"), "configuration-encoding", "Save the file as UTF-8."),
        (b'{"mcpServers": {}, "mcpServers": {}}', "configuration-repeated", "Keep one of them."),
        (None, "configuration-unreadable", "Make it a file that you can read."),
    ],
    ids=str,
)
def test_a_file_that_cannot_be_read(home, content, id_, remedy):
    file = home.folder / ".claude.json"
    file.mkdir() if content is None else file.write_bytes(content)

    assert home.wrong("claude-code")[id_].remedy.endswith(remedy)


def test_the_key_that_switches_an_entry_off(home):
    home.write(".config/opencode/opencode.json", {"mcp": {"tmkb": {**LOCAL, "enabled": False}}})
    home.write(".gemini/settings.json", {"mcpServers": {"tmkb": GONE}, "mcp": {"excluded": ["tmkb"]}})

    assert "`enabled` of the entry is false" in home.wrong("opencode")["entry-disabled"].cause
    assert "`mcp.excluded` contains it" in home.wrong("gemini")["entry-disabled"].cause


def test_a_trailing_comma_for_gemini(home):
    home.write(".gemini/settings.json", '{\n  "mcpServers": {\n    "other": {"command": "x"},\n  }\n}\n')

    found = home.wrong("gemini")["configuration-refused"]
    assert (found.place.line, found.cause) == (
        3,
        "Gemini CLI reads nothing of a file with trailing commas, so none of its servers starts.",
    )


@pytest.mark.parametrize("path", [".claude/mcp_settings.json", ".claude/mcp.json", ".claude/settings.json"])
def test_an_entry_in_a_file_that_is_never_read(home, path):
    home.write(path, {"mcpServers": {"tmkb": GONE}})

    found = home.wrong("claude-code")["dead-entry"]
    assert (found.place.file, found.place.line) == (str(home.folder / path), 3)
    assert "~/.claude.json" in found.remedy


def test_an_entry_under_the_key_of_another_client(home):
    home.write(".config/Code/User/mcp.json", {"mcpServers": {"tmkb": GONE}})

    found = home.wrong("vscode")["dead-entry"]
    assert "the key `mcpServers`" in found.cause
    assert "under `servers`" in found.remedy


def test_an_entry_that_another_scope_replaces(home):
    home.claude(**GONE)
    home.write(str(home.project / ".mcp.json"), {"mcpServers": {"tmkb": {"command": "tmkb", "args": ["serve"]}}})

    found = home.wrong("claude-code")
    assert "that of the scope project" in found["entry-shadowed"].cause
    assert "approval-pending" in found


def test_a_server_that_was_switched_off(home):
    home.write(".codeium/windsurf/mcp_config.json", {"mcpServers": {"tmkb": {**GONE, "disabled": True}}})
    home.write(
        ".claude.json",
        {"mcpServers": {"tmkb": GONE}, "projects": {str(home.project): {"disabledMcpServers": ["tmkb"]}}},
    )

    assert "entry-disabled" in home.wrong("windsurf")
    assert "entry-disabled" in home.wrong("claude-code")


def test_two_entries_with_different_names(home):
    home.write(".cursor/mcp.json", {"mcpServers": {"tmkb": GONE, "threats": GONE}})

    assert "tmkb (" in home.wrong("cursor")["entry-repeated"].cause


def test_a_variable_without_a_value(home):
    home.claude(command="${TMKB_PYTHON}", args=["-m", "tmkb", "serve"])

    assert [*home.wrong("claude-code")] == ["variable-unset"]
    home.environment["TMKB_PYTHON"] = sys.executable
    assert home.wrong("claude-code") == {}


@pytest.mark.parametrize(("value", "expanded"), [(None, "x"), ("", ""), ("a", "a")])
def test_an_empty_variable_is_a_value(home, value, expanded):
    home.environment |= {} if value is None else {"EMPTY": value}
    expansion = Expansion("shell", home.machine)

    assert (expansion.text("${EMPTY:-x}"), expansion.unset) == (expanded, [])
    assert expansion.text("${EMPTY}") == ("${EMPTY}" if value is None else value)
    assert expansion.unset == (["EMPTY"] if value is None else [])


def test_a_url_without_a_type(home):
    home.write(".claude.json", {"mcpServers": {"tmkb": {"url": "http://127.0.0.1:1/mcp"}}})

    found = home.wrong("claude-code")
    assert [*found] == ["url-without-type", "http-refused"]


def test_a_project_that_codex_does_not_trust(home):
    home.write(
        str(home.project / ".codex/config.toml"),
        f'[mcp_servers.tmkb]\ncommand = "{sys.executable}"\nargs = ["-m", "tmkb", "serve"]\n',
    )

    assert "project-untrusted" in home.wrong("codex")
    home.write(".codex/config.toml", f'[projects."{home.project}"]\ntrust_level = "trusted"\n')
    assert "project-untrusted" not in home.wrong("codex")


def test_an_entry_that_vanished(home):
    backup = home.claude(**GONE)
    shutil.copy(backup, f"{backup}.tmkb-20260102T030405.bak")
    home.write(".claude.json", {"numStartups": 5, "mcpServers": {}})

    found = home.wrong("claude-code")["entry-vanished"]
    assert ".claude.json.tmkb-20260102T030405.bak" in found.cause
    assert "tmkb install claude-code" in found.remedy


def test_an_entry_that_was_taken_out_has_not_vanished(home):
    file = home.claude(**GONE)
    shutil.copy(file, f"{file}.tmkb-20260102T030405.bak")

    file.write_bytes(Configuration.read(str(file), client("claude-code"), "user", home.machine).without_server("tmkb"))

    assert [*home.wrong("claude-code")] == ["entry-expected"]


@pytest.mark.parametrize(
    ("folder", "id_"),
    [
        ("patterns", "path-relative"),
        ("~/patterns", "tilde"),
        ("{home}/nothing", "path-missing"),
        ("{home}/empty", "folder-without-patterns"),
    ],
)
def test_a_folder_of_patterns_that_cannot_be_used(home, folder, id_):
    (home.folder / "empty").mkdir()
    home.claude(command=SERVE["command"], args=[*SERVE["args"], "--patterns", folder.format(home=home.folder)])

    assert id_ in home.wrong("claude-code")


def test_a_folder_whose_only_pattern_is_ignored(home):
    home.write("own/_draft/pattern.yaml", "kind: pattern\n")
    home.claude(command=SERVE["command"], args=[*SERVE["args"], "--patterns", str(home.folder / "own")])

    assert "folder-without-patterns" in home.wrong("claude-code")


def test_a_pattern_that_is_not_valid(home):
    home.write("own/acme/pattern.yaml", "kind: pattern\nid: ACME-AUTH-001\n")
    home.claude(command=SERVE["command"], args=[*SERVE["args"], "--patterns", str(home.folder / "own")])

    found = home.wrong("claude-code")["server-warns"]
    assert "acme/pattern.yaml:1:1: " in found.details[0]


def test_a_fault_of_an_overlay_is_reported_once_and_with_its_path(home):
    file = home.write("own/errors.yaml", "kind: tol\n")
    entry = {**SERVE, "args": [*SERVE["args"], "--schemas", str(home.folder / "own")]}
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": entry}})

    (found,) = [each for each in home.findings("claude-desktop") if each.level == "error"]
    assert f"{file}:1:" in found.cause
    assert f" {str(file)[1:]}" not in found.cause


def test_arguments_that_are_not_accepted(home):
    home.claude(command=SERVE["command"], args=[*SERVE["args"], "--port", "8080"])

    assert "--port" in home.wrong("claude-code")["arguments-wrong"].cause


def test_an_environment_without_the_package(home):
    python = home.program("python", "import sys\nsys.exit('/x/python: No module named tmkb')")
    home.claude(command=python, args=["-m", "tmkb", "serve"])

    assert [*home.wrong("claude-code")] == ["module-missing"]


def test_arguments_in_the_command(home):
    home.claude(command=f"{sys.executable} -m tmkb serve")

    assert f"only {sys.executable} exists" in home.wrong("claude-code")["command-with-arguments"].cause


def test_an_entry_without_arguments(home):
    home.claude(command=sys.executable, args=["-m", "tmkb"])

    assert [*home.wrong("claude-code")] == ["arguments-without-serve"]


def test_a_variable_of_python_in_an_entry(home):
    home.write("shadow/yaml.py", "raise ImportError('mine')")
    home.claude(**SERVE, env={"PYTHONPATH": str(home.folder / "shadow"), "XDG_CACHE_HOME": str(home.folder / "empty")})

    found = home.wrong("claude-code")
    assert "PYTHONPATH" in found["entry-python-variables"].cause


def test_a_wrapper_that_closes_the_input(home):
    home.claude(command=home.program("tmkb", f"{sys.executable} -m tmkb serve </dev/null\n", "/bin/sh"))

    assert [*home.wrong("claude-code")] == ["input-ended"]


def test_a_variable_of_the_shell_that_a_desktop_program_does_not_get(home):
    home.environment["TMKB_PATTERNS"] = "/no/such"
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": SERVE}})

    assert home.wrong("claude-desktop") == {}


def test_a_limit_of_the_system(home, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(probe.targets, "Command", refused)
    home.claude(**SERVE)

    assert "Too many open files" in home.wrong("claude-code")["limit-reached"].cause


def test_a_check_without_a_thread(home, monkeypatch):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(examination.threading.Thread, "start", refused)
    (examined,) = examine([Check("start", "claude-code", tuple)])

    assert [each.id for each in examined.findings] == ["limit-reached"]


def test_a_token_in_a_variable_without_a_value(home):
    home.write(
        ".codex/config.toml", '[mcp_servers.tmkb]\nurl = "http://127.0.0.1:1/mcp"\nbearer_token_env_var = "TOK"\n'
    )

    assert "TOK" in home.wrong("codex")["variable-unset"].cause


CLIENT_FILES = {
    "claude-code": (".claude.json", "mcpServers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "copilot-cli": (".copilot/mcp-config.json", "mcpServers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "opencode": (".config/opencode/opencode.json", "mcp"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
}
LOCAL = {"type": "local", "command": ["/no/such/tmkb", "serve"]}


@pytest.mark.parametrize(
    ("name", "entry", "id_", "text"),
    [
        ("opencode", {**LOCAL, "env": {"A": "b"}}, "entry-not-accepted", "env"),
        ("opencode", {"command": LOCAL["command"]}, "entry-not-accepted", "'type'"),
        ("opencode", {**LOCAL, "command": "/no/such/tmkb serve"}, "entry-not-accepted", "`command`: "),
        ("claude-code", {**GONE, "type": "sse"}, "entry-not-accepted", "`type`: 'stdio'"),
        ("claude-code", {**GONE, "env": ["A=b"]}, "entry-not-accepted", "`env`: "),
        ("claude-code", {**GONE, "env": {"N": 5}}, "entry-not-accepted", "`env`: `N`: "),
        ("vscode", {**GONE, "type": "http"}, "entry-not-accepted", "`type`: "),
        ("claude-desktop", {"type": "http", "url": "http://127.0.0.1:1/mcp"}, "url-not-accepted", "a URL"),
        ("gemini", {**GONE, "excludeTools": ["tmkb_query"]}, "tools-off", "`excludeTools` of the entry contains it"),
        ("gemini", {**GONE, "includeTools": ["x"]}, "tools-off", "`includeTools` of the entry lacks it"),
        ("copilot-cli", {**GONE, "tools": []}, "tools-off", "`tools` of the entry lacks it"),
    ],
    ids=str,
)
def test_an_entry_that_its_client_does_not_use(home, name, entry, id_, text):
    file, key = CLIENT_FILES[name]
    home.write(file, {key: {"tmkb": entry}})

    assert text in home.wrong(name)[id_].cause


@pytest.mark.parametrize(
    ("line", "id_"),
    [('command = ["/no/such/tmkb", "serve"]', "entry-not-accepted"), ('disabled_tools = ["tmkb_query"]', "tools-off")],
)
def test_an_entry_that_codex_does_not_use(home, line, id_):
    command = "" if line.startswith("command") else 'command = "/no/such/tmkb"\n'
    home.write(".codex/config.toml", f"[mcp_servers.tmkb]\n{command}{line}\n")

    assert id_ in home.wrong("codex")


@pytest.mark.parametrize(("name", "timeout"), [("gemini", 5), ("opencode", 5)])
def test_a_timeout_that_is_too_short(home, name, timeout):
    file, key = CLIENT_FILES[name]
    entry = SERVE if name == "gemini" else {"type": "local", "command": [SERVE["command"], *SERVE["args"]]}
    home.write(file, {key: {"tmkb": {**entry, "timeout": timeout}}})

    assert "0.005 s" in home.wrong(name)["timeout-short"].cause


def test_a_timeout_of_codex_with_a_fraction(home):
    home.write(
        ".codex/config.toml",
        "[mcp_servers.tmkb]\nstartup_timeout_sec = 0.01\n"
        f"command = {json.dumps(SERVE['command'])}\nargs = {json.dumps(SERVE['args'])}\n",
    )

    assert "0.01 s" in home.wrong("codex")["timeout-short"].cause


@pytest.mark.parametrize("rule", ["mcp__tmkb", "mcp__tmkb__*", "mcp__tmkb__tmkb_query"])
def test_tools_that_claude_code_denies(home, rule):
    home.claude(**GONE)
    home.write(".claude/settings.json", {"permissions": {"deny": [rule]}})

    assert f"`{rule}`" in home.wrong("claude-code")["tools-off"].cause


def test_tools_that_opencode_switches_off(home):
    home.write(".config/opencode/opencode.json", {"mcp": {"tmkb": LOCAL}, "tools": {"tmkb*": False}})

    assert "`tmkb*`" in home.wrong("opencode")["tools-off"].cause


def test_a_setting_of_vscode_that_switches_servers_off(home):
    home.write(".config/Code/User/mcp.json", {"servers": {"tmkb": GONE}})
    home.write(".config/Code/User/settings.json", {"chat.mcp.access": "none"})

    assert "chat.mcp.access" in home.wrong("vscode")["entry-disabled"].cause


def test_an_entry_in_the_settings_of_vscode(home):
    file = home.write(".config/Code/User/settings.json", {"mcp": {"servers": {"tmkb": GONE}}})

    assert home.wrong("vscode")["dead-entry"].place.file == str(file)


def test_a_folder_below_that_of_the_project(home):
    home.write(str(home.project / ".mcp.json"), {"mcpServers": {"tmkb": GONE}})
    (home.project / ".git").mkdir()
    home.project = home.project / "sub" / "folder"
    home.project.mkdir(parents=True)

    found = home.wrong("claude-code")["entry-not-started"]
    assert found.place.file == str(home.folder.parent / "project" / ".mcp.json")


def test_a_banner_on_standard_output(home):
    wrapper = home.program(
        "tmkb",
        f"import os\nprint('Welcome to tmkb', flush=True)\nos.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'tmkb', 'serve'])",
    )
    home.claude(command=wrapper)

    assert home.wrong("claude-code")["stdout-noise"].details == ("Welcome to tmkb",)


def test_a_server_that_hangs(home):
    home.claude(
        command=home.program("tmkb", f"import time\nopen('{home.folder}/started', 'a').write('x')\ntime.sleep(600)")
    )

    assert [*home.wrong("claude-code", timeout=1.0)] == ["server-silent"]
    assert (home.folder / "started").read_text() == "x"


def test_a_server_that_ends(home):
    source = "import sys\nprint('The license server does not answer', file=sys.stderr)\nsys.exit(3)"
    home.claude(command=home.program("tmkb", source))

    found = home.wrong("claude-code")["server-ended"]
    assert "exit status 3" in found.cause
    assert found.details == ("The license server does not answer",)


def test_a_server_that_leaves_processes(home):
    source = f"import subprocess, sys\nsubprocess.Popen(['sleep', '600'], stdout=2)\nsys.exit(subprocess.call([{sys.executable!r}, '-m', 'tmkb', 'serve']))"
    home.claude(command=home.program("tmkb", source))

    assert "children-left" in home.wrong("claude-code")


def test_a_log_that_names_the_cause(home):
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": SERVE}})
    log = home.write(
        ".config/Claude/logs/mcp-server-tmkb.log",
        "2026-11-20 [tmkb] [info] Initializing server...\n2026-11-20 [tmkb] [error] spawn uvx ENOENT\n",
    )

    found = home.wrong("claude-desktop")["log-not-found"]
    assert (found.place.file, found.place.line) == (str(log), 2)
    assert found.details == ("2026-11-20 [tmkb] [error] spawn uvx ENOENT",)
    os.utime(log, (0, 0))
    assert home.wrong("claude-desktop") == {}


def test_a_log_whose_path_names_the_entry(home):
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"tmkb": GONE}})
    failed, connected = "[error] MCP error -32000\n", "[info] Server started and connected successfully\n"
    log = home.write(".config/Claude/logs/mcp-server-tmkb.log", connected + failed)

    assert home.wrong("claude-desktop")["log-closed"].place.line == 2
    log.write_text(failed + connected)
    assert "log" in [each.id for each in home.findings("claude-desktop")]


def test_a_program_of_another_system(home):
    file = home.write("bin/tmkb", "MZ\0\0")
    file.chmod(0o755)
    home.claude(command=str(file))

    assert "start-failed" in home.wrong("claude-code") or "server-ended" in home.wrong("claude-code")


def test_an_entry_that_install_wrote_works(home, run_tmkb):
    (home.folder / ".config" / "Claude").mkdir(parents=True)

    assert run_tmkb("install", "claude-desktop")[0] == 0
    assert [each.id for each in home.findings("claude-desktop")] == ["entry", "server-answers", "server-answers"]


def test_variables_that_a_client_does_not_replace(home):
    home.write(
        ".config/Claude/claude_desktop_config.json",
        {"mcpServers": {"tmkb": {**GONE, "args": ["serve", "--config", "${HOME}/a"]}}},
    )
    home.write(".config/Code/User/mcp.json", {"servers": {"tmkb": {**GONE, "env": {"TOKEN": "${input:token}"}}}})

    assert home.wrong("claude-desktop")["variable-literal"].cause == "Claude Desktop does not replace ${HOME}."
    assert "variable-asked" in [each.id for each in home.findings("vscode")]


def test_the_key_of_a_url_of_another_client(home):
    home.write(".codeium/windsurf/mcp_config.json", {"mcpServers": {"tmkb": {"url": "http://127.0.0.1:1/mcp"}}})

    assert "`serverUrl`" in home.wrong("windsurf")["url-key-wrong"].cause


def test_a_command_of_several_clients_is_started_once(home):
    server = home.program(
        "tmkb",
        "import os, sys\nopen(os.path.expanduser('~/starts'), 'a').write('x')\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'tmkb', 'serve'])",
    )
    for file in (".cursor/mcp.json", ".codeium/windsurf/mcp_config.json"):
        home.write(file, {"mcpServers": {"tmkb": {"command": server}}})
    checker = tmkb.doctor.Checker(home.machine, 30.0)
    starts = []
    for name in ("cursor", "windsurf"):
        assert "server-answers" in [each.id for each in checker.check(client(name))]
        starts.append((home.folder / "starts").read_text())

    assert starts[0] == starts[1]


def test_arguments_in_one_string(home):
    home.claude(command=SERVE["command"], args="-m tmkb serve")

    assert "`-m tmkb serve`" in home.wrong("claude-code", timeout=1.0)["args-not-a-list"].cause


def test_a_folder_that_gemini_does_not_trust(home):
    home.write(".gemini/settings.json", {"mcpServers": {"tmkb": GONE}})
    home.write(".gemini/trustedFolders.json", {"/elsewhere": "TRUST_FOLDER"})

    assert "project-untrusted" in home.wrong("gemini")
    home.write(".gemini/trustedFolders.json", {str(home.project.parent): "TRUST_FOLDER"})
    assert "project-untrusted" not in home.wrong("gemini")


@pytest.mark.parametrize(
    ("levels", "is_trusted"),
    [
        ([("", "TRUST_FOLDER"), ("project", "DO_NOT_TRUST"), ("project/app", "TRUST_FOLDER")], True),
        ([("", "TRUST_FOLDER"), ("project", "DO_NOT_TRUST")], False),
        ([("project", "DO_NOT_TRUST"), ("project/app/x", "TRUST_PARENT")], True),
        ([("project/app/x", "TRUST_FOLDER")], False),
    ],
)
def test_the_nearest_folder_decides_what_gemini_trusts(home, levels, is_trusted):
    top = home.project.parent
    home.write(".gemini/settings.json", {"mcpServers": {"tmkb": GONE}})
    home.write(".gemini/trustedFolders.json", {str(top / name): level for name, level in levels})
    home.project = home.project / "app"
    home.project.mkdir()

    assert ("project-untrusted" not in home.wrong("gemini")) == is_trusted


def test_windows(home):
    """A package of the Store reads one of two files, and paths of WSL and batch files are no programs."""
    store = "AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json"
    home.write(store, {"mcpServers": {}})
    home.write(
        "AppData/Roaming/Claude/claude_desktop_config.json",
        {"mcpServers": {"tmkb": {"command": "/mnt/c/tmkb"}, "b": {"command": "C:\\x\\tmkb.cmd"}}},
    )
    machine = dataclasses.replace(home.machine, platform="win32", environment={})
    found = inventory.read(client("claude-desktop"), machine)
    wrong = [
        *client_files.files(found, machine, False),
        *(each for entry in found.entries for each in client_entry.words(entry, machine)),
    ]

    assert {each.id: each.place.file for each in wrong}["entry-in-one-file"].endswith(store)
    assert {"command-wsl", "command-shim"} <= {each.id for each in wrong}


def test_a_check_that_takes_too_long(home):
    hanging = home.program(
        "tmkb", f"import time\nopen('{home.folder}/pid', 'w').write(str(__import__('os').getpid()))\ntime.sleep(600)"
    )
    home.claude(command=hanging)
    (entry,) = inventory.read(client("claude-code"), home.machine).entries
    started = client_entry.Started(protocol([]), 600.0)
    check = Check("start", "claude-code", lambda: client_entry.starts(entry, home.machine, started), limit=3.0)
    (examined,) = examine([check])

    assert [each.id for each in examined.findings] == ["check-slow"]
    assert not os.path.exists(f"/proc/{(home.folder / 'pid').read_text()}/cmdline") or sys.platform != "linux"


def test_a_wrapper_that_outlives_the_server(home, monkeypatch):
    for module, name in ((probe, "END"), (conformance_client, "_END")):
        monkeypatch.setattr(module, name, 2.0)
    home.claude(command=home.program("tmkb", f"trap '' TERM\n{sys.executable} -m tmkb serve\nsleep 600\n", "/bin/sh"))

    assert {*home.wrong("claude-code")} == {"end-ignored", "signal-ignored"}


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"command": None},
        {"command": 3, "args": {"a": 1}},
        {"command": ["tmkb"]},
        {"command": ""},
        {"command": sys.executable, "args": [None, 1, {}], "env": [], "cwd": 7},
        {"command": sys.executable, "args": ["\0"], "env": {"A=B": "c", "D": None}},
        {"command": sys.executable, "args": ["-c", "\ud800"], "timeout": True},
        {"command": "/", "disabled": "yes"},
        {"url": 3},
        {"url": "http://[", "type": "http"},
        {"url": "nonsense", "headers": [], "type": []},
    ],
    ids=str,
)
def test_an_entry_of_a_wrong_shape(home, entry):
    home.claude(**{"type": "stdio", **entry})

    wrong = home.wrong("claude-code", timeout=5.0)
    assert wrong and "check-failed" not in wrong


def test_a_pipe_in_place_of_a_file(home):
    os.mkfifo(home.folder / ".claude.json")

    assert [*home.wrong("claude-code")] == ["configuration-unreadable"]

"""`tmkb export plugin`: a plugin for Claude Code whose parts agree, and a hook that answers real events."""

import json
import re
import shlex

import pytest

from tmkb import __version__
from tmkb.clients import launch
from tmkb.knowledge import library
from tmkb.publishing import plugin, skill


@pytest.fixture(scope="module")
def patterns():
    return {each.pattern["id"]: (each.path, each.pattern) for each in library.load(None).folders[:4]}


def test_the_files_are_those_of_a_plugin_and_its_marketplace(patterns):
    files = plugin.files(patterns, ["/a folder/python", "-m", "tmkb"])
    values = {path: json.loads(text) for path, text in files.items() if path.endswith(".json")}
    market, described = values[".claude-plugin/marketplace.json"], values["tmkb/.claude-plugin/plugin.json"]

    assert {path.split("/")[1] for path in files if path.startswith("tmkb/")} == {
        ".claude-plugin",
        ".mcp.json",
        "hooks",
        "skills",
    }
    assert market["plugins"] == [
        {"source": "./tmkb", **{key: described[key] for key in ("name", "version", "description")}}
    ]
    assert (market["name"], described["name"], described["version"]) == ("tmkb", "tmkb", __version__)
    assert values["tmkb/.mcp.json"]["mcpServers"] == {
        "tmkb": {"command": "/a folder/python", "args": ["-m", "tmkb", "serve", "--server", "tmkb-full"]}
    }
    ((matcher, (hook,)),) = (each.values() for each in values["tmkb/hooks/hooks.json"]["hooks"]["PostToolUse"])
    assert matcher == "Edit|Write"
    assert hook["command"] == "'/a folder/python' -m tmkb review --hook || exit 0"
    assert "'/a folder/python' -m tmkb version\n" in files["README.md"]
    inside = {path.removeprefix(f"tmkb/skills/{skill.FOLDER}/"): text for path, text in files.items()}
    assert skill.files(patterns).items() <= inside.items()


def test_the_command_is_this_installation_or_what_is_chosen(run_tmkb, tmp_path):
    program, arguments = launch.command()
    for more, command in (([], [program, *arguments]), (["--command", "uvx tmkb"], ["uvx", "tmkb"])):
        assert run_tmkb("export", "plugin", "7", "-o", tmp_path, *more)[0] == 0
        server = json.loads((tmp_path / "tmkb" / ".mcp.json").read_text())["mcpServers"]["tmkb"]
        assert [server["command"], *server["args"]] == [*command, "serve", "--server", "tmkb-full"]
        assert shlex.join([*command, "review", "--hook"]) in (tmp_path / "tmkb" / "hooks" / "hooks.json").read_text()
    status, _, err = run_tmkb("export", "plugin", "-o", tmp_path, "--command", "'")
    assert status == 2 and re.search("--command", err)

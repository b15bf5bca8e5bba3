"""A plugin for Claude Code, in a marketplace of its own: the MCP server, the Agent Skill, and a hook after edits.

The formats are those of https://code.claude.com/docs/en/plugins-reference and plugin-marketplaces.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence

from tmkb import __version__
from tmkb.knowledge.pattern import Pattern
from tmkb.publishing import skill
from tmkb.schema import template

NAME = "tmkb"  # of the plugin, its folder and the marketplace
_ABOUT = "Authorization mistakes that are common in the code you write: patterns with checks, fixes and tests"
_AUTHOR = {"name": "TMKB"}
_KEYWORDS = ["authorization", "security", "mcp", "threat-modeling"]
_SERVE = ["serve", "--server", "tmkb-full"]  # which answers for every stack; `tmkb` only for Python
_EDITS = "Edit|Write"  # the tools after which the hook runs
_SECONDS = 15  # for the hook; it needs less than one
_TEXT = os.path.join(os.path.dirname(__file__), "templates", "plugin.md")


def files(patterns: Mapping[str, tuple[str, Pattern]], command: Sequence[str]) -> dict[str, str]:
    """Return the files of the marketplace.

    Args:
        patterns: id → folder and pattern.
        command: the words that run `tmkb`.

    Returns:
        Path → content. Equal arguments make equal files.

    Raises:
        SpecError: a packaged file beside the patterns is invalid.
    """
    with open(_TEXT, encoding="utf-8") as file:
        text = template.fill(file.read(), {"version": __version__, "command": shlex.join(command)})
    described = {"name": NAME, "version": __version__, "description": _ABOUT}
    return {
        "README.md": text,
        ".claude-plugin/marketplace.json": _json(
            {
                "name": NAME,
                "owner": _AUTHOR,
                "metadata": {"description": _ABOUT},
                "plugins": [{**described, "source": f"./{NAME}"}],
            }
        ),
        f"{NAME}/.claude-plugin/plugin.json": _json(
            {**described, "author": _AUTHOR, "license": "MIT", "keywords": _KEYWORDS}
        ),
        f"{NAME}/.mcp.json": _json({"mcpServers": {NAME: {"command": command[0], "args": [*command[1:], *_SERVE]}}}),
        f"{NAME}/hooks/hooks.json": _json({"hooks": {"PostToolUse": [_hook(command)]}}),
        **{f"{NAME}/skills/{skill.FOLDER}/{path}": text for path, text in skill.files(patterns).items()},
    }


def _hook(command: Sequence[str]) -> dict[str, object]:
    """Return the hook; its status is 0 even if the command is missing, because 2 would count as an objection."""
    line = f"{shlex.join([*command, 'review', '--hook'])} || exit 0"
    return {"matcher": _EDITS, "hooks": [{"type": "command", "command": line, "timeout": _SECONDS}]}


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

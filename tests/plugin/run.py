"""The exported plugin in the real Claude Code: it is valid, its server connects, and its hook comments on edits. Claude
Code also reviews changes for `tmkb review`.

    python -m tests.plugin.run

Installs a pinned release below `.cache`. Claude Code runs in a scratch home without an account; a server on this machine
plays the language model (`tests/plugin/api.py`).
"""

import itertools
import json
import os
import shutil
import sys
import tempfile

from tests.plugin.api import Api
from tests.review import scripted
from tests.support import folders, packages, programs
from tests.support.code import HARMLESS, MISTAKE

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = "mcp__plugin_tmkb_tmkb__tmkb_query"
COMMENT = "`tmkb review` comments on this edit"


def main():
    """Print each check; 1 if one fails."""
    with tempfile.TemporaryDirectory(prefix="plugin ") as place:
        return programs.report(itertools.chain(static(place), installed(place), sessions(place), reviews(place)))


def export(folder, seed="0", *more):
    """Write the plugin with an order of hashes of its own, and return its folder."""
    command = [sys.executable, "-m", "tmkb", "export", "plugin", "-o", folder, *more]
    done = programs.run(command, packages.ROOT, {**os.environ, "PYTHONHASHSEED": seed})
    assert done.returncode == 0, done.stdout
    return folder


def static(place):
    """Yield whether two exports are equal, and the validator of Claude Code finds no fault, nor has a warning."""
    one, other = (export(os.path.join(place, seed), seed) for seed in "12")
    difference = folders.first_difference(one, other)
    yield "two exports are equal", not difference, difference
    for name, folder in (("marketplace", one), ("plugin", os.path.join(one, "tmkb"))):
        done = claude(place, "plugin", "validate", "--strict", folder)
        yield f"the {name} is valid", done.returncode == 0 and "Validation passed" in done.stdout, done.stdout


def installed(place):
    """Yield whether the plugin can be installed from its marketplace, and its server connects from another folder."""
    market = export(os.path.join(place, "market"))
    done = claude(place, "plugin", "marketplace", "add", market)
    yield "the marketplace can be added", done.returncode == 0, done.stdout
    done = claude(place, "plugin", "install", "tmkb@tmkb")
    yield "the plugin can be installed", done.returncode == 0, done.stdout
    done = claude(place, "plugin", "details", "tmkb")
    parts = ("Skills (1)  tmkb-authorization", "Hooks (1)  PostToolUse", "MCP servers (1)  tmkb")
    yield "it has skill, hook and server", all(part in done.stdout for part in parts), done.stdout
    done = claude(place, "mcp", "list")
    yield "its server connects", "plugin:tmkb:tmkb" in done.stdout and "✔ Connected" in done.stdout, done.stdout
    done = claude(place, "plugin", "uninstall", "tmkb@tmkb")
    yield "it can be removed", done.returncode == 0, done.stdout


def sessions(place):
    """Yield what the model reads after edits: comments on a mistake, else nothing, also if the command is missing."""
    plugin = os.path.join(export(os.path.join(place, "session")), "tmkb")
    tools, context, output = session(place, plugin, MISTAKE)
    yield "the model is offered the tool", TOOL in tools, tools
    yield (
        "the model reads the comment on a mistake",
        COMMENT in context and "TMKB-AUTH-006" in context,
        context + output,
    )
    _, context, output = session(place, plugin, HARMLESS)
    yield "there is no comment on right code", COMMENT not in context and output == "done\n", context + output
    missing = export(os.path.join(place, "missing"), "0", "--command", os.path.join(place, "no such", "tmkb"))
    _, context, output = session(place, os.path.join(missing, "tmkb"), MISTAKE)
    yield "a missing command does not stop an edit", COMMENT not in context and output == "done\n", context + output


def session(place, plugin, content):
    """Let the model write a file, then edit it. Return the names of its tools, what it read last, and what was printed."""
    project = os.path.join(place, "project")
    shutil.rmtree(project, ignore_errors=True)
    os.makedirs(project)
    file = os.path.join(project, "profile.py")
    steps = [
        {"name": "Write", "input": {"file_path": file, "content": "# empty\n"}},
        {"name": "Edit", "input": {"file_path": file, "old_string": "# empty\n", "new_string": content}},
    ]
    with Api(steps) as api:
        words = ["-p", "Write it.", "--plugin-dir", plugin, "--permission-mode", "acceptEdits"]
        done = claude(place, *words, folder=project, ANTHROPIC_BASE_URL=api.url, ANTHROPIC_API_KEY="none")
    assert packages.read(file) == content, done.stdout
    last = api.requests[-1]
    return [tool["name"] for tool in last["tools"]], json.dumps(last["messages"], ensure_ascii=False), done.stdout


def reviews(place):
    """Yield whether `tmkb review` prints the comment of Claude Code on a change, and offers it no tools."""
    project = os.path.join(place, "reviewed")
    os.makedirs(project)
    programs.run(["git", "init", "-q"], project)
    with open(os.path.join(project, "profile.py"), "w", encoding="utf-8") as file:
        file.write(MISTAKE)
    command = [sys.executable, "-m", "tmkb", "review", "--json", "--reviewer"]
    with Api(
        says=lambda text: f"I see.\n```json\n{json.dumps([*scripted.comments(text, 'TMKB-AUTH-006')])}\n```"
    ) as api:
        variables = scratch(place, ANTHROPIC_BASE_URL=api.url, ANTHROPIC_API_KEY="none")
        done = programs.run([*command, "claude -p --tools ''"], project, variables)
    found = [each["reason"] for each in json.loads(done.stdout)["comments"]] if done.returncode == 1 else []
    yield "Claude Code reviews a change", len(found) == 1 and "setattr" in found[0], done.stdout
    yield "it is offered no tools for that", api.requests == [], api.requests
    refused = scratch(place, ANTHROPIC_BASE_URL="http://127.0.0.1:9", ANTHROPIC_API_KEY="none")
    done = programs.run([*command, "claude -p", "--reviewer-timeout", "20"], project, refused)
    yield (
        "a model that cannot be reached is an error",
        done.returncode == 2 and "The reviewer: " in done.stdout,
        done.stdout,
    )


def claude(place, *words, folder=None, **more):
    """Run Claude Code in a scratch home."""
    environment = scratch(place, **more)
    return programs.run(["claude", *words], folder or environment["HOME"], environment)


def scratch(place, **more):
    """The variables of a scratch home, with Claude Code on PATH."""
    home = os.path.join(place, "home")
    os.makedirs(home, exist_ok=True)
    dropped = ("TMKB_", "LOG_LEVEL", "XDG_", "CLAUDE", "ANTHROPIC_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}
    return packages.with_node({**kept, **quiet, "HOME": home, **more}, packages.for_node(HERE))


if __name__ == "__main__":
    sys.exit(main())

"""`--json` prints what `docs/cli.md` says, and nothing else."""

import json
import os
import re

import pytest

from tests.support.repository import ROOT, source
from tmkb.cli import main
from tmkb.schema import paths

pytestmark = pytest.mark.process

SECTION = source(os.path.join(ROOT, "docs", "cli.md")).split("\n## JSON\n")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| (`.*?) \| (.*) \|$", SECTION, re.M)
RUNS = {  # row of the table → a command line; {dir} is an empty folder, {pattern} a folder with one pattern
    "query": "query celery",
    "query --explain": "query celery --explain",
    "list": "list --patterns {pattern}",
    "review": "review {pattern}",
    "rules FORM": "rules agents-md",
    "rules FORM -o PATH": "rules agents-md -o {dir}/AGENTS.md",
    "export FORMAT": "export skill -o {dir}/skills --patterns {pattern}",
    "install --list": "install --list",
    "install --print": "install cursor --print",
    "new pattern": "new pattern --id ACME-AUTH-001 --name Mine --category object-level --dir {dir}",
    "validate": "validate {pattern}",
    "usage report FOLDER…": "usage report {dir}",
    "schema check": "schema check",
    "schema show": "schema show errors",
    "schema get": "schema get errors:errors.unknown_tool",
    "schema new": "schema new tool hello --schemas {dir}/mine",
    "schema diff": "schema diff packaged packaged",
    "schema formats": "schema formats errors",
    "schema export": "schema export {dir}",
    "check": "check --revision 2025-11-25",
    "replay": "replay {conformance}/lifecycle",
    "resources": "resources --server tmkb-full",
    "cache": "cache",
    "token": "token",
    "version": "version",
}


def keys(row):
    """The names that a row of the table lists: always there, and possible."""
    text = next(text for commands, text in ROWS if f"`{row}`" in commands)
    named = re.findall(r"`([\w-]+)`(\??)", text.replace("`--test` ", ""))
    return {name for name, mark in named if not mark}, {name for name, _ in named}


@pytest.mark.parametrize("row", RUNS)
def test_the_value_has_the_documented_shape(run_tmkb, tmp_path, patterns, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    folder = patterns("acme_auth_001")
    words = RUNS[row].format(dir=tmp_path, pattern=folder, conformance=paths.CONFORMANCE).split()
    _, out, _ = run_tmkb(*words, "--json")
    value = json.loads(out)

    assert out.count("\n") == 1
    always, possible = keys(row)
    for each in value if isinstance(value, list) else [value]:
        assert always <= set(each) <= possible


def test_every_command_with_the_option_is_documented():
    documented = {command.split()[0] for commands, _ in ROWS for command in re.findall(r"`([^`]+)`", commands)}
    whole = main.parser(main.COMMANDS)
    with_option = set()
    for name, command in whole.subcommands().items():
        parsers = [command, *command.subcommands().values()]
        if any("--json" in each._option_string_actions for each in parsers):
            with_option.add(name)

    assert with_option == documented

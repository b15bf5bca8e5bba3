"""``tmkb completion SHELL``: print a script that completes commands, options and their values."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from tmkb.cli import list as listing
from tmkb.cli import loader, main, output
from tmkb.clients.client import clients
from tmkb.knowledge import stacks
from tmkb.schema import documents, paths

PLACES = {"DIR": shtab.DIRECTORY, "PATH": shtab.FILE, "FILE": shtab.FILE}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="the shell of the script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    whole = main.parser(main.COMMANDS)
    with output.progress("Reading the patterns"):
        known = _known()
    for prog, action in _actions(whole):
        if action.metavar in PLACES:
            action.complete = PLACES[action.metavar]  # type: ignore[attr-defined] # where shtab looks for it
        if action.metavar == "COMMAND":  # `eval --server` takes a shell command
            continue
        name = action.option_strings[-1] if action.option_strings else action.dest
        choices = action.choices or known.get(f"{prog} {name}", known.get(name))
        action.choices = None if choices is None else [*choices]  # shtab takes a mapping for subcommands
    print(shtab.complete(whole, args.shell))
    return 0


def _known() -> dict[str, list[str]]:
    """Return the current values of arguments and options; a name after a command counts only there."""
    patterns = [pattern for _, pattern in loader.patterns_by_id(None).values()]
    servers, ids = documents.servers(paths.named(None, "TMKB_SCHEMAS")), sorted(each["id"] for each in patterns)
    known = stacks.packaged()
    filters = {f"--{name}": listing.values(name, patterns) for name in listing.FILTERS}
    of_queries = {"--language": sorted(known.languages), "--framework": sorted(known.stacks)}
    return {
        "id": ids,
        "ids": ids,
        "clients": [each.name for each in clients()],
        "--server": servers,
        **filters,
        **{f"tmkb query {name}": values for name, values in of_queries.items()},
    }


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield the options and arguments of a parser and of its subcommands, each with the name of its parser."""
    for action in parser._actions:  # argparse has no public access to them
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield parser.prog, action

"""``tmkb completion SHELL``: a script that completes commands, options and their values, made from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from tmkb.cli import main

PLACES = {"DIR": shtab.DIRECTORY, "PATH": shtab.FILE, "FILE": shtab.FILE}


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="the shell to complete in")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    whole = main.parser(main.COMMANDS)
    for action in _actions(whole):
        if action.metavar in PLACES:
            action.complete = PLACES[action.metavar]  # type: ignore[attr-defined] # where shtab looks for it
    print(shtab.complete(whole, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its commands."""
    for action in parser._actions:  # argparse shows them nowhere else
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action

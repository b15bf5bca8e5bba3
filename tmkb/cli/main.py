"""The table of commands; imports only the one asked for. Exit status: 0 done, 1 the answer is no, 2 wrong use,
130 interrupted."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence
    from types import ModuleType

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it
COMMANDS = {
    "serve": "serve a client over stdio, or many over HTTP",
    "query": "ask which patterns matter for what you are about to write",
    "eval": "measure the answers to judged questions",
    "get": "show one pattern in full",
    "list": "list the patterns",
    "validate": "check patterns",
    "prove": "run the proofs of patterns",
    "new": "begin a pattern of your own",
    "replay": "replay recorded conversations against a server",
    "schema": "check the schemas, show one resolved, or change one",
    "cache": "show or clear what is kept for a faster start",
    "completion": "print a shell's completion of these commands",
    "token": "make a token for a server over HTTP",
    "version": "print the version",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command with ``argv`` (default: what the process was started with); gives the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["serve"]:
            from tmkb.cli import serve

            if (options := serve.quick(words[1:])) is not None:
                return serve.serve(options)
        return _run(words)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(words: list[str]) -> int:
    import os

    from tmkb import problems
    from tmkb.cli import output
    from tmkb.errors import DocumentError, SpecError

    output.use_any_encoding()
    try:
        chosen = next((word for word in words if not word.startswith("-")), "")
        args = parser([chosen]).parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
    except (DocumentError, SpecError) as error:
        for problem in error.problems:
            print(problems.line(problem), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def parser(configured: Collection[str]) -> argparse.ArgumentParser:
    """The parser of all commands, of which only the ``configured`` ones know their options."""
    import argparse

    from tmkb import __version__

    whole = argparse.ArgumentParser(
        prog="tmkb", description="Authorization threat patterns for coding agents, over MCP."
    )
    whole.add_argument("--version", action="version", version=f"tmkb {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        if name in configured:
            module = _module(name)
            module.configure(command)
            command.set_defaults(run=module.run)
    return whole


def _module(name: str) -> ModuleType:
    import importlib

    return importlib.import_module(f"tmkb.cli.{name}")

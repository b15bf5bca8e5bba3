"""The table of commands; imports only the chosen command.

Exit status: 0 success, also for a query without a match; 1 check failed, unknown name or no pattern that matches;
2 usage error, schema error, or output that cannot be written; 130 interrupted.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence
    from types import ModuleType
    from typing import Any

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it
COMMANDS = {
    "serve": "serve a client over stdio, or many over HTTP",
    "query": "find the patterns that matter for code you are about to write",
    "review": "comment on changed code that makes an authorization mistake",
    "questions": "add example questions to patterns",
    "train": "train retrieval on the example questions of patterns",
    "eval": "score retrieval on a labelled query set",
    "get": "show one pattern in full",
    "list": "list the patterns",
    "validate": "check patterns",
    "prove": "run the proofs of patterns",
    "new": "create a pattern",
    "export": "write patterns in the formats of other tools",
    "replay": "replay recorded conversations against a server",
    "schema": "check, show, compare or edit the schemas",
    "cache": "show or clear the startup cache",
    "completion": "print a shell completion script",
    "token": "generate a bearer token for a server over HTTP",
    "version": "print the version",
}

EXAMPLES = {
    "": 'tmkb query "background job that deletes accounts"\n  tmkb get 7\n  tmkb list --framework flask\n  tmkb serve',
    "export": "tmkb export site -o pages\n  tmkb export semgrep -o rules TMKB-AUTH-007\n"
    "  tmkb export skill -o .claude/skills\n  tmkb export agents-md -o AGENTS.md",
    "get": "tmkb get TMKB-AUTH-007\n  tmkb get 7 --test > test_exports.py",
    "list": "tmkb list --category object-level\n  tmkb list --severity critical --json",
    "new": "tmkb new pattern --id ACME-AUTH-001 --dir my-patterns",
    "prove": "tmkb prove TMKB-AUTH-007",
    "query": 'tmkb query "endpoint that exports invoices" --framework flask\n  git diff | tmkb query -',
    "questions": "tmkb questions add questions.jsonl --author me --dir my-patterns",
    "replay": "tmkb replay\n  tmkb replay --command 'python server.py'",
    "review": "tmkb review\n  tmkb review main...HEAD --sarif > review.sarif\n  tmkb review app/api",
    "schema": "tmkb schema check my-schemas\n  tmkb schema new tool hello --schemas my-schemas\n"
    "  tmkb schema show 2025-11-25",
    "serve": "tmkb serve\n  tmkb serve --schemas my-schemas --watch\n  tmkb serve --http 127.0.0.1:8321",
    "train": "tmkb train\n  tmkb train --patterns packaged --patterns my-patterns",
    "validate": "tmkb validate my-patterns",
}
_UNWRITABLE = ("EBADF", "EDQUOT", "EFBIG", "EIO", "ENOSPC")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. ``argv`` defaults to the arguments of the process."""
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
    import errno
    import os

    from tmkb.cli import output
    from tmkb.errors import DocumentError, SpecError
    from tmkb.schema import problems

    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 # None: the descriptor is closed
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        output.fail(f"Cannot write the output: {os.strerror(errno.EBADF)}.")
        return 2
    output.use_any_encoding()
    try:
        try:
            status: int = _chosen(words)
        finally:
            sys.stdout.flush()
    except (DocumentError, SpecError) as error:
        for problem in error.problems:
            print(problems.line(problem), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pipe
        _discard()
        return 0
    except OSError as error:
        if error.filename is not None or errno.errorcode.get(error.errno or 0) not in _UNWRITABLE:
            raise
        _discard()
        print(f"tmkb: Cannot write the output: {error.strerror}.", file=sys.stderr)
        return 2
    return status


def _chosen(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), "")
    whole = parser([chosen])
    if not words:
        whole.print_help(sys.stderr)
        return 2
    if chosen not in ("", *COMMANDS):
        from tmkb.schema import metaschema

        near = metaschema.nearest(chosen, COMMANDS)
        hint = f"Did you mean '{near}'?" if near else f"Commands: {', '.join(COMMANDS)}."
        whole.error(f"There is no command '{chosen}'. {hint}")
    args = whole.parse_args(words)
    status: int = args.run(args)
    return status


def _discard() -> None:
    """Redirect stdout to the null device, so that Python does not fail to flush it at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser(configured: Collection[str]) -> argparse.ArgumentParser:
    """Return the parser of all commands, with options only for the ``configured`` ones."""
    import argparse

    from tmkb import __version__

    class Parser(argparse.ArgumentParser):
        def _check_value(self, action: argparse.Action, value: Any) -> None:
            if action.choices is not None and value not in action.choices:
                from tmkb.schema import metaschema

                if near := metaschema.nearest(str(value), [str(choice) for choice in action.choices]):
                    raise argparse.ArgumentError(action, f"invalid choice: {value!r}. Did you mean {near!r}?")
            super()._check_value(action, value)

        def _print_message(self, message: str, file: Any = None) -> None:
            print(message, end="", file=file or sys.stderr)  # argparse ignores output that cannot be written

    whole = Parser(
        prog="tmkb",
        description="Authorization threat patterns for coding agents, over MCP.",
        epilog=_examples(""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("-V", "--version", action="version", version=f"tmkb {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, about in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=_examples(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in configured:
            module = _module(name)
            module.configure(command)
            command.set_defaults(run=module.run)
    return whole


def _examples(command: str) -> str | None:
    return f"examples:\n  {EXAMPLES[command]}" if command in EXAMPLES else None


def _module(name: str) -> ModuleType:
    import importlib

    return importlib.import_module(f"tmkb.cli.{name}")

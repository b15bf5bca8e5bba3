"""The table of commands; imports only the chosen command. `docs/cli.md` describes the exit statuses."""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import ModuleType

    from tmkb.cli.parser import CommandParser

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells report it
COMMANDS = {
    "serve": "serve a client over stdio, or many over HTTP",
    "query": "find the patterns that matter for code you are about to write",
    "install": "add this server to MCP clients, or take it out",
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
    "rules": "print instructions for coding agents, or write them into the file they read",
    "record": "record the conversation between a client and a server",
    "replay": "replay recorded conversations against a server",
    "diff": "compare what two servers offer: recordings, commands or URLs",
    "call": "call a tool of any MCP server",
    "tools": "list the tools of any MCP server, or describe one",
    "prompts": "list the prompts of any MCP server, or get one",
    "resources": "list the resources of any MCP server, or read one",
    "doctor": "find out why a client does not get answers",
    "check": "check what the MCP specification demands of a server",
    "mock": "serve a recorded conversation to a client, instead of the server",
    "schema": "check, show, compare or edit the schemas",
    "cache": "show or clear the startup cache",
    "completion": "print a shell completion script",
    "token": "generate a bearer token for a server over HTTP",
    "usage": "report what is asked, from the logs of `serve --usage`",
    "version": "print the version",
}
GROUPS = {  # heading of the help → its commands; others come last
    "use the patterns": ("query", "get", "list", "review", "rules", "export"),
    "serve clients": ("install", "doctor", "serve", "usage", "token", "cache"),
    "write patterns": ("new", "validate", "prove", "questions", "train", "eval"),
    "change the server": ("schema",),
    "test MCP servers": ("call", "tools", "prompts", "resources", "check", "record", "replay", "mock", "diff"),
}
OTHERS = "other"
FIRST = ("install", "doctor", "query", "get", "list", "review", "serve")  # what `tmkb` alone describes

EXAMPLES = {
    "": "tmkb install claude-code\n"
    '  tmkb query "background job that deletes accounts"\n  tmkb get 7\n  tmkb list --framework flask\n  tmkb serve',
    "cache": "tmkb cache\n  tmkb cache --clear",
    "call": "tmkb call tmkb_query context='endpoint that exports invoices'\n"
    "  tmkb call search query=flask limit=5 --command 'python server.py'\n"
    "  tmkb call echo message=@letter.txt --url http://127.0.0.1:8000/mcp",
    "check": "tmkb check --command 'python server.py'\n  tmkb check --url http://127.0.0.1:8000/mcp --html a.html\n"
    "  tmkb check --command 'node server.js' --call 'add {\"a\": 1, \"b\": 2}' --fail-on SHOULD",
    "completion": "tmkb completion bash > ~/.local/share/bash-completion/completions/tmkb\n"
    "  tmkb completion fish > ~/.config/fish/completions/tmkb.fish",
    "diff": "tmkb diff old.transcript.yaml new.transcript.yaml\n"
    "  tmkb diff 'python server.py' http://127.0.0.1:8000/mcp --fail-on additive\n"
    "  tmkb diff released.transcript.yaml 'python server.py' --github",
    "doctor": "tmkb doctor\n  tmkb doctor claude-desktop vscode -v\n  tmkb doctor --http http://127.0.0.1:8321/mcp\n"
    "  tmkb doctor --bundle tmkb-report.zip",
    "eval": "tmkb eval queries.jsonl\n  tmkb eval queries.jsonl --server 'python server.py'\n  tmkb eval --cross",
    "export": "tmkb export site -o pages\n  tmkb export semgrep -o rules TMKB-AUTH-007\n"
    "  tmkb export skill -o .claude/skills\n  tmkb export plugin -o tmkb-plugin",
    "get": "tmkb get TMKB-AUTH-007\n  tmkb get 7 --test > test_exports.py",
    "install": "tmkb install claude-code\n  tmkb install cursor zed --patterns packaged --patterns my-patterns\n"
    "  tmkb install vscode --scope project --dry-run\n  tmkb install claude-desktop --uninstall\n"
    "  tmkb install --file ~/.config/other/mcp.json --format mcpServers",
    "list": "tmkb list\n  tmkb list --category object-level\n  tmkb list --severity critical --json",
    "mock": "tmkb mock session.yaml\n  tmkb mock session.yaml --http 127.0.0.1:8321\n"
    "  tmkb mock session.yaml --lenient --faults faults.yaml",
    "new": "tmkb new pattern --id ACME-AUTH-001 --dir my-patterns",
    "prompts": "tmkb prompts --command 'python server.py'\n"
    "  tmkb prompts review language=python --command 'python server.py'",
    "prove": "tmkb prove TMKB-AUTH-007\n  tmkb prove --patterns my-patterns --verbose",
    "query": 'tmkb query "endpoint that exports invoices" --framework flask\n  git diff | tmkb query -',
    "questions": "tmkb questions add questions.jsonl --author me --dir my-patterns",
    "record": "tmkb record -o mine.transcript.yaml -- python server.py\n"
    "  tmkb record -o mine.transcript.yaml --url http://127.0.0.1:8000/mcp --listen 127.0.0.1:9000\n"
    "  tmkb record -o mine.transcript.yaml --send requests.yaml --check -- python server.py",
    "replay": "tmkb replay recordings --command 'python server.py'\n"
    "  tmkb replay recordings --url http://127.0.0.1:8000/mcp --junit replay.xml\n"
    "  tmkb replay one.transcript.yaml --update --command 'python server.py'",
    "resources": "tmkb resources --server tmkb-full\n  tmkb resources file:///notes.txt --command 'python server.py'",
    "review": "tmkb review\n  tmkb review main...HEAD --sarif > review.sarif\n  tmkb review app/api",
    "rules": "tmkb rules agents-md\n  tmkb rules claude -o .\n  tmkb rules cursor -o . --remove",
    "schema": "tmkb schema check my-schemas\n  tmkb schema new tool hello --schemas my-schemas\n"
    "  tmkb schema show 2025-11-25\n  tmkb schema diff packaged my-schemas",
    "schema add": "tmkb schema add tmkb:instructions 'Query before you write code.' --schemas my-schemas",
    "schema eject": "tmkb schema eject tmkb_query my-schemas",
    "schema export": "tmkb schema export my-schemas/editor",
    "schema formats": "tmkb schema formats\n  tmkb schema formats tool",
    "schema get": "tmkb schema get tmkb:limits.running",
    "schema new": "tmkb schema new server hello --schemas my-schemas\n"
    "  tmkb schema new tool greet --server hello --schemas my-schemas",
    "schema remove": "tmkb schema remove 2025-11-25:methods.ping --schemas my-schemas",
    "schema set": "tmkb schema set errors:errors.unknown_tool.message 'There is no {tool}.' --schemas my-schemas\n"
    "  tmkb schema set tmkb:limits.running 20 --schemas my-schemas --dry-run",
    "serve": "tmkb serve\n  tmkb serve --schemas my-schemas --watch\n  tmkb serve --http 127.0.0.1:8321\n"
    "  tmkb serve --http 127.0.0.1:8321 --metrics 127.0.0.1:9464 --usage /var/log/tmkb",
    "token": "tmkb token\n  tmkb token --json",
    "tools": "tmkb tools\n  tmkb tools search --command 'python server.py'\n"
    "  tmkb tools --url http://127.0.0.1:8000/mcp --json",
    "train": "tmkb train\n  tmkb train --patterns packaged --patterns my-patterns",
    "usage": "tmkb usage report /var/log/tmkb\n  tmkb usage report replica-1 replica-2 --since 30d --html usage.html",
    "validate": "tmkb validate my-patterns\n  tmkb validate --strict my-patterns/acme_auth_001",
}
_UNWRITABLE = ("EBADF", "EDQUOT", "EFBIG", "EIO", "ENOSPC")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. ``argv`` defaults to the arguments of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["serve"]:
            at_start = {*sys.modules}
            gc.disable()  # a start leaves no cycles to collect; `serve` enables it when it has started
            try:
                from tmkb.cli import serve

                if (options := serve.quick(words[1:])) is not None:
                    status = serve.serve(options)
                    if argv is None:
                        _exit(status, sys.modules.keys() - at_start)
                    return status
            finally:
                gc.enable()
        return _run(words)
    except KeyboardInterrupt:
        print("\rtmkb: interrupted" if sys.stderr.isatty() else "tmkb: interrupted", file=sys.stderr)  # over "^C"
        return _INTERRUPTED
    except Exception as error:
        return _failed(error, words)


def _exit(status: int, imported: set[str]) -> None:
    """Exit without freeing all memory, unless a module can have work to do at exit, such as another provider."""
    packages = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names
    if packages <= {"tmkb"} and not sys.modules.keys() & {"atexit", "threading"}:
        import os

        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(status)


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
    return status


def _failed(error: Exception, words: list[str]) -> int:
    """Print an error that no command expects as one line. With TMKB_TRACEBACK it is raised instead."""
    import contextlib
    import errno
    import os
    import traceback

    from tmkb.doctor import damage

    if text := damage.report(error, words):
        if os.environ.get("TMKB_TRACEBACK"):
            raise error
        is_doctor = words[:1] == ["doctor"]
        print(text, file=sys.stdout if is_doctor else sys.stderr)
        return 1 if is_doctor else 2
    from tmkb.cli import output
    from tmkb.schema import paths

    number = error.errno or 0 if isinstance(error, OSError) and error.filename is None else 0
    if errno.errorcode.get(number) in _UNWRITABLE:
        _discard()
        sentence = f"Cannot write the output: {os.strerror(number)}."
    elif os.environ.get("TMKB_TRACEBACK"):
        raise error
    elif isinstance(error, OSError) and error.filename is not None:
        sentence = f"Cannot use {paths.shown(os.fsdecode(error.filename))}: {error.strerror}."
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        sentence = (
            f"Internal error in {os.path.basename(place.filename)}, line {place.lineno}: {type(error).__name__}: "
            f"{error}. Please report it, with what the same command prints if the variable TMKB_TRACEBACK is 1."
        )
    with contextlib.suppress(OSError):  # it may be stderr that cannot be written
        output.fail(sentence)
    return 2


def _chosen(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), "")
    whole = parser([chosen])
    if chosen not in ("", *COMMANDS):
        from tmkb.schema import metaschema

        near = metaschema.nearest(chosen, COMMANDS)
        whole.error(f"There is no command '{chosen}'." + (f" Did you mean '{near}'?" if near else ""))
    args = whole.parse_args(words)
    if "run" not in args:  # only `--`
        whole.error("There is no command.")
    status: int = args.run(args)
    return status


def _discard() -> None:
    """Redirect stdout to the null device, so that Python does not fail to flush it at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser(configured: Collection[str]) -> CommandParser:
    """Return the parser of all commands, with options only for the ``configured`` ones."""
    from tmkb import __version__
    from tmkb.cli.parser import CommandParser

    whole = CommandParser(
        prog="tmkb",
        usage="tmkb COMMAND [OPTIONS]",
        description="Authorization threat patterns for coding agents, over MCP.",
        epilog=_examples(""),
    )
    whole.add_argument("-V", "--version", action="version", version=f"tmkb {__version__}", help="print the version")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", prog="tmkb")
    for name, about in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=_examples(name),
        )
        if name in configured:
            module = _module(name)
            module.configure(command)
            command.set_defaults(run=module.run)
            for action, nested in command.subcommands().items():
                nested.epilog = nested.epilog or _examples(f"{name} {action}")
    whole.groups = {**GROUPS, OTHERS: [name for name in COMMANDS if not any(name in each for each in GROUPS.values())]}
    whole.first = FIRST
    return whole


def _examples(command: str) -> str | None:
    """Return the examples of a command or, for an action without its own, those of its command that use it."""
    text = EXAMPLES.get(command)
    if text is None and (whole := EXAMPLES.get(command.partition(" ")[0])):
        text = "\n".join(line for line in whole.split("\n") if line.strip().startswith(f"tmkb {command} ")).strip()
    return f"examples:\n  {text}" if text else None


def _module(name: str) -> ModuleType:
    import importlib

    return importlib.import_module(f"tmkb.cli.{name}")

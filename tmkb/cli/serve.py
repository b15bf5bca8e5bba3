"""``tmkb serve``: answer one client over stdio. Its flags are read without a parser, since a client waits for us."""

from __future__ import annotations

import os
import sys

from tmkb import log, template
from tmkb.cli import sources
from tmkb.errors import SpecError
from tmkb.runtime import Runtime
from tmkb.transport import stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from tmkb.providers.registry import Provider

    Options = dict[str, list[str]]

FLAGS = ("--schemas", "--patterns", "--server", "--log-level")


def quick(words: Sequence[str]) -> Options | None:
    """The flags, where they are plainly right; None where a parser has to explain (help, a mistake)."""
    options: Options = {}
    rest = list(words)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag not in FLAGS or not (equals or rest):
            return None
        options.setdefault(flag, []).append(value if equals else rest.pop(0))
    if any(level.lower() not in log.LEVELS for level in options.get("--log-level", [])):
        return None
    return options


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command, for its help and for mistakes."""
    sources.configure_schemas(parser)
    sources.configure_patterns(parser)
    parser.add_argument("--server", metavar="NAME", help=f"the server to be (default: {sources.DEFAULT_SERVER})")
    parser.add_argument(
        "--log-level",
        type=str.lower,
        choices=log.LEVELS,
        help="least level logged to stderr (default: LOG_LEVEL, else info)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve with options that a parser has read."""
    given = {"--schemas": args.schemas, "--patterns": args.patterns}
    single = {"--server": args.server, "--log-level": args.log_level}
    return serve({**{k: v for k, v in given.items() if v}, **{k: [v] for k, v in single.items() if v}})


def serve(options: Options) -> int:
    """Serve until the client has gone."""
    try:
        spec = sources.spec(options.get("--server", [sources.DEFAULT_SERVER])[-1], options.get("--schemas"))
    except SpecError as error:
        from tmkb import problems

        sys.stderr.write("".join(f"{problems.line(problem)}\n" for problem in error.problems))
        return 2
    asked = options.get("--log-level", [os.environ.get("LOG_LEVEL") or "info"])[-1]
    level = asked.lower() if asked.lower() in log.LEVELS else "info"
    output = log.Log(spec["server"]["log"], level)
    providers = sources.providers(spec, options.get("--patterns"))
    _announce(output, providers, asked)
    stdio.serve(Runtime(spec, providers, output))
    return 0


def _announce(output: log.Log, providers: Mapping[str, Provider], asked_level: str) -> None:
    """The first lines of the log: what is served, and what is not as it was meant."""
    output.write("starting", **{name: fact for each in providers.values() for name, fact in each.facts.items()})
    if asked_level.lower() not in log.LEVELS:
        output.write("unknown_log_level", value=template.cut(asked_level), known=", ".join(log.LEVELS))
    for provider in providers.values():
        for line, fields in provider.warnings:
            output.write(line, **fields)
    output.write("ready", transport="stdio")

"""``tmkb query``: run the tool tmkb_query of the server tmkb-full in a terminal."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tmkb.cli import output, pages
from tmkb.knowledge import stacks
from tmkb.protocol import arguments as validation
from tmkb.schema import hidden
from tmkb.server import sources
from tmkb.server.server import Server

SERVER, TOOL = "tmkb-full", "tmkb_query"
MOST = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command. The tool's schema validates their values, as for a client's call."""
    parser.add_argument(
        "context",
        nargs="*",
        metavar="CONTEXT",
        help="what you are about to write, in your own words; read from stdin if it is - or missing",
    )
    parser.add_argument("--language", metavar="NAME", help="its programming language; taken from CONTEXT if absent")
    parser.add_argument("--framework", metavar="NAME", help="its framework or platform; taken from CONTEXT if absent")
    parser.add_argument("--verbosity", metavar="NAME", help="agent: short (default); human: complete")
    parser.add_argument(
        "--limit", type=int, choices=range(1, MOST + 1), metavar="N", help=f"maximum number of patterns, 1 to {MOST}"
    )
    parser.add_argument("--explain", action="store_true", help="explain the result")
    sources.configure_patterns(parser)
    sources.configure_schemas(parser)
    output.configure(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Print the answer. Return 2 for arguments that the tool refuses, and if there are no patterns."""
    args.context = _stdin(args) if args.context in ([], ["-"]) else " ".join(args.context)
    if not hidden.is_unicode(args.context):
        args.usage_error("CONTEXT is not valid UTF-8.")
    with output.progress("Indexing the patterns"):
        server = Server.load(SERVER, schemas=args.schemas, patterns=args.patterns)
    spec = server.spec
    names = ("context", "language", "framework", "verbosity")
    described: Any = spec["tools"][TOOL]["input"]["properties"]
    values: dict[str, Any] = {
        name: _as_listed(getattr(args, name), described.get(name, {}).get("enum", ()))
        for name in names
        if getattr(args, name) is not None
    }
    errors = spec["revisions"][spec["server"]["revisions"][0]]["errors"]
    arguments, failures = validation.check(spec["tools"][TOOL], values, spec, errors)
    if failures:
        output.fail("\n".join(failure.sentence for failure in failures))
        return 2
    output.warn(server)
    for option in ("language", "framework"):
        if name := getattr(args, option):
            _warn_unknown(option, name)
    provider: Any = server.provider("knowledge")
    if not provider.index.patterns:  # as the warning says
        return 2
    if args.explain:
        return _explain(args, provider, arguments)
    answer = json.loads(provider.advise(**arguments, limit=args.limit).content[0]["text"])
    output.write(args, answer, pages.answer(answer))
    return 0


def _stdin(args: argparse.Namespace) -> str:
    """Return the query from stdin. Exit with a usage error if stdin is a terminal or empty."""
    if not args.context and sys.stdin.isatty():
        args.usage_error("CONTEXT is missing. Pass it as an argument or on stdin.")
    try:
        text = sys.stdin.read().strip()
    except UnicodeDecodeError:
        args.usage_error("CONTEXT is not valid UTF-8.")
    if not text:
        args.usage_error("CONTEXT is missing: stdin is empty.")
    return text


def _as_listed(value: str, choices: Iterable[object]) -> str:
    """Return ``value`` in the spelling of ``choices``, ignoring case."""
    return next((each for each in choices if isinstance(each, str) and each.lower() == value.lower()), value)


def _warn_unknown(option: str, name: str) -> None:
    """Print that a language or framework is unknown, with the name that may be meant. Any name is allowed."""
    known = stacks.packaged()
    names = known.languages if option == "language" else [*known.frameworks, *known.stacks]
    if not known.known(name):
        output.fail(f"The {option} {name} is not known. {output.did_you_mean(name, names)}".rstrip())


def _explain(args: argparse.Namespace, provider: Any, arguments: Mapping[str, Any]) -> int:
    """Print the explanation of the result."""
    facts = provider.explain(arguments["context"], args.limit)
    output.write(args, facts, pages.explanation(facts))
    return 0

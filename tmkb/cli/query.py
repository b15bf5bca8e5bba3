"""``tmkb query``: what a client would be answered, in a terminal."""

from __future__ import annotations

import argparse
import json

from tmkb import template
from tmkb.cli import output, pages, sources
from tmkb.engine.handlers import tools
from tmkb.providers.knowledge import Knowledge

TOOL = "tmkb_query"
MOST = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command. What they may be stands in the tool's schema; they are judged as a client's call is."""
    parser.add_argument("context", metavar="CONTEXT", help="what you are about to write, in your own words")
    parser.add_argument("--language", metavar="NAME", help="only patterns for this language")
    parser.add_argument("--framework", metavar="NAME", help="only patterns for this framework")
    parser.add_argument("--verbosity", metavar="NAME", help="agent: short (the default); human: in full")
    parser.add_argument(
        "--limit", type=int, choices=range(1, MOST + 1), metavar="N", help=f"most patterns, 1 to {MOST}"
    )
    sources.configure_patterns(parser)
    sources.configure_schemas(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the answer. 2 for arguments that the tool refuses."""
    spec = sources.spec(sources.DEFAULT_SERVER, args.schemas)
    names = ("context", "language", "framework", "verbosity")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    errors = spec["revisions"][spec["server"]["revisions"][0]]["errors"]
    arguments, sentences = tools.judge(spec["tools"][TOOL], given, spec["types"], errors)
    if sentences:
        output.fail("\n".join(sentences))
        return 2
    knowledge = sources.providers(spec, args.patterns)["knowledge"]
    assert isinstance(knowledge, Knowledge)
    for line, fields in knowledge.warnings:
        output.fail(template.fill(spec["server"]["log"][line]["message"], fields))
    result = knowledge.query(**arguments, limit=args.limit)  # type: ignore[arg-type]  # judged by the tool's schema
    answer = json.loads(str(result.content[0]["text"]))
    output.write(args, answer, pages.answer(answer))
    return 0

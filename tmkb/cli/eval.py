"""``tmkb eval``: score retrieval on a labelled query set."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from tmkb.authoring import bm25, metrics
from tmkb.cli import layout, loader, output, train
from tmkb.cli.layout import Line
from tmkb.conformance import targets, transcript
from tmkb.errors import Problem, SpecError
from tmkb.server import sources
from tmkb.server.server import Server

TOOL, CALL = "tmkb_query", "call_tool"
COLUMNS = ("kind", "n", "nDCG@3", "95 %", "recall@3", "MRR", "P@1")
MARK = "<!-- tmkb eval --cross -->"
MISSES = 10
MOST = 10

_Answer = Callable[[Mapping[str, Any]], list[str]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("queries", nargs="?", metavar="QUERIES", help="a JSON Lines file of labelled queries")
    parser.add_argument(
        "--cross",
        action="store_true",
        help="instead measure the example questions of patterns, with their author held out; takes minutes",
    )
    parser.add_argument("--write", metavar="FILE", help=f"with --cross: replace what follows '{MARK}' in FILE")
    parser.add_argument(
        "--server", metavar="COMMAND", help="query this MCP server over stdio instead of the built-in search"
    )
    parser.add_argument("--bm25", action="store_true", help="use plain BM25 over the patterns' text, for comparison")
    parser.add_argument("--misses", type=int, default=MISSES, metavar="N", help=f"show at most N misses ({MISSES})")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the scores. Return 2 if the queries cannot be read."""
    if args.cross:
        return _cross(args)
    if args.queries is None:
        output.fail("QUERIES is missing. Pass a file, or --cross.")
        return 2
    try:
        with open(args.queries, encoding="utf-8") as file:
            labelled = metrics.read(file)
    except (OSError, ValueError) as error:
        return output.cannot_read(args.queries, error)
    if args.server:
        scores = _served(args.server, labelled)
    else:
        answer = _plain(args) if args.bm25 else _search(args)
        with output.progress(f"Searching with {len(labelled)} queries"):
            scores = metrics.evaluate(labelled, answer)
    output.write(args, scores, _report(scores, args.misses))
    return 0


def _cross(args: argparse.Namespace) -> int:
    try:
        from tmkb.authoring import crossvalidation
    except ImportError:
        return output.lacks_extra("eval --cross", "train")
    patterns, examples = train.selected(args)
    with output.progress("Measuring each author's questions with a model of the others' questions"):
        report = crossvalidation.report([each for each in examples if each.is_query], patterns)
    if args.write:
        with open(args.write, encoding="utf-8") as file:
            before, mark, _ = file.read().partition(MARK)
        with open(args.write, "w", encoding="utf-8", newline="\n") as file:
            file.write(f"{before}{mark}\n\n{report}")
    output.write(args, {"report": report}, report)
    return 0


def _search(args: argparse.Namespace) -> _Answer:
    provider: Any = Server.load(patterns=args.patterns).provider("knowledge")
    index = provider.index
    return lambda question: [
        index.patterns[number]["id"]
        for number in index.search(question["context"], question.get("language"), question.get("framework"))[:MOST]
    ]


def _plain(args: argparse.Namespace) -> _Answer:
    ranked = bm25.ranking(loader.library(args.patterns).patterns)
    return lambda question: ranked(question["context"])


def _served(command: str, labelled: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the scores of a server that is started with ``command``."""
    spec = Server.load().spec
    revision = spec["server"]["revisions"][0]
    method = next(name for name, each in spec["revisions"][revision]["methods"].items() if each.get("handler") == CALL)
    target = targets.Command(shlex.split(command))

    def answer(question: Mapping[str, Any]) -> list[str]:
        arguments = {name: question[name] for name in ("context", "language", "framework") if question.get(name)}
        params = {"name": TOOL, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": question["id"], "method": method, "params": params}
        responses: Any = target.exchange(json.dumps(request).encode(), 1)
        result = json.loads(responses[0]["result"]["content"][0]["text"])
        return [pattern["id"] for pattern in result["patterns"]]

    try:
        for turn in transcript.packaged_opening("handshake", revision):
            target.exchange(turn.line, len(turn.expect))
        return metrics.evaluate(labelled, answer)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise SpecError([Problem.of_argument("no_answer", command, reason=str(error))]) from error
    finally:
        target.close()


def _report(scores: dict[str, Any], most: int) -> list[Line]:
    rows = [(kind, row) for kind, row in [*scores["kinds"].items(), ("all", scores["all"])]]
    none = scores["negatives"]
    low, high = none["interval"]
    negatives = f"Answered without a relevant pattern: {none['answered']:.3f} of {none['n']} ({low:.2f} to {high:.2f})"
    lines = layout.table(COLUMNS, [_cells(kind, row) for kind, row in rows]) + layout.text(negatives)
    for miss in scores["misses"][:most]:
        lines += layout.text(
            f"{miss['id']}  {miss['ndcg']:.2f}  expected {_grades(miss['relevant'])}, "
            f"got {', '.join(miss['got']) or 'none'}: {' '.join(miss['context'].split())[:80]}"
        )
    return lines


def _cells(kind: str, row: dict[str, Any]) -> list[str]:
    low, high = row["interval"]
    return [kind, str(row["n"]), f"{row['ndcg']:.3f}", f"{low:.2f} to {high:.2f}"] + [
        f"{row[name]:.3f}" for name in metrics.NAMES[1:]
    ]


def _grades(relevant: dict[str, int]) -> str:
    return ", ".join(f"{id_}={grade}" for id_, grade in relevant.items()) or "none"

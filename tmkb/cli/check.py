"""``tmkb check``: check what the specification demands against any server over stdio or HTTP."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import urllib.parse
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tmkb.cli import layout, output, target
from tmkb.cli.layout import Line
from tmkb.conformance import check, check_report, checks, peers
from tmkb.conformance.check import Outcome, Spoken
from tmkb.conformance.checks import KEYWORDS, Checks
from tmkb.conformance.session import ACCEPTED, Connect
from tmkb.schema import hidden
from tmkb.transport import guard

_TIMEOUT = 10.0  # default, in seconds
_WORKERS = 4  # revisions that are checked at the same time


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    target.configure(parser)
    parser.set_defaults(timeout=_TIMEOUT)
    parser.add_argument("--revision", metavar="DATE", help="only under this revision")
    parser.add_argument(
        "--call",
        type=_call,
        metavar="TOOL",
        help="call this tool, too; a JSON object after its name has the arguments. No other tool is called",
    )
    parser.add_argument(
        "--fail-on",
        choices=KEYWORDS,
        default=KEYWORDS[0],
        help="exit with 1 if a requirement with this keyword or a stronger one fails (default: %(default)s)",
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="a requirement that may fail; repeatable",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page for people")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML for a CI system")
    parser.add_argument("--badge", metavar="FILE", help="write an SVG image for a README")
    printed = parser.add_mutually_exclusive_group()
    output.configure(printed)
    printed.add_argument("--github", action="store_true", help="also print annotations for GitHub Actions")


def run(args: argparse.Namespace) -> int:
    """Print the matrix. Return 1 if a requirement fails, 2 for a usage error or a server that cannot be checked."""
    wanted = checks.read()
    if fault := _usage_fault(args, wanted):
        output.fail(fault)
        return 2
    if not (args.url or args.command):
        output.fail("Without --command or --url, TMKB's own server is checked (tmkb serve).")
    links = {name: str(speech["specification"]) for name, speech in wanted.revisions.items()}
    try:
        with output.progress() as show:
            outcomes = _outcomes(args, wanted, show)
    except OSError as error:
        output.fail(f"Cannot start {_shown(args)}: {error.strerror or error}.")
        return 2
    except check.Unreachable as error:
        output.fail(f"{_shown(args)}: {error} {error.fault[:1].upper()}{error.fault[1:]}.")
        for line in error.notes.splitlines():
            print(f"  stderr: {hidden.line(line)}", file=sys.stderr)
        return 2
    if not outcomes:
        output.fail(f"{_shown(args)} does not speak {args.revision or 'a known revision'}.")
        return 2
    outcomes = check.accept(outcomes, args.accept)
    _report_unused(args.accept, outcomes)
    return _report(args, outcomes, links)


def _report(args: argparse.Namespace, outcomes: Sequence[Outcome], links: check_report.Links) -> int:
    """Print and write the outcomes. Return 1 if a requirement fails, 2 if a file cannot be written."""
    fail_on = KEYWORDS[: KEYWORDS.index(args.fail_on) + 1]
    if args.github:
        print("".join(f"{line}\n" for line in check_report.github(outcomes, links, fail_on)), end="")
    output.write(args, check_report.value(outcomes, links), _lines(check_report.text(outcomes, links)))
    page = check_report.page(outcomes, links, f"MCP conformance of {_shown(args)}")
    files = {
        args.html: page.encode("utf-8", "backslashreplace"),
        args.junit: check_report.junit(outcomes, links, fail_on),
        args.badge: check_report.badge(outcomes).encode(),
    }
    if not output.save({path: content for path, content in files.items() if path}):
        return 2
    for path in filter(None, files):
        print(hidden.line(f"{path}: written"), file=sys.stderr)
    return 1 if any(check_report.failures(outcomes, keyword) for keyword in fail_on) else 0


def _lines(report: str) -> list[Line]:
    """Mark failures in a report, which is not wrapped because it has columns."""
    parts = re.split(r"\b(FAIL|fail)\b", report)
    return layout.text(*((part, "bold red" if number % 2 else "") for number, part in enumerate(parts)), wraps=False)


def _usage_fault(args: argparse.Namespace, wanted: Checks) -> str | None:
    """Return what is wrong with the options as a sentence; None if nothing is."""
    if args.revision not in (None, *wanted.revisions):
        hint = output.did_you_mean(args.revision, wanted.revisions, f"Revisions: {', '.join(wanted.revisions)}.")
        return f"There is no revision {args.revision}. {hint}"
    ids = [each.id for each in wanted.requirements]
    if unknown := [each for each in args.accept if each not in ids]:
        hint = output.did_you_mean(unknown[0], ids, "The report names the requirements.")
        return f"There is no requirement {unknown[0]}. {hint}"
    if missing := [path for path in (args.html, args.junit, args.badge) if path and not _has_folder(path)]:
        return f"Cannot write {missing[0]}: there is no folder {os.path.dirname(missing[0])}."
    return None


def _report_unused(ids: Collection[str], outcomes: Collection[Outcome]) -> None:
    """Say which accepted requirements do not fail."""
    failing = {each.requirement.id for each in outcomes if each.status == ACCEPTED}
    for id_ in (each for each in ids if each not in failing):
        output.fail(f"{id_} does not fail. Remove --accept {id_}.")


def _outcomes(args: argparse.Namespace, wanted: Checks, show: Callable[[str], None]) -> list[Outcome]:
    call = {} if args.call is None else {"tool": args.call[0], "arguments": args.call[1]}
    is_loopback = args.url is None or guard.is_loopback(urllib.parse.urlsplit(args.url).hostname or "")
    show(f"Starting {_shown(args)}")
    spoken = [*check.spoken(wanted, _connect(args), wanted.revisions)]
    chosen = [each for each in spoken if args.revision in (None, each.revision)]
    for each in spoken:
        if each not in chosen:
            each.session.close()

    def checked(each: Spoken) -> list[Outcome]:
        era = wanted.revisions[each.revision]["era"]
        latest = max(other.revision for other in spoken if wanted.revisions[other.revision]["era"] == era)
        return check.check(wanted, _connect(args), each, {**call, "latest": latest}, is_loopback, show)

    # Processes are independent. A server at a URL is asked for one thing at a time.
    workers = 1 if args.url else min(_WORKERS, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        return [outcome for outcomes in pool.map(checked, chosen) for outcome in outcomes]


def _connect(args: argparse.Namespace) -> Connect:
    if args.url:
        target.require_http()
        return lambda answer: peers.Web(args.url, args.timeout, answer, args.header)
    argv = args.command or [sys.executable, "-m", "tmkb", "serve"]
    return lambda answer: peers.Pipe(argv, args.timeout, answer)


def _shown(args: argparse.Namespace) -> str:
    return target.shown(args) if args.url or args.command else "tmkb serve"


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """Split ``TOOL`` or ``TOOL {"key": "value"}``. Raises argparse.ArgumentTypeError."""
    name, _, rest = text.strip().partition(" ")
    try:
        arguments = json.loads(rest or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not name or not isinstance(arguments, dict):
        raise argparse.ArgumentTypeError(f"'{text}' is not a tool and its arguments. Write it like 'add {{\"a\": 1}}'")
    return name, arguments


def _has_folder(path: str) -> bool:
    return os.path.isdir(os.path.dirname(path) or ".")

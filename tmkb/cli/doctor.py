"""``tmkb doctor``: find out why a client does not get answers."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from tmkb.cli import layout, output, target
from tmkb.cli.layout import Line, indented, text
from tmkb.clients.client import Client, client, clients
from tmkb.clients.machine import Machine
from tmkb.doctor import bundle, examination, ourselves, own_server, plan, program, report
from tmkb.doctor.examination import Examined
from tmkb.doctor.finding import ERROR, FINE, LEVELS, WARNING, Finding, catalogue
from tmkb.doctor.masking import Mask
from tmkb.doctor.plan import Plan
from tmkb.doctor.report import Section
from tmkb.errors import DocumentError, SpecError
from tmkb.schema import installation, paths
from tmkb.schema.values import JsonObject

_STYLES = {ERROR: "bold red", WARNING: "yellow", FINE: "green"}
_TIMEOUT = 10.0  # seconds
_HELP = "troubleshooting.md"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="check these clients (default: all)")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print what is fine")
    parser.add_argument(
        "--bundle",
        metavar="FILE.zip",
        help="write versions, findings, entries and logs for a bug report; secrets are replaced",
    )
    parser.add_argument("--http", type=target.url, metavar="URL", help="also check a server over HTTP")
    parser.add_argument(
        "--header",
        type=target.header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="with --http: send this header (repeatable)",
    )
    parser.add_argument(
        "--timeout",
        type=target.seconds,
        default=_TIMEOUT,
        metavar="SECONDS",
        help="timeout for one answer of a server (default: %(default)g)",
    )
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is wrong. Return 1 if there is an error; warnings alone are 0."""
    catalogue()  # without it no check can report anything
    chosen = _clients(args.clients)
    if args.bundle and os.path.lexists(args.bundle):
        output.fail(f"{args.bundle} exists. Choose another name for the bundle.")
        return 2
    try:
        machine = Machine.here()
    except OSError as error:
        output.fail(f"The current folder cannot be used: {error.strerror}. Change to another one.")
        return 2
    checks = Plan(machine, chosen, bool(args.clients), args.timeout, args.http or "", dict(args.header))
    with _terminable(), output.progress() as show:
        examined = [*examination.examine(checks.checks(), show)]
    mask = _mask(machine, checks)
    examined = [each._replace(findings=tuple(map(mask.finding, each.findings))) for each in examined]
    titles = {
        ourselves.TOPIC.subject: "tmkb",
        own_server.TOPIC.subject: "Server of this installation",
        plan.HTTP: args.http or "",
    }
    found = report.sections(examined, titles | {each.name: each.title for each in chosen})
    values = report.values(found, examined)
    page = _page(found, examined, mask, args.verbose)
    output.write(args, values, page)
    if args.bundle and not _bundle(args.bundle, checks, mask, values, _page(found, examined, mask, True)):
        return 2
    return 1 if report.is_wrong(found) else 0


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that no server is left behind."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _clients(names: Sequence[str]) -> list[Client]:
    """Return the clients of these names, without repetition; all without names. Raises SpecError for unknown names.

    There are none if the installation is damaged, which the other checks report.
    """
    try:
        known = clients()
    except (DocumentError, SpecError):
        return []
    return [*{each.name: each for each in map(client, names)}.values()] if names else [*known]


def _mask(machine: Machine, checks: Plan) -> Mask:
    entries: list[JsonObject] = [entry for each in checks.inventories for entry in each.everything]
    entries.append({"url": checks.url, "headers": {**checks.headers}})
    return Mask(machine.home, machine.environment, entries)


def _page(found: Sequence[Section], examined: Sequence[Examined], mask: Mask, is_verbose: bool) -> list[Line]:
    lines = text((report.heading(), "bold"))
    for section in found:
        shown = [each for each in section.findings if is_verbose or each.level != FINE]
        if shown:
            lines += [*text(), *text((mask.without_home(section.title), "bold"))]
        for each in sorted(shown, key=lambda finding: LEVELS.index(finding.level)):
            lines += indented(_lines(mask.finding_without_home(each)))
    return lines + text() + _summary(found, examined, is_verbose)


def _lines(finding: Finding) -> list[Line]:
    place = f"  {finding.place}" if finding.place.file else ""
    lines = text((finding.level, _STYLES[finding.level]), f"  {finding.id}{place}")
    body = text(finding.cause)
    for detail in finding.details:
        body += indented(text(detail), "| ")
    if finding.remedy:
        body += indented(text(finding.remedy), "Fix: ")
    return lines + indented(body)


def _summary(found: Sequence[Section], examined: Sequence[Examined], is_verbose: bool) -> list[Line]:
    counts = report.count(found)
    wrong = [f"{counts[each]} {each}{'s' if counts[each] > 1 else ''}" for each in (ERROR, WARNING) if counts[each]]
    if wrong:
        return text(f"{' and '.join(wrong)} in {len(examined)} checks. {_help()} explains each.")
    having = [each.title for each in found if any(finding.id == "entry" for finding in each.findings)]
    clients_ = (
        f"Entries that work: {', '.join(having)}."
        if having
        else f"No client has an entry: `{program.name()} install` adds one."
    )
    return text(f"No problems in {len(examined)} checks{'' if is_verbose else '; -v lists them'}. {clients_}")


def _help() -> str:
    """Return where the findings are explained: the file of a checkout, else the page in the repository."""
    if paths.ROOT != paths.DATA:
        return f"docs/{_HELP}"
    listed = dict(line.split(", ", 1) for line in installation.links())
    return f"{listed.get('Documentation', 'docs/').rpartition('/')[0]}/{_HELP}"


def _bundle(file: str, checks: Plan, mask: Mask, values: JsonObject, page: list[Line]) -> bool:
    """Write the bundle; print a message and return False if that fails."""
    if not mask.is_complete:
        output.fail(
            f"{file} is not written, because the packaged rules for secrets cannot be read. Install tmkb again."
        )
        return False
    content = bundle.Content(
        layout.plain(page),
        values,
        bundle.configurations(checks.inventories, mask),
        bundle.logs(checks.inventories, checks.machine),
    )
    try:
        bundle.write(file, content, mask)
    except (OSError, DocumentError) as error:
        output.fail(f"Cannot write {file}: {getattr(error, 'strerror', None) or error}.")
        return False
    print(f"Wrote {file}. Read it before you publish it.", file=sys.stderr)
    return True

"""``tmkb install``: add this server to MCP clients, or take it out."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence

from tmkb import doctor
from tmkb.cli import layout, output
from tmkb.cli.layout import Line
from tmkb.clients import files, launch, links, processes
from tmkb.clients.client import SCOPES, Client, client, clients
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.installation import Differs, Edit, Outcome, Target
from tmkb.clients.machine import Machine
from tmkb.errors import Problem, SpecError
from tmkb.knowledge.library import PACKAGED
from tmkb.schema import documents, hidden, paths, problems
from tmkb.schema.values import JsonObject
from tmkb.server import repository
from tmkb.server.selection import is_source
from tmkb.server.server import DEFAULT_SERVER

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_CLIENT = "No client is found on this machine."
_FINDING = ("id", "level", "cause", "remedy")
_ALONE = {  # options that contradict each other
    "--list": ("--file", "--uninstall", "--print", "--link", "--dry-run"),
    "--print": ("--uninstall", "--dry-run"),
    "--link": ("--uninstall", "--dry-run"),
    "--uninstall": ("--server", "--patterns"),
}
_DONE = {
    "added": "{name} is added to {file}",
    "replaced": "{name} is replaced in {file}",
    "unchanged": "{name} is already installed in {file}",
    "removed": "{name} is removed from {file}",
    "absent": "{name} is not in {file}",
}
_PLANNED = _DONE | {
    "added": "{name} would be added to {file}",
    "replaced": "{name} would be replaced in {file}",
    "removed": "{name} would be removed from {file}",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(each.name for each in clients()))
    parser.add_argument("--all", action="store_true", help="every client that is found on this machine")
    parser.add_argument("--list", action="store_true", help="show where tmkb is installed, and change nothing")
    parser.add_argument("--uninstall", action="store_true", help="take the entry out")
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default="user",
        help="user: in all your projects; project: the current folder, shared through its repository; "
        "local: you, in the current folder, Claude Code only (default: %(default)s)",
    )
    parser.add_argument("--name", default="tmkb", help="the name of the entry (default: %(default)s)")
    parser.add_argument("--server", metavar="NAME", help=f"the server to start (default: {DEFAULT_SERVER})")
    parser.add_argument(
        "--patterns",
        action="append",
        metavar="SOURCE",
        help="a folder of patterns, git+https://HOST/PATH#REF, or `packaged` (repeatable)",
    )
    parser.add_argument("--print", action="store_true", help="print the text to paste, and change nothing")
    parser.add_argument("--link", action="store_true", help="print a link that installs, and change nothing")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument(
        "--force", action="store_true", help="replace another entry of this name; create the file of a missing client"
    )
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="do not start the server to see whether it answers as the client starts it",
    )
    parser.add_argument("--file", metavar="PATH", help="the file of a client that is not in the list")
    parser.add_argument("--format", metavar="FORMAT", help=f"the format of --file: {', '.join(_formats())}")
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Install, uninstall or show. Return 1 if a client could not be changed.

    Raises:
        SpecError: for arguments that contradict each other or name what does not exist.
    """
    machine = _machine()
    _check(args, machine)
    chosen = _chosen(args, machine)
    if args.list:
        return _list(args, chosen, machine)
    command = launch.command()
    if args.print or args.link:
        return _print(args, chosen, machine, command)
    if not chosen:
        output.fail(_NO_CLIENT + ("" if args.uninstall else " Name one, and add --force."))
        return int(not args.uninstall)
    if not args.uninstall and not args.force and _report_temporary(args, chosen) and not args.dry_run:
        return 1
    edit = Edit(args.name, machine, args.force, args.dry_run)
    report, checker = _Report(), doctor.Checker(machine)
    folders = [word for word in args.patterns or [] if word != PACKAGED and not is_source(word)]
    if folders and any(_is_portable(each, args.scope) for each in chosen):
        output.fail("--patterns: The file is shared with others, who may not have the folder at this path.")
    for each in chosen:
        if _change(args, edit, each, command, report) and not (args.uninstall or args.no_check):
            _check_client(each, checker, report)
    if args.json or report.lines:
        output.write(args, report.values, report.lines)
    return int(any(value["action"] == "failed" for value in report.values))


def _report_temporary(args: argparse.Namespace, chosen: Sequence[Client]) -> bool:
    """Print a message if an entry with the path of this program would soon stop working. Return whether it would."""
    folder = None if all(_is_portable(each, args.scope) for each in chosen) else launch.temporary_folder()
    if folder:
        output.fail(problems.sentence(Problem.of_argument("temporary_program", "CLIENT", folder=folder)))
    return folder is not None


# Arguments


def _machine() -> Machine:
    try:
        return Machine.here()
    except OSError as error:
        raise SpecError([Problem.of_argument("current_folder", "the current folder", reason=error.strerror)]) from error


def _check(args: argparse.Namespace, machine: Machine) -> None:
    """Raise SpecError if the options contradict each other, or have values that cannot be used."""
    options = {f"--{name.replace('_', '-')}": value for name, value in vars(args).items()}
    wrong = [
        (
            "CLIENT",
            "Name a client, or use --all, --list or --file.",
            not (args.clients or args.all or args.list or args.file),
        ),
        ("--all", "Leave out the names of clients.", args.all and (args.clients or args.file)),
        ("--file", "Name its format with --format.", args.file and not args.format),
        ("--format", "Name the file with --file.", args.format and not args.file),
        ("--file", "Leave out the names of clients.", args.file and args.clients),
        *(
            (first, f"It does not go with {second}.", options[first] and options[second])
            for first, seconds in _ALONE.items()
            for second in seconds
        ),
        (
            "--scope",
            "The current folder is your home folder. Change to a project, or leave out --scope.",
            args.scope != "user" and os.path.realpath(machine.folder) == os.path.realpath(machine.home),
        ),
    ]
    for argument, reason, is_wrong in wrong:
        if is_wrong:
            raise SpecError([Problem.of_argument("bad_option", argument, reason=reason)])
    _check_server(args)


def _check_server(args: argparse.Namespace) -> None:
    """Raise SpecError if the entry or its server cannot have these values."""
    if not _NAME.fullmatch(args.name):
        raise SpecError([Problem.of_argument("bad_entry_name", "--name", name=args.name)])
    if args.server is not None and args.server not in documents.servers([]):
        near = output.did_you_mean(args.server, documents.servers([]), f"Servers: {', '.join(documents.servers([]))}.")
        reason = f"There is no server {args.server}. {near}"
        raise SpecError([Problem.of_argument("bad_option", "--server", reason=reason)])
    for folder in args.patterns or []:
        if is_source(folder):
            repository.parse(folder)
            continue
        is_there = folder == PACKAGED or os.path.isdir(folder)
        if not is_there or not hidden.is_unicode(paths.absolute(folder)):
            reason = f"The path {folder} is not valid UTF-8." if is_there else f"There is no folder {folder}."
            raise SpecError([Problem.of_argument("bad_option", "--patterns", reason=reason)])


def _chosen(args: argparse.Namespace, machine: Machine) -> list[Client]:
    """Return the clients. Raises SpecError if one is unknown or has no such scope."""
    if args.list and not args.clients:
        return [*clients()]
    if args.all:
        return [each for each in clients() if each.is_installed(machine) and args.scope in each.scopes]
    named = [_with_format(args.format)] if args.file else map(client, args.clients)
    chosen = list({each.name: each for each in named}.values())
    for each in chosen:
        if args.scope not in each.scopes:
            known = ", ".join(each.scopes)
            fields = {"title": each.title, "scope": args.scope, "known": known}
            raise SpecError([Problem.of_argument("no_scope", "--scope", **fields)])
    return chosen


def _formats() -> list[str]:
    return sorted(each.data["format"] for each in clients() if "format" in each.data)


def _with_format(name: str) -> Client:
    """Return the client whose files have a format. Raises SpecError if there is no such format."""
    for each in clients():
        if name in (each.data.get("format"), each.name):
            return each
    known = f"Formats: {', '.join(_formats())}."
    reason = f"There is no format {name}. {output.did_you_mean(name, _formats(), known)}"
    raise SpecError([Problem.of_argument("bad_option", "--format", reason=reason)])


def _entry(args: argparse.Namespace, chosen: Client, command: tuple[str, list[str]]) -> JsonObject:
    """Return the entry for a client."""
    program, words = (launch.PORTABLE, []) if _is_portable(chosen, args.scope) else command
    server = ["--server", args.server] if args.server else []
    folders = [word if word == PACKAGED or is_source(word) else paths.absolute(word) for word in args.patterns or []]
    patterns = [word for folder in folders for word in ("--patterns", folder)]
    return chosen.entry(args.scope, args.name, program, [*words, "serve", *server, *patterns])


def _is_portable(chosen: Client, scope: str) -> bool:
    return "portable" in chosen.scope(scope)


# Print


def _print(args: argparse.Namespace, chosen: Sequence[Client], machine: Machine, command: tuple[str, list[str]]) -> int:
    """Print the text to paste, a link, or both."""
    values: list[JsonObject] = []
    for each in chosen:
        entry = _entry(args, each, command)
        value: JsonObject = {"client": each.name}
        if args.print:
            value["text"] = links.snippet(each, args.scope, machine, args.name, entry)
        if args.link:
            value["link"] = links.link(each, args.name, entry)
            if value["link"] is None:
                able = ", ".join(other.name for other in clients() if "link" in other.data)
                reason = f"{each.title} has no links that install a server. These have: {able}."
                raise SpecError([Problem.of_argument("bad_option", "--link", reason=reason)])
        values.append(value)
    if args.json:
        output.write(args, values, "")
        return 0
    for value in values:  # not wrapped, so that it can be copied
        for text in (value.get("text"), value.get("link")):
            if isinstance(text, str):
                sys.stdout.write(hidden.escape(text.removesuffix("\n")) + "\n")
    return 0


def _list(args: argparse.Namespace, chosen: Sequence[Client], machine: Machine) -> int:
    """Print which of the clients are on this machine, and the entries of tmkb in their files."""
    values: list[JsonObject] = []
    for each in chosen:
        found = [row for scope in each.scopes for row in _entries(each, scope, machine)]
        if not found and each.is_installed(machine):
            found = [{"client": each.name, "scope": None, "file": None, "entry": None, "problem": None}]
        values += found
    rows = [
        (str(row["client"]), str(row["entry"] or "-"), str(row["scope"] or "-"), _place(row, machine)) for row in values
    ]
    output.write(args, values, layout.table(["client", "entry", "scope", "file"], rows) if rows else _NO_CLIENT)
    return 0


def _entries(each: Client, scope: str, machine: Machine) -> list[JsonObject]:
    """Return the entries of tmkb in the files of a scope, and the files that cannot be read."""
    found: list[JsonObject] = []
    for path in filter(files.is_there, each.files(scope, machine)):
        row: JsonObject = {"client": each.name, "scope": scope, "file": path, "entry": None, "problem": None}
        try:
            servers = Configuration.read(path, each, scope, machine).servers
        except ConfigurationError as error:
            found.append(row | {"problem": problems.line(error.problems[0])})
            continue
        for name, server in servers.items():
            if launch.is_ours(name, server):
                gone = f"{machine.shown(path)}: The command {server.get('command')} does not exist."
                found.append(row | {"entry": name, "problem": gone if launch.is_gone(server) else None})
    return found


def _place(row: JsonObject, machine: Machine) -> str:
    if isinstance(row["problem"], str):
        return row["problem"]
    return machine.shown(row["file"]) if isinstance(row["file"], str) else "not installed"


# Change


class _Report:
    """What is printed at the end: as JSON and as text."""

    def __init__(self) -> None:
        self.values: list[JsonObject] = []
        self.lines: list[Line] = []

    def fail(self, each: Client, scope: str, file: str | None, error: ConfigurationError) -> JsonObject:
        """Print an error and add it; return its value."""
        problem = error.problems[0]
        sentence = problems.line(problem) if file else error.sentence
        output.fail(f"{sentence} Nothing was changed.")
        self.values.append(_value(each, scope, file, "failed") | {"error": sentence})
        return self.values[-1]


def _change(
    args: argparse.Namespace, edit: Edit, each: Client, command: tuple[str, list[str]], report: _Report
) -> bool:
    """Install or uninstall in all files of a client; return whether one of its own files changed."""
    entry = _entry(args, each, command)
    changes = [_change_file(args, edit, target, entry, report) for target in _targets(args, edit, each, report)]
    if not any(changes) or args.file or args.dry_run:
        return False
    if processes.is_running(each):
        output.fail(f"{each.title} runs, and may overwrite its file when it ends. Quit it, then look with --list.")
    forgets = f"{each.title} may know the server until it is restarted."
    for note in [forgets] if args.uninstall else [each.after(args.scope), each.note]:
        report.lines += layout.indented(layout.text(note)) if note else []
    return True


def _check_client(each: Client, checker: doctor.Checker, report: _Report) -> None:
    """Start the server as the client does, and report what is wrong."""
    with output.progress(f"Starting the server as {each.title} does"):
        found = checker.check(each)
    for finding in found:
        if finding.level != "fine":
            place = f"{finding.place}: " if str(finding.place) else ""
            output.fail(f"{place}{finding.cause} {finding.remedy}".rstrip())
            for detail in finding.details:
                output.note(layout.plain(layout.indented(layout.text(detail), "  | ")))
    if any(finding.id == "server-answers" for finding in found):
        report.lines += layout.indented(layout.text("Tried: the server answers."))
    for value in report.values:
        if value["client"] == each.name:
            value["findings"] = [
                {key: getattr(finding, key) for key in _FINDING} | {"details": [*finding.details]} for finding in found
            ]


def _targets(args: argparse.Namespace, edit: Edit, each: Client, report: _Report) -> list[Target]:
    """Return the files to change; an empty list, with an entry in the report, if there are none."""
    if args.file:
        return [Target(each, args.scope, paths.absolute(os.path.expanduser(args.file)))]
    try:
        targets = edit.present(each, args.scope) if args.uninstall else edit.targets(each, args.scope)
    except ConfigurationError as error:
        report.fail(each, args.scope, None, error)
        return []
    if not targets:
        report.values.append(_value(each, args.scope, None, "absent"))
        report.lines += layout.text((each.title, "bold"), f": {edit.name} is not installed.")
    return targets


def _change_file(args: argparse.Namespace, edit: Edit, target: Target, entry: JsonObject, report: _Report) -> bool:
    """Install or uninstall in one file; return whether it changed."""
    try:
        outcome = edit.uninstall(target) if args.uninstall else edit.install(target, entry)
    except ConfigurationError as error:
        value = report.fail(target.client, args.scope, target.path, error)
        if isinstance(error, Differs):
            value["diff"] = _diff(error.outcome, target.path)
            report.lines += layout.code(str(value["diff"]), "diff")
        elif not (args.uninstall or error.problems[0].rule == "client_own_file"):
            value["text"] = text = links.snippet(target.client, target.scope, edit.machine, edit.name, entry)
            report.lines += layout.text(f"To add the entry by hand, merge this into {edit.machine.shown(target.path)}:")
            report.lines += layout.text(text.rstrip("\n"), wraps=False)
        return False
    report.values.append(_outcome_value(outcome, args))
    report.lines += _outcome_lines(outcome, edit, "" if args.file else f"{target.client.title}: ")
    for warning in outcome.warnings:
        output.fail(warning)
    return outcome.action not in ("absent", "unchanged")


def _value(each: Client, scope: str, file: str | None, action: str) -> JsonObject:
    return {"client": each.name, "scope": scope, "file": file, "action": action}


def _outcome_value(outcome: Outcome, args: argparse.Namespace) -> JsonObject:
    """Return an outcome as JSON."""
    target = outcome.target
    return _value(target.client, target.scope, target.path, outcome.action) | {
        "dry_run": args.dry_run,
        "backup": outcome.backup,
        "diff": _diff(outcome, target.path) if args.dry_run else None,
        "warnings": [*outcome.warnings],
        "after": None if args.uninstall else target.client.after(target.scope),
    }


def _outcome_lines(outcome: Outcome, edit: Edit, title: str) -> list[Line]:
    """Return an outcome as text."""
    file, form = edit.machine.shown(outcome.target.path), _PLANNED if edit.dry else _DONE
    sentence = form[outcome.action].format(name=edit.name, file=file)
    backup = f" (backup: {os.path.basename(outcome.backup)})" if outcome.backup else ""
    lines = layout.text((title, "bold"), f"{sentence}{backup}.")
    if edit.dry:
        lines += layout.code(_diff(outcome, file), "diff") if outcome.before != outcome.after else []
    return lines


def _diff(outcome: Outcome, file: str) -> str:
    """Return a unified diff of the file."""
    before, after = (
        (data or b"").decode("utf-8-sig", "replace").splitlines() for data in (outcome.before, outcome.after)
    )
    return "\n".join(difflib.unified_diff(before, after, file, file, lineterm=""))

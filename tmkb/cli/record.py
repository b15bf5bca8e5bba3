"""``tmkb record``: pass everything between a client and a server unchanged, and record it as a transcript."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import socket
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmkb.cli import output
from tmkb.conformance import journal
from tmkb.schema import hidden, paths
from tmkb.transport.guard import is_loopback

if TYPE_CHECKING:
    from tmkb.conformance.recording import Recorder, Recording
    from tmkb.conformance.redaction import Redactor
    from tmkb.conformance.targets import Target


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "argv", nargs="*", metavar="COMMAND", help="the server to start, after `--`; it speaks over stdio"
    )
    parser.add_argument("--url", type=_url, metavar="URL", help="a running server, instead of COMMAND")
    parser.add_argument(
        "--listen",
        type=_address,
        metavar="HOST:PORT",
        help="with --url: where clients connect; each session is recorded into a file of its own",
    )
    parser.add_argument(
        "--send",
        metavar="FILE",
        help="instead of a client: open a connection and send the requests in this file (YAML, JSON or JSON Lines)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="then replay the recording on a new server; values that differ from run to run become matchers",
    )
    parser.add_argument(
        "--header",
        type=_header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="with --url and --send or --check: send this header with each request (repeatable)",
    )
    parser.add_argument("--revision", metavar="DATE", help="with --send: speak this revision (default: the newest)")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="with --send and --check: timeout for one request (default: %(default)g)",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that is not loopback; clients must connect to an IP address, not to a host name",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the transcript to write; if it exists, the name gets a number. Name it *.transcript.yaml",
    )
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="PATTERN",
        help="replace what this regular expression of RE2 matches (repeatable)",
    )
    parser.add_argument(
        "--redact-env",
        action="append",
        default=[],
        metavar="NAME",
        help="replace the value of this environment variable (repeatable); variables named like secrets are replaced",
    )


def run(args: argparse.Namespace) -> int:
    """Relay and record until the server ends; return its exit status, or 2 for a usage error or a failed recording."""
    if (problem := _usage_problem(args) or _pattern_problem(args)) is not None:
        output.fail(problem)
        return 2
    before = _files(args)
    try:
        path = _created(args.output)
    except OSError as error:
        output.fail(f"Cannot write {args.output}: {error.strerror}.")
        return 2
    if args.send:
        status = _send(args, path)
    else:
        records = journal.start(lambda frames: _record(args, path, frames))
        status = _serve_url(args, records) if args.url else _run_command(args, records)
        status = records.close() or status
    if args.check:
        return _check(args, sorted(_files(args) - before)) or status
    return status


def _send(args: argparse.Namespace, path: str) -> int:
    """Send the requests of a file; return 1 if the server does not answer one, 2 if it cannot be reached."""
    from tmkb.conformance import driver
    from tmkb.conformance.client import ClientError
    from tmkb.server import server

    redactor = _redactor(args)
    recorder = _recorder(args, path, redactor)
    status = 0
    try:
        requests, spec = driver.read(args.send), server.protocol()
        driver.converse(
            lambda: _connection(args),
            spec,
            args.revision,
            requests,
            lambda from_client, line: recorder.add(0, from_client, line),
        )
    except ClientError as error:
        output.fail(error.message)
        status = 1
    except OSError as error:
        output.fail(_unreachable(args, error))
        status = 2
    finally:
        recorder.finish()
        _finish(recorder, redactor, path)
    return status


def _connection(args: argparse.Namespace) -> Target:
    """Connect to the server for --send and --check. Raises OSError if it cannot be started or reached."""
    from tmkb.cli import target
    from tmkb.server import server

    return target.connect(args.argv, args.url, server.protocol, args.timeout, args.header)


def _unreachable(args: argparse.Namespace, error: OSError) -> str:
    from tmkb.cli import target

    return target.unreachable(args.url or args.argv[0], error)


def _check(args: argparse.Namespace, paths_: list[str]) -> int:
    """Replay the recordings on new servers; return 1 if one differs, 2 if there is no server."""
    from tmkb.conformance import selfcheck

    redactor = _redactor(args)
    status = 0
    for path in paths_:
        try:
            outcome = selfcheck.check(path, lambda: _connection(args))
        except OSError as error:
            output.fail(_unreachable(args, error))
            return 2
        shown = hidden.line(paths.shown(path))
        for each in outcome.replaced:
            output.fail(f"{shown}: {each}")
        for each in outcome.differences:
            output.fail(f"{shown}: {redactor.text(each)}")
        answer = "does not replay as recorded" if outcome.differences else "replays as recorded"
        output.fail(f"{shown} {answer}.")
        status = 1 if outcome.differences else status
    return status


def _run_command(args: argparse.Namespace, records: journal.Journal) -> int:
    from tmkb.conformance import relay

    try:
        return relay.stdio(args.argv, records)
    except OSError as error:
        output.fail(f"Cannot start {args.argv[0]}: {error.strerror}.")
        return 2


def _serve_url(args: argparse.Namespace, records: journal.Journal) -> int:
    try:
        from tmkb.conformance import http_relay
        from tmkb.server import server
    except ImportError:
        return output.lacks_extra("record --url", "http")
    import asyncio

    host, port = args.listen
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        output.fail(f"Cannot listen on {host}:{port}: {error.strerror}.")
        return 2
    shown = f"[{host}]" if ":" in host else host
    path = urllib.parse.urlsplit(args.url).path
    output.fail(f"Connect clients to http://{shown}:{bound.getsockname()[1]}{path}. Ctrl-C ends the recording.")
    relay = http_relay.Relay(args.url, records, server.protocol())
    asyncio.run(relay.serve(bound))
    for note in dict.fromkeys(relay.notes):
        output.fail(note)
    return 0


def _url(text: str) -> str:
    """Return ``text`` if it is an http or https URL. Raises argparse.ArgumentTypeError."""
    from tmkb.cli import target  # a client waits for the start, and this is slow

    return target.url(text)


def _header(text: str) -> tuple[str, str]:
    """Split a header into name and value. Raises argparse.ArgumentTypeError."""
    from tmkb.cli import target

    return target.header(text)


def _seconds(text: str) -> float:
    """Read a number of seconds above 0. Raises argparse.ArgumentTypeError."""
    from tmkb.cli import target

    return target.seconds(text)


def _address(text: str) -> tuple[str, int]:
    """Split HOST:PORT. Raises argparse.ArgumentTypeError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT, such as 127.0.0.1:9000")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _usage_problem(args: argparse.Namespace) -> str | None:
    """Return a sentence about missing or conflicting options; None if there are none."""
    if bool(args.argv) == bool(args.url):
        return "Name one server: a command after `--`, as in `tmkb record -o FILE -- python server.py`, or --url URL."
    if args.listen and not is_loopback(args.listen[0]) and not args.allow_remote:
        return f"{args.listen[0]} is not a loopback address. Others could use the server; --allow-remote permits that."
    wrong = {
        "--url needs --listen HOST:PORT, where clients connect, such as 127.0.0.1:9000; or --send FILE.": (
            args.url and not args.listen and not args.send
        ),
        "--revision is for --send; otherwise the client chooses.": args.revision and not args.send,
        "--send needs no client, so leave out --listen.": args.listen and args.send,
        "--listen is for --url; a command speaks over stdin and stdout.": args.listen and not args.url,
    }
    return next((sentence for sentence, is_wrong in wrong.items() if is_wrong), None)


def _files(args: argparse.Namespace) -> set[str]:
    """Return the files with the name of --output, or with that name and a number."""
    folder, name = os.path.split(args.output)
    stem, dot, suffixes = name.partition(".")
    form = re.compile(rf"{re.escape(stem)}(-[0-9]+)?{re.escape(dot + suffixes)}")
    names = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    return {os.path.join(folder, each) for each in names if form.fullmatch(each)}


def _created(path: str) -> str:
    from tmkb.conformance import recording

    return recording.create(path)


def _pattern_problem(args: argparse.Namespace) -> str | None:
    """Return a sentence about an option for redaction that cannot be used; None if there is none."""
    if missing := [name for name in args.redact_env if name not in os.environ]:
        return f"--redact-env: there is no environment variable {missing[0]}."
    if not args.redact:
        return None
    from tmkb.schema import installation, keywords

    for pattern in args.redact:
        try:
            if keywords.compiled(pattern).search("") is not None:
                return f"--redact: '{pattern}' matches an empty text."
        except ValueError as error:
            return f"--redact: '{pattern}' is not a regular expression of RE2: {error}."
        except ModuleNotFoundError:
            return (
                f"--redact needs the extra `{keywords.EXTRA}`. Install it with: {installation.command(keywords.EXTRA)}"
            )
    return None


def _record(args: argparse.Namespace, path: str, frames: Iterator[journal.Frame]) -> int:
    """Record ``frames``; return 2 if a file cannot be written."""

    redactor = _redactor(args)
    recorder = _recorder(args, path, redactor)
    try:
        recorder.record(frames)
    except OSError as error:
        output.fail(f"The recording failed: {error.filename or args.output}: {error.strerror}.")
        for _ in frames:
            pass
        return 2
    _finish(recorder, redactor, path)
    return 0


def _recorder(args: argparse.Namespace, path: str, redactor: Redactor) -> Recorder:
    """Return what records into the file at ``path``, and further conversations into files with a number."""
    from tmkb.conformance import recording

    source, name = _source(args, redactor)

    def start(number: int) -> Recording:
        file = path if number == 0 else recording.create(args.output)
        return recording.Recording(file, redactor, source, name)

    return recording.Recorder(start, redactor)


def _finish(recorder: Recorder, redactor: Redactor, path: str) -> None:
    """Delete the file if nothing was recorded, check the others, and report."""
    from tmkb.conformance import transcript
    from tmkb.errors import DocumentError

    if not recorder.recordings:
        os.unlink(path)
    for line in _report(recorder, redactor):
        output.fail(line)
    for each in recorder.recordings.values():
        try:
            transcript.read(each.path)
        except DocumentError as error:
            output.fail_each(error.problems)


def _redactor(args: argparse.Namespace) -> Redactor:
    from tmkb.conformance.redaction import Redactor

    redactor = Redactor(None, args.redact_env, args.redact)
    for name, value in args.header:
        redactor.add_header(name, value)
    return redactor


def _source(args: argparse.Namespace, redactor: Redactor) -> tuple[dict[str, str], str]:
    """Return what the transcript notes about the server, and a name for it."""
    if args.url:
        return {"over": "http", "url": redactor.url(args.url)}, urllib.parse.urlsplit(args.url).hostname or ""
    return {"over": "stdio", "command": shlex.join(redactor.command(args.argv))}, os.path.basename(args.argv[0])


def _report(recorder: Recorder, redactor: Redactor) -> Iterator[str]:
    if not recorder.recordings:
        yield "No message passed, so there is no recording."
    for each in recorder.recordings.values():
        yield f"Recorded {each.count} messages in {hidden.line(paths.shown(each.path))}."
        if each.stray:
            lines = "1 line" if each.stray == 1 else f"{each.stray} lines"
            yield f"The server sent {lines} that no client can read, because only JSON-RPC messages are allowed there."
    if redactor.counts:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(redactor.counts.items()))
        yield f"Replaced secrets by placeholders: {kinds}."

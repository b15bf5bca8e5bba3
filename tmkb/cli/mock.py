"""``tmkb mock``: serve a recording to a client under test, over stdio or HTTP."""

from __future__ import annotations

import argparse
import sys

from tmkb.cli import output
from tmkb.conformance import transcript
from tmkb.conformance.faults import Faults
from tmkb.conformance.mock import Mock
from tmkb.conformance.transcript import Transcript
from tmkb.errors import SpecError
from tmkb.schema import hidden
from tmkb.transport import stdio


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, or a folder of them")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP at http://HOST:PORT/mcp")
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="answer a call of a recorded tool or prompt whatever its arguments are, and repeat the last response",
    )
    parser.add_argument("--faults", metavar="FILE", help="what goes wrong on purpose; see `tmkb schema formats faults`")


def run(args: argparse.Namespace) -> int:
    """Serve until the client disconnects, over HTTP until a signal. Return 1 if a request was not recorded."""
    found = {name: transcript.find(name) for name in args.files}
    if missing := [name for name in found if not found[name]]:
        output.fail(f"There is no transcript at {missing[0]}.")
        return 2
    transcripts = [transcript.read(file) for files in found.values() for file in files]
    faults = Faults.read(args.faults) if args.faults else None
    mock = Mock(transcripts, lenient=args.lenient, faults=faults, report=output.fail)
    _tell_redacted(transcripts, mock)
    if args.http is None:
        stdio.serve(mock)
    elif not _serve_http(mock, args.http):
        return 2
    if mock.unmatched:
        counted = (
            "1 message of the client is" if mock.unmatched == 1 else f"{mock.unmatched} messages of the client are"
        )
        output.fail(f"{counted} not recorded like this.")
    return 1 if mock.unmatched else 0


def _tell_redacted(transcripts: list[Transcript], mock: Mock) -> None:
    """Tell on stderr that the client gets placeholders instead of what was redacted."""
    names = sorted(mock.recording.placeholders)
    redacted = [each for each in transcripts if (each.value.get("recorded") or {}).get("redacted")]
    if names or redacted:
        shown = f" ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else ""
        counted = "1 placeholder" if len(names) == 1 else f"{len(names)} placeholders"
        output.fail(f"The recording is redacted. The client gets {counted}{shown} instead of secrets.")


def _serve_http(mock: Mock, address: str) -> bool:
    """Serve on ``address`` until a signal arrives. Return False for an address of other machines. Raises SpecError."""
    try:
        from tmkb.transport import asgi, guard, http, listener, sockets
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing("--http", "http", error.name)]) from error
    try:
        bound, url = sockets.bind(address)
    except SpecError as error:
        if [problem.rule for problem in error.problems] != ["remote_not_allowed"]:
            raise
        output.fail(f"--http: Other machines can reach {address}. A mock serves this machine only: use 127.0.0.1.")
        return False
    print(hidden.line(f"tmkb: Mock ready at {url}"), file=sys.stderr, flush=True)
    listener.serve(asgi.Application(http.Endpoint(mock, guard.Guard())), bound)
    return True

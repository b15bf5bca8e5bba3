"""The options of ``tmkb serve`` for metrics, traces and the query log, and the observer that they select."""

from __future__ import annotations

import os

from tmkb.cli import environment
from tmkb.errors import Problem, SpecError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tmkb.insight.observer import Observer, Receiver
    from tmkb.insight.querylog import QueryLog
    from tmkb.server.log import Log

    Options = dict[str, list[str]]

USAGE = ("--usage", "--usage-context", "--usage-principal", "--usage-megabytes")
_LEAST_MEGABYTES = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from tmkb.insight import querylog

    group = parser.add_argument_group("insight", "nothing leaves the machine, unless variables OTEL_* name a collector")
    group.add_argument("--usage", metavar="FOLDER", help="log queries in this folder; see `tmkb usage report`")
    group.add_argument(
        "--usage-context",
        metavar=f"{{{','.join(querylog.CONTEXTS)}}}",
        help="what is logged of a query's text: none (default), a hash keyed by TMKB_USAGE_KEY, or the text",
    )
    group.add_argument(
        "--usage-principal",
        metavar=f"{{{','.join(querylog.PRINCIPALS)}}}",
        help="what is logged of a query's principal: none (default), a hash keyed by TMKB_USAGE_KEY, or the view",
    )
    group.add_argument(
        "--usage-megabytes",
        metavar="N",
        help=f"delete the oldest files beyond this size of all together (default: {querylog.MEGABYTES})",
    )
    group.add_argument(
        "--metrics", metavar="HOST:PORT", help="over HTTP: serve metrics for Prometheus at http://HOST:PORT/metrics"
    )


def observer(options: Options, log: Log, transport: str, page: Receiver | None = None) -> Observer | None:
    """Return what observes requests; None if no option and no variable asks for it.

    Args:
        options: of the command.
        log: of the server.
        transport: ``stdio`` or ``http``.
        page: the page of metrics, if there is one.

    Raises:
        SpecError: if an option is not valid.
    """
    exports = "OTEL_" in " ".join(os.environ)
    if page is None and not exports and not any(flag in options for flag in USAGE):
        return None
    from tmkb.insight.observer import Observer

    receivers = [] if page is None else [page]
    if any(flag in options for flag in USAGE):
        receivers.append(_query_log(options, log))
    if exports:
        from tmkb.insight import telemetry

        if signals := telemetry.signals(os.environ, log):
            receivers.append(telemetry.Telemetry(signals, log, transport))
    return Observer(receivers, log) if receivers else None


def check(options: Options, log: Log) -> None:
    """Check the options of the query log, before several processes use them. Raises SpecError."""
    if any(flag in options for flag in USAGE):
        _query_log(options, log)


def _query_log(options: Options, log: Log) -> QueryLog:
    from tmkb.insight import querylog

    if "--usage" not in options:
        raise SpecError([Problem.of_argument("usage_only", next(flag for flag in USAGE if flag in options))])
    folder, key = options["--usage"][-1], environment.secret("TMKB_USAGE_KEY")
    try:
        return querylog.QueryLog(
            folder,
            log,
            context=_choice(options, "--usage-context", querylog.CONTEXTS),
            principal=_choice(options, "--usage-principal", querylog.PRINCIPALS),
            key=None if key is None else key.encode("utf-8", "surrogateescape"),
            megabytes=_megabytes(options, querylog.MEGABYTES),
        )
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise SpecError([Problem.of_argument("bad_usage_folder", "--usage", folder=folder, reason=reason)]) from error


def _choice(options: Options, flag: str, choices: Sequence[str]) -> str:
    chosen = options.get(flag, choices)[-1 if flag in options else 0]
    if chosen not in choices:
        raise SpecError([Problem.of_argument("bad_usage_choice", flag, text=chosen, known=", ".join(choices))])
    return chosen


def _megabytes(options: Options, default: int) -> int:
    text = options.get("--usage-megabytes", [str(default)])[-1]
    if not text.isdecimal() or int(text) < _LEAST_MEGABYTES:
        raise SpecError([Problem.of_argument("bad_megabytes", "--usage-megabytes", text=text)])
    return int(text)

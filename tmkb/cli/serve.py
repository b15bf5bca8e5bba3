"""``tmkb serve``: serve one client over stdio, or many over HTTP.

The flags for stdio are read without argparse, because a client waits for the process to start.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from tmkb.cli import environment, observing
from tmkb.errors import Problem, SpecError
from tmkb.schema import template
from tmkb.server import log
from tmkb.server.server import DEFAULT_SERVER, Server
from tmkb.transport import stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from tmkb.schema.model import LogLine
    from tmkb.server.reload import Reloader
    from tmkb.server.runtime import Runtime

    Options = dict[str, list[str]]

FLAGS = ("--schemas", "--patterns", "--pull", "--server", "--config", "--log-level", *observing.USAGE)
SWITCHES = ("--allow-python", "--no-cache", "--watch", "--verify-commits")
SECRET = "TMKB_WEBHOOK_SECRET"  # the name of a variable
_PULL = 30.0  # seconds between two pulls of a Git source


def quick(words: Sequence[str]) -> Options | None:
    """Return the options; None if argparse must handle ``words``, for example for help or an error."""
    options: Options = {}
    rest = list(words)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag in SWITCHES and not equals:
            options[flag] = []
        elif flag in FLAGS and (equals or rest):
            options.setdefault(flag, []).append(value if equals else rest.pop(0))
        else:
            return None
    if any(level.lower() not in log.LEVELS for level in options.get("--log-level", [])):
        return None
    return options


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from tmkb.cli import listen
    from tmkb.server import sources

    sources.configure_schemas(parser)
    sources.configure_patterns(parser)
    sources.configure_python(parser)
    parser.add_argument("--server", metavar="NAME", help=f"the server to serve (default: {DEFAULT_SERVER})")
    parser.add_argument(
        "--config", metavar="FILE", help="the configuration of the server; see `tmkb schema formats config`"
    )
    parser.add_argument(
        "--log-level",
        type=str.lower,
        choices=log.LEVELS,
        help="lowest level logged to stderr (default: LOG_LEVEL, else info)",
    )
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the startup cache")
    parser.add_argument("--watch", action="store_true", help="reload schemas and patterns when they change")
    parser.add_argument(
        "--pull",
        metavar="SECONDS",
        help=f"interval in which Git sources are pulled (default: {_PULL:g}; 0: only at the start and by webhook)",
    )
    parser.add_argument(
        "--verify-commits", action="store_true", help="serve only commits whose signature `git verify-commit` accepts"
    )
    listen.configure(parser)
    observing.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Serve with options parsed by argparse."""
    lists = {"--schemas": args.schemas, "--patterns": args.patterns}
    single = {"--server": args.server, "--config": args.config, "--log-level": args.log_level, "--pull": args.pull}
    single |= {flag: getattr(args, flag.removeprefix("--").replace("-", "_")) for flag in observing.USAGE}
    options: Options = {**{k: v for k, v in lists.items() if v}, **{k: [v] for k, v in single.items() if v}}
    switches: Options = {name: [] for name in SWITCHES if getattr(args, name.removeprefix("--").replace("-", "_"))}
    return serve(options | switches, args)


def serve(options: Options, args: argparse.Namespace | None = None) -> int:
    """Serve until the client disconnects; over HTTP, if ``args`` select it, until a signal arrives."""
    name = options.get("--server", [DEFAULT_SERVER])[-1]
    began = time.time()

    def load(forking: bool = False) -> Server:
        return Server.load(
            name,
            schemas=options.get("--schemas"),
            patterns=options.get("--patterns"),
            config=options["--config"][-1] if "--config" in options else None,
            allow_python="--allow-python" in options,
            views=_views(args),
            caching="--no-cache" not in options,
            forking=forking,
            fresh=float("inf") if _interval(options) else 0.0,  # the watcher pulls
            verified="--verify-commits" in options,
        )

    try:
        if args is not None:
            from tmkb.cli import listen

            if (status := listen.supervise(args)) is not None:
                return status
        keys = environment.state_keys()
        server = load(forking=True)
        output = _log(server.spec["server"]["log"], options)
        observing.check(options, output)
        if args is not None and listen.requested(args):
            hooks = listen.Hooks(
                load,
                lambda runtime: _begin(runtime, server, began, options),
                lambda page: observing.observer(options, output, "http", page),
            )
            return listen.listen(args, server, output, keys, hooks)
        runtime = server.runtime(output, keys, observing.observer(options, output, "stdio"))
        gc.freeze()  # what a start makes lives as long as the process
        gc.enable()  # `main` has disabled it
        news = _begin(runtime, server, began, options)
    except SpecError as error:
        from tmkb.schema import problems

        sys.stderr.write("".join(f"{problems.line(problem)}\n" for problem in error.problems))
        return 2
    server.announce(output, "stdio")
    try:
        stdio.serve(runtime, updates=news)
    finally:
        if news is not None:
            news.close()
        if runtime.observer is not None:
            runtime.observer.close()
    return 0


def _begin(runtime: Runtime, server: Server, began: float, options: Options) -> Reloader | None:
    """Start the reloader of `_updates`, and then the threads of the observer, because the reloader forks."""
    news = _updates(runtime, server, began, options)
    if runtime.observer is not None:
        runtime.observer.start()
    return news


def _updates(runtime: Runtime, server: Server, began: float, options: Options) -> Reloader | None:
    """Return the reloader of changed files and Git sources, if there are any. Raises SpecError if it cannot watch."""
    interval, watching, secret = _interval(options), "--watch" in options, environment.secret(SECRET)
    pulls = bool(server.selection.sources) and (interval > 0 or secret is not None)
    if not watching and not pulls:
        return None
    from tmkb.server import reload

    caching = "--no-cache" not in options
    return reload.Reloader(runtime, server, began, caching, watching=watching, interval=interval, secret=secret)


def _interval(options: Options) -> float:
    """Return the seconds between two pulls; 0 for none. Raises SpecError."""
    text = options.get("--pull", [str(_PULL)])[-1]
    try:
        interval = float(text)
    except ValueError:
        interval = -1.0
    if not 0 <= interval < float("inf"):
        raise SpecError([Problem.of_argument("bad_pull", "--pull", text=text)])
    return interval


def _views(args: argparse.Namespace | None) -> dict[str, list[str]]:
    """Return the sources of the roles of an access file that have some. Raises SpecError."""
    if args is None or args.access is None:
        return {}
    from tmkb.access import policy

    return policy.views(args.access, _exists)


def _exists(source: str) -> bool:
    """Return whether a source of patterns exists; a Git source is looked for when it is pulled."""
    from tmkb.knowledge.library import PACKAGED
    from tmkb.server.selection import SCHEME

    return source == PACKAGED or source.startswith(SCHEME) or os.path.isdir(source)


def _log(lines: Mapping[str, LogLine], options: Options) -> log.Log:
    """Return a log at the level of the options or of ``LOG_LEVEL``; info if that names no level."""
    name = options.get("--log-level", [os.environ.get("LOG_LEVEL") or "info"])[-1]
    level = name.lower() if name.lower() in log.LEVELS else "info"
    output = log.Log(lines, level)
    if level != name.lower():
        output.write("unknown_log_level", value=template.cut(name), known=", ".join(log.LEVELS))
    return output

"""Our server beside its peers: how fast it starts, answers and ends, and what that takes.

    python tests/bench/run.py [--rounds N] [--burst N] [--only [NAME…]] [--markdown] [--json FILE] [--document]

Installs pinned peers below ``.cache/bench`` (Node included, so that none has to be there). Each has one tool, which gives
a canned answer and asks nothing; ours does its work. Compare ratios only. Needs Linux; exit status 1 where our figures
miss an expectation. Ours is installed as clients have it: a wheel, in an environment of its own.
"""

import argparse
import os
import sys
import tempfile

import install
import measure
import report

SERVE, ECHO, BARE = "tmkb", "echo", "bare"


def commands(python):
    """What is measured with the interpreter of an environment in which ``tmkb`` is installed."""
    return {
        SERVE: [os.path.join(os.path.dirname(python), "tmkb"), "serve"],  # the console script: what clients start
        ECHO: [python, "-I", "-S", os.path.join(install.HERE, "peers", "echo.py")],
        BARE: [python, "-c", "pass"],
    }


def plain(cache):
    """The environment of a client: bytecode is kept, nothing is configured, and the cache is ours."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TMKB_", "LOG_LEVEL"))}
    return {**kept, "XDG_CACHE_HOME": cache}


def main():
    """Measure and judge; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = measure.Effort()
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="default: %(default)s")
    parser.add_argument("--burst", type=int, default=usual.burst, help="requests sent at once (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=install.PEERS, default=[*install.PEERS], help="only these peers")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    parser.add_argument("--json", metavar="FILE", help="write our ratios, for compare.py")
    parser.add_argument("--document", action="store_true", help="write the tables of docs/performance.md")
    arguments = parser.parse_args()
    effort = usual._replace(rounds=arguments.rounds, burst=arguments.burst)
    with tempfile.TemporaryDirectory() as cache:
        environment = plain(cache)
        if arguments.only:
            install.install(environment)
        own = commands(install.install_ours(environment))
        servers = {
            "tmkb": own[SERVE],
            "tmkb-no-cache": [*own[SERVE], "--no-cache"],
            **install.commands(arguments.only),
            "echo": own[ECHO],
        }
        samples = measure.measure(servers, own[BARE], environment, effort)
    if arguments.json:
        report.write(arguments.json, report.beside_floor(samples))
    if arguments.document:
        tables = [report.table(report.values(samples), True), report.table(report.ratios(samples), True)]
        report.document(
            "stdio",
            "\n\nRatios (to `bare` for start and first call, to `echo` for 1 MB and 9.9 MB,"
            " otherwise to `tmkb`; higher is worse):\n\n".join(tables),
        )
    return tell(samples, arguments.markdown)


def tell(samples, markdown):
    """Print the tables and the judgement; the exit status."""
    print(f"\nMedians:\n\n{report.table(report.values(samples), markdown)}")
    print(f"\nHow many times worse:\n\n{report.table(report.ratios(samples), markdown)}\n")
    lines = report.judge(samples)
    for line in lines:
        print(f"{'ok' if line.ok else 'NOT OK':6}  {line.ratio:5.2f}  at most {line.limit:<3}  {line.text}")
    return 0 if all(line.ok for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())

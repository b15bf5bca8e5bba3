"""Three replicas behind nginx: every client of every revision on any of them, and no lost answer when processes are killed.

    python -m tests.replicas.run [--seconds 12] [--seed 0] [--record] [CHECK…]

`clients`: the official clients in all revisions; `suite`: the official conformance suite; `kills`: `kill -9` of replicas
and of Redis, and the orderly restart of replicas, each for `--seconds` of mixed requests. Needs the Debian packages
redis-server, nginx-light and dnsmasq-base; without them it says so, and fails only where CI is set.
"""

import argparse
import datetime
import os
import random
import sys
import time

from tests.clients import run as official
from tests.replicas import system, traffic
from tests.suite import run as conformance
from tests.support import packages, pages, programs

PYTHON = [sys.executable, os.path.join(official.HERE, "everything.py")]
TYPESCRIPT = ["node", os.path.join(official.HERE, "everything.mjs"), official.MODULES]
STATELESS = {"python": official.PYTHON_MODES, "typescript": official.TYPESCRIPT_MODES}
LEGS = ("2025-11-25", "2026-07-28")


def everything():
    """Return a running system whose replicas serve the server `everything`."""
    return system.System("--server", "everything")


def clients(_arguments):
    """Yield whether each official client uses all features in each revision, with its requests spread over the replicas."""
    commands = {
        **{f"python, {revision}": (PYTHON, revision) for revision in traffic.HANDSHAKE},
        **{f"typescript, {revision}": (TYPESCRIPT, revision) for revision in traffic.HANDSHAKE},
        **{f"{name}, {traffic.STATELESS}": ([*words, traffic.STATELESS], "") for name, words in STATELESS.items()},
    }
    modules = packages.for_node(official.HERE)
    with everything() as running:
        for name, (command, revision) in commands.items():
            words = [modules if word == official.MODULES else word for word in command]
            environment = {
                **os.environ,
                "PYTHONPATH": packages.ROOT,
                **({"MCP_REVISION": revision} if revision else {}),
            }
            before = running.served()
            done = programs.run([*words, running.address], packages.ROOT, packages.with_node(environment, modules))
            used = running.served() - before
            works = done.returncode == 0 and len(used) == len(running.replicas)
            yield f"{name}: {done.stdout.count(' ok')} features, {spread(used)}", works, done.stdout
        yield from quiet(running)


def suite(_arguments):
    """Yield whether the official suite passes."""
    with everything() as running:
        for leg in LEGS:
            counts, wrong, ran, done = conformance.run(leg, running.address)
            works = not wrong and done.returncode == 0 and counts["SUCCESS"] > 0
            yield (
                f"official suite, {leg}: {len(ran)} scenarios, {counts['SUCCESS']} checks",
                works,
                f"{wrong}\n{done.stderr}",
            )
        yield from quiet(running)


def kills(arguments):
    """Yield whether all requests are answered while processes end; record the figures."""
    reports = {}
    for name, (trouble, pause) in TROUBLES.items():
        with everything() as running:
            notes, count = under_load(running, trouble, pause, arguments.seconds, random.Random(arguments.seed))
            reports[name] = report(running, notes, count)
            text = "".join(f"\n    {row}: {value}" for row, value in reports[name].items())
            yield f"{name}{text}", not notes.failures, "\n".join(map(repr, notes.failures))
            yield from quiet(running)
    if arguments.record:
        pages.replace("docs/reliability.md", "replicas", table(reports))


def restart(replica):
    """Restart a replica as a rollout does. Raises AssertionError if its exit status is not 0."""
    status = replica.restart()
    assert status == 0, f"{replica.name} ended with {status}: {replica.read_log()[-1000:]}"


TROUBLES = {  # and the seconds between two of them
    "replicas killed": (lambda running, rng: rng.choice(running.replicas).kill(), 1),
    "Redis killed": (lambda running, _: running.redis.kill(), 3),
    "replicas restarted": (lambda running, rng: restart(rng.choice(running.replicas)), 1),
}


def under_load(running, trouble, pause, seconds, rng):
    """Make ``trouble`` again and again during mixed requests. Return the notes of all clients, and how often."""
    notes, count = traffic.Notes(), 0
    asking = traffic.clients(running.port, notes)
    for client in asking:
        client.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not notes.failures:
        time.sleep(pause * rng.uniform(0.5, 1.5))
        trouble(running, rng)
        count += 1
    for client in asking:
        client.over.set()
    for client in asking:
        client.stop()
    return notes, count


def report(running, notes, count):
    """Return the figures of one run, by the names of the rows."""
    taken_over = sum(each.read_log().count("Continued a ") for each in running.replicas)
    kinds = "; ".join(f"{number:,} times {kind}" for kind, number in notes.errors.most_common())
    return {
        "ended processes": f"{count:,}",
        "requests, each answered once": f"{notes.answered.total():,}",
        "failed attempts": f"{notes.errors.total():,}" + (f": {kinds}" if kinds else ""),
        "sessions and tasks that another replica continued": f"{taken_over:,}",
        "sessions that clients had to begin again": f"{notes.begun_again:,}",
        "longest time until an answer, with all attempts": f"{notes.longest:.2f} s",
        "longest time without any answer": f"{notes.outages['any']:.2f} s",
        "longest time without an answer that needs no session or task": f"{notes.outages['stateless']:.2f} s",
    }


def table(reports):
    """Return the reports as a table, for a document."""
    rows = dict.fromkeys(row for report in reports.values() for row in report)
    lines = [
        f"{datetime.date.today().isoformat()}, three replicas, {pages.machine()}:",
        "",
        f"| | {' | '.join(reports)} |",
        "|---" * (len(reports) + 1) + "|",
        *(f"| {row} | {' | '.join(report[row] for report in reports.values())} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def spread(used):
    """Return how many requests each replica got, as text."""
    return f"requests by replica {', '.join(str(count) for _, count in sorted(used.items()))}"


def quiet(running):
    """Yield the logs that have a traceback, as failures."""
    for each in running.processes:
        log = each.read_log()
        if "Traceback" in log:
            yield f"log of {each.name}", False, log[log.index("Traceback") :][:3000]


CHECKS = {"clients": clients, "suite": suite, "kills": kills}


def main():
    """Run the checks; 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", choices=[*CHECKS, []], metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--seconds", type=float, default=12, help="of each kind of trouble")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the figures to docs/reliability.md")
    arguments = parser.parse_args()
    if lacking := system.missing():
        print(f"Replicas are not tried: that needs {', '.join(lacking)}")
        return 1 if os.environ.get("CI") else 0
    return max(programs.report(CHECKS[name](arguments)) for name in arguments.checks or CHECKS)


if __name__ == "__main__":
    sys.exit(main())

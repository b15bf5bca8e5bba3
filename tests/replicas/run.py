"""Three replicas behind nginx: every client of every revision on any of them, and no lost answer when processes are killed.

    python -m tests.replicas.run [--seconds 12] [--seed 0] [--record] [CHECK…]

`clients`: the official clients in all revisions; `suite`: the official conformance suite; `kills`: `kill -9` of replicas
and of Redis, and the orderly restart of replicas, each for `--seconds` of mixed requests; `patterns`: a commit of own
patterns; `tokens`: access tokens of an issuer. Needs the Debian packages
redis-server, nginx-light and dnsmasq-base; without them it says so, and fails only where CI is set.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

from tests.clients import run as official
from tests.replicas import messages, system, traffic
from tests.suite import run as conformance
from tests.support import packages, pages, programs
from tests.support.git import Repository
from tests.support.issuer import RESOURCE, Issuer, key, public

PYTHON = [sys.executable, os.path.join(official.HERE, "everything.py")]
TYPESCRIPT = ["node", os.path.join(official.HERE, "everything.mjs"), official.MODULES]
STATELESS = {"python": official.PYTHON_MODES, "typescript": official.TYPESCRIPT_MODES}
LEGS = ("2025-11-25", "2026-07-28")
OWN = "acme_auth_001"
PATTERN = f"{OWN}/pattern.yaml"
EACH = 6  # requests, so that more than one replica gets some
LOCAL = {"Host": "localhost"}  # for requests to the address of one replica
GREET = messages.call("greet", name="Ann")
ACCESS = """
kind: access
resource: {resource}
issuers: [{{issuer: "{issuer}"}}]
roles:
  developer:
    granted_by: [{{scopes: ["tmkb:read"]}}]
    tools: [greet, slow_compute]
  security:
    granted_by: [{{scopes: ["tmkb:admin"]}}]
    tools: ["*"]
"""


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
    "Redis killed": (lambda running, _: running.redis.kill(), 6),
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
    notes.ending = True
    for client in asking:
        client.over.set()
    for client in asking:
        client.stop()
    return notes, count


def report(running, notes, count):
    """Return the figures of one run, by the names of the rows."""
    taken_over = sum(each.read_log().count("Continued a ") for each in running.replicas)
    kinds = {f"failed: {kind}": f"{number:,}" for kind, number in notes.errors.most_common()}
    return {
        "ended processes": f"{count:,}",
        "requests, each answered once": f"{notes.answered.total():,}",
        "failed attempts": f"{notes.errors.total():,}",
        "sessions and tasks that another replica continued": f"{taken_over:,}",
        "answers in streams that clients resumed": f"{notes.resumed:,}",
        "sessions that clients had to begin again": f"{notes.begun_again:,}",
        "longest time until an answer, with all attempts": f"{notes.longest:.2f} s",
        "longest time without any answer": f"{notes.outages['any']:.2f} s",
        "longest time without an answer that needs no session or task": f"{notes.outages['stateless']:.2f} s",
        **kinds,
    }


def table(reports):
    """Return the reports as a table, for a document."""
    rows = dict.fromkeys(row for report in reports.values() for row in report)
    lines = [
        f"{datetime.date.today().isoformat()}, three replicas, {pages.machine()}:",
        "",
        f"| | {' | '.join(reports)} |",
        "|---" * (len(reports) + 1) + "|",
        *(f"| {row} | {' | '.join(report.get(row, '0') for report in reports.values())} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def spread(used):
    """Return how many requests each replica got, as text."""
    return f"requests by replica {', '.join(str(count) for _, count in sorted(used.items()))}"


def patterns(_arguments):
    """Yield whether all replicas serve a commit of own patterns soon, and none serves a broken one."""
    with tempfile.TemporaryDirectory() as folder:
        origin = Repository(pathlib.Path(folder, "origin"))
        shutil.copytree(os.path.join(packages.ROOT, "tests", "data", "patterns", "acme_auth_001"), origin.path / OWN)
        first = origin.commit()
        with system.System("--server", "tmkb-full", "--patterns", origin.source(), "--pull", "2") as running:
            served = severities(running)
            yield "all replicas serve the first commit", served == {("high", first)}, f"{first}: {served}"
            began, second = time.monotonic(), origin.replace(PATTERN, "severity: high", "severity: critical")
            changed = messages.until(lambda: severities(running) == {("critical", second)})
            took = time.monotonic() - began
            yield (
                f"all replicas serve a new commit, pulled every 2 s, after {took:.1f} s",
                changed,
                str(severities(running)),
            )
            broken = origin.replace(PATTERN, "severity: critical", "severity: enormous")
            reasons = [f"because commit {broken[:7]} has problems", f"{OWN}/pattern.yaml:", "enormous"]
            said = messages.until(lambda: all(says(replica, reasons) for replica in running.replicas))
            log = running.replicas[0].read_log()[-2000:]
            yield "each replica says why it does not serve a broken commit", said, log
            served = severities(running)
            yield "no replica serves anything of the broken commit", served == {("critical", second)}, str(served)
            ready = messages.fetch(running.address.replace("/mcp", "/readyz"))
            shown = ready[0] == 200 and "patterns" in json.loads(ready[2])["conditions"]
            yield "the replicas are ready, and show that a pull failed", shown, str(ready)
            yield from quiet(running)


def says(replica, texts):
    """Return whether the log of a replica has these texts."""
    log = replica.read_log()
    return all(text in log for text in texts)


def severities(running):
    """Return the severity of the pattern and the commit that each replica answers with."""
    found = set()
    for host, port in (replica.address for replica in running.replicas):
        question = messages.call("tmkb_query", context="publish a document in a background job")
        body = json.loads(messages.post(f"http://{host}:{port}/mcp", question, headers=LOCAL)[2])
        (source,) = body["result"]["_meta"]["tmkb/patterns"]["sources"]
        found.add((json.loads(body["result"]["content"][0]["text"])["patterns"][0]["severity"], source["commit"]))
    return found


def tokens(_arguments):
    """Yield whether replicas accept the valid tokens of an issuer, and no others, and keep users apart."""
    with tempfile.TemporaryDirectory() as folder, Issuer(key("one")) as issuer:
        access = os.path.join(folder, "access.yaml")
        with open(access, "w", encoding="utf-8") as file:
            file.write(ACCESS.format(issuer=issuer.name, resource=RESOURCE))
        with system.System("--server", "everything", "--access", access) as running:
            alice, bob = issuer.token(), issuer.token(subject="bob")
            invalid = {
                "no": None,
                "an expired": issuer.token(exp=int(time.time()) - 3600),
                "another audience's": issuer.token(aud="https://other.example/mcp"),
                "another issuer's": issuer.token(issuer="https://other.example"),
                "an unknown key's": issuer.token(key("unknown")),
            }
            for name, token in invalid.items():
                answers = [messages.post(running.address, GREET, token) for _ in range(EACH)]
                refused = all(status == 401 and "www-authenticate" in head for status, head, _ in answers)
                yield f"{name} token is refused", refused, str(answers)
            answers = [messages.post(running.address, GREET, alice) for _ in range(EACH)]
            yield "a valid token is accepted", all(status == 200 for status, *_ in answers), str(answers)
            answers = [messages.post(running.address, messages.call("test_slow"), alice) for _ in range(EACH)]
            yield (
                "a call that needs another scope is refused",
                all(status == 403 for status, *_ in answers),
                str(answers),
            )
            yield from apart(running, alice, bob)
            issuer.keys = public(key("two"), key("one"))
            rotated = issuer.token(key("two"))
            every = [f"http://{host}:{port}/mcp" for host, port in (replica.address for replica in running.replicas)]
            seen = messages.until(lambda: all(messages.post(url, GREET, rotated, LOCAL)[0] == 200 for url in every))
            yield "a rotated key is accepted by all replicas", seen, str(messages.post(running.address, GREET, rotated))
            notes = traffic.Notes()
            asking = [
                traffic.SessionClient(running.port, notes, 0, "2025-11-25", alice),
                traffic.Client(running.port, notes, 1, bob),
            ]
            for client in asking:
                client.kinds = ("echo", "slow")
                client.start()
            running.replicas[0].kill()
            for client in asking:
                client.stop()
            yield "both are served while a replica is killed", not notes.failures, str(notes.failures)
            yield from quiet(running)


def apart(running, alice, bob):
    """Yield whether a session and a task of one user are of no use to another, on any replica."""
    _, head, _ = messages.post(running.address, messages.initialize(), alice)
    session = {"Mcp-Session-Id": head["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    messages.post(running.address, notification, alice, session)
    greet = messages.call("greet", stateless=False, name="Ann")
    own = [messages.post(running.address, greet, alice, session)[0] for _ in range(EACH)]
    others = [messages.post(running.address, greet, bob, session)[0] for _ in range(EACH)]
    yield (
        "a session serves its user on any replica, and nobody else",
        {*own} == {200} and {*others} == {404},
        f"{own} {others}",
    )
    work = messages.call("slow_compute", seconds=0, label="sum")
    work["params"]["_meta"] = traffic.META
    task = json.loads(messages.post(running.address, work, alice)[2])["result"]["taskId"]
    get = {"jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": {"taskId": task, "_meta": traffic.META}}
    own, others = (
        [json.loads(messages.post(running.address, get, user, {"Mcp-Name": task})[2]) for _ in range(EACH)]
        for user in (alice, bob)
    )
    works = all("result" in answer for answer in own) and all("error" in answer for answer in others)
    yield "a task is shown to its user by any replica, and to nobody else", works, f"{own} {others}"


def quiet(running):
    """Yield the logs that have a traceback, as failures."""
    for each in running.processes:
        log = each.read_log()
        if "Traceback" in log:
            yield f"log of {each.name}", False, log[log.index("Traceback") :][:3000]


CHECKS = {"clients": clients, "suite": suite, "kills": kills, "patterns": patterns, "tokens": tokens}


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

"""The official conformance suite against `tmkb serve --server everything --http`: no failure, and no warning either.

    python -m tests.suite.run [--rounds N] [LEG…]

Two legs are its requirement sets; the others are all its scenarios, on the wire of each revision that it knows. What each
check says is read from the files that the suite writes.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

from tests.support import packages
from tests.support.process import HttpServer

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(packages.CACHE, "suite")
LEGS = {
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2026-07-28": ["--requirements", "2026-07-28"],
    "all": ["--suite", "all"],
    "all 2025-03-26": ["--suite", "all", "--spec-version", "2025-03-26"],
    "all 2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "all 2025-11-25": ["--suite", "all", "--spec-version", "2025-11-25"],
    "all 2026-07-28": ["--suite", "all", "--spec-version", "2026-07-28"],
}
STATUSES = ["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]
LONGEST = 600  # seconds for one leg


def run(leg, address=None):
    """How often the suite's checks say what, by status; each check that is none of our success; the scored scenarios.

    ``address``: of a server that runs already.
    """
    out = os.path.join(OUT, leg.replace(" ", "-"))
    shutil.rmtree(out, ignore_errors=True)
    place = packages.for_node(HERE)
    command = ["conformance", "server", *LEGS[leg], "--output-dir", out]
    with contextlib.nullcontext() if address else HttpServer("--server", "everything") as server:
        done = subprocess.run(
            [*command, "--url", address or server.address],
            env=packages.with_node(os.environ, place),
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    counts, wrong = collections.Counter(), []
    for scenario in sorted(os.listdir(out)) if os.path.isdir(out) else ():
        for check in json.loads(packages.read(os.path.join(out, scenario, "checks.json"))):
            counts[check["status"]] += 1
            if check["status"] in ("FAILURE", "WARNING"):
                wrong.append((scenario_name(scenario), check["id"], check["status"], check.get("errorMessage", "")))
    return counts, wrong, scenarios(out), done


def scenarios(out):
    """The names of the scenarios that ran."""
    return {scenario_name(each) for each in os.listdir(out)} if os.path.isdir(out) else set()


def scenario_name(folder):
    """`server-NAME-TIMESTAMP` → NAME."""
    return re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", folder)


def main():
    """Run the legs and print a table; 1 where a check fails or warns, or the rounds differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("legs", nargs="*", choices=[*LEGS, []], metavar="LEG", help=", ".join(LEGS))
    parser.add_argument("--rounds", type=int, default=1, help="how often; all have to be alike")
    arguments = parser.parse_args()
    failed = False
    print(f"{'leg':18}{'scenarios':>10}" + "".join(f"{status.lower():>9}" for status in STATUSES))
    for leg in arguments.legs or LEGS:
        seen = set()
        for _ in range(arguments.rounds):
            counts, wrong, ran, done = run(leg)
            print(f"{leg:18}{len(ran):>10}" + "".join(f"{counts[status]:>9}" for status in STATUSES), flush=True)
            for scenario, check, status, said in wrong:
                print(f"    {status} {scenario}: {check}: {said}")
            seen.add(tuple(counts[status] for status in STATUSES))
            scored = re.findall(r"^Total: .*$|^Not scored.*$", done.stdout, re.MULTILINE)
            print("".join(f"    {line}\n" for line in scored), end="")
            if done.returncode or not counts["SUCCESS"]:
                print(f"    the suite ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
            failed = failed or bool(wrong or done.returncode or not counts["SUCCESS"])
        if len(seen) > 1:
            print(f"    {leg}: the rounds differ")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Fuzz with atheris, which changes inputs and keeps those that reach new code (libFuzzer, for Python).

    python -m tests.fuzz.run [TARGET…] [--seconds N] [--seed N] [--keep] [--record]

Each target of `targets.py` runs in a process of its own, one after the other. It begins with valid inputs from this
repository, the inputs in `tests/fuzz/corpus/`, and those of earlier runs below `.cache`. An input that fails is written
to `tests/fuzz/corpus/TARGET/`, where `test_fuzz.py` replays it. The process ends with 1 then. With ``--keep``, the new
inputs that reach most code are kept there too.
"""

import argparse
import datetime
import glob
import hashlib
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

from tests.fuzz import targets
from tests.support import packages, pages

ATHERIS = "atheris==3.0.0"
KEPT = 20_000  # bytes of new inputs that are kept for one target
TIMEOUT, MEMORY = 20, 2048  # seconds and megabytes for one input


class Run(NamedTuple):
    """The figures of one run; ``coverage``: edges of bytecode that were reached; ``processor``: seconds that it got."""

    name: str
    seconds: int
    processor: float
    executions: int
    coverage: int
    inputs: int
    failures: list[str]


def fuzz(name, seconds, seed):
    """Fuzz a target for so many seconds, or until an input fails. ``seed``: of the changes; 0 is another each time."""
    folder, seeds, found = prepare(name)
    argv = [found, seeds, *([os.path.join(targets.CORPUS, name)] if targets.inputs(name) else [])]
    artifacts = os.path.join(folder, "failed-")
    limits = [f"-max_total_time={seconds}", f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY}"]
    flags = [f"-artifact_prefix={artifacts}", f"-dict={os.path.join(folder, 'words')}", "-print_final_stats=1"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = start(name, *limits, *flags, f"-seed={seed}", "-reload=0", *argv)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    failures = [keep_failure(name, path) for path in glob.glob(f"{artifacts}*")]
    if done.returncode and not failures:
        raise SystemExit(f"{name} could not be fuzzed:\n{done.stdout[-3000:]}")
    for path in failures:
        print(f"{name}: {os.path.relpath(path, packages.ROOT)} fails:\n{traceback_in(done.stdout)}")
    return Run(name, round(time.monotonic() - started), processor, *figures(done.stdout), failures)


def prepare(name):
    """Write the seeds and words of a target. Return the folder of the target, of the seeds, and of what is found."""
    folder = os.path.join(packages.CACHE, "fuzz", name)
    seeds, found = os.path.join(folder, "seeds"), os.path.join(folder, "found")
    shutil.rmtree(seeds, ignore_errors=True)
    os.makedirs(seeds)
    os.makedirs(found, exist_ok=True)
    for path in glob.glob(os.path.join(folder, "failed-*")):  # of a run that was killed
        os.unlink(path)
    for seed in targets.TARGETS[name].seeds():
        write(seeds, seed)
    with open(os.path.join(folder, "words"), "w", encoding="ascii") as file:
        for word in dict.fromkeys(targets.TARGETS[name].words()):
            escaped = "".join(f"\\x{byte:02x}" for byte in word.encode())
            file.write(f'"{escaped}"\n')
    return folder, seeds, found


def start(name, *arguments):
    """Run the worker."""
    path = os.pathsep.join([packages.for_python("atheris", ATHERIS, bare=True), packages.ROOT])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    again = os.path.join(packages.CACHE, "fuzz", name, "worker")  # libFuzzer starts it to minimize
    with open(again, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tests.fuzz.worker "$0" {name} "$@"\n')
    os.chmod(again, 0o755)
    command = [again, *arguments]
    return subprocess.run(
        command,
        cwd=packages.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def figures(log):
    """Return executions, coverage and inputs, as libFuzzer prints them."""
    last = [(int(n), int(cov), int(corp)) for n, cov, corp in re.findall(r"#(\d+)\t.*cov: (\d+) .*corp: (\d+)/", log)]
    ended = re.search(r"stat::number_of_executed_units: (\d+)", log)
    executed, coverage, inputs = last[-1] if last else (0, 0, 0)
    return int(ended[1]) if ended else executed, coverage, inputs


def traceback_in(log):
    """Return the part of the log that says why an input failed."""
    start = log.find("=== Uncaught Python exception")
    return log[start if start >= 0 else log.find("ERROR: libFuzzer") :][:4000]


def keep_failure(name, path):
    """Move an input that failed into the corpus."""
    with open(path, "rb") as file:
        kept = write(os.path.join(targets.CORPUS, name), file.read(), "failed-")
    os.unlink(path)
    return kept


def keep_inputs(name):
    """Keep the smallest inputs that reach all code which any input has reached, without the valid ones."""
    _, seeds, found = prepare(name)
    corpus, merged = os.path.join(targets.CORPUS, name), os.path.join(packages.CACHE, "fuzz", name, "merged")
    shutil.rmtree(merged, ignore_errors=True)
    os.makedirs(merged)
    os.makedirs(corpus, exist_ok=True)
    done = start(name, "-merge=1", f"-timeout={TIMEOUT}", merged, seeds, corpus, found)
    if done.returncode:
        raise SystemExit(f"{name} could not be minimized:\n{done.stdout[-3000:]}")
    for path in targets.inputs(name):
        if not os.path.basename(path).startswith("failed-"):
            os.unlink(path)
    left = KEPT
    new = [path for path in glob.glob(f"{merged}/*") if not os.path.exists(os.path.join(seeds, os.path.basename(path)))]
    for path in sorted(new, key=os.path.getsize):
        left -= os.path.getsize(path)
        if left > 0:
            shutil.copy(path, corpus)


def write(folder, data, prefix=""):
    """Write an input under its digest; return its path."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, prefix + hashlib.sha1(data).hexdigest())
    with open(path, "wb") as file:
        file.write(data)
    return path


def row(run):
    """The figures as a row of a table."""
    day = datetime.date.today().isoformat()
    numbers = (run.seconds, round(run.processor), run.executions, run.coverage, run.inputs, len(run.failures))
    return f"| {run.name} | {day} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main():
    """Fuzz as the command line says. Return 1 if an input has failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[*targets.TARGETS, []])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the changes; 0: another in each run")
    parser.add_argument("--keep", action="store_true", help="keep the inputs that reach most code")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/reliability.md")
    args = parser.parse_args()
    failed = False
    for name in args.targets or targets.TARGETS:
        run = fuzz(name, args.seconds, args.seed)
        if args.keep:
            keep_inputs(name)
        if args.record:
            pages.replace_row("docs/reliability.md", "fuzz", row(run))
        print(row(run), flush=True)
        failed = failed or bool(run.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

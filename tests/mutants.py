"""Try a random sample of the mutants of mutmut with the tests that reach the changed line; see tests/mutation.md.

pytest collects the tests once, and forks for each mutant before the first test has run: no cache is filled that would hide a change.
A mutant counts as killed only if the same tests succeed with the original code.
"""

import argparse
import ast
import contextlib
import fnmatch
import functools
import gc
import importlib
import itertools
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import types

import coverage
import pytest
from mutmut import __main__ as mutmut
from mutmut.mutation import data, trampoline
from mutmut.utils.format_utils import parse_mutant_key

DURATIONS = "durations.json"  # below mutants/: seconds of each test with the original code, null if it fails
SLOW = 3.0  # seconds: slower tests are left out
MEMORY = 4 << 30  # bytes: a mutant that needs more is killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="names of mutants, or patterns such as 'tmkb.schema.*'")
    parser.add_argument("--coverage", required=True, help="data of `pytest --cov --cov-context=test`")
    parser.add_argument("--sample", type=int, default=30, help="how many mutants of each module")
    parser.add_argument("--seed", default="", help="of the samples")
    parser.add_argument("--seconds", type=int, default=12, help="of CPU time for each mutant")
    options = parser.parse_args()
    known = coverage.CoverageData(options.coverage)
    known.read()
    os.makedirs("mutants", exist_ok=True)
    with contextlib.redirect_stdout(sys.stderr):
        mutmut.copy_src_dir(), mutmut.copy_also_copy_files(), mutmut.create_mutants(1)
    table, tests = {}, {}
    for path in sorted(map(str, mutmut.walk_mutatable_files())):
        mutants, module = data.SourceFileMutationData(path=path), path.removesuffix(".py").replace("/", ".")
        mutants.load()
        if names := sorted(
            n for n in mutants.exit_code_by_key if any(fnmatch.fnmatch(n, form) for form in options.names)
        ):
            sample = random.Random(f"{options.seed} {module}").sample(names, min(options.sample, len(names)))
            table[module] = len(names), sample
            tests |= {name: reaching(name, path, known) for name in sample}
    files = sorted({test.partition("::")[0] for each in tests.values() for test in each})
    sys.path[0] = os.path.abspath("mutants")
    os.chdir("mutants")
    trial = Trial(tests, options.seconds)
    with tempfile.TemporaryDirectory() as scratch:
        words = ["-m", "", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={scratch}/base"]
        pytest.main([*words, *files], plugins=[trial])
    for module, (count, sample) in table.items():
        print(f"| `{module}` | {count:,} | {len(sample)} | {sum(map(trial.killed.get, sample))} |")
    print(f"| together | {sum(count for count, _ in table.values()):,} | {len(tests)} | {sum(trial.killed.values())} |")


@functools.cache
def contexts(known, path):
    by_line = known.contexts_by_lineno(os.path.abspath(path))
    return {line: {context.rpartition("|")[0] for context in each if context} for line, each in by_line.items()}


def reaching(name, path, known):
    """Return the tests that reach the changed line, else the nearest line above, with how many lines of the function they reach."""
    key, _, number = name.rpartition(".")[2].rpartition("__mutmut_")
    variants = [f"{key}__mutmut_orig", f"{key}__mutmut_{number}"]
    sources = data.MutantLineSpans.load(path).read_function_sources(variants)
    pairs = zip(*(source[source.index("def ") :].split("\n") for source in sources), strict=False)
    changed = next((at for at, (line, other) in enumerate(pairs) if at and line != other), 0)
    with open(path, encoding="utf-8") as file:
        node = ast.parse(file.read())
    for step in filter(None, reversed(parse_mutant_key(key))):
        node = next(each for each in node.body if getattr(each, "name", None) == step)
    lines = {line: contexts(known, path).get(line, set()) for line in range(node.lineno, node.end_lineno + 1)}
    above = (lines[line] for line in range(node.lineno + changed, node.lineno, -1) if lines[line])
    tests = next(above, set()) or set().union(*lines.values())
    return {test: sum(test in each for each in lines.values()) for test in tests}


class Trial:
    """A plugin of pytest that runs each new test once with the original code, then the tests of each mutant."""

    def __init__(self, tests, seconds):
        self.tests, self.seconds, self.killed = tests, seconds, {}
        self.begun = multiprocessing.Value("i", lock=False)  # how many tests a fork has begun

    def pytest_runtestloop(self, session):
        used = set().union(*self.tests.values())
        items = {item.nodeid: item for item in session.items if item.nodeid in used}
        trampoline.get_mutant_under_test = str
        in_fork(measure, session, items)
        with open(DURATIONS, encoding="utf-8") as file:
            durations = {test: seconds for test, seconds in json.load(file).items() if seconds and seconds < SLOW}
        install_originals()
        gc.freeze()
        for name, reached in self.tests.items():
            file = f"/test_{name.split('.')[-2]}.py"  # where one would look for a test of the module
            usable = reached.keys() & durations.keys() & items.keys()
            quick = sorted(usable, key=lambda test: (file not in test, -reached[test], durations[test]))
            chosen, original = [items[test] for test in quick], f"{name.rpartition('_')[0]}_orig"
            status = in_fork(attack, session, name, chosen, self.seconds, self.begun)
            count = self.begun.value
            if status:  # without the change, the tests must succeed
                control = in_fork(attack, session, original, chosen[:count], 10 * self.seconds, self.begun)
            self.killed[name] = bool(status and not control)
            verdict = "killed  " if self.killed[name] else "doubtful" if status else "survived"
            print(f"\n{verdict} {name} {count} of {len(quick)} tests, status {status}", file=sys.__stderr__)
        return True


def in_fork(run, *arguments):
    """Return the exit status of a process that runs this function: negative if a signal ended it."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        run(*arguments)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(1)


def measure(session, items):
    durations = {}
    with contextlib.suppress(FileNotFoundError), open(DURATIONS, encoding="utf-8") as file:
        durations = json.load(file)
    new = [item for test, item in items.items() if test not in durations]
    for item, following in itertools.pairwise([*new, None]):
        begun, failed = time.monotonic(), session.testsfailed
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        durations[item.nodeid] = time.monotonic() - begun if session.testsfailed == failed else None
    with open(DURATIONS, "w", encoding="utf-8") as file:
        json.dump(durations, file)


def attack(session, name, items, seconds, begun):
    """Exit with 1 after the first of ``items`` that fails, with 0 if all succeed or the time is up.

    ``begun``: a shared number, which becomes how many tests were begun.
    """
    begun.value = 0
    trampoline.get_mutant_under_test = lambda: name
    module, _, variant = name.rpartition(".")
    function, owner = parse_mutant_key(variant.rpartition("__mutmut_")[0])
    loaded = importlib.import_module(module)
    install(getattr(loaded, owner) if owner else loaded, function, variant)
    signal.alarm(seconds * 6)  # a test that waits for something, or runs for ever, is killed
    resource.setrlimit(resource.RLIMIT_CPU, (seconds * 2, seconds * 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for item, following in itertools.pairwise([*items, None]):
        begun.value += 1
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed or time.process_time() > seconds:
            break
    os._exit(bool(session.testsfailed))


def install_originals():
    """Replace the wrappers of mutmut, which choose a variant at each call: they take half of the time."""
    for module in [module for name, module in sys.modules.items() if name.startswith("tmkb.")]:
        for owner in [module, *(each for each in vars(module).values() if isinstance(each, type))]:
            for variant in [each for each in vars(owner) if each.endswith("__mutmut_orig")]:
                install(owner, parse_mutant_key(variant.removesuffix("__mutmut_orig"))[0], variant)


def install(owner, function, variant):
    """Put a variant of a function wherever the present one is."""
    present, new = vars(owner)[function], vars(owner)[variant]
    for each in [owner, *(module for name, module in sys.modules.items() if name.startswith("tmkb."))]:
        for alias in [alias for alias, value in vars(each).items() if value is present]:
            if isinstance(new, types.FunctionType) and "__mutmut_" not in alias:
                setattr(each, alias, new)


if __name__ == "__main__":
    main()

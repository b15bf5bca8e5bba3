"""Try a random sample of the mutants of mutmut with the tests that reach the changed line; see tests/mutation.md.

pytest collects the tests once, and forks for each mutant before the first test has run. So no cache is filled that would hide
a change, and a test that only some lines need is not run for the others.
"""

import argparse
import ast
import contextlib
import fnmatch
import functools
import gc
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import types

import coverage
import pytest
from mutmut import __main__ as mutmut
from mutmut.mutation import trampoline
from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
from mutmut.mutation.diff_apply import generated_function_names
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

BASELINE = "baseline.json"  # in mutants/: seconds of each test with the original code, null if it fails
SLOW = 3.0  # seconds: slower tests are left out
MEMORY = 4 << 30  # bytes: a mutant that needs more is killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="names of mutants, or patterns such as 'tmkb.schema.*'")
    parser.add_argument("--coverage", required=True, help="data of `pytest --cov --cov-context=test`")
    parser.add_argument("--sample", type=int, default=30, help="how many mutants of each module")
    parser.add_argument("--seed", default="", help="of the samples")
    parser.add_argument("--seconds", type=float, default=20, help="of CPU time for each mutant")
    options = parser.parse_args()
    data = coverage.CoverageData(options.coverage)
    data.read()
    os.makedirs("mutants", exist_ok=True)
    with contextlib.redirect_stdout(sys.stderr):
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.create_mutants(1)
    chosen, counts = sample(options)
    tests = {name: reaching(name, path, data) for name, path in chosen.items()}
    files = sorted({test.partition("::")[0] for each in tests.values() for test in each})
    sys.path[0] = os.path.abspath("mutants")
    os.chdir("mutants")
    trial = Trial(tests, options.seconds)
    with tempfile.TemporaryDirectory() as scratch:
        words = ["-m", "", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={scratch}/base"]
        pytest.main([*words, *files], plugins=[trial])
    report(trial, counts)


def sample(options):
    """Return the path of each chosen mutant, and the number of mutants of each module."""
    chosen, counts = {}, {}
    for path in sorted(map(str, mutmut.walk_mutatable_files())):
        mutants = SourceFileMutationData(path=path)
        mutants.load()
        names = [n for n in mutants.exit_code_by_key if any(fnmatch.fnmatch(n, form) for form in options.names)]
        if names:
            counts[path] = len(names)
            module = path.removesuffix(".py").replace("/", ".")
            shuffled = random.Random(f"{options.seed} {module}").sample(sorted(names), min(options.sample, len(names)))
            chosen.update(dict.fromkeys(shuffled, path))
    return chosen, counts


@functools.cache
def contexts(data, path):
    """Return the tests that reach each line."""
    by_line = data.contexts_by_lineno(os.path.abspath(path))
    return {line: {context.partition("|")[0] for context in each if context} for line, each in by_line.items()}


def reaching(name, path, data):
    """Return the tests that reach the changed line, else the nearest line above; and how many lines of the function each reaches."""
    sources = MutantLineSpans.load(path).read_function_sources(generated_function_names(name))
    pairs = zip(*(source[source.index("def ") :].split("\n") for source in sources), strict=False)
    changed = next((at for at, (line, other) in enumerate(pairs) if at and line != other), 0)
    function, owner = orig_function_and_class_names_from_key(name)
    with open(path, encoding="utf-8") as file:
        nodes = ast.parse(file.read()).body
    for step in filter(None, (owner, function.rpartition(".")[2])):
        node = next(each for each in nodes if getattr(each, "name", None) == step)
        nodes = node.body
    lines = {line: contexts(data, path).get(line, set()) for line in range(node.lineno, node.end_lineno + 1)}
    above = (lines[line] for line in range(node.lineno + changed, node.lineno, -1) if lines[line])
    tests = next(above, set()) or set().union(*lines.values())
    return {test: sum(test in each for each in lines.values()) for test in tests}


class Trial:
    """A plugin of pytest that runs each new test once without a mutant, then the tests of each mutant."""

    def __init__(self, tests, seconds):
        self.tests, self.seconds, self.results = tests, seconds, {}

    def pytest_runtestloop(self, session):
        trampoline.get_mutant_under_test = str
        used = set().union(*self.tests.values())
        items = {item.nodeid: item for item in session.items if item.nodeid in used}
        in_fork(measure, session, items)
        for module in [module for name, module in sys.modules.items() if name.startswith("tmkb.")]:
            for owner in [
                module,
                *(
                    value
                    for value in vars(module).values()
                    if isinstance(value, type) and value.__module__ == module.__name__
                ),
            ]:
                for variant in [variant for variant in vars(owner) if variant.endswith("__mutmut_orig")]:
                    install(f"{module.__name__}.{variant.removesuffix('__mutmut_orig')}", "__mutmut_orig")
        with open(BASELINE, encoding="utf-8") as file:
            durations = {test: seconds for test, seconds in json.load(file).items() if seconds and seconds < SLOW}
        gc.freeze()
        for name, reaching in self.tests.items():
            quick = reaching.keys() & durations.keys() & items.keys()
            chosen = [items[test] for test in sorted(quick, key=lambda test: (-reaching[test], durations[test]))]
            status = in_fork(attack, session, name, chosen, self.seconds)
            self.results[name] = status != 0
            print(
                "killed  " if status else "survived", name, f"{len(chosen)} tests, status {status}", file=sys.__stderr__
            )
        return True


def in_fork(run, *arguments):
    """Return the exit status of a process that runs this function: negative if a signal ended it."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        run(*arguments)
    finally:
        os._exit(1)


def measure(session, items):
    durations = {}
    with contextlib.suppress(FileNotFoundError), open(BASELINE, encoding="utf-8") as file:
        durations = json.load(file)
    new = [item for test, item in items.items() if test not in durations]
    for item, following in zip(new, [*new[1:], None], strict=True):
        begun, failed = time.monotonic(), session.testsfailed
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        durations[item.nodeid] = time.monotonic() - begun if session.testsfailed == failed else None
    with open(BASELINE, "w", encoding="utf-8") as file:
        json.dump(durations, file)


def attack(session, name, items, seconds):
    """Exit with 1 after the first of ``items`` that fails, with 0 if all succeed or the time is up."""
    trampoline.get_mutant_under_test = lambda: name
    install(*name.rpartition("__mutmut")[::2]) if 0 else install(
        name.partition("__mutmut")[0], "__mutmut" + name.partition("__mutmut")[2]
    )
    signal.alarm(int(seconds) * 6)  # a test that waits for something, or runs for ever, is killed
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) * 2,) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed or time.process_time() > seconds:
            break
    os._exit(bool(session.testsfailed))


def install(function, name):
    """Put the variant of a function in the place of its wrapper, which reads an environment variable for each call."""
    module = sys.modules[function.rpartition(".")[0]]
    variant, plain = function.rpartition(".")[2] + name, orig_function_and_class_names_from_key(function + "__mutmut_1")
    owner = getattr(module, plain[1]) if plain[1] else module
    attribute = plain[0].rpartition(".")[2]
    wrapper, new = vars(owner)[attribute], vars(owner)[variant]
    if isinstance(new, types.FunctionType):
        for each in [owner, *(m for n, m in sys.modules.items() if n.startswith("tmkb."))]:
            for alias in [alias for alias, value in vars(each).items() if value is wrapper]:
                setattr(each, alias, new)


def report(trial, counts):
    for path, count in counts.items():
        module = path.removesuffix(".py").replace("/", ".")
        killed = [each for name, each in trial.results.items() if name.startswith(f"{module}.x")]
        print(f"| `{module}` | {count:,} | {len(killed)} | {sum(killed)} |")
    print(f"| together | {sum(counts.values()):,} | {len(trial.results)} | {sum(trial.results.values())} |")


if __name__ == "__main__":
    main()

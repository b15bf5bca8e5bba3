"""How long searches among 200 000 files take, beside what they are to take: `python -m tests.bench.sysmcp_files`."""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time

from tmkb.sysmcp.files.provider import Files

RUNS = 20
SETTINGS = {
    "symlinks": "never",
    "one_file_system": True,
    "show_host_path": False,
    "limits": {
        "seconds": 60,  # so that what is measured is the whole
        "answer_bytes": 1048576,
        "file_bytes": 1048576,
        "hash_bytes": 67108864,
        "lines": 3,
        "line_characters": 200,
    },
}
SUFFIXES = ("txt", "log", "py", "md", "json", "c", "h", "dat", "xml", "cfg")


def plant(folder, folders, files):
    """A tree of small texts; about one name in a hundred matches ``*7.log``, and one file in 5 000 holds ``needle``."""
    chance = random.Random(1)
    below = [folder]
    while len(below) < folders:
        below.append(os.path.join(chance.choice(below[-2000:]), f"folder{len(below)}"))
        os.mkdir(below[-1])
    for number in range(files):
        name = f"file{number}.{chance.choice(SUFFIXES)}"
        with open(os.path.join(chance.choice(below), name), "w", encoding="ascii") as file:
            file.write("a line of text\n" * chance.randrange(40) + ("a needle\n" if number % 5000 == 0 else ""))


def driven(running):
    """What an operation gives, how long it took, and the longest that it worked between two turns of others."""
    begun, last, longest = time.perf_counter(), time.process_time(), 0.0
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value, time.perf_counter() - begun, max(longest, time.process_time() - last)
        now = time.process_time()
        longest, last = max(longest, now - last), now


def worst_page(files):
    """The slowest of all pages of a search that is gone on with by cursor, as one figure; and its longest step."""
    cursor, took, longest = {}, 0.0, 0.0
    while True:
        page, seconds, step = driven(files.search(pattern="*7.log", **cursor))
        took, longest = max(took, seconds), max(longest, step)
        if page["complete"]:
            return page, took, longest
        cursor = {"cursor": page["nextCursor"]}


def measure(root, some):
    """Operation, target in milliseconds, median, longest step; targets are those of one page."""
    files = Files({**SETTINGS, "roots": {"root": root}}, None)
    operations = {
        "stat": (100, lambda: driven(files.stat(path=some))),
        "first page of 100": (100, lambda: driven(files.search(pattern="*7.log"))),
        "worst page of 100, by cursor": (100, lambda: worst_page(files)),
        "the whole tree, by glob": (None, lambda: driven(files.search(pattern="*7.log", limit=100_000))),
        "the whole tree, by path": (None, lambda: driven(files.search(pattern="**/folder1*/**/*7.log", limit=100_000))),
        "the whole tree, by substring": (None, lambda: driven(files.search(pattern="zzz", mode="substring"))),
        "the whole tree, by expression": (None, lambda: driven(files.search(pattern="(z+)+$", mode="regex"))),
        "the whole tree, by content": (None, lambda: driven(files.search(pattern="*", content="needle"))),
    }
    for name, (target, operation) in operations.items():
        operation()
        runs = [operation() for _ in range(RUNS if target else RUNS // 4)]
        yield name, target, statistics.median(run[1] for run in runs), max(run[2] for run in runs)


def floor(root):
    """Seconds for the barest walk there is."""
    begun = time.perf_counter()
    stack = [root]
    while stack:
        with os.scandir(stack.pop()) as found:
            stack += [item.path for item in found if item.is_dir(follow_symlinks=False)]
    return time.perf_counter() - begun


def main():
    """Make the tree, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=200_000, help="default: %(default)s")
    parser.add_argument("--folders", type=int, default=8_500, help="default: %(default)s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as root:
        plant(root, arguments.folders, arguments.files)
        some = next(os.path.relpath(os.path.join(at, names[0]), root) for at, _, names in os.walk(root) if names)
        print("| operation | target, ms | median, ms | longest step, ms of CPU |\n|---|---|---|---|")
        for name, target, median, longest in measure(root, some):
            print(f"| {name} | {f'< {target}' if target else ''} | {median * 1e3:.3f} | {longest * 1e3:.1f} |")
        print(f"| the barest walk with scandir | | {statistics.median(floor(root) for _ in range(5)) * 1e3:.3f} | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

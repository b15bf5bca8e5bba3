"""How long the registry tools take on a large hive: `python -m tests.bench.sysmcp_hives`, medians of 20 as a table."""

import os
import statistics
import tempfile
import time

from tests.sysmcp import hives

ROUNDS = 20
TARGET = 100  # ms, for the execution of any tool
KEY = "HKLM\\SYSTEM\\Many\\Group0400\\Key0050"


def main():
    """Make a hive of 30 000 keys and 70 000 values, measure, and print."""
    with tempfile.TemporaryDirectory() as folder:
        place = hives.Place(folder, write_allow=["HKLM\\SYSTEM\\Many"], keep=3)
        make(place.hive)
        size = os.path.getsize(place.hive) / 1e6
        os.utime(place.hive, (0, 0))
        rows = measure(place)
    print(f"A hive of {size:.1f} MB with 30 000 keys and 70 000 values; medians of {ROUNDS}, ms.\n")
    print("| what | target | median | worst | longest step |\n|---|---|---|---|---|")
    for name, times, steps in rows:
        middle, worst, longest = (
            f"{1e3 * seconds:.1f}" for seconds in (statistics.median(times), max(times), max(steps))
        )
        print(f"| {name} | {TARGET} | {middle} | {worst} | {longest} |")


def make(hive):
    """30 000 keys with 70 000 values, in the file ``hive``."""
    hives.made(hive, 500, 60, values)


def values(number):
    """Two values, and a third for every third key."""
    return [(f"v{index}", 1, f"value {index}\0".encode("utf-16-le")) for index in range(2 + (number % 3 == 0))]


def measure(place):
    """Rows of a name, the times of the rounds, and the longest step of each."""
    numbers = iter(range(1 << 20))

    def cold():
        place.provider.kept = None, bytearray()
        return place.begin("read", path=KEY)

    def write():
        return place.begin("write", path=KEY, valueName="v0", type="REG_DWORD", data=next(numbers))

    acts = {
        "`reg_read`, the file is read": cold,
        "`reg_read`, the hive is in memory": lambda: place.begin("read", path=KEY),
        "`reg_read`, 500 subkeys": lambda: place.begin("read", path="HKLM\\SYSTEM\\Many", limit=1000),
        "`reg_write`, dry run": lambda: place.begin(
            "write", path=KEY, action="deleteValue", valueName="v1", dryRun=True
        ),
        "`reg_write`": write,
    }
    return [(name, *zip(*(timed(act()) for _ in range(ROUNDS)), strict=True)) for name, act in acts.items()]


def timed(running):
    """How long an operation takes in all, and its longest step."""
    steps = []
    while True:
        began = time.perf_counter()
        try:
            next(running)
        except StopIteration:
            return sum(steps), max(steps)
        finally:
            steps.append(time.perf_counter() - began)


if __name__ == "__main__":
    main()

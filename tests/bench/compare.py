"""Name the rows of a run that are worse than in another one, by more than the noise of both.

    python tests/bench/compare.py BASELINE NEW

The files are those of `--json` of run.py and http_calls.py, from the same machine. A row is worse if its lower quartile
is above the upper quartile of the baseline, and its median is `LEAST` times larger. The exit status is 1 if there is such
a row.
"""

import argparse
import json
import statistics
import sys

LEAST = 1.1


def quartiles(ratios):
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3


def is_worse(before, after):
    """Whether the ratios of a row became worse by more than their noise."""
    old, new = quartiles(before), quartiles(after)
    return new[0] > old[2] and new[1] > LEAST * old[1]


def main(words=None):
    """Compare and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("baseline")
    parser.add_argument("new")
    arguments = parser.parse_args(words)
    before, after = read(arguments.baseline), read(arguments.new)
    worse = [name for name in before if name in after and is_worse(before[name], after[name])]
    for name in [each for each in before if each in after]:
        old, new = statistics.median(before[name]), statistics.median(after[name])
        print(f"{'WORSE' if name in worse else 'ok':5}  {old:7.3g} → {new:7.3g}  {name}")
    return 1 if worse else 0


def read(path):
    """The rows of a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["rows"]


if __name__ == "__main__":
    sys.exit(main())

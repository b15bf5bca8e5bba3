"""Swap two names in a loop until the standard input is closed: `swap.py ONE OTHER`."""

import ctypes
import os
import select
import sys

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def main(one, other):
    """Swap the names."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([0], [], [], 0)[0]:
        for _ in range(1000):
            if exchange(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
                raise OSError(ctypes.get_errno(), "renameat2")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How long something takes, without what else the machine does and without what watches the tests."""

import sys
import time


def least(act, runs=7):
    """The least processor time of some runs, in seconds."""
    took, watching = [], sys.gettrace()
    sys.settrace(None)  # coverage slows Python down, and nothing else: ratios would be of no worth
    try:
        for _ in range(runs):
            begun = time.process_time()
            act()
            took.append(time.process_time() - begun)
    finally:
        sys.settrace(watching)
    return min(took)

"""Compare folders of files."""

import filecmp
import os


def first_difference(one, other):
    """The path of a file that differs between two folders; None if there is none."""
    files = {os.path.relpath(os.path.join(place, name), one) for place, _, names in os.walk(one) for name in names}
    return next((name for name in sorted(files) if not same(os.path.join(one, name), os.path.join(other, name))), None)


def same(one, other):
    """Whether two files have equal contents."""
    return os.path.exists(other) and filecmp.cmp(one, other, shallow=False)

"""A pytest plugin that hides modules: ``BLOCKED=re2,flask pytest -p tests.support.block_import``."""

import os
import sys


class Blocked:
    """A finder of modules that refuses those in ``names`` and what is inside them."""

    def __init__(self, names):
        self.names = frozenset(names)

    def find_spec(self, name, path=None, target=None):
        """Raise for a hidden module; leave any other to the next finder."""
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked(os.environ["BLOCKED"].split(",")))

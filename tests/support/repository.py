"""The files of the repository, for tests that read them."""

import os

import tmkb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(tmkb.__file__)))


def source(path):
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()

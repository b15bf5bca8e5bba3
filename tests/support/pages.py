"""Parts of documents that programs write: what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``."""

import os
import platform
import re
import sys

from tests.support.repository import ROOT


def replace(page, name, text):
    """Replace the part ``name`` of a document. ``text``: a string, or a function of the text so far."""
    path = os.path.join(ROOT, page)
    with open(path, encoding="utf-8") as file:
        content = file.read()
    before, old, after = re.fullmatch(rf"(.*<!-- generated: {name} -->\n)(.*?)(<!-- end -->.*)", content, re.S).groups()
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + (text(old) if callable(text) else text) + after)


def replace_row(page, name, row):
    """Replace the row of the table ``name`` that has the same first cell, or append one."""
    first = row.split("|")[1]

    def with_row(old):
        lines = [line for line in old.splitlines() if line.split("|")[1:2] != [first]]
        return "\n".join([*lines, row]) + "\n"

    replace(page, name, with_row)


def machine():
    """The system, Python and number of processors, as a reader of figures needs them."""
    return f"{sys.platform} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"

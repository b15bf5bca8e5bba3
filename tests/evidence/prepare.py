"""Make the folder in which an author works: python -m tests.evidence.prepare --batch N FOLDER

It has a copy of the product, the tickets of the batch and the brief, in a repository with one commit, and an
environment `.venv` with the libraries of the product and no others.
"""

import argparse
import os
import re
import shutil
import subprocess
import venv
from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement

from tests.evidence import scenarios
from tests.evidence.run import PRODUCT

BRIEF = os.path.join(os.path.dirname(__file__), "brief.md")
LIBRARIES = ("flask", "flask-login", "flask-sqlalchemy", "pytest")
_IGNORED = ".venv/\n__pycache__/\n.pytest_cache/\ninstance/\n*.db\n"


def prepare(batch: int, folder: str) -> None:
    """Make ``folder``, which must not exist, with the tickets of ``batch``."""
    shutil.copytree(PRODUCT, folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache", "instance"))
    shutil.copy(BRIEF, os.path.join(folder, "BRIEF.md"))
    with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
        file.write(_IGNORED)
    tickets = os.path.join(folder, "tickets")
    os.mkdir(tickets)
    for index, number in enumerate(scenarios.BATCHES[batch], 1):
        with open(scenarios.ticket(number), encoding="utf-8") as file:
            text = file.read()
        words = re.sub(r"\W+", "-", text.partition("\n")[0].lower()).strip("-")
        with open(os.path.join(tickets, f"{index:02}-{words}.md"), "w", encoding="utf-8") as file:
            file.write(text)
    author = ["-c", "user.name=Worklane", "-c", "user.email=worklane@example.com"]
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*author, "commit", "-q", "-m", "Start of the sprint"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)


def add_environment(folder: str) -> None:
    """Make `.venv` in ``folder``, with copies of the installed libraries that the product needs."""
    place = os.path.join(folder, ".venv")
    venv.create(place, symlinks=True)
    python = next(name for name in os.listdir(os.path.join(place, "lib")))
    site = os.path.join(place, "lib", python, "site-packages")
    for name in _needed(LIBRARIES):
        for file in metadata.distribution(name).files or []:
            if file.parts[0] != ".." and "__pycache__" not in file.parts:
                target = os.path.join(site, *file.parts)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(str(file.locate()), target)


def _needed(names: Iterable[str]) -> set[str]:
    """Return the distributions ``names``, and those that they require here."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            requirements = [Requirement(text) for text in metadata.requires(name) or []]
            waiting += [each.name for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]
    return found


def main() -> None:
    """Prepare a folder from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.prepare")
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, choices=scenarios.BATCHES, required=True)
    options = parser.parse_args()
    prepare(options.batch, options.folder)
    add_environment(options.folder)


if __name__ == "__main__":
    main()

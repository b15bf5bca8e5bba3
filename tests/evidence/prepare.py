"""Make the folder in which an author works: python -m tests.evidence.prepare --batch N FOLDER

It has a copy of the product, the tickets of the batch and the brief, in a repository with one commit.
"""

import argparse
import os
import re
import shutil
import subprocess

from tests.evidence import scenarios
from tests.evidence.run import PRODUCT

BRIEF = os.path.join(os.path.dirname(__file__), "brief.md")
_IGNORED = "__pycache__/\n.pytest_cache/\ninstance/\n*.db\n"


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


def main() -> None:
    """Prepare a folder from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.prepare")
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, choices=scenarios.BATCHES, required=True)
    options = parser.parse_args()
    prepare(options.batch, options.folder)


if __name__ == "__main__":
    main()

"""The exported site in a browser: no serious finding of axe, every control within reach of the keyboard, search from
files, tabs by arrow keys, no page wider than its window, and no request over the network.

    python -m tests.site.run [--screenshots DIR]

It needs Chromium (`apt-get install chromium`); CHROMIUM names another program.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from tests.support import folders, packages

HERE = os.path.dirname(os.path.abspath(__file__))
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = [  # one of each kind, and the patterns with the longest tables, code and names
    "index.html",
    "stacks.html",
    "mappings.html",
    "stack/django.html",
    "mapping/top10.html",
    "mapping/asvs.html",
    "pattern/tmkb-auth-004.html",
    "pattern/tmkb-auth-007.html",
    "pattern/tmkb-auth-042.html",
]
LONGEST = 900  # seconds


def browser():
    """The path of Chromium."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def export(folder, seed):
    """Write the site with an order of hashes of its own, and return its folder."""
    command = [sys.executable, "-m", "tmkb", "export", "site", "-o", folder]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL, check=True)
    return folder


def main():
    """Print each fault; 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--screenshots", metavar="DIR", help="write a picture of each page at each width")
    arguments = parser.parse_args()
    if (chromium := browser()) is None:
        print("Chromium is missing: apt-get install chromium")
        return 1
    place = packages.for_node(HERE)
    shutil.copy(os.path.join(HERE, "browser.mjs"), place)  # next to the packages that it imports
    with tempfile.TemporaryDirectory() as folder:
        site, again = (export(os.path.join(folder, seed), seed) for seed in "12")
        if difference := folders.first_difference(site, again):
            print(f"{difference} differs between two exports")
            return 1
        job = {"site": site, "browser": chromium, "pages": PAGES, "screenshots": arguments.screenshots or ""}
        command = [packages.node(), "browser.mjs", json.dumps(job)]
        done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, text=True, timeout=LONGEST, check=False)
    print(done.stdout, end="")
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())

"""Runs README's shell blocks as a reader of a fresh machine would: Python and pip, in a folder with spaces.

    python -m tests.fresh.run [FOLDER]

The files that git tracks are copied to a new folder: a temporary one, or FOLDER, which is kept. The environment holds
only a PATH with everyday programs, a new HOME and TMPDIR, and pip's configuration. Optional system libraries,
PostgreSQL, git and Node cannot be found.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARIES = "libhivex.so.0", "libsystemd.so.0"  # optional; the tests must pass without them
EVERYDAY = (
    "[ basename bash cat chmod cmp cp cut date diff dirname echo env expr false find grep gzip head id ln ls mkdir mkfifo"
    " mktemp mv nproc printf pwd readlink realpath rm rmdir sed sh sleep sort stat tail tar tee test timeout touch tr"
    " true uname uniq wc xargs"
)
# What configures pip and its connections, and where tests write what servers send.
KEPT = r"PIP_\w+|(https?|no|all)_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|EMITTED"
PIP = ".config/pip/pip.conf", ".pip/pip.conf", "Library/Application Support/pip/pip.conf"


def main(words):
    """Run the blocks in the folder that ``words`` name, or in a temporary one; return the exit status."""
    if words:
        os.makedirs(words[0])
        return run(os.path.abspath(words[0]))
    with tempfile.TemporaryDirectory(prefix="fresh ") as folder:
        return run(folder)


def run(folder):
    """Run the blocks in a checkout below ``folder``; return 1 if one fails."""
    checkout, environment = os.path.join(folder, "a checkout"), prepared(folder)
    copy(checkout)
    for number, block in enumerate(blocks(), 1):
        print(f"== README, block {number}, on a fresh machine", flush=True)
        status = subprocess.run(["sh", "-euc", block], cwd=checkout, env=environment, check=False).returncode
        if status:
            print(f"README's block {number} fails with exit status {status}: {block.strip()}")
            return 1
    return 0


def blocks():
    """Return README's shell blocks."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.findall(r"^```sh\n(.*?)^```$", file.read(), re.M | re.S)


def copy(target):
    """Copy the files that git tracks, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        if os.path.lexists(source := os.path.join(ROOT, name)):
            place = os.path.join(target, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy2(source, place, follow_symlinks=False)


def prepared(folder):
    """Make the folders of a fresh machine in ``folder``; return its environment."""
    programs, libraries, home, scratch = (os.path.join(folder, name) for name in ("bin", "lib", "home", "t m p"))
    for each in (programs, libraries, home, scratch):
        os.mkdir(each)
    for name in EVERYDAY.split():
        if found := shutil.which(name, path=os.defpath):
            os.symlink(found, os.path.join(programs, name))
    python = os.path.join(programs, "python3")  # not a link: Python would look for its library beside it
    with open(python, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" "$@"\n')
    os.chmod(python, stat.S_IRWXU)
    for name in LIBRARIES:
        open(os.path.join(libraries, name), "wb").close()  # an empty file: the loader takes it for broken
    for name in PIP:
        if os.path.isfile(source := os.path.expanduser(f"~/{name}")):
            os.makedirs(os.path.dirname(os.path.join(home, name)), exist_ok=True)
            shutil.copy(source, os.path.join(home, name))
    kept = {key: value for key, value in os.environ.items() if re.fullmatch(KEPT, key, re.I)}
    own = {"PATH": programs, "LD_LIBRARY_PATH": libraries, "HOME": home, "TMPDIR": scratch, "POSTGRESQL_PROGRAMS": ""}
    return kept | own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

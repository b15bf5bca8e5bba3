"""The exported skill with the reference library of its format: no fault, and equal exports.

python -m tests.skill.run
"""

import os
import subprocess
import sys
import tempfile

from tests.support import folders, packages
from tmkb.publishing import skill

LIBRARY = "skills-ref==0.1.1"


def export(folder, seed):
    """Write the skill with an order of hashes of its own, and return its folder."""
    command = [sys.executable, "-m", "tmkb", "export", "skill", "-o", folder]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL, check=True)
    return os.path.join(folder, skill.FOLDER)


def main():
    """Print what the library says; 1 where there is a fault."""
    validator = os.path.join(packages.environment("skills", LIBRARY), packages.BINARIES, "agentskills")
    with tempfile.TemporaryDirectory() as place:
        one, other = (export(os.path.join(place, seed), seed) for seed in "12")
        if difference := folders.first_difference(one, other):
            print(f"{difference} differs between two exports")
            return 1
        return subprocess.run([validator, "validate", one], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

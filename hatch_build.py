"""Build hook: write the JSON Schemas for editors to `schemas/editor`, and add to the wheel what is served of patterns.

The source distribution has everything.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EXPORT = "from tmkb.schema import export; from tmkb.server import sources; export.write(export.EDITOR, sources.names())"
LEFT_OUT = (
    "patterns/tmkb_*/wrong/*",  # read by `tmkb prove`
    *("patterns/tmkb_*/questions.yaml", "patterns/_questions/*.yaml"),  # read by `tmkb train`
    "patterns/tmkb_*/scenario.*",  # read by tests
    "*.pyc",
)


class Data(BuildHookInterface):
    """Completes the data of the wheel, with the code of the checkout, before hatchling collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the schemas and add the patterns. Raises CalledProcessError if the export fails."""
        subprocess.run([sys.executable, "-c", EXPORT], cwd=self.root, check=True)
        if version == "editable":  # patterns are read in the checkout
            return
        root = Path(self.root)
        for file in sorted((root / "patterns").rglob("*")):
            name = file.relative_to(root)
            if file.is_file() and not any(map(name.match, LEFT_OUT)):
                suffix = (
                    ".txt" if name.match("patterns/tmkb_*/*.py") or name.match("patterns/tmkb_*/idioms/*.py") else ""
                )  # pip compiles files called .py
                build_data["force_include"][str(file)] = f"tmkb/_data/{name.as_posix()}{suffix}"

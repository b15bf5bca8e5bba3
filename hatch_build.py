"""Build hook: write the JSON Schemas for editors to `schemas/editor`, and add the patterns to the wheel.

The wheel has the trained model and leaves out the example questions, which only `tmkb train` reads. The source
distribution has them.
"""

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

QUESTIONS = ("questions.yaml", "negatives.yaml")
EXPORT = "from tmkb.schema import export; from tmkb.server import sources; export.write(export.EDITOR, sources.names())"


class EditorSchemas(BuildHookInterface):
    """Exports the schemas with the code of the checkout, before hatchling collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the schemas, and list the patterns. Raises CalledProcessError if the export fails."""
        subprocess.run([sys.executable, "-c", EXPORT], cwd=self.root, check=True)
        for folder, folders, names in os.walk(os.path.join(self.root, "patterns")):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                if name not in QUESTIONS:
                    path = os.path.join(folder, name)
                    build_data["force_include"][path] = os.path.join("tmkb/_data", os.path.relpath(path, self.root))

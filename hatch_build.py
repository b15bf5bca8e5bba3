"""Build hook: write the JSON Schemas for editors to `schemas/editor`, for the wheel and for editable installs."""

import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EXPORT = "from tmkb.schema import export; from tmkb.server import sources; export.write(export.EDITOR, sources.names())"


class EditorSchemas(BuildHookInterface):
    """Exports the schemas with the code of the checkout, before hatchling collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files. Raises CalledProcessError if the export fails."""
        subprocess.run([sys.executable, "-c", EXPORT], cwd=self.root, check=True)

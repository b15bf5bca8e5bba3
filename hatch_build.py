"""Build hook: write the JSON Schemas for editors to `schemas/editor`, and add the data that the wheel needs.

Patterns and transcripts are packed: `tmkb.schema.packed` reads their files from one compressed file for each of the two
folders. The source distribution has everything, unpacked.
"""

import fnmatch
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EXPORT = "from tmkb.schema import export; from tmkb.server import sources; export.write(export.EDITOR, sources.names())"
LEFT_OUT = (
    "patterns/tmkb_*/wrong/*",  # read by `tmkb prove`
    *("patterns/tmkb_*/questions.yaml", "patterns/_questions/*.yaml"),  # read by `tmkb train`
    "patterns/tmkb_*/scenario.*",  # read by tests
    *("conformance/requirements.yaml", "conformance/README.md"),  # read by tests
    "*.pyc",
)
PACKED = ("patterns/tmkb_*", "patterns/_template/*", "patterns/_proven.yaml", "conformance/*.yaml")
NOT_PACKED = ("conformance/*.schema.yaml", "*/fixtures/*")  # are opened by path
MODELS = ("patterns/_questions/model.bin", "patterns/_questions/review.bin")


class Data(BuildHookInterface):
    """Completes the data of the wheel, with the code of the checkout, before hatchling collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the schemas and add the data. Raises CalledProcessError if the export fails."""
        subprocess.run([sys.executable, "-c", EXPORT], cwd=self.root, check=True)
        if version == "editable":  # data is read in the checkout
            return
        self._folder = tempfile.TemporaryDirectory()
        for name, content in sorted(self._contents().items()):
            file = Path(self._folder.name, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            build_data["force_include"][str(file)] = f"tmkb/_data/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary files."""
        if version != "editable":
            self._folder.cleanup()

    def _contents(self) -> dict[str, bytes]:
        """Return the files of patterns and transcripts as the wheel has them, by path."""
        sys.path.insert(0, self.root)
        from tmkb.schema import packed

        contents: dict[str, bytes] = {}
        for top in ("patterns", "conformance"):
            files = {name: Path(self.root, name).read_bytes() for name in self._names(top)}
            together = [name for name in files if _matches(name, PACKED) and not _matches(name, NOT_PACKED)]
            inside = {name.removeprefix(f"{top}/"): files.pop(name) for name in together}
            contents |= files | {f"{top}/{packed.NAME}": packed.pack(inside)}
        return contents | {name: _compressed(contents[name]) for name in MODELS}

    def _names(self, top: str) -> list[str]:
        """Return the paths of the files below the folder ``top`` that the wheel has, with ``/``."""
        files = sorted(file for file in Path(self.root, top).rglob("*") if file.is_file())
        names = [file.relative_to(self.root).as_posix() for file in files]
        return [name for name in names if not _matches(name, LEFT_OUT)]


def _compressed(model: bytes) -> bytes:
    """Return a model compressed. Its bytes are small numbers and rarely repeat, which is what Z_FILTERED is for."""
    compressor = zlib.compressobj(9, strategy=zlib.Z_FILTERED)
    return compressor.compress(model if model.startswith(b"{") else zlib.decompress(model)) + compressor.flush()


def _matches(name: str, forms: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, form) for form in forms)  # a `*` also matches a slash

"""``tmkb cache``: show or clear the startup cache."""

from __future__ import annotations

import argparse
import contextlib
import os

from tmkb.cli import output
from tmkb.server import cache


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--clear", action="store_true", help="delete every file of the cache")
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the folder and its files, or delete them."""
    files = cache.files()
    if args.clear:
        for file in files:
            with contextlib.suppress(FileNotFoundError):  # another process deleted it
                os.remove(file)
        output.write(args, {"folder": cache.folder(), "deleted": len(files)}, f"{len(files)} files deleted.")
        return 0
    rows = [(os.path.basename(file), f"{os.path.getsize(file)} bytes") for file in files]
    values = [{"file": file, "bytes": os.path.getsize(file)} for file in files]
    output.write(args, {"folder": cache.folder(), "files": values}, f"{cache.folder()}: {len(files)} files")
    if rows and not args.json:
        output.write(args, None, output.table(["file", "size"], rows))
    return 0

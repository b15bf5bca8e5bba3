"""``tmkb version``: print the version."""

from __future__ import annotations

import argparse

from tmkb import __version__
from tmkb.cli import output


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the version."""
    output.write(args, {"version": __version__}, f"tmkb {__version__}")
    return 0

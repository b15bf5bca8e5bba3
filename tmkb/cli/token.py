"""``tmkb token``: generate a bearer token for a server over HTTP, and its digest for --auth-tokens."""

from __future__ import annotations

import argparse
import hashlib
import secrets

from tmkb.cli import output


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print token and digest; neither is stored."""
    token = secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode("ascii")).hexdigest()
    text = f"{token}\n\nThe client sends:       Authorization: Bearer {token}\nInto --auth-tokens FILE:  {digest}"
    output.write(args, {"token": token, "digest": digest}, text)
    return 0

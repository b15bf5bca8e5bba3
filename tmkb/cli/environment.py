"""Secrets in environment variables, which are not in the list of processes as options are."""

from __future__ import annotations

import os

from tmkb.errors import Problem, SpecError

_SHORTEST = 32  # characters


def state_keys() -> list[bytes]:
    """Return the keys for request states, which several servers can share. The first signs. Raises SpecError."""
    variable, text = "TMKB_STATE_KEY", os.environ.get("TMKB_STATE_KEY", "")
    file = os.environ.get("TMKB_STATE_KEY_FILE")
    if file and not text:
        variable = file
        try:
            with open(file, encoding="utf-8", errors="surrogateescape") as lines:
                text = lines.read()
        except OSError as error:
            raise SpecError([Problem("unreadable", file, reason=error.strerror)]) from error
    keys = [key.strip() for key in text.replace("\n", ",").split(",") if key.strip()]
    return [_checked(key, variable).encode("utf-8", "surrogateescape") for key in keys or [""] * bool(file)]


def secret(variable: str) -> str | None:
    """Return the secret in an environment variable; None if there is none. Raises SpecError if it can be guessed."""
    value = os.environ.get(variable)
    return _checked(value, variable) if value else None


def _checked(value: str, place: str) -> str:
    if len(value) < _SHORTEST:
        raise SpecError([Problem.of_argument("weak_key", place, count=len(value), least=_SHORTEST)])
    return value

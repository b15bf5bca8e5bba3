"""Write comments as annotations: workflow commands that GitHub Actions shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmkb.review import sarif
from tmkb.review.judge import Comment

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}  # of SARIF → of GitHub
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def annotation(comment: Comment, pattern: Mapping[str, Any]) -> str:
    """Return the workflow command for ``comment``. ``pattern``: its name and severity."""
    cells = {"file": comment.path, "line": comment.line, "title": f"{comment.pattern} {pattern['name']}"}
    properties = ",".join(
        f"{key}={_escaped(str(value), {**_ESCAPES, ':': '%3A', ',': '%2C'})}" for key, value in cells.items()
    )
    level = _LEVELS[sarif.LEVELS[pattern["severity"]]]
    return f"::{level} {properties}::{_escaped(sarif.message(comment), _ESCAPES)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return text.translate({ord(character): escape for character, escape in escapes.items()})

"""Write comments as SARIF 2.1.0 (OASIS standard), which code hosts show beside the changed lines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tmkb import __version__
from tmkb.review.judge import Comment

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"critical": "error", "high": "warning", "medium": "warning", "low": "note"}
_SCORES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0"}  # GitHub's property security-severity


def log(comments: Sequence[Comment], patterns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a SARIF log.

    Args:
        comments: what is reported.
        patterns: id → name, severity and CWE of each pattern in ``comments``.
    """
    ids = sorted({comment.pattern for comment in comments})
    advice = {comment.pattern: comment.advice["patterns"][0] for comment in comments}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tmkb",
                        "semanticVersion": __version__,
                        "rules": [_rule(id_, patterns[id_], advice[id_]) for id_ in ids],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, ids.index(each.pattern), patterns[each.pattern]) for each in comments],
            }
        ],
    }


def _rule(id_: str, pattern: Mapping[str, Any], advice: Mapping[str, str]) -> dict[str, Any]:
    cwe = [f"external/cwe/{name.lower()}" for name in pattern["cwe"]]
    return {
        "id": id_,
        "name": pattern["name"],
        "shortDescription": {"text": pattern["name"]},
        "fullDescription": {"text": advice["threat"]},
        "help": {"text": f"{advice['check']} {advice['principle']}"},
        "defaultConfiguration": {"level": LEVELS[pattern["severity"]]},
        "properties": {"security-severity": _SCORES[pattern["severity"]], "tags": ["security", *cwe]},
    }


def _result(comment: Comment, rule: int, pattern: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": comment.pattern,
        "ruleIndex": rule,
        "level": LEVELS[pattern["severity"]],
        "message": {"text": message(comment)},
        "locations": [_location(comment.path, comment.line)],
        "relatedLocations": [_location(comment.path, line) for line in comment.lines if line != comment.line],
        "partialFingerprints": {"tmkb/v1": comment.fingerprint},
        **({} if comment.probability is None else {"rank": round(comment.probability * 100, 1)}),
    }


def _location(path: str, line: int) -> dict[str, Any]:
    is_below = not os.path.isabs(path)
    base = {"uriBaseId": "%SRCROOT%"} if is_below else {}
    uri = quote(path) if is_below else f"file://{quote(path)}"
    return {"physicalLocation": {"artifactLocation": {"uri": uri, **base}, "region": {"startLine": line}}}


def message(comment: Comment) -> str:
    """Return what a comment says in one paragraph: the reason if there is one, threat, check and principle."""
    texts = comment.advice["patterns"][0]
    reason = f"{comment.reason} Who: {comment.who} Threat: " if comment.reason else ""
    return f"{reason}{texts['threat']} Check: {texts['check']} {texts['principle']}"

"""The text of a pattern that is compared with questions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.knowledge.pattern import Pattern


def of(pattern: Pattern) -> str:
    """Return what ``pattern`` says about itself."""
    parts = [pattern["name"], pattern["description"], *pattern["agent_summary"].values(), *pattern["steps"]]
    parts += [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", []), pattern["category"]]
    return "\n".join([*parts, *pattern.get("blind_spots", [])])

"""What a proof imports: `outcome`, and types for annotations. `runner` runs proofs; serving imports none of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

Example = ModuleType  # an executed example file; a proof cannot tell which version it is


@dataclass(frozen=True, slots=True)
class Outcome:
    """The observed outcome of an attack."""

    gained: bool
    refused: bool
    evidence: str


def outcome(*, gained: bool, refused: bool, evidence: object = "") -> Outcome:
    """Return the outcome of an attack. Observe both separately: a crash or an empty page is neither."""
    return Outcome(bool(gained), bool(refused), " ".join(str(evidence).split())[:200])

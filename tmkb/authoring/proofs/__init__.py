"""What a proof file imports: `outcome`, and the types it names. `runner` runs proofs; serving imports none of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

Example = ModuleType  # an example file, executed; a proof is not told which version it was handed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack came to, as far as it could be observed."""

    gained: bool
    refused: bool
    evidence: str


def outcome(*, gained: bool, refused: bool, evidence: object = "") -> Outcome:
    """The outcome of an attack. ``gained`` and ``refused`` are observed apart: a crash or an empty page is neither."""
    return Outcome(bool(gained), bool(refused), " ".join(str(evidence).split())[:200])

"""The scenarios: a ticket and its attacks in the folder of each pattern that has them."""

import os

from tmkb.knowledge.attacks import Attacks
from tmkb.schema import paths

BATCHES = {
    1: ["001", "003", "010", "012", "013", "014", "017", "025", "033", "039"],
    2: ["018", "024", "028", "032", "036", "037", "047", "049", "050", "052"],
}
ALL = [number for batch in BATCHES.values() for number in batch]


def ticket(number: str) -> str:
    """Return the path of the ticket that authors get."""
    return os.path.join(_folder(number), "scenario.md")


def attacks(number: str) -> Attacks:
    """Return the legitimate uses and the attacks of a scenario."""
    with open(os.path.join(_folder(number), "scenario.yaml"), encoding="utf-8") as file:
        return Attacks.parse(file.read())


def _folder(number: str) -> str:
    return os.path.join(paths.PATTERNS, f"tmkb_auth_{number}")

"""Play scenarios on the product in a folder: python -m tests.evidence.worker FOLDER FILE SCENARIO…

Writes to FILE, as JSON: scenario → case → what it came to and the evidence. Each case has a process of its own, which
a crash or an endless loop ends without harm to the others.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable

from tests.evidence import scenarios
from tmkb.authoring import play
from tmkb.knowledge.attacks import Attacks

TIMEOUT = 30  # seconds for one case
CRASHED = "crashed"

Verdict = tuple[str, str]


def main(folder: str, file: str, numbers: list[str]) -> None:
    """Play the scenarios with these ``numbers`` and write their verdicts."""
    sys.path.insert(0, folder)
    processes = multiprocessing.get_context("fork")
    found = {number: scenarios.attacks(number) for number in numbers}
    problem = _imported()
    verdicts: dict[str, dict[str, Verdict]] = {}
    for number, attacks in found.items():
        verdicts[number] = {
            case.name: (CRASHED, problem) if problem else _isolated(processes, _played, attacks, case.name)
            for case in attacks.cases
        }
    with open(file, "w", encoding="utf-8") as stream:
        json.dump(verdicts, stream)


def _imported() -> str:
    """Load the product, which every case then shares; return why it cannot be loaded."""
    try:
        from tests.evidence import target  # noqa: F401
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _played(attacks: Attacks, name: str) -> Verdict:
    from tests.evidence import target  # the folder is on the path now

    product = target.Product()
    try:
        verdict = play.play(attacks.case(name), product, play.prepare(attacks.setup, product))
    except play.StepError as error:
        return play.FAILED, str(error)
    return verdict.status, verdict.detail


def _isolated(
    processes: multiprocessing.context.ForkContext, function: Callable[..., Verdict], *args: object
) -> Verdict:
    with processes.Pool(1) as pool:
        try:
            return pool.apply_async(function, args).get(TIMEOUT)
        except Exception as error:  # of the author's code, or the time is up
            return CRASHED, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

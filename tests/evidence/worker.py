"""Play scenarios on the product in a folder: python -m tests.evidence.worker FOLDER FILE SCENARIO…

Writes to FILE, as JSON: scenario → case → what it came to and the evidence. Each case has a process of its own, which
a crash or an endless loop ends without harm to the others. The database is in memory, so each process has its own copy.
"""

import json
import multiprocessing
import sys
from multiprocessing.connection import Connection

from tests.evidence import scenarios
from tmkb.authoring import play
from tmkb.authoring.play import Target
from tmkb.knowledge.attacks import Attacks

TIMEOUT = 30  # seconds for one case
CRASHED = "crashed"

Verdict = tuple[str, str]
_processes = multiprocessing.get_context("fork")


def main(folder: str, file: str, numbers: list[str]) -> None:
    """Play the scenarios with these ``numbers`` and write their verdicts."""
    sys.path.insert(0, folder)
    product, problem = _started()
    verdicts: dict[str, dict[str, Verdict]] = {}
    for number in numbers:
        attacks = scenarios.attacks(number)
        verdicts[number] = {
            case.name: _isolated(attacks, case.name, product) if product else (CRASHED, problem)
            for case in attacks.cases
        }
    with open(file, "w", encoding="utf-8") as stream:
        json.dump(verdicts, stream)


def _started() -> tuple[Target | None, str]:
    """Return the product, or None and why it does not start."""
    try:
        from tests.evidence import target  # imports the product

        return target.Product(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _isolated(attacks: Attacks, name: str, product: Target) -> Verdict:
    """Play a case in a process of its own."""
    receiver, sender = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_play, args=(attacks, name, product, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(TIMEOUT) else (CRASHED, "time is up")
    except EOFError:
        return CRASHED, "the process has ended"
    finally:
        process.kill()
        process.join()


def _play(attacks: Attacks, name: str, product: Target, sender: Connection) -> None:
    try:
        verdict = play.play(attacks.case(name), product, play.prepare(attacks.setup, product))
        sender.send((verdict.status, verdict.detail))
    except play.StepError as error:
        sender.send((play.FAILED, str(error)))
    except Exception as error:  # of the author's code
        sender.send((CRASHED, f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

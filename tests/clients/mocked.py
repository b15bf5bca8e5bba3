"""The official clients cannot tell ``tmkb mock`` from the server that was recorded.

    python -m tests.clients.mocked

Each client prints every result of the server everything (``results.py``, ``results.mjs``): with the server, and with
mocks of recordings. Each recording is played to the client that made it, to the other client, over the other transport
and in the other era of the protocol. What only the server knows is not compared there: how long a result may be cached,
and the metadata of results.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile

from tests.support import packages
from tests.support.process import SERVE, HttpServer

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TMKB = [sys.executable, "-m", "tmkb"]
SERVER = [*SERVE, "--server", "everything"]
LANGUAGES, MODES, TRANSPORTS = ("python", "typescript"), ("legacy", "auto"), ("stdio", "http")
OF_SERVER = ("_meta", "ttlMs", "cacheScope", "resultType")


def client(language):
    """The command of a client, without its mode."""
    if language == "python":
        return [sys.executable, os.path.join(HERE, "results.py")]
    return ["node", os.path.join(HERE, "results.mjs"), packages.for_node(HERE)]


def printed(language, mode, server):
    """What a client prints: the name of each request, and its result."""
    environment = {**packages.with_node(os.environ), "PYTHONPATH": ROOT}
    done = subprocess.run(
        [*client(language), mode, *server], env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    lines = [line.partition(" {") for line in done.stdout.splitlines()]
    results = [(name, json.loads(f"{{{rest}") if found else None) for name, found, rest in lines]
    return results, done.stderr


@contextlib.contextmanager
def mocked(recording, transport):
    """The words that tell a client how to reach a mock."""
    command = [*TMKB, "mock", recording]
    if transport == "stdio":
        yield command
        return
    with HttpServer(command=command) as server:
        yield [server.address]


def comparable(results, same_era):
    """Results without what differs between eras."""
    if same_era:
        return results
    kept = {name: {k: v for k, v in (value or {}).items() if k not in OF_SERVER} for name, value in results}
    return [(name, value) for name, value in kept.items() if not name.startswith("speaks")]


def main():
    """Record and play; 1 if a client notices a difference."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        expected, recordings = {}, {}
        for language, mode in itertools.product(LANGUAGES, MODES):
            recordings[language, mode] = place = os.path.join(folder, f"{language}-{mode}")
            os.mkdir(place)
            expected[language, mode], _ = printed(language, mode, SERVER)
            printed(
                language, mode, [*TMKB, "record", "-o", os.path.join(place, "session.transcript.yaml"), "--", *SERVER]
            )
        for recorded, playing, transport in itertools.product(recordings, expected, TRANSPORTS):
            with mocked(recordings[recorded], transport) as server:
                results, stderr = printed(*playing, server)
            same_era = recorded[1] == playing[1]
            wanted, actual = (comparable(each, same_era) for each in (expected[playing], results))
            failed += wanted != actual
            print(
                f"{' '.join(recorded):18} → {' '.join(playing):18} {transport:5} {'ok' if wanted == actual else 'DIFFERENT'}"
            )
            if wanted != actual:
                differing = [pair for pair in itertools.zip_longest(wanted, actual) if pair[0] != pair[1]]
                print(f"    expected {str(differing[0][0])[:700]}\n    got      {str(differing[0][1])[:700]}")
                print("    " + "\n    ".join(stderr.splitlines()[-5:]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

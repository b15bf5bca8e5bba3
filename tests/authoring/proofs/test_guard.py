"""`guard.fork`: what a signal does meanwhile."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]

START = """
import os, signal, sys
from tmkb.authoring.proofs import guard

def interrupt():
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
"""


def run(code):
    program = START + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def test_sigterm_during_a_fork_ends_the_process_after_it():
    """A function that runs after a fork would report and lose the exception of the handler."""
    code = """
        os.register_at_fork(after_in_parent=interrupt)
        if not guard.fork():
            os._exit(0)
        print("went on")
    """

    assert run(code) == (3, "", "")


def test_sigterm_ends_a_new_child_at_once():
    code = """
        os.register_at_fork(after_in_child=interrupt)
        if pid := guard.fork():
            print(os.waitpid(pid, 0)[1])
        else:
            print("went on")
    """

    assert run(code) == (0, "15\n", "")

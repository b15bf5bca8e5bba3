"""``python -m tmkb.authoring.stacks.worker``: play the cases of one application. One JSON request in, one line a case.

A request has ``stack``, ``file`` and ``source`` of the application, ``attacks`` (the value of an attacks.yaml),
``cases`` (names) and ``timeout`` (seconds). Each case runs in a process that is forked from this one. Where there is no
fork, a request has one case. The current folder is temporary, and the process is guarded as a proof is. An Express
application runs in a Node process, which Node itself guards.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from types import ModuleType
from typing import Any

from tmkb.authoring import play
from tmkb.authoring.proofs import guard
from tmkb.authoring.stacks.stage import described
from tmkb.knowledge.attacks import Attacks

Request = dict[str, Any]
Answer = dict[str, str]  # status, detail

UNPLAYED = "not played"


def main() -> None:
    """Answer the request on standard input."""
    request = json.loads(sys.stdin.read())
    write = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    application = _Application(request)
    for name in request["cases"]:
        os.write(write, json.dumps(application.answer(name)).encode() + b"\n")


class _Application:
    """The executed application of one stack."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.attacks = Attacks(request["attacks"])
        self.failure: Answer | None = None
        self.stack = importlib.import_module(f"tmkb.authoring.stacks.{request['stack']}")
        if request["stack"] != "express":
            guard.install(os.getcwd(), {})
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, request["timeout"])
        try:
            self.app = self._execute()
        except Exception as error:
            self.failure = _error(error)
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _stop(self, *_: object) -> None:
        raise TimeoutError(self._late())

    def _late(self) -> str:
        return f"no answer within {self.request['timeout']} s"

    def _execute(self) -> ModuleType | str:
        """Execute the application if it is in Python; return its source otherwise."""
        if self.request["stack"] == "express":
            return str(self.request["source"])
        module = ModuleType("app")
        sys.modules["app"] = module
        module.__file__ = self.request["file"]
        exec(compile(self.request["source"], self.request["file"], "exec"), module.__dict__)
        return module

    def answer(self, name: str) -> Answer:
        """Play the case ``name`` with new data."""
        if self.failure is not None:
            return self.failure
        if isinstance(self.app, str) or not hasattr(os, "fork"):
            return self._played(name)
        read, write = os.pipe()
        pid = guard.fork()
        if not pid:
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
                signal.setitimer(signal.ITIMER_REAL, self.request["timeout"])
                os.write(write, json.dumps(self._played(name)).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            data = pipe.read()
        status = os.waitpid(pid, 0)[1]
        if not data:
            late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            return {"status": "error", "detail": self._late() if late else "the process died"}
        answer: Answer = json.loads(data)
        return answer

    def _played(self, name: str) -> Answer:
        case = self.attacks.case(name)
        if case.services:
            return {"status": UNPLAYED, "detail": f"needs {', '.join(case.services)}"}
        try:
            target = self.stack.Stage(self.app, self.attacks.config)
            verdict = play.play(case, target, play.prepare(self.attacks.setup, target))
            crashes = [] if verdict.status in (play.SERVED, play.REFUSED) else target.crashes
            return {"status": verdict.status, "detail": "; ".join([verdict.detail, *crashes])}
        except play.StepError as error:
            return {"status": play.FAILED, "detail": "; ".join([str(error), *target.crashes])}
        except NotImplementedError as error:
            return {"status": UNPLAYED, "detail": f"the stage does not offer {error}"}
        except Exception as error:
            return _error(error)


def _error(error: Exception) -> Answer:
    return {"status": "error", "detail": described(error)}


if __name__ == "__main__":
    main()

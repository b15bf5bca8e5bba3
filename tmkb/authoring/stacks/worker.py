"""``python -m tmkb.authoring.stacks.worker STACK``: play the cases of applications of one stack.

One JSON request per line in. One JSON line per case out, and an empty line after the last.

A request has ``stack``, ``file`` and ``source`` of the application, ``folder`` (empty and temporary), ``attacks`` (the
value of an attacks.yaml), ``cases`` (names) and ``timeout`` (seconds). This process imports the stack. From it one is
forked for each application, which is guarded as a proof is, creates the data and performs the steps before every case.
Each case runs in a process that is forked from that one. After it the database and the files are restored. Where there
is no fork, a request has one case, and this process ends after it. An Express application runs in a Node process, which
Node itself guards, and which begins each case with new data.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tmkb.authoring import play
from tmkb.authoring.process import DIED
from tmkb.authoring.proofs import guard, traces
from tmkb.authoring.stacks.stage import described
from tmkb.knowledge.attacks import Attacks

Request = dict[str, Any]
Answer = dict[str, str]  # status, detail

UNPLAYED = "not played"


def main() -> None:
    """Answer requests until the input ends."""
    name, write = sys.argv[1], os.dup(1)
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)

    def answer(value: Answer) -> None:
        os.write(write, json.dumps(value).encode() + b"\n")

    stack = importlib.import_module(f"tmkb.authoring.stacks.{name}")
    in_node = name == "express"
    forks = not in_node and sys.platform != "win32"
    gc.collect()
    gc.freeze()  # processes that collect would copy every page
    for line in requests:
        request = json.loads(line)
        if sys.platform != "win32" and forks and os.fork():
            os.wait()
        else:
            if not in_node:
                os.close(requests.fileno())
                os.chdir(request["folder"])
            try:
                _answer(_Application(request, stack, forks, in_node), answer)
            finally:
                if forks:
                    os._exit(0)  # threads of the application may never end
        os.write(write, b"\n")
        if not (forks or in_node):
            return


def _answer(application: _Application, answer: Callable[[Answer], None]) -> None:
    """Play the cases of an application."""
    request = application.request

    def give_up(*_: object) -> None:
        for _ in request["cases"]:
            answer(_late(request))
        os._exit(0)  # as above

    if sys.platform != "win32" and application.forks and application.failure is None:
        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, request["timeout"])
        application.prepare()
        signal.setitimer(signal.ITIMER_REAL, 0)
    for name in request["cases"]:
        answer(application.answer(name))


class _Application:
    """The executed application of one stack."""

    def __init__(self, request: Request, stack: ModuleType, forks: bool, in_node: bool) -> None:
        """``forks``: each case has a process of its own. ``in_node``: the application runs in a Node process."""
        self.request = request
        self.stack = stack
        self.forks = forks
        self.in_node = in_node
        self.attacks = Attacks(request["attacks"])
        self.failure: Answer | None = None
        if not in_node:
            guard.install(os.getcwd(), {})
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, request["timeout"])
        try:
            self.app = self._execute()
        except Exception as error:
            self.failure = _error(error)
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _stop(self, *_: object) -> None:
        raise TimeoutError(_late(self.request)["detail"])

    def _execute(self) -> ModuleType | str:
        """Execute the application if it is in Python; return its source otherwise."""
        if self.in_node:
            return str(self.request["source"])
        module = ModuleType("app")
        sys.modules["app"] = module
        module.__file__ = self.request["file"]
        exec(compile(self.request["source"], self.request["file"], "exec"), module.__dict__)
        return module

    def prepare(self) -> None:
        """Create the data and perform the steps before every case. What they raise is the result of every case."""
        self.error: Exception | None = None
        try:
            self.target = self.stack.Stage(self.app, self.attacks.config)
            self.values = play.prepare(self.attacks.setup, self.target)
        except Exception as error:
            self.error = error
        if self.forks:
            if self.error is None:
                self.target.save()
            self.files = traces.Files(os.getcwd())
            gc.collect()
            gc.freeze()  # processes that collect would copy every page

    def answer(self, name: str) -> Answer:
        """Play the case ``name``, which sees nothing of the cases before it."""
        if self.failure is not None:
            return self.failure
        if not self.forks:
            self.prepare()
            return self._played(name)
        answer = self._forked(name)
        self.files.restore()
        if self.error is None:
            self.target.restore()
        return answer

    def _forked(self, name: str) -> Answer:
        if sys.platform == "win32":
            raise NotImplementedError
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
            return _late(self.request) if late else DIED
        answer: Answer = json.loads(data)
        return answer

    def _played(self, name: str) -> Answer:
        case = self.attacks.case(name)
        if case.services:
            return {"status": UNPLAYED, "detail": f"needs {', '.join(case.services)}"}
        try:
            if self.error is not None:
                raise self.error
            verdict = play.play(case, self.target, self.values)
            crashes = [] if verdict.status in (play.SERVED, play.REFUSED) else self.target.crashes
            return {"status": verdict.status, "detail": "; ".join([verdict.detail, *crashes])}
        except play.StepError as error:
            return {"status": play.FAILED, "detail": "; ".join([str(error), *self.target.crashes])}
        except NotImplementedError as error:
            return {"status": UNPLAYED, "detail": f"the stage does not offer {error}"}
        except Exception as error:
            return _error(error)


def _late(request: Request) -> Answer:
    return {"status": "error", "detail": f"no answer within {request['timeout']} s"}


def _error(error: Exception) -> Answer:
    return {"status": "error", "detail": described(error)}


if __name__ == "__main__":
    main()

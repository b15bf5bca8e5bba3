"""``python -m tmkb.authoring.stacks.worker STACK``: play the cases of applications of one stack.

One JSON request per line in. One JSON line per case out, and an empty line after the last.

A request has ``stack``, ``file`` and ``source`` of the application, ``folder`` (empty and temporary), ``attacks`` (the
value of an attacks.yaml), ``cases`` (names), ``timeout`` (seconds) and ``separate`` (each case has a process of its
own). This process imports the stack. From it one is forked for each application, which is guarded as a proof is,
creates the data and performs the steps before every case. The cases run in a process that is forked from that one.
After each, it restores the database, the files, the clients, the clock, the queued jobs and what the application can
reach (`traces`). If it cannot do that, it ends, and the next case runs in a new process. So does a case with an
unexpected result that was not the first of its process: no failure rests on what other cases have left.

Where there is no fork, a request has one case, and this process ends after it. An Express application runs in a Node
process, which Node itself guards, and which begins each case with new data.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from tmkb.authoring import play
from tmkb.authoring.process import DIED
from tmkb.authoring.proofs import guard, traces
from tmkb.authoring.stacks.stage import described
from tmkb.knowledge.attacks import Attacks, Case

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

    stack = _imported(name)
    in_node = name == "express"
    forks = not in_node and sys.platform != "win32"
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


def _imported(name: str) -> ModuleType:
    """Import a stack, and prepare this process for forks."""
    stack = importlib.import_module(f"tmkb.authoring.stacks.{name}")
    if hasattr(stack, "warm") and sys.platform != "win32":
        with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder, contextlib.chdir(folder):
            stack.warm()
    gc.collect()
    gc.freeze()  # processes that collect would copy every page
    return stack


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
    for each in application.answers():
        answer(each)


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
            self.files = traces.Files(os.getcwd(), self.target.folder if self.error is None else "")
            gc.collect()
            gc.freeze()  # processes that collect would copy every page

    def answers(self) -> Iterator[Answer]:
        """Yield the answer to each case, which sees nothing of the cases before it."""
        names: list[str] = self.request["cases"]
        if self.failure is not None:
            yield from (self.failure for _ in names)
        elif not self.forks:
            for name in names:
                self.prepare()
                yield self._played(name)
        else:
            while names:
                answered = list(self._forked(names))
                yield from answered
                names = names[len(answered) :]

    def _forked(self, names: Sequence[str]) -> Iterator[Answer]:
        """Yield the answers of one process to the first cases, at least to one."""
        if sys.platform == "win32":
            raise NotImplementedError
        read, write = os.pipe()
        pid = guard.fork()
        if not pid:
            try:
                self._play(names, write)
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            *lines, _ = pipe.read().split(b"\n")  # the rest is a line that was not written to its end
        status = os.waitpid(pid, 0)[1]
        self._restore()
        yield from map(json.loads, lines)
        if not lines:
            late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            yield _late(self.request) if late else DIED

    def _play(self, names: Sequence[str], write: int) -> None:
        """Play cases until one leaves what cannot be restored, or has a result that others may have caused."""
        if sys.platform == "win32":
            raise NotImplementedError
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
        memory = before = None
        for number, name in enumerate(names):
            signal.setitimer(signal.ITIMER_REAL, self.request["timeout"])
            if self.error is None and not self.request["separate"]:
                memory = memory or self._memory()
                before = before or self.target.signature()
            answer = contextvars.copy_context().run(self._played, name)
            if number and answer["status"] not in (expected(self.attacks.case(name)), UNPLAYED):
                return
            os.write(write, json.dumps(answer).encode() + b"\n")
            if memory is None or not (self._restore() and memory.restore() and self.target.signature() == before):
                return

    def _memory(self) -> traces.Memory:
        assert isinstance(self.app, ModuleType)
        return traces.Memory([self.values, *self.target.roots()], [self.app])

    def _restore(self) -> bool:
        """Restore the data and the files; return True."""
        os.chdir(self.request["folder"])
        self.files.restore()
        if self.error is None:
            self.target.restore()
        return True

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


def expected(case: Case) -> str:
    """Return the status that ``case`` must have on an application that has no weakness."""
    return play.SERVED if case.allowed else play.REFUSED


def _late(request: Request) -> Answer:
    return {"status": "error", "detail": f"no answer within {request['timeout']} s"}


def _error(error: Exception) -> Answer:
    return {"status": "error", "detail": described(error)}


if __name__ == "__main__":
    main()

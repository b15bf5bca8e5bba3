"""``python -m tmkb.authoring.proofs.worker``: execute proofs. One JSON request per line in, one JSON answer per case.

A request has one version of the code and the cases to run on it. This process imports the libraries. From it one is
forked for each pattern, which executes the application that all versions share (`_Application`). From that one is
forked, which executes a version, mounts it, performs the steps before every case, and plays the cases. After each case
it restores the data, the clock, the files and the objects of the modules (`traces`). If it cannot do that, it ends, and
the next case runs in a new process. So no case sees the effects of another.

The process goes on with the next version if that has the same statements, apart from functions that were not called
before the first case (`reach`). Then its own execution would have come to the same state, and only its functions are
exchanged. If some were only called by the steps before every case, it first returns to the state before these steps,
and performs them again. Otherwise the process ends, and the next version is executed in a new one. Each function of a
proof.py has a process of its own.

Without fork (Windows), or with ``--spawn``, each case runs in a new interpreter. A request does not contain the name of
the version, so a proof cannot depend on it. `guard` limits what a proof can do.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import importlib
import itertools
import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tmkb.authoring import play
from tmkb.authoring.process import DIED
from tmkb.authoring.proofs import guard, reach, traces
from tmkb.knowledge.attacks import Attacks

if TYPE_CHECKING:
    from tmkb.authoring.proofs.stage import Saved, Stage  # needs the extra `proofs`

EXAMPLE = "example.py"  # the file name of every version; the runner restores the real one in reports

# app, app_file, source, proof, proof_file (texts and names; without a file they are empty), attacks (the value of an
# attacks.yaml, or none), cases (names), expected (case → status; the first other status ends the run; or none),
# services (service → address), timeout, number (of the worker), separate (each version is executed in its own process)
Request = dict[str, Any]
Answer = dict[str, Any]  # status, detail, seconds; reached: the functions of the version that a case has called

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # the folder for temporary ones; None for the usual one
_MAX_ANSWER = 1 << 20  # bytes
_MAX_AGE = 30.0  # seconds: what the steps before every case have made can expire
_PRELOADED = ("tmkb.authoring.proofs.stage", "flask_caching", "jwt", "graphql")
_CLIENTS = {
    "celery": ("celery.worker", "celery.concurrency.solo", "celery.backends.redis", "kombu.transport.redis"),
    "postgresql": ("sqlalchemy.dialects.postgresql.psycopg", "psycopg"),
    "redis": ("redis",),
}
FUNCTIONS = ("exploit_", "legitimate_")
_STATUS = {(True, False): "gained", (False, True): "refused", (True, True): "both", (False, False): "neither"}


def main() -> None:
    """Answer requests until the input ends."""
    if "--one" in sys.argv:
        request, write = json.loads(sys.stdin.read()), os.dup(1)
        _preload(request["services"])
        _enter(request)
        version = _Version(request)
        version.execute_application()
        version.execute()
        os.write(write, _line(version.run(request["cases"][0])))
        return
    forking = sys.platform != "win32" and "--spawn" not in sys.argv
    if forking:
        _preload({})
        if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
            stage.warm()
        gc.collect()
        gc.freeze()  # children that collect would copy every page
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it has started ends with it
    with contextlib.closing(_Applications()) as applications:
        for line in sys.stdin:
            request = json.loads(line)
            if forking:
                _preload(request["services"])
            for answer in _forked(request, applications) if forking else _spawned(request):
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
            sys.stdout.write("\n")
            sys.stdout.flush()


class _Version:
    """One version of the code, and the cases to run on it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.texts = {request["app_file"]: request["app"]}
        self.failure: Answer | None = None
        self.modules: list[ModuleType] = []
        self.example = self.proof = ModuleType("none")
        self.crashes: list[str] = []  # the exceptions behind responses of the current case with status 500
        self.opened = contextlib.ExitStack()  # the stage
        self.target: Stage | None = None
        self.mounted: _State | None = None  # the state before any step
        self.prepared: _State | None = None  # the state before every case
        if flask := sys.modules.get("flask"):
            flask.got_request_exception.connect(self._note_crash)

    def execute_application(self) -> None:
        """Execute the application, which is the same for all versions."""
        if self.request["app_file"]:
            self._execute("app", partial(_execute_source, self.request, "app"))

    def execute(self) -> None:
        """Execute the version, and then the proof."""
        self.texts |= {EXAMPLE: self.request["source"], self.request["proof_file"]: self.request["proof"]}
        self.example = self._execute("example", self._execute_version)
        if self.request["proof_file"]:
            self.proof = self._execute("proof", partial(_execute_source, self.request, "proof"))

    def _execute_version(self, module: ModuleType) -> None:
        self.execution = reach.Execution(reach.Version(self.request["source"]), module, EXAMPLE)
        self.execution.execute()

    def _execute(self, name: str, execute: Callable[[ModuleType], None]) -> ModuleType:
        """Execute a module unless one before it has failed."""
        module = ModuleType(name)
        if self.failure is None:
            sys.modules[name] = module
            self.modules.append(module)
            try:
                execute(module)
            except BaseException as error:
                self.failure = self._error(error)
        return module

    def become(self, request: Request) -> bool:
        """Go on with the version in ``request``; return False if it has to be executed in a new process."""
        if (
            request["separate"]
            or "celery" in request["services"]  # whose worker has functions of its own
            or any(request[key] != self.request[key] for key in ("proof", "attacks"))
            or request["cases"][0].startswith(FUNCTIONS)
        ):
            return False
        try:
            version = reach.Version(request["source"])
            fresh = self.prepared is not None and time.monotonic() - self.prepared.since < _MAX_AGE
            states = [self.prepared, self.mounted] if fresh else [self.mounted]
            state = next((each for each in states if each and each.starts.reader(version)("") is not None), None)
            if state is None or (state is self.mounted and not self._return(state)):
                return False
            if not self.execution.become(version):
                return False
        except Exception:  # it is raised again in a new process, as the result of all cases
            return False
        self.request = {**self.request, **request}
        self.texts[EXAMPLE] = request["source"]
        self.prepared = state if state is not self.mounted else None
        for each in filter(None, (self.mounted, self.prepared)):
            each.saved.states.clear()
            each.memory.adopt(self.example, self.execution.exchanged, self.execution.functions)
        return True

    def run(self, name: str) -> Answer:
        """Run one case from its beginning, and turn whatever it does into an answer."""
        return self._answer(self._function if name.startswith(FUNCTIONS) else self._case, name)

    def run_all(self) -> Iterator[Answer]:
        """Yield the answers to the first cases: as many as this process can run without an effect on the next one.

        Afterwards `prepared` is not None if the process is as before the first case.
        """
        names = list(itertools.takewhile(lambda name: not name.startswith(FUNCTIONS), self.request["cases"]))
        if not names:
            yield self.run(self.request["cases"][0])
            return
        attacks = Attacks(self.request["attacks"])
        failure = None if self.target else self._answer(lambda _: self._mount(attacks), "")
        if not failure and not (self.target and self.target.restorable):
            yield self.run(names[0])
            return
        if self.prepared is None:
            failure = failure or self._answer(lambda _: self._prepare(attacks), "")
        if failure:
            ends = (n for n, name in enumerate(names, 1) if _ends(self.request, name, failure))
            yield from itertools.repeat(failure, next(ends, len(names)))
            return
        yield from self._play(attacks, names)

    def _mount(self, attacks: Attacks) -> None:
        """Mount the version, and remember the state before any step."""
        from tmkb.authoring.proofs import stage

        stage.rehearse(self.example, **attacks.config)
        self.target = self.opened.enter_context(stage.stage(self.example, **attacks.config))
        if self.target.restorable:
            self.mounted = self._state({})

    def _prepare(self, attacks: Attacks) -> None:
        """Perform the steps before every case, and remember the state after them."""
        assert self.target is not None
        self.prepared = self._state(play.prepare(attacks.setup, self.target))

    def _state(self, values: dict[str, Any]) -> _State:
        """Remember the state of this process, in which steps have saved ``values``."""
        assert self.target is not None
        saved = self.target.save()
        starts = reach.results(self.request["app"], self.request["proof"], json.dumps(self.request["attacks"]))
        starts.add("", self.execution.version, self.execution.called(), {})
        files = traces.Files(os.getcwd(), self.target.folder)
        memory = traces.Memory([values, *self.target.roots()], self.modules)
        return _State(saved, values, os.getcwd(), files, self.target.signature(), reach.marks(), starts, memory)

    def _return(self, state: _State) -> bool:
        """Return to ``state``; return False if something has changed that cannot be undone."""
        assert self.target is not None
        os.chdir(state.folder)
        state.files.restore()
        reach.set_marks(state.marks)
        restored = self.target.restore(state.saved) and state.memory.restore()
        return restored and self.target.signature() == state.signature

    def _play(self, attacks: Attacks, names: Sequence[str]) -> Iterator[Answer]:
        """Yield the answers to cases until one leaves what cannot be restored, or ends the run."""
        assert self.prepared is not None and self.target is not None
        prepared, target = self.prepared, self.target

        def play_case(name: str) -> Answer:
            verdict = play.play(attacks.case(name), target, prepared.values)
            return {"status": verdict.status, "detail": verdict.detail, "reached": self.execution.reached()}

        for name in names:
            self.prepared = None
            yield (answer := contextvars.copy_context().run(self._answer, play_case, name))
            if not self._return(prepared):
                return
            self.prepared = prepared
            if _ends(self.request, name, answer):
                return

    def _answer(self, run: Callable[[str], Answer | None], name: str) -> Answer:
        """Return the answer of ``run``; an empty one for None."""
        if self.failure is not None:
            return self.failure
        self.crashes.clear()
        try:
            answer = run(name) or {}
        except play.StepError as error:
            return {"status": "failed", "detail": "; ".join([str(error), *self.crashes])}
        except AssertionError as error:
            return {"status": "failed", "detail": "; ".join([self._where(error), *self.crashes])}
        except BaseException as error:
            return self._error(error)
        if self.crashes and answer.get("status") in ("neither", "failed"):
            answer["detail"] = "; ".join([answer["detail"], *self.crashes])
        return answer

    def _function(self, name: str) -> Answer:
        from tmkb.authoring.proofs import Outcome

        result = getattr(self.proof, name)(self.example)
        if isinstance(result, Outcome):
            return {"status": _STATUS[result.gained, result.refused], "detail": result.evidence}
        if result is not None:
            return {"status": "error", "detail": f"returned {type(result).__name__}; return outcome(...) or nothing"}
        return {"status": "served", "detail": ""}

    def _case(self, name: str) -> Answer:
        from tmkb.authoring.proofs.stage import stage

        attacks = Attacks(self.request["attacks"])
        with stage(self.example, **attacks.config) as target:
            values = play.prepare(attacks.setup, target)
            verdict = play.play(attacks.case(name), target, values)
        return {"status": verdict.status, "detail": verdict.detail, "reached": self.execution.reached()}

    def _note_crash(self, _app: object, exception: BaseException, **_: object) -> None:
        self.crashes.append(f"{type(exception).__name__}: {exception} at {self._where(exception)}")

    def _error(self, error: BaseException) -> Answer:
        return {"status": "error", "detail": f"{type(error).__name__}: {error} at {self._where(error)}"}

    def _where(self, exception: BaseException) -> str:
        """Return the innermost line of the proof, the application or the example in the traceback."""
        places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(exception.__traceback__)]
        found = [(filename, line) for filename, line in places if filename in self.texts]
        if not found:
            return "?"
        filename, line = found[-1]
        text = self.texts[filename].splitlines()[line - 1].strip()
        return f"{os.path.basename(filename)}:{line}: {text}"


def _enter(request: Request) -> None:
    """Prepare this process to execute a proof: without standard streams, and guarded."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    logging.getLogger("app").addHandler(logging.NullHandler())  # else Flask formats tracebacks for standard error
    guard.install(os.getcwd(), request["services"])
    if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
        stage.use(request["services"], request["number"])
    gc.set_threshold(100_000)  # a run is too short for collecting to pay off


def _line(answer: Answer) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _forked(request: Request, applications: _Applications) -> Iterator[Answer]:
    """Yield the answer for each case. The cases that a process leaves run in a new one."""
    cases: list[str] = request["cases"]
    while cases:
        answered = 0
        for answer in applications.of(request).answers({**request, "cases": cases}):
            yield answer
            answered += 1
            if _ends(request, cases[answered - 1], answer):
                cases = cases[:answered]
        if not answered:
            yield {**_answer(b"", request), "seconds": 0.0}
        cases = cases[answered or 1 :]


class _Applications:
    """The processes that have executed the application of the current pattern: one for each set of services."""

    def __init__(self) -> None:
        self._application: tuple[str, str] | None = None
        self._running: dict[str, _Application] = {}

    def of(self, request: Request) -> _Application:
        """Return the process for ``request``, which is started if necessary."""
        if (application := (request["app"], request["app_file"])) != self._application:
            self.close()
            self._application = application
        key = json.dumps(request["services"])
        if key not in self._running or self._running[key].ended:
            self._running[key] = _Application(request)
        return self._running[key]

    def close(self) -> None:
        """End all processes."""
        for each in self._running.values():
            each.close()
        self._running.clear()


class _Application:
    """A process that executes the application of a pattern, and forks a process for each version of the code."""

    def __init__(self, request: Request) -> None:
        control, self._control = os.pipe()
        self._read, write = os.pipe()
        self._folder = tempfile.mkdtemp(prefix="tmkb-proof-", dir=MEMORY)
        self._data = b""  # that was read and not used
        self.ended = False
        self._pid = guard.fork()
        if not self._pid:
            try:
                if sys.platform != "win32":
                    os.setpgid(0, 0)
                os.close(self._control)
                os.close(self._read)
                os.chdir(self._folder)
                _serve(request, control, write)
            finally:
                os._exit(0)
        os.close(control)
        os.close(write)

    def answers(self, request: Request) -> Iterator[Answer]:
        """Yield the answers of one process to the first cases of ``request``, until it ends or is killed."""
        os.write(self._control, _line({key: value for key, value in request.items() if key != "app"}))
        while True:
            began = time.perf_counter()
            line, self._data = _read_case(self._read, self._data, request["timeout"])
            if line == b"":
                return
            answer = _answer(line, request)
            yield {**answer, "seconds": round(time.perf_counter() - began, 4)}
            if line in (None, b"?"):
                self.close()
                return

    def close(self) -> None:
        """Kill the process and its children."""
        if self.ended:
            return
        self.ended = True
        os.close(self._control)
        os.close(self._read)
        if sys.platform != "win32":
            for kill in (os.killpg, os.kill):  # its process group may not exist yet
                with contextlib.suppress(ProcessLookupError):
                    kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(slots=True)
class _State:
    """The state of a process at one moment between two cases."""

    saved: Saved
    values: dict[str, Any]  # that the steps have saved
    folder: str  # the current one
    files: traces.Files
    signature: tuple[int, ...]
    marks: bytes  # of what has been reached
    starts: reach.Results  # shows which versions have come to the same state
    memory: traces.Memory
    since: float = field(default_factory=time.monotonic)


def _execute_source(request: Request, name: str, module: ModuleType) -> None:
    exec(compile(request[name], request[f"{name}_file"], "exec"), module.__dict__)


def _serve(request: Request, control: int, write: int) -> None:
    """Execute the application. For each request, let a forked process write answers; write NUL when it has ended."""
    _enter(request)
    version = _Version(request)
    version.execute_application()
    files = traces.Files(os.getcwd())
    gc.collect()
    gc.freeze()
    line = _request(control)
    while line:
        read, leave = os.pipe()
        pid = guard.fork()
        if not pid:
            try:
                os.close(read)
                _run(version, line, control, write, leave)
            finally:
                os._exit(0)
        os.close(leave)
        with open(read, "rb") as pipe:
            line = pipe.read()
        os.waitpid(pid, 0)
        files.restore()
        if not line:
            os.write(write, b"\0")
            line = _request(control)


def _request(control: int) -> bytes:
    """Return the next request; an empty text at the end. Nobody sends one before the last one has been answered."""
    with open(control, "rb", closefd=False) as lines:
        return lines.readline()


def _run(version: _Version, line: bytes, control: int, write: int, leave: int) -> None:
    """Execute the version in ``line``, run its first cases, and write a line and NUL for each.

    If the process is then as before, write NUL, and go on with the next request. One that needs a new process is
    written to ``leave``.
    """
    version.request = {**version.request, **json.loads(line)}
    version.execute()
    with version.opened:
        while True:
            for answer in version.run_all():
                os.write(write, _line(answer) + b"\0")
            if version.prepared is None:
                return
            os.write(write, b"\0")
            if not (line := _request(control)):
                return
            if not version.become(json.loads(line)):
                break
    with open(leave, "wb") as pipe:
        pipe.write(line)


def _read_case(fd: int, data: bytes, timeout: float) -> tuple[bytes | None, bytes]:
    """Return the line of the next case, and the data after it. ``data`` was read before.

    A NUL ends a case; if no line precedes it, the process of the version has ended. The line is None if the case does
    not end in time, and ``?`` if it is too long.
    """
    deadline = time.monotonic() + timeout
    while b"\0" not in data:
        if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            return None, data
        if not (chunk := os.read(fd, 65536)):
            break
        data += chunk
        if len(data) > _MAX_ANSWER:
            return b"?", b""
    lines, _, rest = data.partition(b"\0")
    return lines.partition(b"\n")[0], rest


def _spawned(request: Request) -> Iterator[Answer]:
    command = [sys.executable, "-P", "-m", "tmkb.authoring.proofs.worker", "--one"]
    for name in request["cases"]:
        began, text = time.perf_counter(), json.dumps({**request, "cases": [name]})
        output: bytes | None
        with tempfile.TemporaryDirectory() as folder:
            try:
                output = subprocess.run(
                    command,
                    input=text.encode(),
                    capture_output=True,
                    timeout=request["timeout"],
                    cwd=folder,
                    check=False,
                ).stdout
            except subprocess.TimeoutExpired:
                output = None
        answer = _answer(output, request)
        yield {**answer, "seconds": round(time.perf_counter() - began, 4)}
        if _ends(request, name, answer):
            return


def _ends(request: Request, name: str, answer: Answer) -> bool:
    """Return whether no further case is run after ``answer``."""
    return request["expected"] is not None and answer["status"] != request["expected"][name]


def _answer(data: bytes | None, request: Request) -> Answer:
    """Return the answer in ``data``, or an error; None is that of a case that did not end in time."""
    if data is None:
        return {"status": "error", "detail": f"no answer within {request['timeout']} s"}
    if not data:
        return DIED
    try:  # a proof can write to the pipe as well
        answer = json.loads(data)
        reached = {"reached": [str(name) for name in answer["reached"]]} if "reached" in answer else {}
        return {"status": str(answer["status"]), "detail": str(answer["detail"]), **reached}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"status": "error", "detail": "the answer of the process cannot be read"}


def _preload(services: Mapping[str, str]) -> None:
    """Import common libraries of proofs. A missing one is reported by the proof that imports it."""
    for name in (*_PRELOADED, *(module for service in services for module in _CLIENTS[service])):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

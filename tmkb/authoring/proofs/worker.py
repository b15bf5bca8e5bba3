"""``python -m tmkb.authoring.proofs.worker``: execute proofs. One JSON request per line in, one JSON answer per case.

A request has one version of the code and the cases to run on it. The parent imports the libraries once and compiles
the files, which runs nothing. A fork executes the application and the version and mounts them. It forks again for each
case, so no case sees the effects of another. Without fork (Windows), or with ``--spawn``, each case runs in a new
interpreter. A request does not contain the name of the version, so a proof cannot depend on it. `guard` limits what a
proof can do.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import CodeType, ModuleType
from typing import Any

from tmkb.authoring import play
from tmkb.authoring.proofs import guard
from tmkb.knowledge.attacks import Attacks

EXAMPLE = "example.py"  # the file name of every version; the runner restores the real one in reports

# app, app_file, source, proof, proof_file (texts and names; without a file they are empty), attacks (the value of an
# attacks.yaml, or none), cases (names), expected (case → status; the first other status ends the run; or none),
# services (service → address), timeout, number (of the worker)
Request = dict[str, Any]
Answer = dict[str, Any]  # status, detail, seconds

_MAX_ANSWER = 1 << 20  # bytes
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
        os.write(write, _line(_Batch(request).run(request["cases"][0])))
        return
    forking = hasattr(os, "fork") and "--spawn" not in sys.argv
    if forking:
        _preload({})
        if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
            stage.warm()
        gc.collect()
        gc.freeze()  # children that collect would copy every page
    for line in sys.stdin:
        request = json.loads(line)
        if forking:
            _preload(request["services"])
        for answer in _forked(request) if forking else _spawned(request):
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
        sys.stdout.flush()


class _Batch:
    """One version of the code, executed, and the cases to run on it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.texts = {request["proof_file"]: request["proof"], request["app_file"]: request["app"]}
        self.texts[EXAMPLE] = request["source"]
        self.failure: Answer | None = None
        self.example = self.proof = ModuleType("none")
        try:
            if request["app_file"]:
                _module("app", request["app"], request["app_file"])
            self.example = _module("example", request["source"], EXAMPLE)
            if request["proof_file"]:
                self.proof = _module("proof", request["proof"], request["proof_file"])
        except BaseException as error:
            self.failure = self._error(error)

    def run(self, name: str) -> Answer:
        """Run one case from its beginning, and turn whatever it does into an answer."""
        return self._answer(self._function if name.startswith(FUNCTIONS) else self._case, name)

    def run_prepared(self, names: Sequence[str], run: Callable[[Callable[[], Answer]], None]) -> None:
        """Prepare once what all cases of attacks.yaml share, and pass a function for each case to ``run``.

        ``run`` calls the function in a process of its own, which then has all that was prepared.
        """
        from tmkb.authoring.proofs import stage

        attacks = Attacks(self.request["attacks"])
        targets = []

        def enter(_: str) -> None:
            stage.rehearse(self.example, **attacks.config)
            targets.append(stack.enter_context(stage.stage(self.example, **attacks.config)))

        with contextlib.ExitStack() as stack:
            if failure := self._answer(enter, ""):
                for _ in names:
                    run(lambda: failure)
                return
            (target,) = targets
            if not target.branches:
                for name in names:
                    run(lambda name=name: self.run(name))  # type: ignore[misc]  # the default is the value of now
                return
            values: dict[str, Any] = {}
            failure = self._answer(lambda _: values.update(play.prepare(attacks.setup, target)), "")
            target.pause()

            def answer(name: str) -> Answer:
                target.branch()
                try:
                    verdict = play.play(attacks.case(name), target, values)
                finally:
                    target.discard()
                return {"status": verdict.status, "detail": verdict.detail}

            for name in names:
                run(lambda name=name: failure or self._answer(answer, name))  # type: ignore[misc]  # as above

    def _answer(self, run: Callable[[str], Answer | None], name: str) -> Answer:
        """Return the answer of ``run``; an empty one for None."""
        if self.failure is not None:
            return self.failure
        crashes = self._crashes()
        try:
            answer = run(name) or {}
        except play.StepError as error:
            return {"status": "failed", "detail": "; ".join([str(error), *crashes])}
        except AssertionError as error:
            return {"status": "failed", "detail": "; ".join([self._where(error), *crashes])}
        except BaseException as error:
            return self._error(error)
        if crashes and answer.get("status") in ("neither", "failed"):
            answer["detail"] = "; ".join([answer["detail"], *crashes])
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
        return {"status": verdict.status, "detail": verdict.detail}

    def _crashes(self) -> list[str]:
        """Return a list that collects the exceptions behind responses with status 500."""
        crashes: list[str] = []

        def note(_app: object, exception: BaseException, **_: object) -> None:
            crashes.append(f"{type(exception).__name__}: {exception} at {self._where(exception)}")

        if flask := sys.modules.get("flask"):
            flask.got_request_exception.connect(note, weak=False)
        return crashes

    def _error(self, error: BaseException) -> Answer:
        return {"status": "error", "detail": f"{type(error).__name__}: {error} at {self._where(error)}"}

    def _where(self, exception: BaseException) -> str:
        """Return the innermost line of the proof, the application or the example in the traceback."""
        frames = [frame for frame in traceback.extract_tb(exception.__traceback__) if frame.filename in self.texts]
        if not frames:
            return "?"
        line = self.texts[frames[-1].filename].splitlines()[(frames[-1].lineno or 1) - 1].strip()
        return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {line}"


def _module(name: str, source: str, filename: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    exec(_compiled(source, filename), module.__dict__)
    return module


@functools.lru_cache(maxsize=16)
def _compiled(source: str, filename: str) -> CodeType:
    return compile(source, filename, "exec")


def _enter(request: Request) -> None:
    """Prepare this process to execute a proof: without standard streams, and guarded."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    guard.install(os.getcwd(), request["services"])
    if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
        stage.use(request["services"], request["number"])
    gc.set_threshold(100_000)  # a run is too short for collecting to pay off


def _line(answer: Answer) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _forked(request: Request) -> Iterator[Answer]:
    """Yield the answer for each case. A case that does not end is killed, and the others run in a new process."""
    with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):  # the child reports errors
        for text, file in (("app", "app_file"), ("proof", "proof_file")):
            _compiled(request[text], request[file])
        _compiled(request["source"], EXAMPLE)
    done = 0
    while done < len(request["cases"]):
        for answer in _process(request, done):
            yield answer
            if _ends(request, request["cases"][done], answer):
                return
            done += 1


def _process(request: Request, start: int) -> Iterator[Answer]:
    """Yield the answers of one process to the cases from ``start`` on, until one kills or stops it."""
    read, write = os.pipe()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="tmkb-proof-", dir=memory)
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            os.close(read)
            os.chdir(folder)
            _cases(request, start, write)
        finally:
            os._exit(0)
    os.close(write)
    data = b""
    try:
        for _ in request["cases"][start:]:
            began = time.perf_counter()
            line, data = _read_case(read, data, request["timeout"])
            answer = _answer(line, request)
            yield {**answer, "seconds": round(time.perf_counter() - began, 4)}
            if line in (None, b"", b"?"):
                return
    finally:
        os.close(read)
        _kill(pid)
        shutil.rmtree(folder, ignore_errors=True)


def _kill(pid: int) -> None:
    """Kill the process ``pid`` and its children; its process group may not exist yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _cases(request: Request, start: int, write: int) -> None:
    """Run the cases from ``start`` on, each in a fork, and write one line and NUL for each."""
    _enter(request)
    batch = _Batch(request)

    def run(function: Callable[[], object]) -> None:
        pid = guard.fork()
        if not pid:
            try:
                function()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def run_case(function: Callable[[], Answer]) -> None:
        run(lambda: os.write(write, _line(function())))
        os.write(write, b"\0")

    for is_function, group in groupby(request["cases"][start:], lambda name: name.startswith(FUNCTIONS)):
        names = list(group)
        if is_function:
            for name in names:
                run_case(lambda name=name: batch.run(name))  # type: ignore[misc]  # the default is the value of now
        else:
            run(lambda names=names: batch.run_prepared(names, run_case))  # type: ignore[misc]  # as above


def _read_case(fd: int, data: bytes, timeout: float) -> tuple[bytes | None, bytes]:
    """Return the line of the next case, and the data after it. ``data`` was read before.

    A NUL ends a case; if no line precedes it, the process of the case has died. The line is None if the case does not
    end in time, and ``?`` if it is too long.
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
        return {"status": "error", "detail": "the process died"}
    try:  # a proof can write to the pipe as well
        answer = json.loads(data)
        return {"status": str(answer["status"]), "detail": str(answer["detail"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"status": "error", "detail": "the answer of the process cannot be read"}


def _preload(services: Mapping[str, str]) -> None:
    """Import common libraries of proofs. A missing one is reported by the proof that imports it."""
    for name in (*_PRELOADED, *(module for service in services for module in _CLIENTS[service])):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

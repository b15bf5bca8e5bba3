"""``python -m tmkb.proof.worker``: executes. One JSON request a line in, one JSON result a line out.

The parent imports the heavy libraries once and compiles, which runs nothing; each request is a fork that executes proof
and example anew, answers through a pipe and is killed. Without fork (Windows), or with ``--spawn``, each request gets a
fresh interpreter. A request does not say which version of the example it brings, so nothing that is run can tell by it.

A fence stops accidents, not malice: no network, no processes, no writing outside a temporary folder. `tmkb prove` runs
Python from the folders it is given, as pytest does.
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
from types import CodeType, ModuleType
from typing import Any

EXAMPLE = "example.py"  # what every version is called here; the runner puts the name of the file in its place

Request = dict[str, Any]  # source, proof_source, proof_file, function, timeout
Answer = dict[str, Any]  # status, detail, seconds

_PRELOADED = ("tmkb.proof.stage", "flask_caching", "jwt", "graphql")
_FENCED = {
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_STATUS = {(True, False): "gained", (False, True): "refused", (True, True): "both", (False, False): "neither"}


def main() -> None:
    """Answer requests until the input ends."""
    if "--one" in sys.argv:
        _preload()
        _child(json.loads(sys.stdin.read()), os.dup(1))
        return
    forking = hasattr(os, "fork") and "--spawn" not in sys.argv
    if forking:
        _preload()
        if stage := sys.modules.get("tmkb.proof.stage"):
            stage.warm()
        gc.collect()
        gc.freeze()  # children that collect would copy every page
    for line in sys.stdin:
        began = time.perf_counter()
        answer = _forked(json.loads(line)) if forking else _spawned(json.loads(line))
        sys.stdout.write(json.dumps({**answer, "seconds": round(time.perf_counter() - began, 4)}) + "\n")
        sys.stdout.flush()


def execute(request: Request) -> Answer:
    """Run one function of a proof on one example; whatever it does is an answer."""
    from tmkb.proof import Outcome

    crashes = _crashes(request)
    try:
        example = _module("example", request["source"], EXAMPLE)
        proof = _module("proof", request["proof_source"], request["proof_file"])
        result = getattr(proof, request["function"])(example)
    except AssertionError as error:
        return {"status": "failed", "detail": "; ".join([_where(request, error), *crashes])}
    except BaseException as error:
        return {"status": "error", "detail": f"{type(error).__name__}: {error} at {_where(request, error)}"}
    if isinstance(result, Outcome):
        status = _STATUS[result.gained, result.refused]
        return {"status": status, "detail": "; ".join(crashes) if crashes and status == "neither" else result.evidence}
    if result is not None:
        return {"status": "error", "detail": f"returned {type(result).__name__}; return outcome(...) or nothing"}
    return {"status": "served", "detail": ""}


def _crashes(request: Request) -> list[str]:
    """Filled with the exceptions behind each answer 500, which would otherwise stay inside the application."""
    crashes: list[str] = []

    def note(_app: object, exception: BaseException, **_: object) -> None:
        crashes.append(f"{type(exception).__name__}: {exception} at {_where(request, exception)}")

    if flask := sys.modules.get("flask"):
        flask.got_request_exception.connect(note, weak=False)
    return crashes


def _module(name: str, source: str, filename: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(_compiled(source, filename), made.__dict__)
    return made


@functools.lru_cache(maxsize=16)
def _compiled(source: str, filename: str) -> CodeType:
    return compile(source, filename, "exec")


def _where(request: Request, exception: BaseException) -> str:
    """The innermost line of proof or example that the exception came through, with its text."""
    texts = {request["proof_file"]: request["proof_source"], EXAMPLE: request["source"]}
    frames = [frame for frame in traceback.extract_tb(exception.__traceback__) if frame.filename in texts]
    if not frames:
        return "?"
    line = texts[frames[-1].filename].splitlines()[(frames[-1].lineno or 1) - 1].strip()
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {line}"


def _fence(folder: str) -> None:
    root = os.path.realpath(folder) + os.sep

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name in _FENCED:
            raise PermissionError(f"a proof may not use {name}")
        if name != "open" or not isinstance(args[0], str) or not (args[2] or 0) & _WRITING:
            return
        if args[0] != os.devnull and not os.path.realpath(args[0]).startswith(root):
            raise PermissionError(f"a proof may not write {args[0]}")

    sys.addaudithook(hook)  # cannot be undone: only ever in a process that ends after one request


def _child(request: Request, write: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    _fence(os.getcwd())
    gc.set_threshold(100_000)  # a run is over before collecting would pay
    os.write(write, json.dumps(execute(request)).encode())


def _forked(request: Request) -> Answer:
    with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):  # what is wrong, the child will say
        _compiled(request["source"], EXAMPLE)
        _compiled(request["proof_source"], request["proof_file"])
    read, write = os.pipe()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="tmkb-proof-", dir=memory)
    pid = os.fork()
    if not pid:
        try:
            os.close(read)
            os.chdir(folder)
            _child(request, write)
        finally:
            os._exit(0)
    os.close(write)
    data, in_time = _read_all(read, request["timeout"])
    os.close(read)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return _answer(data, in_time, request)


def _read_all(fd: int, timeout: float) -> tuple[bytes, bool]:
    """What comes until the end of the pipe, and whether that came in time."""
    data = b""
    deadline = time.monotonic() + timeout
    while select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
        chunk = os.read(fd, 65536)
        if not chunk:
            return data, True
        data += chunk
    return data, False


def _spawned(request: Request) -> Answer:
    command = [sys.executable, "-m", "tmkb.proof.worker", "--one"]
    text = json.dumps(request)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, input=text, text=True, capture_output=True, timeout=request["timeout"], cwd=folder, check=False
            )
        except subprocess.TimeoutExpired:
            return _answer(b"", False, request)
    return _answer(done.stdout.encode(), True, request)


def _answer(data: bytes, in_time: bool, request: Request) -> Answer:
    if not in_time:
        return {"status": "error", "detail": f"no answer within {request['timeout']} s"}
    answer: Answer = json.loads(data or b'{"status": "error", "detail": "the process died"}')
    return answer


def _preload() -> None:
    """Import what proofs commonly need; what is not installed is reported by the proof that imports it."""
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

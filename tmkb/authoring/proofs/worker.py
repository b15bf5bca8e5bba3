"""``python -m tmkb.authoring.proofs.worker``: executes. A JSON request a line in, a JSON result a line out per case.

A request has one version of the code and the cases to run on it. The parent imports the heavy libraries once and
compiles, which runs nothing. A fork executes application and version and mounts them; it forks again for each case,
so that no case sees what another did. Without fork (Windows), or with ``--spawn``, each case gets a fresh interpreter.
A request does not say which version of the example it has, so the code that runs cannot depend on it.

An audit hook (PEP 578) is a fence against accidents. It is no sandbox: `tmkb prove` runs Python of the folders that it
is given, with all permissions of the user, as pytest does. Through Python's own functions a proof cannot

- write, create, delete, rename, link or truncate files, change their mode, owner or times, also through a descriptor,
  or open a SQLite database, outside its temporary folder;
- make devices or FIFOs anywhere;
- start, fork or signal processes;
- connect, bind, listen, resolve names, or send datagrams, except to the sockets of the services that its pattern names;
- connect to PostgreSQL with psycopg, except to that service;
- load or call native code with ctypes.

A proof still can read every file that the user can read, and use memory and processor until the time limit. It can
write elsewhere through SQLite's ATTACH, without /proc also through the descriptor of a folder or a file, and do what an
extension module does without an audit event. Code that tries can take the fence apart: some of it is only functions of
the standard library that were replaced (`_UNHEARD`).
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
import urllib.parse
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import CodeType, ModuleType
from typing import Any

from tmkb.authoring import play
from tmkb.knowledge.attacks import Attacks

EXAMPLE = "example.py"  # what every version is called here; the runner puts the name of the file in its place

# app, app_file, source, proof, proof_file (texts and names; without a file they are empty), attacks (the value of an
# attacks.yaml, or none), cases (names), expected (case → status; the first other status ends the run; or none),
# services (service → address), timeout, number (of the worker)
Request = dict[str, Any]
Answer = dict[str, Any]  # status, detail, seconds

_LONGEST = 1 << 20  # bytes of an answer
_PRELOADED = ("tmkb.authoring.proofs.stage", "flask_caching", "jwt", "graphql")
_CLIENTS = {"postgresql": ("sqlalchemy.dialects.postgresql.psycopg", "psycopg"), "redis": ("redis",)}
# Audit events (https://docs.python.org/3/library/audit_events.html) of what a proof may not do at all.
_REFUSED = {
    "ctypes.call_function",
    "ctypes.dlopen",
    "ctypes.dlsym",
    "ctypes.dlsym/handle",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.startfile/2",
    "os.system",
    "pty.spawn",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyaddr",
    "socket.gethostbyname",
    "socket.getnameinfo",
    "socket.sendmsg",
    "socket.sendto",
    "subprocess.Popen",
}
# Audit events of changes to files → the positions of a path and of the folder that it starts from, for each path.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chflags": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),  # a second name of a file outside would make it writable inside
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
_NAMES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}  # a link itself is changed
# Functions without an audit event of what a proof may not do at all: module and name.
_UNHEARD = (
    ("os", "mkfifo"),
    ("os", "mknod"),
    ("posix", "mkfifo"),
    ("posix", "mknod"),
    ("signal", "pidfd_send_signal"),
    ("_posixsubprocess", "fork_exec"),  # how multiprocessing starts an interpreter; subprocess has an event of its own
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
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
        """Run one case from its beginning; whatever it does is an answer."""
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
        """Return a list that is filled with the exceptions behind each response 500."""
        crashes: list[str] = []

        def note(_app: object, exception: BaseException, **_: object) -> None:
            crashes.append(f"{type(exception).__name__}: {exception} at {self._where(exception)}")

        if flask := sys.modules.get("flask"):
            flask.got_request_exception.connect(note, weak=False)
        return crashes

    def _error(self, error: BaseException) -> Answer:
        return {"status": "error", "detail": f"{type(error).__name__}: {error} at {self._where(error)}"}

    def _where(self, exception: BaseException) -> str:
        """Return the innermost line of proof or example that the exception came through, with its text."""
        frames = [frame for frame in traceback.extract_tb(exception.__traceback__) if frame.filename in self.texts]
        if not frames:
            return "?"
        line = self.texts[frames[-1].filename].splitlines()[(frames[-1].lineno or 1) - 1].strip()
        return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {line}"


def _module(name: str, source: str, filename: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(_compiled(source, filename), made.__dict__)
    return made


@functools.lru_cache(maxsize=16)
def _compiled(source: str, filename: str) -> CodeType:
    return compile(source, filename, "exec")


def _fence(folder: str, services: Mapping[str, str]) -> None:
    """Refuse, for the rest of this process, what the docstring of this module lists."""
    root = os.path.realpath(folder)
    sockets = {services[name] for name in ("redis",) if name in services}
    _hold_psycopg(services.get("postgresql"))

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name == "socket.connect" and isinstance(args[1], str) and args[1] in sockets:
            return
        if name in _REFUSED and not (name == "os.fork" and _forking):
            raise PermissionError(f"a proof may not use {name}")
        if name in _CHANGES:
            _hold_change(root, name, args)
        elif name == "open":
            if (args[2] or 0) & _WRITING:
                _hold(root, args[0], -1, False)
        elif name == "sqlite3.connect":
            if _database(os.fsdecode(args[0])) not in ("", ":memory:"):
                _hold(root, _database(os.fsdecode(args[0])), -1, False)
        elif name in ("os.kill", "os.killpg") and args[0] != os.getpid():
            raise PermissionError(f"a proof may not use {name}")

    for module, function in _UNHEARD:
        if hasattr(sys.modules.get(module), function):
            setattr(sys.modules[module], function, _refusal(f"{module}.{function}"))
    import socket  # here: only a process that executes needs it

    setattr(socket.socket, "listen", _refusal("socket.listen"))  # noqa: B010  # without `bind` it takes any port
    sys.addaudithook(hook)  # cannot be undone: only ever in a process that ends after one request


def _hold_psycopg(folder: str | None) -> None:
    """Refuse connections to PostgreSQL except to the socket in ``folder``. There is no audit event for them."""
    if folder is None:
        sys.modules["psycopg"] = None  # type: ignore[assignment]  # importing it raises ImportError
        return
    from psycopg import generators
    from psycopg.conninfo import conninfo_to_dict

    connect = generators.connect

    def hold(conninfo: str, *args: Any, **options: Any) -> Any:
        if conninfo_to_dict(conninfo).get("host") != folder:
            raise PermissionError("a proof may only connect to the PostgreSQL server of the stage")
        return connect(conninfo, *args, **options)

    generators.connect = hold


_forking: list[bool] = []  # not empty while this module forks


def _allowed_fork() -> Callable[[], int]:
    """Return a function that forks in spite of the fence."""
    fork = os.fork

    def forked() -> int:
        _forking.append(True)
        try:
            return fork()
        finally:
            _forking.clear()

    return forked


def _refusal(name: str) -> Callable[..., None]:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(f"a proof may not use {name}")

    return refuse


def _database(name: str) -> str:
    """Return the path of the SQLite database ``name``, which may be a URI (https://www.sqlite.org/uri.html)."""
    if not name.startswith("file:"):
        return name
    path = urllib.parse.unquote(name.removeprefix("file:").partition("?")[0].partition("#")[0])
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def _hold_change(root: str, name: str, args: tuple[Any, ...]) -> None:
    """Refuse the change that the audit event ``name`` announces, outside ``root``."""
    for at, start in _CHANGES[name]:
        if isinstance(args[at], int) and name != "os.truncate":  # that needs a descriptor opened for writing
            _hold_descriptor(root, args[at])
        _hold(root, args[at], -1 if start is None else args[start], name in _NAMES)


def _hold_descriptor(root: str, descriptor: int) -> None:
    """Refuse a change of the file behind ``descriptor``, which may be open only for reading, outside ``root``."""
    link = f"/proc/self/fd/{descriptor}"
    if os.path.lexists(link) and os.path.exists(file := os.readlink(link)) and not file.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {file}")


def _hold(root: str, path: Any, start: int, is_name: bool) -> None:
    """Refuse a change of ``path`` outside ``root``. ``start``: the descriptor of the folder it starts from, or -1.

    ``is_name``: the entry of a folder is changed, so a link at the end of the path is not followed.
    """
    if path is None or isinstance(path, int):  # a descriptor: opening the file was refused or not
        return
    text = os.fsdecode(path)
    if start != -1 and not os.path.isabs(text):
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{start}"), text)  # outside `root` where there is no /proc
    head, tail = os.path.split(text.rstrip(os.sep) or os.sep)
    real = os.path.join(os.path.realpath(head), tail) if is_name else os.path.realpath(text)
    if text != os.devnull and not real.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {text}")


def _enter(request: Request) -> None:
    """Make this process one that executes: without standard streams, fenced into the current folder."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    _fence(os.getcwd(), request["services"])
    if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
        stage.use(request["services"], request["number"])
    gc.set_threshold(100_000)  # a run is over before collecting would pay


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
    """Yield answers from one process for the cases from ``start`` on, as far as it gets."""
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
            data, in_time = _read_line(read, data, request["timeout"])
            line, _, data = data.partition(b"\n")
            answer = _answer(line, in_time, request)
            yield {**answer, "seconds": round(time.perf_counter() - began, 4)}
            if not in_time or line in (b"", b"?"):
                return
    finally:
        os.close(read)
        _kill(pid)
        shutil.rmtree(folder, ignore_errors=True)


def _kill(pid: int) -> None:
    """End the process ``pid`` and what it has started; its group may not be there yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _cases(request: Request, start: int, write: int) -> None:
    """Run the cases from ``start`` on, each in a fork, and write one line and NUL for each."""
    _enter(request)
    batch = _Batch(request)
    fork = _allowed_fork()

    def run(function: Callable[[], object]) -> None:
        pid = fork()
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


def _read_line(fd: int, data: bytes, timeout: float) -> tuple[bytes, bool]:
    """Return all bytes that came until the end of a case, and whether that was in time.

    A case ends with NUL. It is left out; without a line before it, the process of the case has died.
    """
    deadline = time.monotonic() + timeout
    while b"\0" not in data:
        if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            return data, False
        chunk = os.read(fd, 65536)
        data += chunk
        if not chunk:
            return data, True
        if len(data) > _LONGEST:
            return b"?", True
    line, _, rest = data.partition(b"\0")
    return line.partition(b"\n")[0] + b"\n" + rest, True


def _spawned(request: Request) -> Iterator[Answer]:
    command = [sys.executable, "-P", "-m", "tmkb.authoring.proofs.worker", "--one"]
    for name in request["cases"]:
        began, text, in_time, output = time.perf_counter(), json.dumps({**request, "cases": [name]}), True, b""
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
                in_time = False
        answer = _answer(output, in_time, request)
        yield {**answer, "seconds": round(time.perf_counter() - began, 4)}
        if _ends(request, name, answer):
            return


def _ends(request: Request, name: str, answer: Answer) -> bool:
    """Return whether no further case is run after ``answer``."""
    return request["expected"] is not None and answer["status"] != request["expected"][name]


def _answer(data: bytes, in_time: bool, request: Request) -> Answer:
    if not in_time:
        return {"status": "error", "detail": f"no answer within {request['timeout']} s"}
    if not data:
        return {"status": "error", "detail": "the process died"}
    try:  # code that is executed can write to the pipe as well
        answer = json.loads(data)
        return {"status": str(answer["status"]), "detail": str(answer["detail"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"status": "error", "detail": "the answer of the process cannot be read"}


def _preload(services: Mapping[str, str]) -> None:
    """Import what proofs commonly need; what is not installed is reported by the proof that imports it."""
    for name in (*_PRELOADED, *(module for service in services for module in _CLIENTS[service])):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

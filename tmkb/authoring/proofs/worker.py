"""``python -m tmkb.authoring.proofs.worker``: execute proofs. One JSON request or answer per line.

The parent imports the libraries once and compiles the files, which runs nothing. Each request runs in a fork, which
answers through a pipe and is killed. Without fork (Windows), or with ``--spawn``, it runs in a new interpreter.
A request does not contain the version of the example, so a proof cannot depend on it.

An audit hook (PEP 578) guards against accidents. It is no sandbox: like pytest, `tmkb prove` runs Python from the given
folders with all permissions of the user. Through Python's own functions a proof cannot

- write, create, delete, rename, link or truncate files, change their mode, owner or times, also through a descriptor,
  or open a SQLite database, outside its temporary folder;
- make devices or FIFOs anywhere;
- start, fork or signal processes;
- connect, bind, listen, resolve names, or send datagrams;
- load or call native code with ctypes.

A proof can still read every file of the user, and use memory and CPU until the timeout. It can write elsewhere through
SQLite's ATTACH, without /proc also through the descriptor of a folder or file, and through extension modules that raise
no audit event. Malicious code can remove the guard: it partly consists of replaced functions of the standard library
(`_REPLACED`).
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
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

EXAMPLE = "example.py"  # the file name of every version; the runner restores the real one in reports

Request = dict[str, Any]  # source, proof_source, proof_file, function, timeout
Answer = dict[str, Any]  # status, detail, seconds

_MAX_ANSWER = 1 << 20  # bytes
_PRELOADED = ("tmkb.authoring.proofs.stage", "flask_caching", "jwt", "graphql")
# Audit events (https://docs.python.org/3/library/audit_events.html) that are always refused.
_REFUSED_EVENTS = """
ctypes.call_function ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle os.exec os.fork os.forkpty os.posix_spawn
os.spawn os.startfile os.startfile/2 os.system pty.spawn socket.bind socket.connect socket.getaddrinfo
socket.gethostbyaddr socket.gethostbyname socket.getnameinfo socket.sendmsg socket.sendto subprocess.Popen
"""
_REFUSED = frozenset(_REFUSED_EVENTS.split())
# Audit events of changes to files → for each path, its position among the arguments, and that of its folder descriptor.
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
# Those that change a link itself, not its target.
_NAMES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
# Functions without an audit event that are always refused: module and name.
_REPLACED = (
    ("os", "mkfifo"),
    ("os", "mknod"),
    ("posix", "mkfifo"),
    ("posix", "mknod"),
    ("signal", "pidfd_send_signal"),
    ("_posixsubprocess", "fork_exec"),  # used by multiprocessing; subprocess raises an event
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
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
        if stage := sys.modules.get("tmkb.authoring.proofs.stage"):
            stage.warm()
        gc.collect()
        gc.freeze()  # children that collect would copy every page
    for line in sys.stdin:
        began = time.perf_counter()
        answer = _forked(json.loads(line)) if forking else _spawned(json.loads(line))
        sys.stdout.write(json.dumps({**answer, "seconds": round(time.perf_counter() - began, 4)}) + "\n")
        sys.stdout.flush()


def execute(request: Request) -> Answer:
    """Run one function of a proof on one example, and turn whatever it does into an answer."""
    from tmkb.authoring.proofs import Outcome

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
    """Return a list that collects the exceptions behind responses with status 500."""
    crashes: list[str] = []

    def note(_app: object, exception: BaseException, **_: object) -> None:
        crashes.append(f"{type(exception).__name__}: {exception} at {_where(request, exception)}")

    if flask := sys.modules.get("flask"):
        flask.got_request_exception.connect(note, weak=False)
    return crashes


def _module(name: str, source: str, filename: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    exec(_compiled(source, filename), module.__dict__)
    return module


@functools.lru_cache(maxsize=16)
def _compiled(source: str, filename: str) -> CodeType:
    return compile(source, filename, "exec")


def _where(request: Request, exception: BaseException) -> str:
    """Return the innermost line of the proof or example in the traceback."""
    texts = {request["proof_file"]: request["proof_source"], EXAMPLE: request["source"]}
    frames = [frame for frame in traceback.extract_tb(exception.__traceback__) if frame.filename in texts]
    if not frames:
        return "?"
    line = texts[frames[-1].filename].splitlines()[(frames[-1].lineno or 1) - 1].strip()
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {line}"


def _guard(folder: str) -> None:
    """Refuse what the docstring of this module lists, for the rest of this process."""
    root = os.path.realpath(folder)

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name in _REFUSED:
            raise PermissionError(f"a proof may not use {name}")
        if name in _CHANGES:
            _check_change(root, name, args)
        elif name == "open":
            if (args[2] or 0) & _WRITING:
                _check_path(root, args[0], -1, False)
        elif name == "sqlite3.connect":
            if (database := _database(os.fsdecode(args[0]))) not in ("", ":memory:"):
                _check_path(root, database, -1, False)
        elif name in ("os.kill", "os.killpg") and args[0] != os.getpid():
            raise PermissionError(f"a proof may not use {name}")

    for module, function in _REPLACED:
        if hasattr(sys.modules.get(module), function):
            setattr(sys.modules[module], function, _refusal(f"{module}.{function}"))
    import socket  # only processes that execute need it

    setattr(socket.socket, "listen", _refusal("socket.listen"))  # noqa: B010  # without `bind` it takes any port
    sys.addaudithook(hook)  # cannot be removed, so only in a process that ends after one request


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


def _check_change(root: str, name: str, args: tuple[Any, ...]) -> None:
    """Refuse the change of the audit event ``name`` outside ``root``."""
    for at, start in _CHANGES[name]:
        if isinstance(args[at], int) and name != "os.truncate":  # which needs a descriptor opened for writing
            _check_descriptor(root, args[at])
        _check_path(root, args[at], -1 if start is None else args[start], name in _NAMES)


def _check_descriptor(root: str, descriptor: int) -> None:
    """Refuse a change of the file of ``descriptor``, which can be open for reading, outside ``root``."""
    link = f"/proc/self/fd/{descriptor}"
    if os.path.lexists(link) and os.path.exists(file := os.readlink(link)) and not file.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {file}")


def _check_path(root: str, path: Any, start: int, is_name: bool) -> None:
    """Refuse a change of ``path`` outside ``root``.

    ``start``: the descriptor of the folder that a relative path starts from, or -1. ``is_name``: a folder entry is
    changed, so a link at the end of the path is not followed.
    """
    if path is None or isinstance(path, int):  # a descriptor, checked when its file was opened
        return
    text = os.fsdecode(path)
    if start != -1 and not os.path.isabs(text):
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{start}"), text)  # outside `root` where there is no /proc
    head, tail = os.path.split(text.rstrip(os.sep) or os.sep)
    real = os.path.join(os.path.realpath(head), tail) if is_name else os.path.realpath(text)
    if text != os.devnull and not real.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {text}")


def _child(request: Request, write: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    _guard(os.getcwd())
    gc.set_threshold(100_000)  # a run is too short for collecting to pay off
    os.write(write, json.dumps(execute(request)).encode())


def _forked(request: Request) -> Answer:
    with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):  # the child reports errors
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
    """Return the data until the end of the pipe, and whether it came in time. Too long data is replaced by ``?``."""
    data = b""
    deadline = time.monotonic() + timeout
    while select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
        chunk = os.read(fd, 65536)
        if not chunk:
            return data, True
        data += chunk
        if len(data) > _MAX_ANSWER:
            return b"?", True
    return data, False


def _spawned(request: Request) -> Answer:
    command = [sys.executable, "-P", "-m", "tmkb.authoring.proofs.worker", "--one"]
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
    if not data:
        return {"status": "error", "detail": "the process died"}
    try:  # a proof can write to the pipe as well
        answer = json.loads(data)
        return {"status": str(answer["status"]), "detail": str(answer["detail"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"status": "error", "detail": "the answer of the process cannot be read"}


def _preload() -> None:
    """Import common libraries of proofs. A missing one is reported by the proof that imports it."""
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

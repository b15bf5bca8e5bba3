"""``python -m tmkb.authoring.proofs.worker``: executes. One JSON request a line in, one JSON result a line out.

The parent imports the heavy libraries once and compiles, which runs nothing; each request is a fork that executes proof
and example anew, answers through a pipe and is killed. Without fork (Windows), or with ``--spawn``, each request gets a
fresh interpreter. A request does not say which version of the example it brings, so nothing that is run can tell by it.

An audit hook (PEP 578) is a fence against accidents. It is no sandbox: `tmkb prove` runs Python of the folders that it
is given, with all permissions of the user, as pytest does. Through Python's own functions a proof cannot

- write, create, delete, rename, link or truncate files, change their mode, owner or times, also through a descriptor,
  or open a SQLite database, outside its temporary folder;
- make devices or FIFOs anywhere;
- start, fork or signal processes;
- connect, bind, listen, resolve names, or send datagrams;
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
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

EXAMPLE = "example.py"  # what every version is called here; the runner puts the name of the file in its place

Request = dict[str, Any]  # source, proof_source, proof_file, function, timeout
Answer = dict[str, Any]  # status, detail, seconds

_LONGEST = 1 << 20  # bytes of an answer
_PRELOADED = ("tmkb.authoring.proofs.stage", "flask_caching", "jwt", "graphql")
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
    """Run one function of a proof on one example; whatever it does is an answer."""
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
    """Refuse, for the rest of this process, what the docstring of this module lists."""
    root = os.path.realpath(folder)

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name in _REFUSED:
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
    """What comes until the end of the pipe, and whether that came in time; of what is too long, nothing to read."""
    data = b""
    deadline = time.monotonic() + timeout
    while select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
        chunk = os.read(fd, 65536)
        if not chunk:
            return data, True
        data += chunk
        if len(data) > _LONGEST:
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
    try:  # what is executed can write to the pipe as well
        answer = json.loads(data)
        return {"status": str(answer["status"]), "detail": str(answer["detail"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"status": "error", "detail": "the answer of the process cannot be read"}


def _preload() -> None:
    """Import what proofs commonly need; what is not installed is reported by the proof that imports it."""
    for name in _PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    main()

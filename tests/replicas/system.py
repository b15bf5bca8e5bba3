"""Replicas as an organisation runs them: processes behind the nginx of `deploy/nginx.conf`, and a Redis that they share.

Each process has a supervisor that starts it again when it ends, as Docker and Kubernetes do. `dnsmasq` takes the place of
Docker's name server: it returns the addresses of all replicas for the name `tmkb`, each 127.0.0.x with the same port.
"""

import collections
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import yaml

from tests.support import packages
from tests.support.process import SERVE, TIMEOUT

DEPLOY = os.path.join(packages.ROOT, "deploy")
PROGRAMS = {"redis-server": "redis-server", "nginx": "nginx", "dnsmasq": "dnsmasq-base"}  # and their Debian packages
RESTART = 0.2  # seconds until a supervisor starts a process again
KEY = "a key that all replicas share and that is long enough"


def missing(needed=None):
    """Return the Debian packages that are not installed. ``needed``: programs and their packages."""
    return [package for name, package in (needed or PROGRAMS).items() if not shutil.which(name, path=search_path())]


def search_path():
    """Return the folders of programs, with those that only root has in its path."""
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin"])


def free_port(*addresses):
    """Return a port that is free on all ``addresses``."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            first = stack.enter_context(socket.create_server((addresses[0], 0)))
            port = first.getsockname()[1]
            for address in addresses[1:]:
                stack.enter_context(socket.create_server((address, port)))
            return port


class Supervised:
    """A process that is started again when it ends. It is ready when somebody listens on its address."""

    def __init__(self, name, command, address, folder, environment=None):
        self.name, self.command, self.address, self.environment = name, command, address, environment
        self.log = os.path.join(folder, f"{name}.log")
        self.starts, self.killed, self.stopping = 0, 0, False
        self.process = None
        self.thread = threading.Thread(target=self._supervise, daemon=True)
        self.thread.start()

    def wait_until_ready(self, starts=1):
        """Wait until the process listens, after it was started so often."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            with contextlib.suppress(OSError):
                if self.starts >= starts:
                    socket.create_connection(self.address, 1).close()
                    return
            fails = self.starts > self.killed + starts + 5
            assert not fails and time.monotonic() < deadline, (self.name, self.read_log()[-2000:])
            time.sleep(0.02)

    def kill(self):
        """Kill the process, and wait until its successor is ready."""
        starts = self.starts
        os.kill(self.process.pid, signal.SIGKILL)
        self.killed += 1
        self.wait_until_ready(starts + 1)

    def restart(self):
        """Ask the process to end, and wait until its successor is ready. Return the exit status of the first."""
        ending, starts = self.process, self.starts
        ending.terminate()
        status = ending.wait(TIMEOUT)
        self.wait_until_ready(starts + 1)
        return status

    def stop(self):
        """End the process, if it runs, and start no other. Return its exit status."""
        self.stopping = True
        self.process.terminate()
        status = self.process.wait(TIMEOUT)
        self.thread.join(TIMEOUT)
        return status

    def read_log(self):
        """Return what the process wrote, over all its lives."""
        return packages.read(self.log)

    def _supervise(self):
        with open(self.log, "ab") as log:
            while not self.stopping:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
                )
                self.starts += 1
                self.process.wait()
                time.sleep(0 if self.stopping else RESTART)


class System:
    """Replicas of `tmkb serve` behind nginx, with Redis. ``options``: of each replica; ``replicas``: how many."""

    def __init__(self, *options, replicas=3, cluster=True, host="127.0.0.1"):
        self.processes = []
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.callback(self._stop)
            hosts = [f"127.0.0.{number + 2}" for number in range(replicas)]
            port, self.port = free_port(*hosts), free_port(host)
            self.address = f"http://{host}:{self.port}/mcp"
            self.redis = self._redis() if cluster else None
            self.names = self._names(hosts)
            self.options = [*self._cluster(), *options]
            self.replicas = [self._replica(number, host, port) for number, host in enumerate(hosts, 1)]
            self.changes = {
                "127.0.0.11": "{}:{}".format(*self.names.address),
                "tmkb:8321": f"tmkb:{port}",
                "listen 8080": f"listen {host}:{self.port}",
                "/tmp/": f"{self.folder}/",
            }
            self.nginx = self.start_nginx("nginx", self.changes, (host, self.port))
            for each in self.processes:
                each.wait_until_ready()
            self.stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _stop(self):
        for each in reversed(self.processes):
            each.stop()

    def served(self):
        """How many requests nginx passed to each replica, by its address."""
        return collections.Counter(re.findall(r"replica (?:[\d.:]+, )*([\d.]+):\d+$", self.nginx.read_log(), re.M))

    def supervise(self, name, command, address, **more):
        """Start a process. ``more``: of its environment."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TMKB_", "LOG_LEVEL"))}
        environment |= {"TMKB_STATE_KEY": KEY} | more
        self.processes.append(Supervised(name, command, address, self.folder, environment))
        return self.processes[-1]

    def start_nginx(self, name, changes, address, tls=False):
        """Start nginx with `deploy/nginx.conf`, with texts replaced. ``tls``: the variant that its comment describes."""
        text = packages.read(os.path.join(DEPLOY, "nginx.conf"))
        if tls:
            text = text.replace("#tls ", "").replace("        listen 8080;\n", "")
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        path = os.path.join(self.folder, f"{name}.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        command = [shutil.which("nginx", path=search_path()), "-c", path, "-p", self.folder, "-g", "daemon off;"]
        return self.supervise(name, command, address)

    def _replica(self, number, host, port):
        command = [*SERVE, "--http", f"{host}:{port}", *self.options]
        cache = os.path.join(self.folder, f"cache-{number}")  # replicas have no file in common
        return self.supervise(f"replica-{number}", command, (host, port), XDG_CACHE_HOME=cache)

    def _cluster(self):
        return ["--cluster", f"redis://{self.redis.address[0]}:{self.redis.address[1]}"] if self.redis else []

    def _redis(self):
        address = ("127.0.0.1", free_port("127.0.0.1"))
        words = compose()["services"]["valkey"]["command"][1:]
        command = ["redis-server", "--bind", address[0], "--port", str(address[1]), *words]
        return self.supervise("redis", command, address)

    def _names(self, hosts):
        address, table = ("127.0.0.1", free_port("127.0.0.1")), os.path.join(self.folder, "hosts")
        with open(table, "w", encoding="ascii") as file:
            file.writelines(f"{host} tmkb\n" for host in hosts)
        command = f"dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --addn-hosts={table}"
        command += f" --bind-interfaces --listen-address={address[0]} --port={address[1]} --pid-file= --user= --group="
        program, *words = command.split()
        return self.supervise("names", [shutil.which(program, path=search_path()), *words], address)


def compose():
    """Return what `deploy/compose.yaml` says."""
    return yaml.safe_load(packages.read(os.path.join(DEPLOY, "compose.yaml")))

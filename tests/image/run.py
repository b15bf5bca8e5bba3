"""Does what `deploy/Dockerfile` describes work? There is no container engine here: its steps are run in a fresh Debian.

    python -m tests.image.run

`debootstrap` makes a Debian below ``.cache``, once. Each stage of the file begins with a copy of it in the place of its image; COPY, RUN
and ENV are carried out there. Then the entry point is started as an engine would: as the user of the file, in namespaces of its own
without a network, on a root that is mounted read-only. It must answer over stdio, and over HTTP on all addresses with a token.
Needs root, Linux, `debootstrap` and `unshare`; without them it says so, and fails only where CI is set.
"""

import fnmatch
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from deploy import metadata
from tests.support import packages, programs

FILE = os.path.join(packages.ROOT, "deploy", "Dockerfile")
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
BASE = os.path.join(packages.CACHE, f"debian-{SUITE}")
NEEDED = "python3,python3-venv,ca-certificates"
PORT = 8321


def instructions(file):
    """Return the instructions of a Dockerfile, each with its text; the values of ARG are filled in."""
    with open(file, encoding="utf-8") as lines:
        text = "".join(line for line in lines if not line.startswith("#")).replace("\\\n", "")
    found, arguments = [], {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        rest = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], rest)
        if name == "ARG":
            key, _, arguments[key] = rest.partition("=")
        elif name:
            found.append((name, rest))
    return found


def debian():
    """Return the folder with a fresh Debian and Python."""
    done = os.path.join(BASE, ".complete")
    if not os.path.exists(done):
        shutil.rmtree(BASE, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={NEEDED}", SUITE, BASE, MIRROR]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(done, "w", encoding="utf-8"):
            pass
    return BASE


class Stage:
    """A root folder, and what the instructions have set."""

    def __init__(self, root):
        subprocess.run(["cp", "-a", debian(), root], check=True)
        self.root, self.folder, self.user = root, "/", "0:0"
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
        self.labels, self.entry, self.words = {}, [], []
        for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
            shutil.copy(file, root + file)

    def path(self, name):
        """Return where the path of an instruction is."""
        return self.root + os.path.normpath(os.path.join(self.folder, name))

    def copy(self, text, stages):
        """Carry out COPY."""
        words = shlex.split(text)
        start = stages[words.pop(0).partition("=")[2]].root if words[0].startswith("--from=") else packages.ROOT
        *sources, target = words
        for source in sources:
            there, here = os.path.join(start, source.lstrip("/")), self.path(target)
            if os.path.isdir(there):
                shutil.copytree(
                    there, here, symlinks=True, dirs_exist_ok=True, ignore=left_out if start == packages.ROOT else None
                )
            else:
                shutil.copy(there, os.path.join(here, os.path.basename(source)))

    def run(self, text):
        """Carry out RUN, with the network and the package index of this machine."""
        outside = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "HTTP", "http", "HTTPS"))}
        command = [shutil.which("chroot"), self.root, "/bin/sh", "-ec", f"cd {self.folder}; {text}"]
        subprocess.run(command, env={**outside, **self.environment}, check=True, stdout=subprocess.DEVNULL)

    def serve(self, *words, network=False):
        """Return the command that starts the entry point as an engine does."""
        script = f"mount --bind {self.root} {self.root} && mount -o remount,bind,ro {self.root} && "
        script += "ip link set lo up 2>/dev/null; " if network else ""
        script += f"exec chroot --userspec={self.user} {self.root} /usr/bin/env -i {shlex.join(self._settings())} {shlex.join([*self.entry, *words])}"
        return ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "/bin/sh", "-ec", script]

    def _settings(self):
        return [f"{key}={value}" for key, value in self.environment.items()]


def left_out(folder, names):
    """Return the names that `Dockerfile.dockerignore` leaves out."""
    with open(f"{FILE}.dockerignore", encoding="utf-8") as file:
        forms = [line.strip() for line in file if not line.startswith(("!", "*\n"))]
    inside = {name: os.path.relpath(os.path.join(folder, name), packages.ROOT) for name in names}
    return [
        name
        for name, path in inside.items()
        if any(fnmatch.fnmatch(f"/{path}", f"*/{form.removeprefix('**/')}") for form in forms)
    ]


def build(place):
    """Carry out all instructions, and return the last stage."""
    stages, stage = {}, None
    for name, text in instructions(FILE):
        if name == "FROM":
            image, _, alias = text.partition(" AS ")
            assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image), f"{image} has no digest"
            stage = stages[alias] = Stage(os.path.join(place, alias or "last"))
        elif name == "WORKDIR":
            stage.folder = text
            os.makedirs(stage.path("."), exist_ok=True)
        elif name == "COPY":
            stage.copy(text, stages)
        elif name == "RUN":
            stage.run(text)
        elif name in ("ENV", "LABEL"):
            key, _, value = text.partition("=")
            (stage.environment if name == "ENV" else stage.labels)[key] = value.strip('"')
        elif name == "USER":
            stage.user = text
        else:
            setattr(stage, {"ENTRYPOINT": "entry", "CMD": "words"}[name], json.loads(text))
    return stage


def check_stdio(stage):
    """The entry point answers over stdio, and knows that its root is read-only."""
    server, called = programs.exchange(stage.serve(*stage.words), programs.QUERY)
    assert server["version"] == metadata.VERSION
    assert json.loads(called["content"][0]["text"])["patterns"][0]["id"] == "TMKB-AUTH-001"


def check_confinement(stage):
    """What the entry point may do: it is not root, writes nowhere, and has no network."""
    program = "import os, pathlib, socket; print(os.getuid(), os.getgid())\n"
    program += "for place in ('/', '/opt/tmkb', '/tmp', '/root'):\n try: pathlib.Path(place, 'x').touch(); print('wrote', place)\n except OSError: pass\n"
    program += "try: socket.create_connection(('192.0.2.1', 80), 1); print('network')\nexcept OSError: pass"
    stage.entry, entry = ["python", "-c", program], stage.entry
    done = subprocess.run(stage.serve(), capture_output=True, text=True, check=True)
    stage.entry = entry
    assert done.stdout.split() == stage.user.split(":"), done.stdout


def check_http(stage):
    """With arguments, it serves over HTTP on all addresses; a client in the same network needs the token."""
    token = "0" * 64
    with open(os.path.join(stage.root, "tokens"), "w", encoding="utf-8") as file:
        file.write(hashlib.sha256(token.encode()).hexdigest())
    words = ["serve", "--http", f"0.0.0.0:{PORT}", "--auth-tokens", "/tokens"]
    client = f"""
import json, time, urllib.error, urllib.request
body = {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {{"protocolVersion": "{programs.REVISION}", "capabilities": {{}}, "clientInfo": {{"name": "run", "version": "1"}}}}}}
def post(headers):
    accepted = {{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}}
    request = urllib.request.Request("http://127.0.0.1:{PORT}/mcp", json.dumps(body).encode(), {{**accepted, **headers}})
    for _ in range(300):
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.1)
print(post({{}}), post({{"Authorization": "Bearer {token}"}}))
"""
    command = stage.serve(*words, network=True)
    script = command[-1].replace("exec chroot", "chroot", 1)
    command[-1] = f"({script}) & {shlex.join([sys.executable, '-c', client])}; kill %1 2>/dev/null; exit 0"
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == ["401", "200"], done.stdout + done.stderr


def main():
    """Carry out the file, and check the result. 0 if that is not possible here."""
    missing = [name for name in ("debootstrap", "unshare", "chroot") if not shutil.which(name)]
    if sys.platform != "linux" or os.geteuid() or missing:
        print(f"The image is not tried: that needs root on Linux{' and ' if missing else ''}{', '.join(missing)}")
        return 1 if os.environ.get("CI") else 0
    with tempfile.TemporaryDirectory() as place:
        stage = build(place)
        assert stage.labels["io.modelcontextprotocol.server.name"] == metadata.registry_name(), stage.labels
        assert stage.labels["org.opencontainers.image.source"] == metadata.url("Repository"), stage.labels
        assert stage.labels["org.opencontainers.image.licenses"] == metadata.project()["license"], stage.labels
        check_stdio(stage)
        check_confinement(stage)
        check_http(stage)
        size = subprocess.run(
            ["du", "-sm", os.path.join(stage.root, "opt")], capture_output=True, text=True, check=True
        )
        print(
            f"The image adds {size.stdout.split()[0]} MB to its base, and answers over stdio and HTTP as user {stage.user}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

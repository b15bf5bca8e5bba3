"""The clients that people use, against a real ``tmkb serve``: do they connect, and what do they say?

    python -m tests.clients.run [--agents] [--record] [NAME…]

Installs pinned releases below ``.cache`` (Node included, so that none has to be there), runs each client in a scratch
home without an account, and checks what it reports. Coding agents are large, and run only when they are asked for; they
list the server in all projects after `tmkb install`, and in none after `--uninstall`. What each sends to the default
server is kept under ``conformance/clients/``, where every test run replays it; here only its methods are compared, and
``--record`` writes it anew. Conversations of clients in other modes, or with the server everything, are not kept: no two
are the same.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

from tests.support import packages
from tests.support.process import SERVE, HttpServer

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AGENTS = os.path.join(HERE, "agents")
FIXTURES = os.path.join(ROOT, "conformance", "sysmcp", "fixtures", "config.yaml")
OLDER = ("mcp-1.30", "mcp==1.30.0")
OLDER_PYTHON, MODULES = "a Python with the older client", "where the packages are"  # known when they are installed
ANSWER = ["tmkb_query", "TMKB-AUTH-001", "Invalid language 'java'. Supported languages: python"]
FEATURES = [
    "tools", "structured output", "progress", "logging", "sampling", "elicitation", "elicitation by url", "roots",
    "resources", "subscription", "changed lists", "prompts", "completion", "ping meanwhile", "cancellation",
]  # fmt: skip
WORKS = [f"{feature} ok" for feature in FEATURES]
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}  # and what they speak with us
STATELESS = [
    "tools", "structured output", "progress", "logging", "sampling", "elicitation", "elicitation by url",
    "several questions", "several rounds", "a prompt that asks", "roots", "resources", "changed lists", "prompts",
    "completion", "cancellation",
]  # fmt: skip
INSPECTOR = ["mcp-inspector", "--cli", "--format", "json", "-q"]
MODERN = [*INSPECTOR, "--protocol-era", "modern"]


# Each client: commands that run one after the other with the server as their last words; what they have to print.

RECORDED = {
    "python-sdk": ([[sys.executable, os.path.join(HERE, "sdk.py")]], ANSWER),
    "python-sdk-1.30": ([[OLDER_PYTHON, os.path.join(HERE, "sdk.py")]], ANSWER),
    "typescript-sdk": ([["node", os.path.join(HERE, "sdk.mjs"), MODULES]], ANSWER),
    "inspector": (
        [[*INSPECTOR, "--method", "tools/list", "--"],
         [*INSPECTOR, "--method", "tools/call", "--tool-name", "tmkb_query",
          "--tool-args-json", '{"context":"background job processing"}', "--"]],
        ANSWER[:2],
    ),
    "claude-code": ([["claude", "mcp", "add", "-s", "user", "tmkb", "--"], ["claude", "mcp", "list", "#"]], ["✔ Connected"]),
    "gemini-cli": ([["gemini", "mcp", "add", "-s", "user", "tmkb"], ["gemini", "mcp", "list", "#"]], ["Connected"]),
    "opencode": ([["opencode", "mcp", "add", "tmkb", "--"], ["opencode", "mcp", "list", "#"]], ["connected"]),
}  # fmt: skip
PYTHON_MODES = [sys.executable, os.path.join(HERE, "modes.py")]
TYPESCRIPT_MODES = ["node", os.path.join(HERE, "modes.mjs"), MODULES]
QUERYING = {  # these may try 2026-07-28 first, or speak nothing else
    **{f"python-{mode}": ([[*PYTHON_MODES, mode]], [f"speaks {MODES[mode]}", "query ok"]) for mode in MODES},
    **{f"typescript-{mode}": ([[*TYPESCRIPT_MODES, mode]], [f"speaks {MODES[mode]}", "query ok"]) for mode in MODES},
    "inspector-modern": (
        [[*MODERN, "--method", "tools/list", "--strict", "--"],
         [*MODERN, "--method", "tools/call", "--tool-name", "tmkb_query",
          "--tool-args-json", '{"context":"background job processing"}', "--"]],
        [*ANSWER[:2], "io.modelcontextprotocol/serverInfo"],
    ),
    "inspector-auto": ([[*INSPECTOR, "--protocol-era", "auto", "--method", "tools/list", "--"]], ANSWER[:1]),
}  # fmt: skip
USING = {  # these use every feature of the server everything; the older Python client cannot say that it gives up
    "python-everything-1.30": ([[OLDER_PYTHON, os.path.join(HERE, "everything.py")]], WORKS[:-1]),
    "python-everything": ([[sys.executable, os.path.join(HERE, "everything.py")]], WORKS),
    "typescript-everything": ([["node", os.path.join(HERE, "everything.mjs"), MODULES]], WORKS),
    **{
        f"python-everything-{mode}": (
            [[*PYTHON_MODES, mode]],
            [f"speaks {MODES[mode]}", *(WORKS if mode == "legacy" else [f"{feature} ok" for feature in STATELESS])],
        )
        for mode in MODES
    },
    **{
        f"typescript-everything-{mode}": (
            [[*TYPESCRIPT_MODES, mode]],
            [f"speaks {MODES[mode]}", *[f"{feature} ok" for feature in STATELESS]],
        )
        for mode in MODES
    },
    "inspector-everything": (
        [[*MODERN, "--method", "tools/call", "--tool-name", "test_roots", "--tool-args-json", "{}", "--"],
         [*MODERN, "--method", "tools/call", "--tool-name", "slow_compute",
          "--tool-args-json", '{"seconds":0.1,"label":"as a task"}', "--"],
         [*MODERN, "--method", "resources/read", "--uri", "test://static-text", "--"],
         [*MODERN, "--method", "prompts/get", "--prompt-name", "test_simple_prompt", "--"]],
        ["Roots: []", "as a task: done", "This is the content of the static text resource.", "This is a simple prompt for testing."],
    ),
}  # fmt: skip
SYSTEM = {  # these call the six tools of the server sysmcp
    f"{language}-system-{mode}": ([[*words, mode]], [f"speaks {revision}", "six tools ok"])
    for language, words in {"python": PYTHON_MODES, "typescript": TYPESCRIPT_MODES}.items()
    for mode, revision in MODES.items()
}
OVER_HTTP = {  # the same, over HTTP
    f"{name}-http": commands
    for name, commands in (QUERYING | USING | SYSTEM).items()
    if not name.startswith("inspector")
}
WORKERS = {"python-2026-07-28-http", "typescript-2026-07-28-http"}  # are served by two processes
CLIENTS = RECORDED | QUERYING | USING | SYSTEM | OVER_HTTP
INSTALLED = {  # client of `tmkb install` → the command that lists its servers, what that prints with ours
    "claude-code": (["claude", "mcp", "list"], "✔ Connected"),
    "gemini": (["gemini", "mcp", "list"], "Connected"),
    "opencode": (["opencode", "mcp", "list"], "connected"),
    "codex": (["codex", "mcp", "list", "--json"], '"args": [\n        "serve"'),  # starts no server
}
INSTALLATIONS = {f"install-{name}": name for name in INSTALLED}
AGENT = {"claude-code", "gemini-cli", "opencode", *INSTALLATIONS}


def run(name, home):
    """What the client printed, and the messages that it sent over stdio; "#" stands for: without the server's command."""
    log, project = os.path.join(home, "sent"), os.path.join(home, "project")
    modules = packages.for_node(AGENTS, complete=False) if name in AGENT else packages.for_node(HERE)
    environment = prepared(home, project, modules)
    printed = ""
    with served(name, log) as server:
        for command in CLIENTS[name][0]:
            words = command[:-1] if command[-1] == "#" else [*command, *server]
            words = [{MODULES: modules, OLDER_PYTHON: sys.executable}.get(word, word) for word in words]
            older = os.pathsep.join([packages.for_python(*OLDER), ROOT]) if OLDER_PYTHON in command else ROOT
            done = subprocess.run(
                words,
                cwd=project,
                env={**environment, "PYTHONPATH": older},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
            printed += done.stdout + done.stderr
    lines = packages.read(log).splitlines() if os.path.exists(log) else []
    return printed, [json.loads(line) for line in lines]


def prepared(home, project, modules):
    """Make a home with a project that is trusted; return the environment of a client there."""
    os.makedirs(os.path.join(home, ".gemini"))
    os.makedirs(project)
    with open(os.path.join(home, ".gemini", "trustedFolders.json"), "w", encoding="utf-8") as file:
        json.dump({project: "TRUST_FOLDER"}, file)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL", "XDG_"))}
    return packages.with_node({**kept, "HOME": home, "PYTHONPATH": ROOT, "NO_COLOR": "1"}, modules)


def installed(client, home):
    """What is wrong: `tmkb install` in one project, the client's list of servers in another, `--uninstall`, the list again."""
    project, elsewhere = os.path.join(home, "project"), os.path.join(home, "elsewhere")
    environment = prepared(home, elsewhere, packages.for_node(AGENTS, complete=False))
    os.makedirs(project)
    listing, sign = INSTALLED[client]
    tmkb = [sys.executable, "-m", "tmkb", "install", client, "--force"]
    wrong = []
    for command, folder, expected in [
        (tmkb, project, "tmkb is added to"),
        (listing, elsewhere, sign),
        (tmkb, elsewhere, "tmkb is already installed in"),
        ([*tmkb, "--uninstall"], project, "tmkb is removed from"),
        (listing, elsewhere, None),
    ]:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=180, check=False,
        )  # fmt: skip
        printed = done.stdout + done.stderr
        if done.returncode or (sign in printed if expected is None else expected not in printed):
            wrong.append(f"{command}\n{printed[-2000:]}")
    return wrong


@contextlib.contextmanager
def served(name, log):
    """The words that tell a client how to reach its server: a command, or the address of one that runs."""
    arguments = ["--server", "everything"] if name.removesuffix("-http") in USING else []
    if name.removesuffix("-http") in SYSTEM:
        arguments = ["--server", "sysmcp", "--config", FIXTURES]
    if name not in OVER_HTTP:
        yield [sys.executable, os.path.join(HERE, "tap.py"), log, *SERVE, *arguments]
        return
    with HttpServer(*arguments, *(["--workers", "2"] if name in WORKERS else [])) as server:
        yield [server.address]


def connections(messages):
    """The messages by connection: each begins with its handshake."""
    found = []
    for message in messages:
        if message.get("method") == "initialize" or not found:
            found.append([])
        found[-1].append(message)
    return found


def transcript(name):
    """The path of the transcript of a client."""
    return os.path.join(ROOT, "conformance", "clients", f"{name}.yaml")


def record(name, messages):
    """Write what the client sent in its first connection as a transcript; `tmkb replay --update` adds the answers."""
    first = connections(messages)[0]
    info, revision = first[0]["params"]["clientInfo"], first[0]["params"]["protocolVersion"]
    lines = [
        "# yaml-language-server: $schema=../transcript.schema.yaml",
        "kind: transcript",
        f"title: What {name} says when it connects",
        f"about: Recorded from {info['name']} {info['version']}.",
        "requirement: clients.served",
        "server: tmkb",
        f'revisions: ["{revision}"]',
        "opening: none",
        "",
        "exchanges:",
    ]
    for message in first:
        lines += [f"  - send: {json.dumps(message, ensure_ascii=False)}", "    expect: []"]
    os.makedirs(os.path.dirname(transcript(name)), exist_ok=True)
    with open(transcript(name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run([sys.executable, "-m", "tmkb", "replay", "--update", transcript(name)], cwd=ROOT, check=True)


def recorded(name):
    """The methods of a client's transcript, in their order."""
    sent = [
        line.partition("send: ")[2] for line in packages.read(transcript(name)).splitlines() if "  - send: " in line
    ]
    return [json.loads(message).get("method") for message in sent]


def main():
    """Run the clients; 1 where one does not connect, or says something else than its transcript has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, *INSTALLATIONS, []], help="only these clients")
    parser.add_argument("--agents", action="store_true", help="coding agents too")
    parser.add_argument("--record", action="store_true", help="write the transcripts anew")
    arguments = parser.parse_args()
    failed = 0
    everyone = [*CLIENTS, *INSTALLATIONS]
    for name in arguments.names or [name for name in everyone if arguments.agents or name not in AGENT]:
        with tempfile.TemporaryDirectory() as home:
            if name in INSTALLATIONS:
                wrong = installed(INSTALLATIONS[name], home)
                failed += bool(wrong)
                print(f"{name:32} {'FAILED' if wrong else 'ok'}", *wrong, sep="\n    " if wrong else "", flush=True)
                continue
            printed, messages = run(name, home)
        missing = [text for text in CLIENTS[name][1] if text not in printed]
        if arguments.record and not missing and name in RECORDED:
            record(name, messages)
        methods = [message.get("method") for message in connections(messages)[0]] if messages else []
        other = not missing and name in RECORDED and methods != recorded(name)
        failed += bool(missing or other)
        said = " ".join(map(str, methods)) if name in RECORDED else f"{len(methods)} messages"
        print(f"{name:32} {'FAILED' if missing or other else 'ok':7} {said}", flush=True)
        if missing:
            print(f"    did not print {missing}:\n{printed[-2000:]}")
        if other:
            print(f"    its transcript has {' '.join(map(str, recorded(name)))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

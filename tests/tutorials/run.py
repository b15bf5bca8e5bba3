"""The tutorials for servers of other SDKs: each block runs, and prints what the document shows.

    python -m tests.tutorials.run [NAME…]

FastMCP, the TypeScript SDK and Node are installed below `.cache`, with this checkout as a package beside FastMCP.
"""

import os
import re
import subprocess
import sys
import tempfile

from tests.support import packages

FASTMCP = "fastmcp==4.1.2"
CLIENTS = os.path.join(packages.ROOT, "tests", "clients")  # its packages contain the SDK
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MARK = "===== next block"
TUTORIALS = ["tutorial-fastmcp", "tutorial-typescript"]


def main(names):
    """Print each tutorial and whether it is true; 1 if one is not."""
    failed = False
    for name in names or TUTORIALS:
        with tempfile.TemporaryDirectory() as folder:
            fault = difference(name, folder)
        print(f"{name}: {fault or 'ok'}", flush=True)
        failed = failed or bool(fault)
    return int(failed)


def difference(name, folder):
    """Run a tutorial in ``folder``; return the first block that prints something else than is shown."""
    place = packages.environment("tutorial", FASTMCP, "pytest", "-e", f"{packages.ROOT}[replay]")
    modules = packages.for_node(CLIENTS)
    os.symlink(os.path.join(modules, "node_modules"), os.path.join(folder, "node_modules"))
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL", "PYTHON"))}
    environment = packages.with_node(kept)
    environment["PATH"] = os.path.join(place, packages.BINARIES) + os.pathsep + environment["PATH"]
    blocks = [*written(packages.read(os.path.join(packages.ROOT, "docs", f"{name}.md")))]
    script = f"\necho '{MARK}'\n".join(code for code, _ in blocks)
    done = subprocess.run(
        ["sh", "-s"],
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**environment, "TERM": "dumb"},
        text=True,
        timeout=900,
        check=False,
    )
    printed = done.stdout.split(MARK + "\n")
    if len(printed) != len(blocks):
        return f"ends early:\n{done.stdout}"
    for (code, shown), output in zip(blocks, printed, strict=True):
        if shown is not None and not re.fullmatch(form(shown) + r"\s*", output):
            return f"{code}\nshown:\n{shown}\nprinted:\n{output}"
    if (unknown := re.search(r"Traceback|command not found|^usage:", done.stdout, re.M)) is not None:
        return f"{unknown[0]}:\n{done.stdout}"
    return ""


def written(text):
    """Yield the code of each shell block and what it is shown to print, or None; files are written before."""
    code = ""
    blocks = [*FENCE.finditer(text)]
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        kind, body = block.groups()
        if path := re.match(r"(?:#|//) (\S+\.(?:py|mjs))\n", body):
            code += f"cat > {path[1]} <<'THE FILE'\n{body}THE FILE\n"
        if kind == "sh":
            shown = following and following[1] == "text" and not text[block.end() : following.start()].strip()
            yield code + body, following[2] if shown else None
            code = ""


def form(shown):
    """A regular expression for what is shown: `…` is what was left out, alone on a line any number of lines."""
    lines = [
        r"(?:[^\n]*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n"
        for line in shown.splitlines()
    ]
    return "".join(lines).rstrip("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

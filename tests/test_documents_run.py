"""What the documents have a reader type gives what they show: each section runs in a shell, in a scratch folder."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.repository import ROOT, source

pytestmark = pytest.mark.full

MARK = "===== next block"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
CLIENTS = re.compile(r"^(claude|codex|gemini|opencode|code) ", re.M)  # programs that a reader may have
NOT_HERE = "python3 -m venv"  # what README's own test does


def sections(name, wanted=""):
    """(title, text, what comes before) of each section at level two, of those that match ``wanted``."""
    parts = re.split(r"^## ", source(os.path.join(ROOT, "docs", name)), flags=re.M)[1:]
    return [
        (part.partition("\n")[0], part, preamble(name))
        for part in parts
        if re.match(wanted, part) and "```sh\n" in part
    ]


def typed(text):
    """(shell code, what it is shown to print or None) of each shell block; files with a path on top are saved first."""
    found, code = [], ""
    blocks = list(FENCE.finditer(text))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        kind, body = block.groups()
        if kind in ("yaml", "python") and (path := re.match(r"# (\S+\.(yaml|py))\n", body)):
            code += f"mkdir -p $(dirname {path[1]}); cat > {path[1]} <<'THE FILE'\n{body}THE FILE\n"
        if kind == "sh" and not CLIENTS.search(body) and NOT_HERE not in body:
            shown = following and following[1] == "text" and not text[block.end() : following.start()].strip()
            body = re.sub(r"^pip install .*$", "", body, flags=re.M)  # what the tests need is installed
            found.append((code + body, following[2] if shown else None))
            code = ""
    return found


def form(shown):
    """A regular expression for what is shown: `…` is what was left out, alone on a line any number of lines."""
    lines = [
        r"(?:[^\n]*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n"
        for line in shown.splitlines()
    ]
    return "".join(lines).rstrip("\n")


def preamble(name):
    """What a document has its reader do once; this checkout and its environment are there already."""
    text = re.split(r"^## ", source(os.path.join(ROOT, "docs", name)), maxsplit=1, flags=re.M)[0]
    code = "".join(body for kind, body in FENCE.findall(text) if kind == "sh")
    return re.sub(r"^(\. \.venv/bin/activate|CHECKOUT=.*)$", "", code, flags=re.M)


SECTIONS = [
    *sections("tutorial.md"),
    *sections("clients.md", "Serve your own patterns"),
    *sections("server.md"),
    *sections("howto.md"),
    *sections("pattern-guide.md"),
    *sections("own-patterns.md", "From|Change"),
    *sections("replay.md", "Call|Compare"),
    *sections("sysmcp.md"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(("title", "text", "before"), SECTIONS, ids=[title for title, *_ in SECTIONS])
def test_section(tmp_path, title, text, before):
    blocks = typed(text)
    for name in ("patterns", "conformance", "schemas", "docs"):
        os.symlink(os.path.join(ROOT, name), tmp_path / name)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TMKB_", "LOG_LEVEL"))}
    environment = {
        **kept,
        "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
        "TERM": "dumb",
        "CHECKOUT": ROOT,
    }
    script = f"\necho '{MARK}'\n".join(code for code, _ in blocks)
    done = subprocess.run(
        ["sh", "-s"],
        input=before + script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env=environment,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout.split(MARK + "\n")

    assert len(printed) == len(blocks), done.stdout
    for (code, shown), output in zip(blocks, printed, strict=True):
        if shown is not None:
            assert re.fullmatch(form(shown) + r"\s*", output), f"{code}\nshown:\n{shown}\nprinted:\n{output}"

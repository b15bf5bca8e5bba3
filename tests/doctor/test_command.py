"""`tmkb doctor` as a command: what it prints, its exit status, and that its bundle has no secrets."""

import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from tests.doctor.conftest import SERVE
from tests.support.process import HttpServer
from tmkb.doctor import ourselves, plan

pytestmark = pytest.mark.process

SECRETS = {
    "variable": "correcthorsebatterystaple",
    "short": "hunter2",
    "header": "hdr-9f8e7d6c5b4a3210",
    "argument": "arg-0a1b2c3d4e5f",
    "option": "opensesame-please",
    "url": "url0secret1in2query3",
    "password": "pw-in-url-77",
    "path": "a1b2c3d4e5f6a7b8c9d0e1f2",
    "environment": "env-of-the-user-31337",
    "token": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "gitlab": "glpat" + "-0123456789abcdefghij",
    "pypi": "pypi" + "-AgEIcHlwaS5vcmcCJDAxMjM0NTY3",
    "e-mail": "somebody@example.org",
}


@pytest.fixture
def doctor(home, run_tmkb, monkeypatch):
    """Run the command without the checks of the installation, which need seconds; gives status, stdout, stderr."""
    monkeypatch.setattr(ourselves, "CHECKS", (ourselves.interpreter,))
    monkeypatch.setattr(plan.own_server, "server", lambda *_: ())
    return lambda *words: run_tmkb("doctor", *words)


def test_all_is_well(home, doctor):
    home.claude(**SERVE)
    status, out, err = doctor("claude-code")

    assert (status, err) == (0, "")
    assert re.fullmatch(
        r"tmkb \S+, Python \S+, \S+\n\nNo problems in \d+ checks; -v lists them\. Entries that work: Claude Code\.\n",
        out,
    )


def test_what_was_checked(home, doctor):
    home.claude(**SERVE)
    _, out, _ = doctor("claude-code", "-v")

    assert re.search(
        r"^Claude Code\n  fine  entry  ~/\.claude\.json:3:5\n    The entry `tmkb` of the scope user\.$", out, re.M
    )
    assert "first answer after" in out


def test_a_problem_with_its_fix(home, doctor):
    home.claude(command=str(home.folder / "gone" / "tmkb"))
    status, out, _ = doctor("claude-code")

    assert status == 1
    assert out.split("\n\n")[1:] == [
        "Claude Code\n  error  command-missing  ~/.claude.json:3:5\n    The command ~/gone/tmkb does not exist.\n"
        "    Fix: Run `tmkb install claude-code --force`.",
        "1 error in 8 checks. docs/troubleshooting.md explains each.\n",
    ]


def test_json(home, doctor):
    home.claude(command=str(home.folder / "gone" / "tmkb"))
    status, out, _ = doctor("claude-code", "--json")
    values = json.loads(out)

    assert (status, values["level"]) == (1, "error")
    assert [(each["id"], each["file"], each["line"]) for each in values["findings"] if each["level"] == "error"] == [
        ("command-missing", str(home.folder / ".claude.json"), 3)
    ]


def test_warnings_alone_are_no_failure(home, doctor):
    home.write(".cursor/mcp.json", {"mcpServers": {"tmkb": {**SERVE, "disabled": True}}})
    status, out, _ = doctor("cursor")

    assert status == 0
    assert "1 warning in" in out


def test_an_unknown_client(doctor):
    status, _, err = doctor("claud-code")

    assert status == 2
    assert "Did you mean 'claude-code'?" in err


def test_clients_without_an_entry_are_no_problem_unless_they_are_named(home, doctor):
    home.write(".cursor/mcp.json", {"mcpServers": {}})

    status, out, _ = doctor()
    assert (status, out.split(". ")[-1]) == (0, "No client has an entry: `tmkb install` adds one.\n")
    status, out, _ = doctor("cursor", "zed")
    assert status == 1
    assert re.findall(r"error  (\S+)", out) == ["entry-expected", "client-expected"]


def test_a_check_that_fails_does_not_stop_the_others(home, doctor, monkeypatch):
    def fails():
        raise RuntimeError("no such thing")
        yield

    home.claude(command=str(home.folder / "gone" / "tmkb"))
    monkeypatch.setattr(ourselves, "CHECKS", (fails,))
    _, out, _ = doctor("claude-code")

    assert "The check `fails` failed itself: RuntimeError: no such thing." in out
    assert "command-missing" in out


def staged(home, monkeypatch):
    """Plant secrets wherever a bundle could take them from."""
    monkeypatch.setenv("DEPLOY_TOKEN", SECRETS["environment"])
    home.environment["DEPLOY_TOKEN"] = SECRETS["environment"]
    env = {"ACME": SECRETS["variable"], "PIN": SECRETS["short"]}
    words = [*SERVE["args"], "--token", SECRETS["option"], SECRETS["argument"]]
    url = f"https://me:{SECRETS['password']}@127.0.0.1:1/mcp/{SECRETS['path']}?key={SECRETS['url']}"
    headers = {"Authorization": f"Bearer {SECRETS['header']}", "X-Other": SECRETS["header"]}
    home.write(
        ".config/Claude/claude_desktop_config.json",
        {"mcpServers": {"tmkb": {**SERVE, "args": words, "env": env}, "other": {"command": "x", "env": env}}},
    )
    home.write(".cursor/mcp.json", {"mcpServers": {"tmkb": {"url": url, "headers": headers}}})
    folder = str(home.folder)
    said = f"tmkb spawn ENOENT {' '.join(SECRETS.values())} {url} {folder}/x {folder.replace('/', '-')} {folder[1:]}/y"
    home.write(".config/Claude/logs/mcp-server-tmkb.log", f"{said}\n")
    noisy = home.program("tmkb", f"import os, sys\nprint({said!r}, flush=True)\nprint({said!r}, file=sys.stderr)\n")
    home.write(
        ".codeium/windsurf/mcp_config.json", {"mcpServers": {"tmkb": {"command": noisy, "env": env, "args": words}}}
    )


def test_no_secret_is_in_the_output_or_the_bundle(home, doctor, monkeypatch, tmp_path):
    staged(home, monkeypatch)
    file = tmp_path / "report.zip"
    status, out, err = doctor("claude-desktop", "cursor", "windsurf", "--bundle", file, "-v")

    assert (status, err) == (1, f"Wrote {file}. Read it before you publish it.\n")
    data = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {"doctor.txt", "doctor.json", "versions.json", "configurations.json", "logs/1.txt"} <= {*members}
    everything = "\n".join([out, data.decode("latin-1"), *members, *members.values()])
    assert [name for name, secret in SECRETS.items() if secret in everything] == []
    assert str(home.folder)[1:] not in "\n".join(members.values())
    assert str(home.folder).replace("/", "-") not in everything
    assert "log-not-found" in members["doctor.txt"]
    (entry,) = [
        each
        for each in json.loads(members["configurations.json"])
        if "entry" in each and each["client"] == "claude-desktop"
    ]
    assert entry["entry"]["env"] == {"ACME": "***", "PIN": "***"}
    assert entry["entry"]["args"][:3] == SERVE["args"]
    assert oct(os.stat(file).st_mode & 0o777) == "0o600"


def test_a_bundle_has_dates_of_toml(home, doctor, tmp_path):
    home.write(
        ".codex/config.toml", '[mcp_servers.tmkb]\ncommand = "/gone/tmkb"\nargs = ["serve"]\nsince = 2026-01-02\n'
    )
    doctor("codex", "--bundle", tmp_path / "report.zip")

    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        (entry,) = [each["entry"] for each in json.loads(archive.read("configurations.json")) if "entry" in each]
    assert entry["since"] == "2026-01-02"


def test_a_bundle_replaces_no_file(home, doctor, tmp_path):
    file = tmp_path / "report.zip"
    file.write_text("mine")
    status, _, err = doctor("cursor", "--bundle", file)

    assert (status, file.read_text()) == (2, "mine")
    assert err == f"tmkb: {file} exists. Choose another name for the bundle.\n"


def test_a_bundle_that_cannot_be_written(home, doctor, tmp_path):
    status, _, err = doctor("cursor", "--bundle", tmp_path / "nothing" / "report.zip")

    assert status == 2
    assert err.endswith("report.zip: No such file or directory.\n")


@pytest.mark.needs("uvicorn", "httpx2")
def test_a_server_over_http(doctor):
    with HttpServer() as server:
        status, out, _ = doctor("--http", server.address, "-v")

    assert status == 0
    assert re.search(
        r"fine  http-answers\n    The server answers clients over HTTP, with the revisions 2025-11-25, 2026-07-28", out
    )


@pytest.mark.needs("uvicorn")
def test_a_wrong_path_over_http(doctor):
    with HttpServer() as server:
        status, out, _ = doctor("--http", server.address.replace("/mcp", "/"))

    assert (status, re.findall(r"error  (\S+)", out)) == (1, ["http-not-mcp"])


@pytest.mark.needs("uvicorn")
def test_a_server_that_does_not_encrypt(doctor):
    with HttpServer() as server:
        _, out, _ = doctor("--http", server.address.replace("http:", "https:"))

    assert re.findall(r"error  (\S+)", out) == ["http-not-encrypted"]


@pytest.mark.needs("uvicorn")
def test_a_token_that_is_refused(doctor, tmp_path):
    (tmp_path / "tokens").write_text(hashlib.sha256(b"right").hexdigest() + "\n")
    (tmp_path / "tokens").chmod(0o600)
    with HttpServer("--auth-tokens", str(tmp_path / "tokens")) as server:
        without, wrong = (
            re.findall(r"error  (\S+)", doctor("--http", server.address, *words)[1])
            for words in ((), ("--header", "Authorization: Bearer wrong-0123456789abcdef"))
        )

    assert (without, wrong) == (["http-unauthorized"], ["http-token-refused"])


def test_a_free_port(doctor):
    status, out, _ = doctor("--http", "http://127.0.0.1:9/mcp")

    assert status == 1
    assert "Fix: Start `tmkb serve --http 127.0.0.1:9`." in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process(home, number):
    source = f"import os, time\nwith open('{home.folder}/pid.part', 'w') as file:\n    file.write(str(os.getpid()))\n"
    source += f"os.rename('{home.folder}/pid.part', '{home.folder}/pid')\ntime.sleep(600)\n"
    home.claude(command=home.program("tmkb", source))
    code = "import sys\nfrom tmkb.doctor import ourselves, plan\nfrom tmkb.cli.main import main\n"
    code += "ourselves.CHECKS = ()\nplan.own_server.server = lambda *_: ()\nsys.exit(main(['doctor', 'claude-code']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=home.environment, cwd=home.project, stderr=subprocess.PIPE
    )
    with process:
        until = time.monotonic() + 60
        while not (home.folder / "pid").exists():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)

    assert b"Traceback" not in err
    until = time.monotonic() + 60
    while _is_alive((home.folder / "pid").read_text()):
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_alive(pid):
    try:
        os.kill(int(pid), 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

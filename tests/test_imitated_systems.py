"""Windows and macOS as `tests/support/imitation` imitates them: what it shows there is documented in docs/platforms.md."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.support import imitation
from tests.support.imitation import imitated_system
from tests.support.process import HttpServer, Server
from tests.support.repository import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems are imitated on Linux")

# Modules of the default tier that run as a whole in a process of the system
SAMPLE = [
    "tests/clients",
    "tests/schema/test_reader.py",
    "tests/schema/test_textfile.py",
    "tests/server/test_cache.py",
    "tests/transport/test_framing.py",
    "tests/transport/test_threads.py",
]


# The folder of the start-up cache below the home folder, as `tmkb.server.cache.folder` has it there
CACHES = {"win32": "AppData/Local/tmkb/cache", "darwin": "Library/Caches/tmkb"}


@pytest.fixture(params=imitation.SYSTEMS)
def new_system(request, monkeypatch, tmp_path):
    """The system that all processes of a test imitate; the home folder is that of the test."""
    for variable, value in imitation.environment(request.param).items():
        monkeypatch.setenv(variable, value)
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    (tmp_path / "home").mkdir()
    return request.param


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The cache of each system, for the next test."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def system(new_system, tmp_path, kept):
    """A system whose cache is that of an earlier test, which saves seconds."""
    cache = tmp_path / "home" / CACHES[new_system]
    if (kept / new_system).exists():
        shutil.copytree(kept / new_system, cache)
    yield new_system
    if cache.exists():
        shutil.copytree(cache, kept / new_system, ignore=shutil.ignore_patterns("*.*.*"), dirs_exist_ok=True)


def run(*words, **options):
    """Run a command; gives its exit status, and what it writes as bytes."""
    done = subprocess.run([sys.executable, "-m", "tmkb", *words], capture_output=True, check=False, **options)
    return done.returncode, done.stdout, done.stderr.decode("utf-8")


@pytest.mark.full
@pytest.mark.parametrize("name", imitation.SYSTEMS)
def test_modules_of_the_default_tier_pass(name):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "imitated_pytest", "-p", "no:cacheprovider", *SAMPLE]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **imitation.environment(name)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-5000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 500


@pytest.mark.process
def test_a_server_answers_in_order(system):
    with Server() as server:
        server.handshake()
        assert "TMKB-AUTH" in json.dumps(server.query(context="delete an invoice"))
        server.send(*[{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(2000)])
        rest, status = server.end()

        assert [answer["id"] for answer in rest] == list(range(2000))
        assert status == 0
        assert not any("Traceback" in line for line in server.log)


@pytest.mark.process
def test_the_second_start_reads_the_cache(new_system, tmp_path):
    for _ in range(2):
        with Server() as server:
            server.ask("ping")
            assert server.end()[1] == 0

    names = os.listdir(tmp_path / "home" / CACHES[new_system])
    assert len([name for name in names if name.endswith(".json")]) == 2
    assert not [name for name in names if name.count(".") > 1]  # temporary files


@pytest.mark.process
def test_an_idle_server_ends_when_its_reader_disconnects(system):
    with Server(read_stdout=False) as server:
        server.process.stdout.close()

        assert server.wait() == 0


@pytest.mark.process
@pytest.mark.needs("uvicorn")
def test_a_server_over_http(system):
    import urllib.request

    with HttpServer() as server:
        with urllib.request.urlopen(server.address.rsplit("/", 1)[0] + "/healthz", timeout=60) as answer:
            assert answer.status == 200
        assert not any("Traceback" in line for line in server.log)


@pytest.mark.process
@pytest.mark.needs("uvicorn")
def test_what_windows_lacks_is_refused_with_a_sentence(monkeypatch):
    for variable, value in imitation.environment("win32").items():
        monkeypatch.setenv(variable, value)
    status, _, stderr = run("serve", "--uds", "x.sock")
    assert (status, "Traceback" in stderr) == (2, False)
    assert "--uds" in stderr
    status, _, stderr = run("serve", "--http", "127.0.0.1:0", "--workers", "2")
    assert (status, "Traceback" in stderr) == (2, False)
    assert "--workers" in stderr


FILES = {
    ("cursor", "win32"): ".cursor/mcp.json",
    ("cursor", "darwin"): ".cursor/mcp.json",
    ("vscode", "win32"): "AppData/Roaming/Code/User/mcp.json",
    ("vscode", "darwin"): "Library/Application Support/Code/User/mcp.json",
    ("claude-desktop", "darwin"): "Library/Application Support/Claude/claude_desktop_config.json",
    ("zed", "win32"): "AppData/Roaming/Zed/settings.json",
    ("goose", "darwin"): ".config/goose/config.yaml",
    ("codex", "win32"): ".codex/config.toml",
}


@pytest.mark.process
@pytest.mark.parametrize("client", ["cursor", "vscode", "claude-desktop", "zed", "goose", "codex"])
def test_install_writes_the_file_of_the_client(system, tmp_path, client):
    if (client, system) not in FILES:
        pytest.skip("another client shows it")
    file = tmp_path / "home" / FILES[client, system]
    status, _, stderr = run("install", client, "--force", cwd=tmp_path)

    assert (status, "Traceback" in stderr) == (0, False), stderr
    content = file.read_bytes()
    assert b"tmkb" in content and b"\r" not in content
    assert run("install", client, "--uninstall", cwd=tmp_path)[0] == 0
    assert not file.exists() or b"serve" not in file.read_bytes()


@pytest.mark.process
def test_lines_of_a_command_end_as_on_the_system(system):
    status, stdout, _ = run("query", "delete an invoice")

    assert status == 0
    assert stdout.count(b"\r\n") == (stdout.count(b"\n") if system == "win32" else 0)


@pytest.mark.process
def test_a_process_finds_names_without_case(system, tmp_path):
    (tmp_path / "Pattern.YAML").write_text("x: 1\n")
    status, _, stderr = run("validate", str(tmp_path / "PATTERN.yaml"))

    assert status != 0
    assert "No such file" not in stderr


@pytest.mark.process
def test_the_imitation_fails_where_windows_fails(tmp_path):
    """The traps that the other tests rely on."""
    (tmp_path / "file").write_bytes(b"a\r\nb\x1ac")
    code = f"""
        import os, pytest, select, signal, subprocess, sys
        assert (sys.platform, os.sep, os.linesep) == ("win32", chr(92), "\\r\\n")
        os.chdir({str(tmp_path)!r})
        assert os.getcwd() == {imitated_system.windows_path(str(tmp_path))!r}
        for module, name in ((os, "fork"), (select, "poll"), (signal, "SIGKILL"), (os, "O_NOFOLLOW"), (os, "geteuid")):
            assert not hasattr(module, name), name
        with pytest.raises(ImportError):
            import fcntl
        descriptor = os.open("FILE", os.O_RDONLY)
        assert os.read(descriptor, 10) == b"a\\nb"
        for change in (lambda: os.replace("other", "file"), lambda: os.remove("file")):
            open("other", "w", encoding="utf-8").close()
            with pytest.raises(PermissionError):
                change()
        os.close(descriptor)
        os.replace("other", "file")
        open("other", "wb").close()
        with pytest.raises(FileExistsError):
            os.rename("other", "file")
        with pytest.raises(OSError):
            open("a:b", "wb")
        with pytest.raises(OSError):
            select.select([os.pipe()[0]], [], [], 0)
        with open("text", "w") as file:
            file.write("é\\n")
        with open("text", "rb") as file:
            assert file.read() == b"\\xe9\\r\\n"
    """
    lines = [line[8:] for line in code.splitlines()]
    source = "import sys\nexec(sys.stdin.read(), {'__package__': 'tests'})"
    environment = {**os.environ, **imitation.environment("win32")}
    done = subprocess.run(
        [sys.executable, "-c", source],
        input="\n".join(lines),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")

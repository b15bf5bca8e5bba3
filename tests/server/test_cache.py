"""The start-up cache: it never changes an answer, and nothing that happens to its file matters."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tmkb
from tests.support.process import SERVE, Server
from tmkb.cli import main
from tmkb.knowledge.provider import Knowledge
from tmkb.server import cache

HEAD = {"spec": {"a": 1}, "facts": {}, "warnings": []}
SECTIONS = {"one": {"x": "é\n"}, "two": {}}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    return Path(cache.folder())


@pytest.fixture
def source(tmp_path):
    """A folder with a file in it, both old enough."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "file").write_text("1")
    age(folder)
    return folder


def age(folder):
    """Let the race window pass: what was changed just now is not kept."""
    time.sleep(0.15)


def keep(source, request):
    cache.write(request, cache.stamps([str(source)]), cache.entry(HEAD, SECTIONS))


def test_an_entry_is_read_back(home, source):
    keep(source, {"server": "x"})
    found = cache.read({"server": "x"})

    assert found.head == HEAD
    assert (found.section("one"), found.section("two")) == ({"x": "é\n"}, {})
    assert cache.read({"server": "y"}) is None


def test_a_new_entry_equals_a_cached_one(home, source):
    fresh = cache.entry(HEAD, SECTIONS)

    assert (fresh.head, fresh.section("one")) == (HEAD, SECTIONS["one"])


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "file").write_text("2"),
        lambda folder: (folder / "new").write_text(""),
        lambda folder: (folder / "file").unlink(),
        lambda folder: os.utime(folder / "file", ns=(1, 1)),
        lambda folder: (folder / "file").rename(folder / "other"),
        lambda folder: (folder / "file").chmod(0o600),
    ],
)
def test_a_changed_source_makes_it_stale(home, source, change):
    keep(source, {})
    assert cache.read({})
    change(source)

    assert cache.read({}) is None


def test_a_source_that_appears_or_vanishes_makes_it_stale(home, tmp_path, source):
    missing = tmp_path / "missing"
    cache.write({}, cache.stamps([str(missing)]), cache.entry(HEAD, SECTIONS))
    assert cache.read({})
    missing.mkdir()
    assert cache.read({}) is None


def test_the_same_content_with_the_same_time_in_a_new_file_is_stale(home, source):
    keep(source, {})
    status = (source / "file").stat()
    (source / "copy").write_text("1")
    os.utime(source / "copy", ns=(status.st_atime_ns, status.st_mtime_ns))
    (source / "copy").replace(source / "file")

    assert cache.read({}) is None


@pytest.mark.parametrize("name", ["__pycache__", "node_modules"])
def test_what_tools_fill_is_no_source(home, source, name):
    keep(source, {})
    (source / name).mkdir()
    stamps = cache.stamps([str(source)])

    assert not any(name in str(stamp[0]) for stamp in stamps)


def test_a_source_that_changes_while_it_is_read_is_not_cached(home, source):
    stamps = cache.stamps([str(source)])
    (source / "file").write_text("2")
    cache.write({}, stamps, cache.entry(HEAD, SECTIONS))

    assert cache.read({}) is None


def test_a_source_that_has_just_changed_is_not_cached(home, source):
    (source / "file").write_text("2")
    keep(source, {})

    assert cache.read({}) is None


def test_every_truncation_and_every_flipped_byte_is_noticed(home, source):
    keep(source, {})
    path = cache.path({})
    whole = Path(path).read_bytes()
    for length in range(0, len(whole), 7):
        with open(path, "wb") as file:
            file.write(whole[:length])
        assert cache.read({}) is None
    for at in range(0, len(whole), 5):
        with open(path, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.read({}) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner there")
def test_a_file_that_others_could_have_written_does_not_count(home, source):
    keep(source, {})
    os.chmod(cache.path({}), 0o666)
    assert cache.read({}) is None
    os.chmod(cache.path({}), 0o600)
    if os.geteuid() == 0:
        os.chown(cache.path({}), 12345, 12345)
        assert cache.read({}) is None


def test_other_users_cannot_read_the_cache(home, source):
    keep(source, {})

    assert os.stat(cache.path({})).st_mode & 0o077 == 0
    assert os.stat(cache.folder()).st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_written_is_no_error(home, source):
    home.parent.parent.mkdir(parents=True, exist_ok=True)
    home.parent.write_text("a file stands where the folder would be")
    keep(source, {})

    assert cache.read({}) is None
    assert cache.files() == []


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", "{home}/cache/tmkb"), ("darwin", "{home}/Library/Caches/tmkb"), ("win32", "{home}/local/tmkb/cache")],
)
def test_the_folder_is_the_platforms(monkeypatch, tmp_path, home, platform, folder):
    monkeypatch.setattr(cache.sys, "platform", platform)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))

    assert cache.folder() == os.path.normpath(folder.format(home=tmp_path))


def whole(folder):
    """The names in the cache folder."""
    return sorted(os.listdir(folder))


def test_the_oldest_entries_make_room(home, source, monkeypatch):
    monkeypatch.setattr(cache, "MAX_FILES", 3)
    for number in range(5):
        keep(source, {"number": number})
        os.utime(cache.path({"number": number}), (1000 + number, 1000 + number))
        if number == 2:  # used again, so another one goes
            assert cache.read({"number": 0})

    assert [number for number in range(5) if cache.read({"number": number})] == [0, 3, 4]
    assert len(cache.files()) == 3


def test_the_newest_entry_stays_and_the_rest_fits_the_bytes(home, source, monkeypatch):
    keep(source, {"number": 0})
    size = os.path.getsize(cache.path({"number": 0}))
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * size + 20)
    for number in range(1, 4):
        os.utime(cache.path({"number": number - 1}), (1000 + number, 1000 + number))
        keep(source, {"number": number})
    assert [number for number in range(4) if cache.read({"number": number})] == [2, 3]

    monkeypatch.setattr(cache, "MAX_BYTES", 1)
    keep(source, {"number": 9})
    assert [number for number in range(10) if cache.read({"number": number})] == [9]


def test_content_is_kept_in_a_file_that_entries_share(home, source):
    kept = cache.keep(b"content")
    cache.write({"server": "x"}, cache.stamps([str(source), kept]), cache.entry(HEAD, SECTIONS))

    assert Path(kept).read_bytes() == b"content"
    assert os.path.dirname(kept) == str(home)
    before = os.stat(kept).st_ino
    assert cache.keep(b"content") == kept and os.stat(kept).st_ino == before
    assert cache.read({"server": "x"})

    os.remove(kept)
    assert cache.read({"server": "x"}) is None
    os.mkdir(kept)
    assert cache.keep(b"content") is None


def test_content_stays_as_long_as_an_entry_names_it(home, source, monkeypatch):
    monkeypatch.setattr(cache, "MAX_FILES", 2)
    old, used, new = map(cache.keep, (b"old", b"used", b"new"))
    for content in (old, used):
        os.utime(content, (1, 1))
    for number, content in enumerate([old, used, used]):
        cache.write({"number": number}, cache.stamps([str(source), content]), cache.entry(HEAD, SECTIONS))
        os.utime(cache.path({"number": number}), (1000 + number, 1000 + number))

    assert [number for number in range(3) if cache.read({"number": number})] == [1, 2]
    assert not os.path.exists(old)
    assert os.path.exists(new)  # no entry names it yet: the process that has written it may still write one


def test_files_of_others_and_of_processes_that_still_write_stay(home, source):
    keep(source, {})
    stays = ["notes.json", "12345678.txt", "0a1b2c3d.json.new"]
    for name in [*stays, "0a1b2c3d.json.4711", "0a1b2c3d.json.x_y"]:
        (home / name).write_text("")
        if name != "0a1b2c3d.json.new":
            os.utime(home / name, (1000, 1000))
    keep(source, {"another": 1})

    assert whole(home) == sorted([*stays, *(os.path.basename(cache.path(each)) for each in ({}, {"another": 1}))])


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are not made there without a privilege")
def test_no_link_in_the_folder_is_followed(home, source, tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    home.mkdir(parents=True)
    monkeypatch.setattr("tempfile._get_candidate_names", lambda: iter(["link", "free"]))
    for name in (f"{cache.path({})}.{os.getpid()}", f"{cache.path({})}.link", cache.path({})):
        os.symlink(victim, name)
    assert cache.read({}) is None
    keep(source, {})

    assert victim.read_text() == "untouched"
    assert cache.read({}) and not os.path.islink(cache.path({}))

    os.rename(cache.path({}), tmp_path / "entry")
    os.symlink(tmp_path / "entry", cache.path({}))
    assert cache.read({}) is None


def test_an_entry_without_the_sources_of_its_request_does_not_count(home, source):
    cache.write({}, [], cache.entry(HEAD, SECTIONS))
    assert cache.read({})
    assert cache.read({}, [str(source)]) is None

    keep(source, {})
    assert cache.read({}, [str(source)])


@pytest.mark.skipif(sys.platform != "linux", reason="the variable is that of the XDG specification")
def test_a_relative_folder_for_caches_is_ignored(home, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cloned")
    assert cache.folder() == str(tmp_path / ".cache" / "tmkb")
    monkeypatch.setenv("HOME", "cloned")
    keep(source, {})

    assert cache.read({}) is None
    assert not (tmp_path / "cloned").exists()


def owned_by_another(folder):
    os.chown(folder, 12345, 12345)


def linked(folder):
    os.rename(folder, f"{folder}.clone")
    os.symlink(f"{folder}.clone", folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owner there")
@pytest.mark.parametrize("spoil", [owned_by_another, linked, lambda folder: folder.chmod(0o777)])
def test_a_folder_that_other_users_control_is_ignored(home, source, spoil):
    if spoil is owned_by_another and os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    keep(source, {})
    assert cache.read({})
    spoil(home)
    before = os.listdir(home)
    keep(source, {"another": 1})

    assert cache.read({}) is None
    assert cache.files() == []
    assert os.listdir(home) == before


def test_a_change_in_a_linked_folder_makes_it_stale(home, source, tmp_path):
    real = tmp_path / "real"
    (real / "pattern").mkdir(parents=True)
    (real / "pattern" / "file").write_text("1")
    (real / "pattern" / "loop").symlink_to(real)
    (source / "link").symlink_to(real / "pattern")
    age(source)
    keep(source, {})
    assert cache.read({})
    (real / "pattern" / "file").write_text("2")

    assert cache.read({}) is None


def test_too_many_sources_are_not_cached(home, source, monkeypatch):
    (source / "link").symlink_to("/")
    monkeypatch.setattr(cache, "MAX_STAMPS", 50)
    age(source)
    keep(source, {})

    assert len(cache.stamps([str(source)])) == 51
    assert cache.read({}) is None


@pytest.mark.parametrize("fails", ["replace", "write"])
def test_a_write_that_fails_leaves_nothing(home, source, monkeypatch, fails):
    """A full disk; on Windows also a file that another process has open."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    class Full(io.BytesIO):
        write = fail

    if fails == "replace":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(os, "fdopen", lambda descriptor, *_: os.close(descriptor) or Full())
    keep(source, {})

    assert whole(home) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFO")
def test_a_fifo_in_the_place_of_the_file_is_passed_over(home, source):
    home.mkdir(parents=True)
    os.mkfifo(cache.path({}))

    assert cache.read({}) is None


def test_the_time_of_last_use_has_a_resolution_of_a_day(home, source):
    keep(source, {})
    now = time.time()
    for age, is_touched in ((3600, False), (200_000, True)):
        os.utime(cache.path({}), (now - age, now - age))
        assert cache.read({})
        assert (os.stat(cache.path({})).st_mtime > now - 60) == is_touched


def test_a_path_in_a_request_may_not_be_utf8(home, source):
    request = {"folder": os.fsdecode(b"/tmp/\xff")}
    keep(source, request)

    assert cache.read(request).head == HEAD


# The server


def answers(*arguments, env=None):
    """What a server says to a fixed conversation, and its log."""
    with Server(*arguments, env=env) as server:
        server.handshake()
        said = [
            server.ask("tools/list"),
            server.query(context="celery"),
            server.query(context="celery", verbosity="human"),
        ]
        server.end()
        return said, server.log


@pytest.mark.process
def test_answers_are_the_same_with_and_without(home):
    cold, kept, warm, without = answers(), cache.files(), answers(), answers("--no-cache")

    assert cold == warm == without
    assert len(kept) == 2  # the server, and its patterns
    assert cache.files() == kept


def test_the_current_folder_matters_only_where_problems_name_files(home, tmp_path, patterns, monkeypatch):
    folder = patterns("acme_auth_001", "acme_auth_024")
    age(folder)
    for given in (["packaged"], [str(folder)]):
        before = len(cache.files())
        for current in ("/", tmp_path):
            monkeypatch.chdir(current)
            tmkb.Server.load(patterns=given)
        assert len(cache.files()) == before + 2
    assert tmkb.Server.load(patterns=["patterns"]).facts["patterns"] == 2
    assert len(cache.files()) == 4

    (folder / "acme_auth_024" / "secure.py").unlink()
    age(folder)
    lines = []
    for current in ("/", tmp_path, folder, "/"):
        monkeypatch.chdir(current)
        lines.append(str(tmkb.Server.load(patterns=[str(folder)]).warnings))
    assert lines[0] == lines[3] and len(set(lines)) == 3


@pytest.mark.process
@pytest.mark.parametrize("words", [["--patterns", "packaged"], ["--patterns", "relative"], []])
@pytest.mark.skipif(sys.platform == "win32", reason="the current folder cannot be deleted")
def test_a_deleted_current_folder_is_no_reason_to_fail(home, tmp_path, words):
    code = (
        "import os, sys; folder = sys.argv.pop(1); os.mkdir(folder); os.chdir(folder); os.rmdir(folder);"
        "from tmkb.cli.main import main; sys.exit(main(['serve', *sys.argv[1:]]))"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "gone"), *words]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)

    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert (b"relative" in done.stderr) == ("relative" in words)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="paths are UTF-8 there")
def test_a_path_may_be_not_utf8(home, tmp_path, patterns):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.rename(patterns("acme_auth_024"), folder)
    for words in (["serve", "--patterns"], ["validate"], ["list", "--patterns"]):
        command = [sys.executable, "-m", "tmkb", *words, folder]
        done = subprocess.run(command, input=b"", capture_output=True, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.process
def test_a_change_takes_effect_at_the_next_start(home, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    age(folder)
    before = answers("--patterns", str(folder))
    path = folder / "acme_auth_001" / "pattern.yaml"
    path.write_text(path.read_text().replace("severity: high", "severity: low"))
    after = answers("--patterns", str(folder))

    assert before[0] != after[0]
    assert answers("--patterns", str(folder)) == after
    (folder / "acme_auth_024" / "pattern.yaml").unlink()
    assert "1 patterns loaded" in answers("--patterns", str(folder))[1][0]


@pytest.mark.process
def test_warnings_are_logged_at_every_start(home, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_024" / "secure.py").unlink()
    age(folder)

    first, second = answers("--patterns", str(folder)), answers("--patterns", str(folder))
    assert first == second
    assert "This folder has no .py file secure.py" in second[1][1]


@pytest.mark.process
def test_invalid_schemas_are_never_cached(home, overlay):
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {made_up: {}}\n")
    for _ in range(2):
        done = subprocess.run([*SERVE, "--schemas", folder], input=b"", capture_output=True, check=False)
        assert done.returncode == 2
    assert cache.files() == []


@pytest.mark.process
def test_an_unwritable_cache_only_makes_the_start_slower(home, tmp_path):
    (tmp_path / "cache").write_text("no folder")

    assert answers()[1][-1] == "[INFO] MCP server shutdown"


@pytest.mark.process
def test_a_corrupt_cache_is_rebuilt(home):
    expected = answers()
    files = {Path(path): Path(path).read_bytes() for path in cache.files()}
    for spoil in (b"", b"tmkb-cache 1 00000000\n{}", b"\x00" * 1000, None):
        for path, content in files.items():
            path.write_bytes(content[:-1] if spoil is None else spoil)
        assert answers() == expected
    assert answers() == expected


def prepared(monkeypatch):
    """The settings of each call of `Knowledge.prepare` from now on."""
    calls = []
    original = Knowledge.prepare
    monkeypatch.setattr(Knowledge, "prepare", lambda settings: calls.append(settings) or original(settings))
    return calls


def test_patterns_are_read_once_for_all_schemas(home, overlay, patterns, monkeypatch):
    calls = prepared(monkeypatch)
    folder = patterns("acme_auth_001", "acme_auth_024")
    age(folder)
    for name in ("one", "two"):
        schemas = overlay(servers__tmkb__server=f"kind: server\nextends: packaged\ntitle: {name}\n")
        age(Path(schemas))
        found = tmkb.Server.load(patterns=[str(folder)], schemas=[schemas])
        assert found.spec["server"]["title"] == name
    assert (len(calls), found.facts["patterns"]) == (1, 2)

    (folder / "acme_auth_024" / "pattern.yaml").unlink()
    age(folder)
    assert tmkb.Server.load(patterns=[str(folder)], schemas=[schemas]).facts["patterns"] == 1
    assert len(calls) == 2


def test_patterns_with_problems_are_read_again(home, patterns, monkeypatch):
    calls = prepared(monkeypatch)
    folder = patterns("acme_auth_001", "acme_auth_024")
    (folder / "acme_auth_024" / "secure.py").unlink()
    age(folder)
    for server in ("tmkb", "tmkb-full"):
        assert tmkb.Server.load(server, patterns=[str(folder)]).warnings
    assert len(calls) == 2 == len(cache.files())


@pytest.mark.process
def test_many_that_start_at_once_do_not_disturb_each_other(home):
    servers = [Server() for _ in range(6)]
    for server in servers:
        server.handshake()
    said = [server.query(context="celery") for server in servers]
    for server in servers:
        server.end()
        server.__exit__()

    assert all(each == said[0] for each in said)
    assert len(cache.files()) == 2
    for file in cache.files():
        assert cache.read(json.loads(Path(file).read_bytes().split(b"\n")[1])["request"])


@pytest.mark.process
def test_being_killed_while_it_is_written_leaves_no_broken_one(home, source):
    code = (
        "import sys; from tmkb.server import cache\n"
        f"stamps = cache.stamps([{str(source)!r}])\n"
        "entry = cache.entry({'spec': 1}, {'big': {'x': 'y' * 5_000_000}})\n"
        "cache.write({}, stamps, entry)\n"
        "print(flush=True)\n"
        "while True: cache.write({}, stamps, entry)\n"
    )
    for number in range(12):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            process.stdout.readline()  # one has been written
            time.sleep(number * 0.013)
            process.send_signal(signal.SIGKILL)
        found = cache.read({})
        assert found is not None
        assert len(found.section("big")["x"]) == 5_000_000


# The command


@pytest.mark.process
def test_the_command_shows_and_clears(home, capsys):
    answers()
    files = cache.files()

    assert main.main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert cache.folder() in shown and all(os.path.basename(file) in shown for file in files)
    assert main.main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": cache.folder(),
        "files": [{"file": file, "bytes": os.path.getsize(file)} for file in files],
    }
    assert main.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == "2 files deleted.\n"
    assert cache.files() == []
    assert main.main(["cache"]) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="only /proc shows whether a process is there")
@pytest.mark.process
def test_a_child_process_ends_with_its_parent():
    code = (
        "import os, time; from tmkb.server import child\n"
        "def work():\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
        "child.result(work)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        process.kill()
    for _ in range(100):
        try:
            if ") Z" in Path(f"/proc/{child}/stat").read_text():
                return
        except OSError:
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("it goes on")

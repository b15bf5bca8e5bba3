"""Values that are written: into hives that other readers understand, or not at all."""

import base64
import glob
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sysmcp.hives import SETTINGS, WRITABLE, Place, made, mutant, refusal, sealed
from tests.sysmcp.operations import run
from tmkb.sysmcp import faults
from tmkb.sysmcp.registry import hivex, value

pytestmark = pytest.mark.needs("Registry", "libhivex.so.0")
DWORD = {"valueName": "x", "type": "REG_DWORD"}
names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\/\ufffd"), min_size=1, max_size=40)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
data = {
    "REG_NONE": st.binary(max_size=100).map(lambda raw: base64.b64encode(raw).decode()),
    "REG_SZ": texts,
    "REG_EXPAND_SZ": texts,
    "REG_BINARY": st.binary(max_size=16344).map(lambda raw: base64.b64encode(raw).decode()),
    "REG_DWORD": st.integers(0, 2**32 - 1),
    "REG_MULTI_SZ": st.lists(texts.filter(bool), max_size=4),
    "REG_QWORD": st.integers(0, 2**64 - 1).map(str),
}
typed = st.sampled_from(sorted(data)).flatmap(lambda type_: st.tuples(st.just(type_), data[type_]))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("hive"))


def test_a_value_is_set_changed_and_deleted(place):
    assert place.write(**DWORD, data=5) == {
        "path": WRITABLE,
        "action": "set",
        "valueName": "x",
        "old": None,
        "new": {"name": "x", "type": "REG_DWORD", "data": 5, "size": 4},
        "backup": os.listdir(place.backups)[0],
        "dryRun": False,
    }
    changed = place.write(valueName="X", type="REG_SZ", data="five")
    assert (changed["old"]["data"], changed["new"]["name"]) == (5, "x")
    assert place.value("x")["data"] == "five"
    assert place.write(valueName="x", action="deleteValue")["new"] is None
    assert refusal(place.read, WRITABLE, valueName="x")[0] == "value_not_found"
    assert [value["name"] for value in place.read(WRITABLE)["values"]] == ["multi", "q"]


def test_keys_are_created(place):
    place.write(f"{WRITABLE}\\a", action="createKey")
    assert refusal(place.write, f"{WRITABLE}\\b\\c", action="createKey")[0] == "key_not_found"
    place.write(f"{WRITABLE}\\b\\c", action="createKey", createMissing=True)
    assert refusal(place.write, f"{WRITABLE}\\d", **DWORD, data=1)[0] == "key_not_found"
    place.write(f"{WRITABLE}\\d\\e", **DWORD, data=1, createMissing=True)
    assert refusal(place.write, f"{WRITABLE}\\f", action="deleteValue", createMissing=True)[0] == "key_not_found"

    assert place.read(WRITABLE)["subkeys"] == ["a", "b", "d"]
    assert place.value("x", f"{WRITABLE}\\D\\E")["data"] == 1


def test_the_default_value(place):
    place.write(type="REG_SZ", data="default")

    assert place.value("")["data"] == "default"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names, names, typed)
def test_other_libraries_read_the_written_values(shared, key, name, pair):
    libregf = pytest.importorskip("pyregf", reason="needs libregf-python")
    regipy = pytest.importorskip("regipy.registry", reason="needs regipy")
    type_, given_ = pair
    path = f"{WRITABLE}\\{key}"
    shared.write(path, valueName=name, type=type_, data=given_, createMissing=True)
    raw, number = value.to_bytes(type_, given_), value.NAMES.index(type_)

    result = shared.value(name, path)
    assert (result["type"], result["size"]) == (type_, len(raw))
    assert result["data"] == (int(given_) if type_ == "REG_QWORD" and int(given_) <= 2**53 else given_)

    file = libregf.file()
    file.open(shared.hive)
    theirs = file.get_root_key().get_sub_key_by_path(f"SysMCP\\Writable\\{key}")
    found = next(each for each in theirs.values if (each.name or "").lower() == name.lower())
    assert found.type == number
    if len(raw) not in (1, 2, 3):  # which libregf reads from the wrong end of the four bytes where they stand
        assert (found.data or b"") == raw
    file.close()

    parent = regipy.RegistryHive(shared.hive).get_key("\\SysMCP\\Writable")
    assert parent.subkey_count == shared.read(WRITABLE)["subkeyCount"]
    if type_ == "REG_BINARY" and f"{key}{name}".isascii():  # other names regipy reads as another code page
        theirs = next(each for each in parent.iter_subkeys() if each.name == theirs.name).iter_values()
        assert next(each.value for each in theirs if each.name.lower() == name.lower()) == raw.hex()


def test_an_unchanged_value_is_not_written(place):
    def written():  # without the time of access, which reading changes
        status = os.stat(place.hive)
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    place.write(**DWORD, data=1)
    before = written()
    again = place.write(**DWORD, data=1)
    place.write(action="createKey")

    assert (again["backup"], written()) == (None, before)


def test_a_dry_run_leaves_no_trace(place):
    before = place.bytes()
    result = place.write(f"{WRITABLE}\\a", **DWORD, data=1, createMissing=True, dryRun=True)

    assert (result["new"]["data"], result["backup"], result["dryRun"]) == (1, None, True)
    assert place.bytes() == before
    assert os.listdir(place.backups) == []
    assert sorted(os.listdir(os.path.dirname(place.hive))) == ["SYSTEM", "SYSTEM.lock", "audit", "backups"]


@pytest.mark.parametrize(
    ("now", "expected", "writes"),
    [
        (None, None, True),
        (None, 0, False),
        (1, 1, True),
        (1, None, False),
        (1, True, False),
        (1, 1.0, False),
        (1, "1", False),
        ("1", 1, False),
    ],
)
def test_a_value_is_written_only_if_the_current_one_is_expected(place, now, expected, writes):
    if now is not None:
        place.write(valueName="x", type="REG_SZ" if isinstance(now, str) else "REG_DWORD", data=now)
    if writes:
        assert place.write(**DWORD, data=9, expected=expected)["new"]["data"] == 9
    else:
        assert refusal(place.write, **DWORD, data=9, expected=expected)[0] == "value_changed"
        assert now is None or place.value("x")["data"] == now


def test_expectations_of_other_kinds(place):
    large = 2**60
    place.write(valueName="q", type="REG_QWORD", data=large)
    place.write(valueName="q", type="REG_QWORD", data=1, expected=large)
    place.write(valueName="q", type="REG_MULTI_SZ", data=["a"], expected=1)
    place.write(valueName="q", action="deleteValue", expected=["a"])
    assert refusal(place.write, action="createKey", expected=None)[0] == "value_changed"
    place.write(f"{WRITABLE}\\new", action="createKey", expected=None)


@pytest.mark.parametrize("path", [WRITABLE, "HKLM\\SYSTEM\\nope", "HKLM\\SAM", "HKLM\\SOFTWARE", "no path"])
def test_writing_is_disabled_by_default(tmp_path, path):
    place = Place(tmp_path, mode="read-only")

    assert refusal(place.write, path, **DWORD, data=1) == ("registry_read_only", {})


@pytest.mark.parametrize(
    "path",
    [
        *("HKLM\\SYSTEM", "HKLM\\SYSTEM\\Select", "HKLM\\SYSTEM\\SysMCPx", "HKLM\\SAM\\x", "HKLM\\SOFTWARE\\x"),
        "HKLM\\SYSTEM\\CurrentControlSet\\Services\\Demo",
    ],
)
def test_only_permitted_keys_are_written(place, path):
    refused = ("key_not_permitted", {"permitted": ["HKLM\\SYSTEM\\SysMCP"]})

    assert refusal(place.write, path, **DWORD, data=1) == refused
    assert not os.path.exists(f"{place.hive}.lock")


def test_the_selected_control_set_can_be_permitted(tmp_path):
    path = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\Demo"
    place = Place(tmp_path, write_allow=[path])
    place.write(path.lower(), valueName="Start", type="REG_DWORD", data=4)

    assert place.value("Start", path.replace("Current", "").replace("Set", "Set001"))["data"] == 4


@pytest.mark.parametrize(
    ("arguments", "error", "where"),
    [
        ({"valueName": "x"}, "bad_argument", "arguments.type"),
        ({"type": "REG_SZ"}, "bad_argument", "arguments.data"),
        ({"action": "createKey", "data": 1}, "bad_argument", "arguments.data"),
        ({"action": "deleteValue", "type": "REG_SZ"}, "bad_argument", "arguments.type"),
        ({"valueName": "a\0b", "type": "REG_SZ", "data": ""}, "bad_argument", "arguments.valueName"),
        ({"valueName": "\ud800", "type": "REG_SZ", "data": ""}, "bad_argument", "arguments.valueName"),
        ({"valueName": "\ufffd", "type": "REG_SZ", "data": ""}, "bad_argument", "arguments.valueName"),
        ({"path": f"{WRITABLE}\\\ufffd", "action": "createKey"}, "bad_argument", "arguments.path"),
        ({"type": "REG_DWORD", "data": "1"}, "data_mismatch", "arguments.data"),
        ({"type": "REG_SZ", "data": "\ud800"}, "data_mismatch", "arguments.data"),
        ({"type": "REG_SZ", "data": "x" * 8172}, "value_too_large", None),
    ],
)
def test_arguments_that_do_not_fit(place, arguments, error, where):
    result, fields = refusal(place.write, **arguments)

    assert (result, fields.get("path")) == (error, where)
    assert place.lines()[0]["outcome"] == error


def test_a_bin_of_a_million_cells_is_not_gone_through(place):
    data, size = bytearray(place.bytes()), 1 << 23
    free = struct.pack("<i", 8) + bytes(4)
    data[0x1008:0x100C] = struct.pack("<I", size)
    data[0x28:0x2C] = struct.pack("<I", size)
    place.put(sealed(data + free * ((size + 0x1000 - len(data)) // 8)))

    assert refusal(place.write, **DWORD, data=1) == ("hive_corrupt", {"hive": "HKLM\\SYSTEM"})


def test_a_value_that_would_not_survive_is_not_rewritten(place):
    whole = bytearray(place.bytes())
    multi = whole.index(b"multi", 0x1000) - 0x14
    struct.pack_into("<I", whole, multi + 4, 20000)
    place.put(sealed(whole))

    assert refusal(place.write, **DWORD, data=1) == ("value_too_large", {"limit": 16344})


def test_a_key_is_made_below_one_with_a_large_value(place):
    made(place.hive, 1, 1, lambda _: [("large", 3, bytes(range(250)) * 100)])
    place = Place(os.path.dirname(place.hive), write_allow=["HKLM\\SYSTEM\\Many"])
    key = "HKLM\\SYSTEM\\Many\\Group0000\\Key0000"
    place.write(f"{key}\\new", action="createKey")
    place.write(key, action="createKey")

    assert place.read(key)["subkeys"] == ["new"]
    assert base64.b64decode(place.value("large", key)["data"]) == bytes(range(250)) * 100
    assert refusal(place.write, key, **DWORD, data=1)[0] == "value_too_large"


def test_a_dirty_hive_is_not_written(place):
    whole = bytearray(place.bytes())
    whole[4] ^= 1
    place.put(whole)

    assert refusal(place.write, **DWORD, data=1) == ("hive_dirty", {"hive": "HKLM\\SYSTEM"})
    assert place.bytes() == whole


@pytest.mark.process
def test_writing_a_broken_hive_fails_or_makes_it_readable(place):
    """In a process of its own: the library could end it."""
    code = "import sys; from tests.sysmcp.served import test_hives_write as here; here.write_mutants(sys.argv[1])"
    ended = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(place.hive)],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert ended.returncode == 0, ended.stderr
    outcomes = json.loads(ended.stdout)
    assert outcomes.keys() <= {
        "ok",
        "hive_corrupt",
        "hive_dirty",
        "key_not_found",
        "value_too_large",
        "key_not_permitted",
    }
    assert outcomes["ok"] > 100 and outcomes["hive_corrupt"] > 100


def write_mutants(folder):
    """Write to 500 broken hives; print the number of each outcome."""
    place, outcomes = Place(folder, write_allow=["HKLM\\SYSTEM"]), {}
    chance, whole = random.Random(2), place.bytes()
    for number in range(500):
        place.put(before := mutant(chance, whole))
        try:
            if number % 2:
                place.write(**DWORD, data=number)
                assert place.value("x")["data"] == number
            else:
                place.write("HKLM\\SYSTEM\\ControlSet001\\Services\\a\\b", action="createKey", createMissing=True)
                assert place.read("HKLM\\SYSTEM\\ControlSet001\\Services\\A\\B")["dirty"] is False
            outcome = "ok"
        except AssertionError:
            raise
        except Exception as error:
            outcome = getattr(error, "error", repr(error))
            assert place.bytes() == before
        outcomes[outcome] = 1 + outcomes.get(outcome, 0)
    sys.stdout.write(json.dumps(outcomes))


def test_backups_are_the_newest_states_before(place):
    states = []
    for number in range(5):
        states.append(place.bytes())
        place.write(**DWORD, data=number)
    for foreign in ("HKLM-SYSTEM.txt", "SYSTEM.20200101T000000Z.1.bak", "HKLM-SYSTEM.20200101T000000Z.x.bak"):
        open(os.path.join(place.backups, foreign), "w").close()
    states.append(place.bytes())
    last = place.write(**DWORD, data=9)["backup"]

    kept = sorted(
        glob.glob(os.path.join(place.backups, "HKLM-SYSTEM.*.[0-9].bak")), key=lambda name: name.split(".")[-2]
    )
    assert [pathlib.Path(file).read_bytes() for file in kept] == states[-3:]
    assert os.path.basename(kept[-1]) == last
    assert len(os.listdir(place.backups)) == 6
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in kept} == {0o600}


def test_mode_and_owner_stay(place):
    os.chmod(place.hive, 0o640)
    if os.geteuid() == 0:
        os.chown(place.hive, 12, 34)
    before = os.stat(place.hive)
    place.write(**DWORD, data=1)
    after = os.stat(place.hive)

    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


@pytest.mark.parametrize("trick", ["link", "gone", "file"])
def test_without_a_backup_nothing_is_written(place, trick, tmp_path):
    os.rename(place.backups, tmp_path / "elsewhere")
    if trick == "link":
        os.symlink(tmp_path / "elsewhere", place.backups)
    elif trick == "file":
        open(place.backups, "w").close()
    before = place.bytes()

    assert refusal(place.write, **DWORD, data=1) == ("backup_unwritable", {})
    assert place.bytes() == before
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("trick", ["folder", "link"])
def test_without_an_audit_log_nothing_is_written(place, trick, tmp_path):
    if trick == "folder":
        os.mkdir(place.audit)
    else:
        os.symlink(tmp_path / "elsewhere", place.audit)
    before = place.bytes()

    assert refusal(place.write, **DWORD, data=1) == ("audit_unwritable", {})
    assert place.bytes() == before
    assert os.listdir(place.backups) == []
    assert place.read(WRITABLE)["valueCount"] == 2


@pytest.mark.parametrize("name", ["SYSTEM", "SYSTEM.lock", ".SYSTEM.draft"])
def test_no_link_is_followed(place, name, tmp_path):
    target, link = tmp_path / "target", tmp_path / name
    shutil.copyfile(place.hive, target)
    link.unlink(missing_ok=True)
    os.symlink(target, link)
    before = target.read_bytes()
    if name == ".SYSTEM.draft":
        place.write(**DWORD, data=1)  # what was left lying there has been removed
        assert not link.is_symlink()
    else:
        assert refusal(place.write, **DWORD, data=1) == ("hive_unavailable", {"hive": "HKLM\\SYSTEM"})

    assert target.read_bytes() == before


def test_the_audit_log_has_the_intent_the_outcome_and_no_data(place):
    place.write(valueName="x", type="REG_SZ", data="secret", expected=None)
    refusal(place.write, valueName="x", type="REG_SZ", data="other", expected="wrong")
    intent, ok, refused = place.lines()

    assert [line["outcome"] for line in (intent, ok, refused)] == ["intent", "ok", "value_changed"]
    assert intent["ref"] == ok["ref"] != refused["ref"]
    raw = value.to_bytes("REG_SZ", "secret")
    digest = hashlib.sha256(raw).hexdigest()
    assert intent["args"]["data"] == {"type": "REG_SZ", "size": len(raw), "sha256": digest}
    assert not any(word in json.dumps(place.lines()) for word in ("secret", "other", "wrong"))


def test_a_hive_changed_by_others_is_not_replaced(place):
    running = place.begin("write", path=WRITABLE, **DWORD, data=1)
    next(running)
    other = place.bytes().replace(b"Demo", b"Emod")
    place.put(other)

    assert refusal(run, running)[0] in ("hive_changed", "hive_unavailable")
    assert place.bytes() == other
    assert os.listdir(place.backups) == []


def test_a_hive_that_is_replaced_at_the_last_moment_is_not_replaced_again(place):
    running = place.begin("write", path=WRITABLE, **DWORD, data=1)
    other = place.bytes().replace(b"Demo", b"Emod")
    while not os.listdir(place.backups):
        next(running)
    place.put(other)

    assert refusal(run, running) == ("hive_changed", {"hive": "HKLM\\SYSTEM"})
    assert place.bytes() == other


def test_a_cancelled_write_changes_no_file(place):
    before = place.bytes()
    for steps in range(1, 6):
        running = place.begin("write", path=WRITABLE, **DWORD, data=1)
        for _ in range(steps):
            next(running)
        running.close()
        assert place.bytes() == before
        assert sorted(os.listdir(os.path.dirname(place.hive))) == ["SYSTEM", "SYSTEM.lock", "audit", "backups"]

    assert [line["outcome"] for line in place.lines()].count("cancelled") == 5
    place.write(**DWORD, data=1)


@pytest.fixture
def nobody():
    """A folder of root's, that everybody can look into; and not to be root any more."""
    if os.geteuid():
        pytest.skip("needs root, to be nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = Place(folder)
        os.chmod(place.hive, 0o644)
        yield place, lambda: os.seteuid(65534)
        os.seteuid(0)


@pytest.mark.parametrize("lacks", ["reading", "folder", "owner", "audit", "backups"])
def test_writes_without_permission(nobody, lacks):
    place, become = nobody
    before = place.bytes()
    os.chmod(place.backups, 0o755 if lacks == "backups" else 0o777)
    os.chmod(os.path.dirname(place.hive), 0o755 if lacks == "folder" else 0o777)
    if lacks == "reading":
        os.chmod(place.hive, 0o600)
    if lacks != "owner":
        os.chown(place.hive, 65534 if lacks != "reading" else 0, os.getegid())
    if lacks == "audit":
        pathlib.Path(place.audit).touch(0o600)
    become()
    result = {"audit": "audit_unwritable", "backups": "backup_unwritable"}.get(lacks, "hive_unavailable")

    assert refusal(place.write, **DWORD, data=1)[0] == result
    os.seteuid(0)
    assert place.bytes() == before


def test_waiting_for_the_lock_has_a_limit(tmp_path):
    place = Place(tmp_path, lock_seconds=0)
    first = place.begin("write", path=WRITABLE, **DWORD, data=1)
    next(first)

    assert refusal(place.write, **DWORD, data=2) == ("hive_busy", {"hive": "HKLM\\SYSTEM"})
    assert run(first)["new"]["data"] == 1
    assert place.write(**DWORD, data=2)["old"]["data"] == 1


def test_a_missing_writer_is_an_error(place, monkeypatch):
    def missing():
        raise faults.WriterMissing

    monkeypatch.setattr(hivex, "_library", missing)

    assert refusal(place.write, **DWORD, data=1) == ("hive_writer_missing", {})


WRITER = """
import sys
from tests.sysmcp.hives import Place
place = Place(sys.argv[1])
for number in range(30):
    place.write(valueName=sys.argv[2], type="REG_DWORD", data=number)
"""

# Begins a writer for each line that it reads, and tells its id, and when it has ended.
NURSERY = """
import os, sys
from tests.sysmcp.hives import Place
from tmkb.sysmcp.registry import hive, hivex, replacement, soundness
hivex.require()
for _ in sys.stdin:
    if not (pid := os.fork()):
        place, number = Place(sys.argv[1]), 0
        while True:
            number += 1
            place.write(valueName="x", type="REG_SZ", data=f"{number}:" + "x" * number)
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("ended", flush=True)
"""


@pytest.mark.process
def test_two_processes_write_one_after_the_other(place):
    folder = os.path.dirname(place.hive)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, name]) for name in ("a", "b")]

    assert [process.wait(120) for process in writers] == [0, 0]
    assert place.value("a")["data"] == place.value("b")["data"] == 29
    assert [line["outcome"] for line in place.lines()].count("intent") == 60


@pytest.mark.process
def test_a_writer_that_is_killed_leaves_the_state_before_or_after(place):
    folder, chance = os.path.dirname(place.hive), random.Random(3)
    command = [sys.executable, "-c", NURSERY, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        for _ in range(150):
            nursery.stdin.write("\n")
            nursery.stdin.flush()
            writer = int(nursery.stdout.readline())
            time.sleep(chance.random() * 0.03)
            os.kill(writer, signal.SIGKILL)
            assert nursery.stdout.readline() == "ended\n"
            check_state(place)

    place.write(**DWORD, data=7)  # no lock is stuck
    assert sorted(os.listdir(folder)) == ["SYSTEM", "SYSTEM.lock", "audit", "backups"]
    assert [name.startswith("HKLM-SYSTEM.") for name in os.listdir(place.backups)] == [True] * 3
    said = [line for line in place.lines() if line["tool"] == "reg_write"]
    intended = {line["ref"] for line in said if line["outcome"] == "intent"}
    done = {line["ref"] for line in said if line["outcome"] == "ok"}
    assert intended - done  # some were killed in between


def check_state(place):
    """Check that the hive is valid and contains the last completed write, or a later intended one."""
    found = place.read(WRITABLE)
    text = next((value["data"] for value in found["values"] if value["name"] == "x"), None)
    possible = {None}
    for line in place.lines():
        if line["tool"] == "reg_write":
            state = line["args"]["data"]["sha256"]
            possible = {state} if line["outcome"] == "ok" else {*possible, state}

    assert (found["dirty"], found["valueCount"]) == (False, 2 + (text is not None))
    assert (text and hashlib.sha256(value.to_bytes("REG_SZ", text)).hexdigest()) in possible


def test_the_settings_of_these_tests_are_settings():
    from tmkb.schema import metaschema, paths, reader

    text = json.dumps(
        {**SETTINGS, "mounts": {"HKLM\\SYSTEM": "x"}, "audit": "x", "backups": {"folder": "x", "keep": 3}}
    )
    schema = os.path.join(paths.SCHEMAS, "meta", "providers", "hives.yaml")

    assert [*metaschema.check(reader.parse(text, "settings"), schema)] == []
    alone = reader.parse(json.dumps({**SETTINGS, "mounts": {}}), "settings")
    assert len([*metaschema.check(alone, schema)]) == 2  # writing needs an audit log and backups

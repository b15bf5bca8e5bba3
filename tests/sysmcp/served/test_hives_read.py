"""Reading keys: results, permissions, and damaged hives."""

import base64
import os
import random
import struct
import sys

import pytest

from tests.sysmcp.hives import WRITABLE, Place, made, mutant, refusal, sealed

pytestmark = pytest.mark.needs("Registry")

needs_writer = pytest.mark.needs("libhivex.so.0")
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
DEMO = "HKLM\\SYSTEM\\ControlSet001\\Services\\Demo"
BROKEN = {"hive_corrupt", "hive_too_large", "key_not_found", "value_not_found"}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_key(place):
    assert place.read("HKLM\\SYSTEM\\CurrentControlSet\\Services\\Demo") == {
        "path": "HKLM\\SYSTEM\\CurrentControlSet\\Services\\Demo",
        "resolvedPath": DEMO,
        "lastWriteTime": "2026-11-21T07:23:51.592516Z",
        "dirty": False,
        "subkeyCount": 0,
        "valueCount": 3,
        "subkeys": [],
        "values": [
            {"name": "Start", "type": "REG_DWORD", "data": 2, "size": 4},
            {"name": "ImagePath", "type": "REG_EXPAND_SZ", "data": "%SystemRoot%\\demo.exe", "size": 44},
            {
                "name": "Blob",
                "type": "REG_BINARY",
                "data": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
                "encoding": "base64",
                "size": 64,
            },
        ],
    }


@pytest.mark.parametrize("path", [DEMO.lower(), DEMO.upper(), DEMO.replace("HKLM", "hkey_local_machine")])
def test_case_does_not_count(place, path):
    assert place.read(path)["resolvedPath"] == DEMO


@needs_writer
@pytest.mark.parametrize("denied", ["ControlSet001", "currentcontrolset"])
@pytest.mark.parametrize("requested", ["ControlSet001", "CurrentControlSet"])
def test_a_key_is_denied_under_both_names_of_the_control_set(tmp_path, denied, requested):
    services, demo = f"HKLM\\SYSTEM\\{denied}\\Services", f"HKLM\\SYSTEM\\{requested}\\Services\\Demo"
    place = Place(tmp_path, deny=[services], write_allow=[demo])

    assert refusal(place.read, demo) == ("key_not_permitted", {"permitted": ["HKLM\\SYSTEM"]})
    assert place.read(demo.rpartition("\\Services")[0])["subkeyCount"] == 2
    assert refusal(place.write, demo, type="REG_SZ", data="x") == ("key_not_permitted", {"permitted": [demo]})
    for allowed in (demo, "HKLM"):
        assert Place(tmp_path, deny=[services], read_allow=[allowed, f"{services}\\Demo"]).read(demo)["valueCount"] == 3


def test_one_value(place):
    found = place.read(DEMO, valueName="START")

    assert found["values"] == [{"name": "Start", "type": "REG_DWORD", "data": 2, "size": 4}]
    assert found["valueCount"] == 3 and "subkeys" not in found
    assert refusal(place.read, DEMO, valueName="")[0] == "value_not_found"
    assert refusal(place.read, DEMO, valueName="Start\0")[0] == "value_not_found"


@pytest.mark.parametrize(
    ("include", "there"), [("both", {"subkeys", "values"}), ("values", {"values"}), ("subkeys", {"subkeys"})]
)
def test_the_argument_include(place, include, there):
    assert set(place.read(DEMO, include=include)) & {"subkeys", "values"} == there


def test_pages_join_to_the_whole(place):
    whole = place.read("HKLM\\SYSTEM")["subkeys"]
    first = place.read("HKLM\\SYSTEM", limit=2)
    last = place.read("HKLM\\SYSTEM", limit=2, offset=first["nextOffset"])

    assert first["subkeys"] + last["subkeys"] == whole == ["ControlSet001", "Select", "SysMCP"]
    assert "nextOffset" not in last
    assert "nextOffset" not in place.read("HKLM\\SYSTEM", limit=3.0)
    assert place.read("HKLM\\SYSTEM", offset=1 << 40)["subkeys"] == []


def test_a_page_ends_before_it_grows_too_large(tmp_path):
    place = Place(tmp_path, answer_bytes=100)
    names, offset = [], 0
    while offset is not None:
        page = place.read(DEMO, offset=offset)
        names += [value["name"] for value in page["values"]]
        offset = page.get("nextOffset")

    assert names == ["Start", "ImagePath", "Blob"]


def test_a_large_value_is_cut(tmp_path):
    (cut,) = Place(tmp_path, value_bytes=20).read(DEMO, valueName="ImagePath")["values"]

    assert cut == {"name": "ImagePath", "type": "REG_EXPAND_SZ", "data": "%SystemRoo", "size": 44, "truncated": True}


@pytest.mark.parametrize("path", ["HKLM\\SYSTEM\\..\\SAM", "HKLM\\SYSTEM\\nope", "HKLM\\SYSTEM\\Select\\Current"])
def test_a_missing_key(place, path):
    assert refusal(place.read, path) == ("key_not_found", {"path": path})


@pytest.mark.parametrize("path", ["HKLM/SYSTEM", "HKLM\\SYSTEM\\", "HKLM\\a\0", "", "HKLM\\" + "a\\" * 1000])
def test_invalid_paths(place, path):
    assert refusal(place.read, path) == ("bad_key_path", {"path": "arguments.path", "received": path})


def test_a_path_of_a_thousand_names_is_read_quickly(place):
    assert refusal(place.read, "HKLM\\SYSTEM" + "\\a" * 1000)[0] == "key_not_found"


def test_the_error_does_not_reveal_whether_a_denied_key_exists(tmp_path):
    place = Place(tmp_path)
    place.provider = Place(
        tmp_path, mounts={"HKLM\\SYSTEM": place.hive, "HKLM\\SAM": place.hive, "HKLM\\SECURITY": place.hive}
    ).provider
    refused = {
        repr(refusal(place.read, path))
        for path in (
            "HKLM\\sam",
            "hkey_local_machine\\SAM\\Select",
            "HKLM\\Security\\x",
            "HKLM\\SOFTWARE",
            "HKCU",
            "HKLM",
        )
    }

    assert len(refused) == 1
    assert "key_not_permitted" in refused.pop()


def test_exceptions_from_denied_keys(tmp_path):
    place = Place(tmp_path)
    mounts = {"HKLM\\SAM": place.hive}

    assert refusal(Place(tmp_path, mounts=mounts).read, "HKLM\\SAM\\Select")[0] == "key_not_permitted"
    assert Place(tmp_path, mounts=mounts, read_allow=["HKLM\\SAM\\Select"]).read("HKLM\\sam\\select")["valueCount"] == 1
    assert (
        refusal(Place(tmp_path, mounts=mounts, read_allow=["HKLM\\SAM\\Select"]).read, "HKLM\\SAM")[0]
        == "key_not_permitted"
    )


def test_without_mounts_nothing_is_permitted(tmp_path):
    assert refusal(Place(tmp_path, mounts={}).read, "HKLM\\SYSTEM") == ("key_not_permitted", {"permitted": []})


def test_the_longest_mount_wins(tmp_path):
    place = Place(tmp_path)
    mounts = {"HKLM\\SYSTEM": place.hive, "HKLM\\SYSTEM\\Other": place.hive}

    assert (
        Place(tmp_path, mounts=mounts).read("HKLM\\system\\other\\select")["resolvedPath"]
        == "HKLM\\SYSTEM\\Other\\Select"
    )


def test_a_changed_hive_is_read_anew_and_an_old_one_from_memory(place):
    old = place.bytes()
    os.utime(place.hive, (0, 0))
    place.read(DEMO)
    assert place.provider.cached[1] == old
    place.put(old.replace(b"Demo", b"Emod"))

    assert refusal(place.read, DEMO)[0] == "key_not_found"
    assert place.read(DEMO.replace("Demo", "Emod"))["valueCount"] == 3


def test_a_dirty_hive_is_read_with_dirty_true(place):
    data = bytearray(place.bytes())
    data[4] ^= 1
    place.put(data)
    assert place.read(DEMO)["dirty"] is True
    data[4] ^= 1
    data[0x1FC] ^= 1
    place.put(data)
    assert place.read(DEMO)["dirty"] is True


@pytest.mark.parametrize("data", [b"", b"regf", b"x" * 9000, b"\0" * 4096, b"regf" + b"\0" * 9000])
def test_an_invalid_hive(place, data):
    place.put(data)

    assert refusal(place.read, DEMO) == ("hive_corrupt", {"hive": "HKLM\\SYSTEM"})


@posix
@pytest.mark.parametrize("kind", ["nothing", "folder", "link", "pipe", "loop"])
def test_a_hive_must_be_a_regular_file(place, kind, tmp_path):
    os.rename(place.hive, tmp_path / "elsewhere")
    if kind == "folder":
        os.mkdir(place.hive)
    elif kind == "link":
        os.symlink(tmp_path / "elsewhere", place.hive)
    elif kind == "pipe":
        os.mkfifo(place.hive)
    elif kind == "loop":
        os.symlink(place.hive, place.hive)

    assert refusal(place.read, DEMO) == ("hive_unavailable", {"hive": "HKLM\\SYSTEM"})


def test_a_hive_that_is_too_large(tmp_path):
    assert refusal(Place(tmp_path, hive_bytes=8000).read, DEMO)[0] == "hive_too_large"
    assert refusal(Place(tmp_path, cells=3).read, DEMO)[0] == "hive_too_large"


def test_the_time_limit(tmp_path):
    place = Place(tmp_path, seconds=1e-9)

    assert refusal(place.read, DEMO) == ("registry_timed_out", {"seconds": 1e-9})
    assert place.lines()[0]["outcome"] == "registry_timed_out"


def test_a_missing_reader_is_an_error(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "tmkb.sysmcp.registry.hive", None)

    assert refusal(place.read, DEMO) == ("hive_reader_missing", {})


def test_broken_hives_are_read_or_refused(place):
    chance, whole = random.Random(1), place.bytes()
    outcomes = set()
    for _ in range(500):
        place.put(mutant(chance, whole))
        for path in ("HKLM\\SYSTEM", DEMO, WRITABLE, "HKLM\\SYSTEM\\CurrentControlSet\\Control\\ComputerName"):
            try:
                place.read(path)
                outcomes.add("ok")
            except Exception as error:
                outcomes.add(getattr(error, "error", repr(error)))

    assert {"ok", "hive_corrupt"} <= outcomes <= BROKEN | {"ok"}


def patched(data, *words):
    """``data`` with these words (place, value), sealed."""
    data = bytearray(data)
    for place, word in words:
        struct.pack_into("<I", data, place, word)
    return sealed(data)


def root_of(data):
    """Where the record of the root key is."""
    return 0x1000 + struct.unpack_from("<I", data, 0x24)[0] + 4


def test_a_key_that_is_below_itself_ends_where_the_path_does(place):
    data = place.bytes()
    root = root_of(data)
    subkeys = 0x1000 + struct.unpack_from("<I", data, root + 0x1C)[0] + 4
    place.put(patched(data, (subkeys + 4, struct.unpack_from("<I", data, 0x24)[0])))

    assert place.read("HKLM\\SYSTEM" + "\\ROOT" * 300)["subkeys"][0] == "ROOT"


def test_a_list_of_lists_that_has_itself(place):
    data = place.bytes()
    root = root_of(data)
    at = struct.unpack_from("<I", data, root + 0x1C)[0]
    place.put(patched(data, (0x1000 + at + 4, 0xFFFF6972), (0x1000 + at + 8, at)))

    assert refusal(place.read, "HKLM\\SYSTEM") == ("hive_corrupt", {"hive": "HKLM\\SYSTEM"})


def test_reading_many_empty_lists_runs_in_steps(place):
    data, count = place.bytes(), 20_000
    bin_at = len(data) - 0x1000
    listed = struct.pack("<2sH", b"lf", 0).ljust(12, b"\0")
    lists = struct.pack("<2sH", b"ri", count) + struct.pack("<I", bin_at + 0x20) * count
    cells = b"".join(struct.pack("<i", -len(cell) - 4) + cell for cell in (listed, lists))
    size = -(-(len(cells) + 0x20) // 0x1000) * 0x1000
    data += (struct.pack("<4sII", b"hbin", bin_at, size).ljust(0x20, b"\0") + cells).ljust(size, b"\0")
    place.put(patched(data, (0x28, bin_at + size), (root_of(data) + 0x1C, bin_at + 0x20 + 16)))

    assert sum(1 for _ in place.begin("read", path="HKLM\\SYSTEM")) > count // 500
    assert refusal(place.read, "HKLM\\SYSTEM\\Select")[0] == "key_not_found"


@pytest.mark.parametrize("count", [0x7FFFFFFF, 0xFFFFFFFE, 1000])
def test_more_values_than_there_are(place, count):
    data = place.bytes()
    demo = data.index(b"Demo", 0x1000) - 0x4C
    place.put(patched(data, (demo + 0x24, count)))

    assert refusal(place.read, DEMO, limit=1000)[0] == "hive_corrupt"
    assert [value["name"] for value in place.read(DEMO, limit=2)["values"]] == ["Start", "ImagePath"]


def test_a_value_that_says_it_has_two_gigabytes(place):
    data = place.bytes()
    blob = data.index(b"Blob", 0x1000) - 0x14
    place.put(patched(data, (blob + 4, 0x7FFFFFFF)))
    (found,) = place.read(DEMO, valueName="Blob")["values"]

    assert (found["size"], found["truncated"], len(found["data"])) == (0x7FFFFFFF, True, 92)


def test_an_invalid_time_is_null(place):
    data = place.bytes()
    demo = data.index(b"Demo", 0x1000) - 0x4C
    place.put(patched(data, (demo + 8, 0xFFFFFFFF)))

    assert place.read(DEMO)["lastWriteTime"] is None


@needs_writer
def test_a_value_that_is_spread_over_cells(tmp_path):
    """As Windows stores it: a cell that names a list, that names the cells."""
    place, segment = Place(tmp_path, value_bytes=100_000), bytes(range(227)) * 72
    rows = [
        ("a", 3, segment),
        ("bb", 3, segment[::-1]),
        ("c", 3, b"the end"),
        ("list", 3, b"L" * 12),
        ("large", 3, b"D" * 8),
    ]
    made(place.hive, 1, 1, lambda _: rows)
    whole = segment + segment[::-1] + b"the end"
    data = place.bytes()
    cells = [
        struct.unpack_from("<I", data, data.rindex(b"vk" + struct.pack("<HI", len(name), len(raw))) + 8)[0]
        for name, _, raw in rows
    ]
    large = data.rindex(b"vk" + struct.pack("<HI", 5, 8))
    listed = [(0x1000 + cells[3] + 4 + 4 * index, cells[index]) for index in range(3)]
    place.put(
        patched(
            data,
            (large + 4, len(whole)),
            (0x1000 + cells[4] + 4, 0x00036264),
            (0x1000 + cells[4] + 8, cells[3]),
            *listed,
        )
    )
    key = "HKLM\\SYSTEM\\Many\\Group0000\\Key0000"

    found = place.value("large", key)
    assert (found["size"], base64.b64decode(found["data"])) == (len(whole), whole)
    cut = Place(tmp_path, value_bytes=20_000).value("large", key)
    assert (cut["size"], cut["truncated"], base64.b64decode(cut["data"])) == (len(whole), True, whole[:20_000])


@needs_writer
def test_every_key_of_a_large_hive_is_listed_in_steps(tmp_path):
    place = Place(tmp_path)
    made(place.hive, 1, 3000, lambda number: [("v", 4, number.to_bytes(4, "little"))])
    steps = sum(1 for _ in place.begin("read", path="HKLM\\SYSTEM\\Many\\Group0000", limit=1000, offset=2000))
    listed = [
        name
        for offset in range(0, 3000, 1000)
        for name in place.read("HKLM\\SYSTEM\\Many\\Group0000", limit=1000, offset=offset)["subkeys"]
    ]

    assert listed == [f"Key{number:04d}" for number in range(3000)]
    assert steps > 10
    assert place.value("v", "HKLM\\SYSTEM\\many\\group0000\\KEY2999")["data"] == 2999

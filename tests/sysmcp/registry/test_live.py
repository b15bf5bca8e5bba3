"""The live registry, with a fake of winreg in memory."""

import json
import os
import sys
import types

import pytest

from tests.sysmcp.hives import Place, refusal

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has the real one"),
    pytest.mark.needs("Registry"),
]
DEMO = "HKLM\\Software\\Demo"


class Opened:
    """An open key of the fake winreg: a node of nested dicts."""

    def __init__(self, node):
        self.node = node

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def windows(tree):
    """A module like winreg whose HKEY_LOCAL_MACHINE is ``tree``: name → subtree or (type, value)."""

    def opened(node, path, _, __, create=False):
        for name in path.split("\\") if path else ():
            found = next((each for each in node if each.lower() == name.lower()), None)
            if found is None and not create:
                raise FileNotFoundError(path)
            node = node.setdefault(found or name, {})
        if node.get("denied"):
            raise PermissionError(path)
        return Opened(node)

    def keys(key):
        return [name for name, each in key.node.items() if isinstance(each, dict)]

    def values(key):
        return [(name, each[1], each[0]) for name, each in key.node.items() if isinstance(each, tuple)]

    module = types.ModuleType("winreg")
    module.KEY_READ = module.KEY_WRITE = module.KEY_WOW64_64KEY = 0
    for root in ("CURRENT_USER", "CLASSES_ROOT", "USERS", "CURRENT_CONFIG", "LOCAL_MACHINE"):
        setattr(module, f"HKEY_{root}", tree)
    module.OpenKeyEx = opened
    module.CreateKeyEx = lambda *place: opened(*place, create=True)
    module.QueryInfoKey = lambda key: (len(keys(key)), len(values(key)), 133_000_000_000_000_000)
    module.EnumKey = lambda key, index: keys(key)[index]
    module.EnumValue = lambda key, index: values(key)[index]
    module.SetValueEx = lambda key, name, _, type_, given: key.node.update({name: (type_, given)})
    module.DeleteValue = lambda key, name: key.node.pop(name)
    return module


@pytest.fixture
def tree(monkeypatch):
    values = {"text": (1, "a"), "list": (7, ["a", "b"]), "number": (4, 5), "bytes": (3, b"\1"), "none": (0, None)}
    tree = {"SAM": {"denied": {"x": {}}}, "Software": {"Demo": {**values, "large": (11, 2**60), "Sub": {}}}}
    monkeypatch.setitem(sys.modules, "winreg", windows(tree))
    return tree


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, mounts="live", write_allow=["HKLM\\Software\\Demo"])


def test_a_key_is_denied_under_both_names_of_the_control_set(tree, tmp_path):
    sets = {"Secret": {"Sub": {}}, "Open": {}}
    tree["SYSTEM"] = {"Select": {"Current": (4, 2)}, "ControlSet002": sets, "CurrentControlSet": sets}
    place = Place(tmp_path, mounts="live", deny=["HKLM\\SYSTEM\\ControlSet002\\Secret"])

    assert refusal(place.read, "HKLM\\System\\CurrentControlSet\\Secret\\Sub")[0] == "key_not_permitted"
    assert place.read("HKLM\\System\\CurrentControlSet\\Open")["resolvedPath"] == "HKLM\\SYSTEM\\ControlSet002\\Open"


def test_a_key(tree, place):
    found = place.read("hklm\\SOFTWARE\\demo")

    assert (found["resolvedPath"], found["dirty"], found["subkeys"]) == (DEMO, False, ["Sub"])
    assert found["lastWriteTime"] == "2022-06-18T04:26:40.000000Z"
    assert {value["name"]: (value["type"], value["data"], value["size"]) for value in found["values"]} == {
        "text": ("REG_SZ", "a", 4),
        "list": ("REG_MULTI_SZ", ["a", "b"], 10),
        "number": ("REG_DWORD", 5, 4),
        "bytes": ("REG_BINARY", "AQ==", 1),
        "none": ("REG_NONE", "", 0),
        "large": ("REG_QWORD", str(2**60), 8),
    }


def test_a_denied_key_is_listed_but_not_opened(tree, place):
    assert place.read("HKLM")["subkeys"] == ["SAM", "Software"]
    assert refusal(place.read, "HKLM\\SAM")[0] == "key_not_permitted"


@pytest.mark.parametrize(
    ("type_", "data", "native"),
    [
        ("REG_SZ", "b", (1, "b")),
        ("REG_MULTI_SZ", ["x"], (7, ["x"])),
        ("REG_DWORD", 7, (4, 7)),
        ("REG_QWORD", str(2**63), (11, 2**63)),
        ("REG_BINARY", "AgM=", (3, b"\2\3")),
    ],
)
def test_a_value_is_set(tree, place, type_, data, native):
    result = place.write(DEMO, valueName="TEXT", type=type_, data=data, expected="a")

    assert tree["Software"]["Demo"]["text"] == native
    with open(os.path.join(place.backups, result["backup"]), encoding="utf-8") as file:
        saved = json.load(file)
    assert (saved["path"], saved["before"]["data"]) == (DEMO, "a")
    assert [line["outcome"] for line in place.lines()] == ["intent", "ok"]


def test_a_value_is_deleted_and_a_key_made(tree, place):
    place.write(f"{DEMO}\\New\\Key", action="createKey", createMissing=True)
    for name in ("text", "list", "number", "bytes"):
        place.write(DEMO, valueName=name.upper(), action="deleteValue")

    assert set(tree["Software"]["Demo"]) == {"none", "large", "Sub", "New"}
    assert len(os.listdir(place.backups)) == 3


def test_a_dry_run_or_an_unchanged_value_writes_nothing(tree, place):
    before = repr(tree)
    place.write(DEMO, valueName="new", type="REG_SZ", data="x", dryRun=True)
    place.write(DEMO, valueName="text", type="REG_SZ", data="a")

    assert repr(tree) == before
    assert os.listdir(place.backups) == []


def test_without_a_backup_or_an_audit_log_nothing_is_changed(tree, place):
    before = repr(tree)
    os.rmdir(place.backups)
    assert refusal(place.write, DEMO, valueName="text", action="deleteValue") == ("backup_unwritable", {})
    os.remove(place.audit)
    os.mkdir(place.audit)
    assert refusal(place.write, DEMO, valueName="text", action="deleteValue") == ("audit_unwritable", {})

    assert repr(tree) == before


def test_the_live_registry_needs_windows(place):
    assert refusal(place.read, "HKLM\\SYSTEM") == ("no_live_registry", {})
    assert refusal(place.write, DEMO, action="createKey") == ("no_live_registry", {})

"""Files of every client, as users have them: an entry is added, stays as it is, and is taken out again."""

import contextlib
import dataclasses
import json
import os
import pathlib
import stat
import sys
import tempfile

import pytest
from hypothesis import given

from tests.clients.test_jsontext import documents
from tmkb.clients import files, launch, links, processes
from tmkb.clients.client import SCOPES, Client, client, clients
from tmkb.clients.configuration import Configuration
from tmkb.clients.faults import ConfigurationError
from tmkb.clients.installation import Differs, Edit, Target
from tmkb.clients.machine import Machine
from tmkb.errors import SpecError

BOM = b"\xef\xbb\xbf"
# KEY stands for the key of the client.
JSON = {
    "missing": None,
    "empty": b"",
    "only white space": b" \n\n",
    "only comments": b"// a\r\n/* b */",
    "an empty map": b"{}",
    "an empty map on two lines": b"{\n}\n",
    "no servers": b'{\n  "a": 1\n}\n',
    "an empty map of servers": b'{\n  "KEY": {},\n  "a": 1\n}\n',
    "comments": b'// top\n{\n  // a\n  "KEY": { // b\n    "x": {"command": "y"} // c\n    // d\n  }, /* e */\n  "z": [] // f\n}\n// g\n',
    "only a comment among servers": b'{\n  "KEY": {\n    // "tmkb": {}\n  }\n}',
    "trailing commas": b'{\n  "KEY": {\n    "x": {"command": "y",},\n  },\n}\n',
    "other servers": b'{\n  "KEY": {\n    "x": {\n      "command": "y",\n      "env": {"TOKEN": "secret"}\n    }\n  },\n  "after": true\n}',
    "line ends of Windows": b'{\r\n  "KEY": {\r\n    "x": {}\r\n  }\r\n}\r\n',
    "a byte order mark": BOM + b'{"KEY": {"x": {}}}\n',
    "only a byte order mark": BOM,
    "tabs": b'{\n\t"KEY": {\n\t\t"x": {\n\t\t\t"args": [\n\t\t\t\t"y"\n\t\t\t]\n\t\t}\n\t}\n}\n',
    "one dense line": b'{"a":{"b":[1,2,{"c":null}]},"KEY":{"x":{"command":"y"}}}',
    "no line end at last": b'{\n    "KEY": {\n        "x": {}\n    }\n}',
    "equal keys elsewhere": b'{"a": 1, "a": 2, "KEY": {}}',
    "nested lists": b'{\n "a": [[[[]]], [{"KEY": {}}]],\n "KEY": {"x": {}}\n}',
    "an escaped key": b'{"\\u0063": 1, "KEY": {"\\u0074": {}}}',
    "numbers as they are written": b'{"a": 1.0, "b": 1E5, "c": 12345678901234567890123, "KEY": {}}',
    "all on the lines of others": b'{ "KEY":\n{ "x": {} }, "a": 1 }\n',
    "not only ASCII": '{"é": "日本", "KEY": {"ü": {}}}'.encode(),
    "large": json.dumps({"projects": {f"/p/{n}": {"history": ["x" * 99]} for n in range(3000)}, "KEY": {}}, indent=2).encode(),
}  # fmt: skip
TOML = {
    "missing": None,
    "empty": b"",
    "other servers": b'# c\nmodel = "x" # d\n\n[mcp_servers.x]\ncommand = "y" # e\n\n[mcp_servers.x.env]\nA = "1"\n',
    "line ends of Windows": b"a = 1\r\n\r\n[t]\r\nb = [\r\n  1,\r\n]\r\n",
    "a byte order mark": BOM + b"a = 1\n",
    "no line end at last": b"a = 1",
    "empty lines at last": b"a = 1\n\n\n",
}
YAML = {
    "missing": None,
    "empty": b"",
    "other servers": b"# c\nextensions:\n  x:\n    enabled: true # d\nGOOSE_MODEL: y\n",
    "no servers": b"GOOSE_MODEL: y # c\n",
    "an empty map": b"extensions: {}\n",
    "line ends of Windows": b"a: 1\r\nextensions:\r\n  x: {}\r\n",
    "no line end at last": b"a: 1",
}
OWN = {"missing": None, "empty": b""}
REFUSED = {  # files that a client cannot read
    "claude-code": ["only comments", "comments", "only a comment among servers", "trailing commas"],
    "gemini": ["trailing commas", "a byte order mark", "only a byte order mark"],
}
CORPORA = {"json": JSON, "toml": TOML, "yaml": YAML, "own": OWN}
BROKEN = {
    "json": b'{\n  "KEY": {\n    "x": 1\n    "y": 2\n  }\n}',
    "toml": b"a = 1\nb = \n",
    "yaml": b"a: 1\nb: [\n",
    "own": b"a: [\n",
}
NAMES = [each.name for each in clients()]
LARGE = "cline"  # the client whose file is also a large one: the size matters to a syntax, not to a client
CASES = [
    (each.name, name) for each in clients() for name in CORPORA[each.syntax] if name != "large" or each.name == LARGE
]


def machine(folder, platform="linux", **environment):
    home, project = folder / "home", folder / "project"
    for made in (home, project):
        made.mkdir(exist_ok=True)
    return Machine(platform, str(home), environment, str(project))


def target_of(edit, name, content=None, scope="user"):
    """The first file of a client, with a content in which KEY is the client's key."""
    chosen = client(name)
    place = chosen.locations(scope, edit.machine, edit.name)[0]
    os.makedirs(place.folder, exist_ok=True)
    if content is not None:
        os.makedirs(os.path.dirname(place.path), exist_ok=True)
        write(place.path, content.replace(b"KEY", chosen.key(scope, edit.machine)[0].encode()))
    return Target(chosen, scope, place.path)


def entry_of(target, *args):
    return target.client.entry(target.scope, "tmkb", "/x/bin/tmkb", ["serve", *args])


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def listing(path):
    return sorted(os.listdir(os.path.dirname(path)))


@pytest.mark.parametrize(("name", "content"), CASES, ids=str)
def test_an_entry_comes_and_goes_and_every_byte_is_as_it_was(tmp_path, name, content):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, name, CORPORA[client(name).syntax][content])
    before = read(target.path)
    entry = entry_of(target)
    if content in REFUSED.get(name, []):
        with pytest.raises(ConfigurationError, match="client_refused"):
            edit.install(target, entry)
        assert read(target.path) == before
        return

    outcome = edit.install(target, entry)
    after = read(target.path)
    assert (outcome.action, outcome.before, outcome.after) == ("added", before, after)
    assert (outcome.backup is None) == (before is None) and (before is None or read(outcome.backup) == before)
    read_again = Configuration.read(target.path, target.client, "user", edit.machine)
    assert read_again.raw["tmkb"] == entry
    others = read_again.with_data(before)
    assert {key: value for key, value in read_again.raw.items() if key != "tmkb"} == others.raw
    assert (after[:3] == BOM) == ((before or b"")[:3] == BOM)
    assert after.count(b"\r\n") in (0, after.count(b"\n"))

    assert edit.install(target, entry).action == "unchanged"
    assert read(target.path) == after and len(files.backups(target.path)) == (before is not None)

    assert edit.uninstall(target).action == "removed"
    assert read(target.path) == before
    assert edit.uninstall(target).action == "absent"
    assert not [left for left in listing(target.path) if left.endswith((".tmp", ".lock"))]


@pytest.mark.parametrize(("name", "content"), CASES, ids=str)
def test_without_a_backup_only_the_entry_goes(tmp_path, name, content):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, name, CORPORA[client(name).syntax][content])
    before = read(target.path)
    configuration = Configuration.read(target.path, target.client, "user", edit.machine).with_data
    others = configuration(before).raw
    try:
        edit.install(target, entry_of(target))
    except ConfigurationError:
        return
    for backup in files.backups(target.path):
        os.unlink(backup)
    edit.uninstall(target)
    left = read(target.path)

    assert configuration(left).raw == others
    if before and others:
        assert left == before


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_file_stays_as_it_is(tmp_path, name):
    edit = Edit("tmkb", machine(tmp_path), force=True)
    target = target_of(edit, name, BROKEN[client(name).syntax])
    before, beside = read(target.path), listing(target.path)

    for act in (lambda: edit.install(target, entry_of(target)), lambda: edit.uninstall(target)):
        with pytest.raises(ConfigurationError) as raised:
            act()
        assert raised.value.line > 1 and raised.value.column >= 1 and "cannot be read" in raised.value.sentence
        assert (read(target.path), listing(target.path)) == (before, beside)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"[]", "client_not_a_map"),
        (b'{"KEY": 1}', "client_not_a_map"),
        (b'{"KEY": {}, "KEY": {}}', "client_twice"),
        ('{"a": 1}'.encode("utf-16-le"), "client_not_utf8"),
        ('{"a": 1}'.encode("utf-16"), "client_not_utf8"),
        (b'{"\xff": 1}', "client_not_utf8"),
    ],
)
def test_a_file_of_another_shape_stays_as_it_is(tmp_path, content, rule):
    edit = Edit("tmkb", machine(tmp_path), force=True)
    target = target_of(edit, "cursor", content)
    before = read(target.path)

    with pytest.raises(ConfigurationError) as raised:
        edit.install(target, entry_of(target))
    assert raised.value.problems[0].rule == rule
    assert (read(target.path), listing(target.path)) == (before, ["mcp.json"])


@pytest.mark.parametrize("name", NAMES)
def test_another_entry_is_replaced_only_by_force(tmp_path, name):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, name)
    edit.install(target, entry_of(target, "--server", "everything"))
    before = read(target.path)

    with pytest.raises(Differs) as raised:
        edit.install(target, entry_of(target))
    assert read(target.path) == raised.value.outcome.before == before
    assert Edit("tmkb", edit.machine, force=True, dry=True).install(target, entry_of(target)).action == "replaced"
    assert read(target.path) == before and not files.backups(target.path)

    outcome = Edit("tmkb", edit.machine, force=True).install(target, entry_of(target))
    assert (outcome.action, read(outcome.backup)) == ("replaced", before)
    assert read(target.path) == raised.value.outcome.after
    edit.uninstall(target)
    assert read(target.path) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cursor", b'{"KEY": {"tmkb": {"command": "docker", "env": {"TOKEN": "s"}}}}\n'),
        ("cursor", b'{"KEY": {"tmkb": null}}\n'),
        ("codex", b'[KEY.tmkb]\ncommand = "docker" # mine\n'),
        ("goose", b"KEY:\n  tmkb:\n    cmd: docker # mine\n"),
    ],
)
def test_an_entry_that_does_not_start_tmkb_is_not_taken_for_ours(tmp_path, name, content):
    edit = Edit("tmkb", machine(tmp_path))
    force = Edit("tmkb", edit.machine, force=True)
    target = target_of(edit, name, content)
    before = read(target.path)

    for act, rule in ((lambda: edit.install(target, entry_of(target)), "client_differs"),
                      (lambda: edit.uninstall(target), "client_foreign")):  # fmt: skip
        with pytest.raises(Differs, match=rule):
            act()
        assert (read(target.path), files.backups(target.path)) == (before, [])

    assert force.install(target, entry_of(target)).action == "replaced"
    outcome = edit.uninstall(target)
    assert (outcome.action, read(target.path)) == ("removed", before)
    assert outcome.warnings == ["The entry 'tmkb' that --force replaced is in this file again."]
    assert force.uninstall(target).action == "removed"
    assert "tmkb" not in Configuration.read(target.path, target.client, "user", edit.machine).raw


def test_an_entry_of_ours_whose_command_is_gone_is_replaced_and_keeps_what_the_user_added(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "opencode", b"{}")
    edit.install(target, entry_of(target) | {"environment": {"LOG_LEVEL": "debug"}})
    moved = target.client.entry("user", "tmkb", "/y/bin/tmkb", ["serve"])

    assert edit.install(target, moved).action == "replaced"
    raw = Configuration.read(target.path, target.client, "user", edit.machine).raw
    assert raw["tmkb"] == moved | {"environment": {"LOG_LEVEL": "debug"}}
    with pytest.raises(Differs):
        edit.install(target, target.client.entry("user", "tmkb", "/z/bin/tmkb", ["serve", "--server", "x"]))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("codex", b'[KEY.tmkb] # a\nstartup_timeout_sec = 20.50 # b\nsince = 2026-01-02 # c\ncommand = "/x/bin/tmkb" # d\n'
                  b'args = [ "serve" ]\n\n[KEY.tmkb.env] # e\nPATTERNS = "/x/bin/tmkb"\n'),
        ("codex", b"[KEY.tmkb]\ncommand = '/x/bin/tmkb' # d\nargs = ['serve']\nwhen = 07:32:00\nx = nan\n"),
        ("cline", b'{"KEY": {"tmkb": {"command": "/x/bin/tmkb", // a\n  "args": ["serve"], /* b */ "timeout": 1.50}}}\n'),
        ("opencode", b'{"KEY": {"tmkb": { "type": "local",\n "command": [ "/x/bin/tmkb", "serve" ], // a\n "enabled": true}}}'),
        ("goose", b"KEY:\n  tmkb: # a\n    since: 2026-01-02 # b\n    REST\n"),
    ],
)  # fmt: skip
def test_only_the_command_of_an_entry_changes_if_it_is_gone(tmp_path, name, content):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, name)
    if name == "goose":
        edit.install(target, entry_of(target))
        rest = read(target.path).partition(b"tmkb:\n")[2].strip()
        content = content.replace(b"REST", rest)
    target = target_of(edit, name, content)
    before = read(target.path)
    moved = target.client.entry("user", "tmkb", "/y/bin/tmkb", ["serve"])

    assert edit.install(target, moved).action == "replaced"
    assert read(target.path) == before.replace(b"/x/bin/tmkb", b"/y/bin/tmkb", 1)
    assert edit.uninstall(target).action == "removed"


def test_an_entry_whose_command_cannot_be_found_in_the_text_is_another_one(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    content = b'[KEY.tmkb]\n# not /x/bin/tmkb\ncommand = "/x/bin/tmkb"\nargs = ["serve"]\nsince = 2026-01-02\n'
    target = target_of(edit, "codex", content)
    moved = target.client.entry("user", "tmkb", "/y/bin/tmkb", ["serve"])

    with pytest.raises(Differs):
        edit.install(target, moved)
    assert Edit("tmkb", edit.machine, force=True).install(target, moved).action == "replaced"


def test_what_others_add_meanwhile_stays(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor", b'{\n  "a": 1\n}\n')
    edit.install(target, entry_of(target))
    write(target.path, read(target.path).replace(b'"a": 1', b'"a": /* new */ 2'))
    edit.uninstall(target)

    assert read(target.path) == b'{\n  "a": /* new */ 2,\n  "mcpServers": {}\n}\n'


def test_settings_that_a_user_adds_to_the_entry_stay(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cline", b"{}")
    edit.install(target, entry_of(target))
    write(target.path, read(target.path).replace(b'"command"', b'"disabled": true, "command"'))
    outcome = edit.install(target, entry_of(target))

    assert (outcome.action, outcome.warnings) == ("unchanged", ["The entry is disabled. Enable it in Cline."])


def test_comments_that_a_client_may_not_read_are_told(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "claude-desktop", b'{\n  "KEY": {} // c\n}')

    shown = os.path.join("~", ".config", "Claude", "claude_desktop_config.json")
    assert edit.install(target, entry_of(target)).warnings == [
        f"{shown}:2:20: Claude Desktop may be unable to read a file with comments, as here."
    ]


@given(documents())
def test_any_json_with_comments_is_as_it_was(document):
    _, text = document
    with tempfile.TemporaryDirectory() as folder:
        edit = Edit("tmkb", machine(pathlib.Path(folder)))
        target = target_of(edit, "zed", text.encode())
        edit.install(target, entry_of(target))
        edit.uninstall(target)

        assert read(target.path) == text.encode()


def test_a_second_entry_for_tmkb_is_told(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(
        edit, "cursor", b'{"KEY": {\n "kb": {"command": "tmkb", "args": ["serve"]}, "x": {"args": ["serve"]}}}'
    )

    shown = os.path.join("~", ".cursor", "mcp.json")
    assert edit.install(target, entry_of(target)).warnings == [
        f"{shown}:2:2: The entry kb starts tmkb, too. Remove one of them."
    ]
    assert Edit("tmkb", edit.machine, force=True).install(target, entry_of(target, "--server", "x")).warnings == []


# Where


def test_a_client_that_is_not_there_gets_a_file_only_by_force(tmp_path):
    with pytest.raises(ConfigurationError) as raised:
        Edit("tmkb", machine(tmp_path)).targets(client("cursor"), "user")
    assert raised.value.sentence.startswith(f"Cursor does not seem to be installed: there is no ~{os.sep}.cursor.")

    edit = Edit("tmkb", machine(tmp_path), force=True)
    (target,) = edit.targets(client("cursor"), "user")
    edit.install(target, entry_of(target))
    assert json.loads(read(target.path)) == {"mcpServers": {"tmkb": entry_of(target)}}


def test_every_place_of_a_client_that_is_there_gets_the_entry(tmp_path):
    here = machine(tmp_path, "win32")
    packages = "AppData/Local/Packages"
    for made in ("AppData/Roaming/Claude", f"{packages}/Claude_pzs8sxrjxfjjc", f"{packages}/Other_1"):
        (tmp_path / "home" / made).mkdir(parents=True)
    targets = Edit("tmkb", here).targets(client("claude-desktop"), "user")

    assert [os.path.relpath(target.path, here.home).replace(os.sep, "/") for target in targets] == [
        f"{packages}/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ]


def test_of_alternatives_the_file_with_the_entry_is_chosen(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    folder = tmp_path / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)

    def chosen():
        return os.path.basename(edit.targets(client("opencode"), "user")[0].path)

    assert chosen() == "opencode.jsonc"
    (folder / "opencode.json").write_text("{}")
    assert chosen() == "opencode.json"
    (folder / "opencode.jsonc").write_text("// c\n{}")
    assert chosen() == "opencode.jsonc"
    (folder / "opencode.json").write_text('{"mcp": {"tmkb": {}}}')
    assert chosen() == "opencode.json"


@pytest.mark.parametrize(
    ("name", "platform", "environment", "path"),
    [
        ("claude-desktop", "darwin", {}, "home/Library/Application Support/Claude/claude_desktop_config.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "TMP/x"}, "x/Code/User/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "relative"}, "home/.config/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "TMP/r"}, "r/Code/User/mcp.json"),
        ("zed", "darwin", {}, "home/.config/zed/settings.json"),
        ("codex", "linux", {"CODEX_HOME": "TMP/c"}, "c/config.toml"),
        ("claude-code", "linux", {}, "home/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "TMP/c"}, "c/.claude.json"),
        ("copilot-cli", "win32", {}, "home/.copilot/mcp-config.json"),
        ("goose", "win32", {}, "home/AppData/Roaming/Block/goose/config/config.yaml"),
    ],
)
def test_the_file_of_each_system(tmp_path, name, platform, environment, path):
    named = {variable: value.replace("TMP", str(tmp_path)) for variable, value in environment.items()}
    files_ = client(name).files("user", machine(tmp_path, platform, **named))

    assert [os.path.relpath(file, tmp_path).replace(os.sep, "/") for file in files_] == [path]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("each", clients(), ids=lambda each: each.name)
def test_every_client_has_files_in_each_scope_on_each_system(tmp_path, each, platform):
    here = machine(tmp_path, platform)
    assert each.scopes[0] == "user" and set(each.scopes) <= set(SCOPES)
    for scope in each.scopes:
        inside = here.folder if scope == "project" else here.home
        if (each.name, platform) != ("claude-desktop", "win32"):
            assert each.locations(scope, here)
        assert all(file.startswith(inside + os.sep) for file in each.files(scope, here))
        assert ("portable" in each.scope(scope)) == (scope == "project")
    assert all(os.path.isabs(dead.path) for dead in each.dead(here))
    assert each.logs(here) == []
    assert not each.is_installed(here)


def test_a_client_by_name_alias_or_misspelling():
    assert client("junie").name == "jetbrains" and isinstance(client("code"), Client)
    with pytest.raises(SpecError) as raised:
        client("vscod")
    assert raised.value.problems[0].fields["nearest"] == "vscode"
    aliases = [alias for each in clients() for alias in each.data.get("aliases", [])]
    assert len({*NAMES, *aliases}) == len(NAMES) + len(aliases)


@pytest.mark.parametrize("each", clients(), ids=lambda each: each.name)
def test_an_entry_is_read_as_it_was_written(each):
    for scope in each.scopes:
        entry = each.normalised(each.entry(scope, "tmkb", "/x/tmkb", ["serve", "a"]))
        assert (entry["command"], entry["args"]) == ("/x/tmkb", ["serve", "a"])
        assert launch.is_ours("other", entry) and not {"env", "envs", "trust", "autoApprove"} & {*entry}
    assert not launch.is_ours("other", {"command": "npx", "args": ["-y", "other"]})


def test_a_scope_with_a_key_of_its_own(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "claude-code", b'{"projects": {"/other": {"mcpServers": {}}}}', "local")
    edit.install(target, entry_of(target))

    projects = json.loads(read(target.path))["projects"]
    assert projects == {"/other": {"mcpServers": {}}, edit.machine.folder: {"mcpServers": {"tmkb": entry_of(target)}}}


def test_a_local_entry_belongs_to_the_repository(tmp_path):
    here = machine(tmp_path)
    inside = tmp_path / "project" / "sub"
    work_tree = tmp_path / "other"
    for made in (inside, work_tree, tmp_path / "project" / ".git" / "worktrees" / "other"):
        made.mkdir(parents=True)
    (work_tree / ".git").write_text(f"gitdir: {tmp_path / 'project' / '.git' / 'worktrees' / 'other'}\n")
    (tmp_path / "project" / ".git" / "worktrees" / "other" / "commondir").write_text("../..\n")

    for folder in (tmp_path / "project", inside, work_tree):
        key = client("claude-code").key("local", dataclasses.replace(here, folder=str(folder)))
        assert key == ("projects", str(tmp_path / "project"), "mcpServers")
    outside = dataclasses.replace(here, folder=rf"{tmp_path}\a\b", platform="win32")
    assert client("claude-code").key("local", outside)[1] == f"{tmp_path.as_posix()}/a/b"


def test_links_have_the_entry():
    entry = client("cursor").entry("user", "tmkb", "/x y/tmkb", ["serve"])

    assert links.link(client("vscode"), "tmkb", {"command": "/x y"}) == (
        "vscode:mcp/install?%7B%22name%22%3A%22tmkb%22%2C%22command%22%3A%22%2Fx%20y%22%7D"
    )
    assert links.link(client("cursor"), "tmkb", entry) == (
        "cursor://anysphere.cursor-deeplink/mcp/install?name=tmkb"
        "&config=eyJjb21tYW5kIjoiL3ggeS90bWtiIiwiYXJncyI6WyJzZXJ2ZSJdfQ%3D%3D"
    )
    assert links.link(client("zed"), "tmkb", entry) is None


# How


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
def test_mode_and_link_stay(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor")
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    os.symlink(real, target.path)
    outcome = edit.install(target, entry_of(target))

    assert os.path.islink(target.path) and "tmkb" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640 == stat.S_IMODE(os.stat(outcome.backup).st_mode)
    assert os.path.dirname(outcome.backup) == str(real.parent)
    edit.uninstall(target)
    assert os.path.islink(target.path) and real.read_text() == "{}"


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
def test_a_link_to_a_missing_file_leads_to_a_new_one(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor")
    os.symlink(tmp_path / "later" / "mcp.json", target.path)
    edit.install(target, entry_of(target))

    assert os.path.islink(target.path) and (tmp_path / "later" / "mcp.json").exists()


def test_a_read_only_file_stays_as_it_is(tmp_path):
    edit = Edit("tmkb", machine(tmp_path), force=True)
    target = target_of(edit, "zed", b"{}")
    os.chmod(target.path, 0o444)

    with pytest.raises(ConfigurationError, match="read_only"):
        edit.install(target, entry_of(target))
    assert (read(target.path), listing(target.path)) == (b"{}", ["settings.json"])


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
def test_a_new_file_of_claude_code_is_private(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    for name, mode in (("claude-code", 0o600), ("cursor", 0o644)):
        target = target_of(edit, name)
        mask = os.umask(0o022)
        try:
            edit.install(target, entry_of(target))
        finally:
            os.umask(mask)
        assert stat.S_IMODE(os.stat(target.path).st_mode) == mode


def test_a_file_that_changes_meanwhile_is_read_again(tmp_path, monkeypatch):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "claude-code", b'{"n": 0}')
    numbers = iter(range(1, 3))
    whole = files._temporary

    def interrupted(*arguments):
        if (number := next(numbers, None)) is not None:
            write(target.path, b'{"n": %d}' % number)
        return whole(*arguments)

    monkeypatch.setattr(files, "_temporary", interrupted)
    outcome = edit.install(target, entry_of(target))

    assert json.loads(read(target.path)) == {"n": 2, "mcpServers": {"tmkb": entry_of(target)}}
    assert read(outcome.backup) == b'{"n": 2}' and len(files.backups(target.path)) == 1
    assert edit.uninstall(target).action == "removed" and read(target.path) == b'{"n": 2}'


def test_a_file_that_does_not_stop_changing_is_left_alone(tmp_path, monkeypatch):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "claude-code", b'{"n": 0}')
    whole, numbers = files._temporary, iter(range(1, 99))

    def interrupted(*arguments):
        write(target.path, b'{"n": %d}' % next(numbers))
        return whole(*arguments)

    monkeypatch.setattr(files, "_temporary", interrupted)
    with pytest.raises(ConfigurationError, match="restless"):
        edit.install(target, entry_of(target))
    assert read(target.path) == b'{"n": 10}' and listing(target.path) == [".claude", ".claude.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes of POSIX")
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_everything_as_it_was(tmp_path, monkeypatch, step):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "zed", b'{"theme": "x"}')

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(ConfigurationError) as raised:
        edit.install(target, entry_of(target))
    monkeypatch.undo()
    assert raised.value.sentence.startswith("Cannot write this file: No space left on device. Check ")
    assert (read(target.path), listing(target.path)) == (b'{"theme": "x"}', ["settings.json"])


def test_a_process_that_is_killed_leaves_no_half_backup_and_no_temporary_file(tmp_path, monkeypatch):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor", b"{}")
    sync, seen = os.fsync, []

    def killed(handle):
        seen.extend(listing(target.path))
        sync(handle)

    monkeypatch.setattr(files.os, "fsync", killed)
    leftover = os.path.join(os.path.dirname(target.path), ".mcp.json.tmkb-x_1.tmp")
    write(leftover, b"secret")
    other = os.path.join(os.path.dirname(target.path), ".other.json.tmkb-x_1.tmp")
    write(other, b"")
    outcome = edit.install(target, entry_of(target))

    assert any(name.endswith(".tmp") for name in seen) and not any(name.endswith(".bak") for name in seen[:4])
    assert listing(target.path) == [".other.json.tmkb-x_1.tmp", "mcp.json", os.path.basename(outcome.backup)]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_new_files_of_root_get_the_owner_of_their_folder(tmp_path):
    edit = Edit("tmkb", machine(tmp_path), force=True)
    os.chown(edit.machine.home, 1234, 2345)
    (target,) = edit.targets(client("jetbrains"), "user")
    edit.install(target, entry_of(target))

    for path in (target.path, os.path.dirname(target.path)):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (1234, 2345)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("step", ["folder", "file"])
def test_a_link_in_the_place_of_a_new_file_of_root_is_not_followed(tmp_path, monkeypatch, step):
    other = tmp_path / "other"
    other.write_text("")
    mode = stat.S_IMODE(other.stat().st_mode)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 1234, 2345)
    mkdir, temporary = os.mkdir, tempfile.mkstemp

    def swapped(path, *rest):
        mkdir(path, *rest)
        os.rmdir(path)
        os.symlink(other, path)

    def swapped_file(**options):
        handle, path = temporary(**options)
        os.unlink(path)
        os.symlink(other, path)
        return handle, path

    if step == "folder":
        monkeypatch.setattr(files.os, "mkdir", swapped)
    else:
        monkeypatch.setattr(files.tempfile, "mkstemp", swapped_file)
    path = home / "new" / "mcp.json" if step == "folder" else home / "mcp.json"
    with contextlib.suppress(ConfigurationError):
        files.replace(str(path), "mcp.json", lambda _: b"{}", True)

    status = other.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (os.getuid(), os.getgid(), mode)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system opens links")
def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "mcp.json.tmkb.lock").symlink_to(tmp_path / "other")

    with pytest.raises(ConfigurationError, match="client_not_written"):
        files.replace(str(tmp_path / "mcp.json"), "mcp.json", lambda _: b"{}")
    assert not (tmp_path / "other").exists() and not (tmp_path / "mcp.json").exists()


def test_the_lock_of_a_client_is_respected(tmp_path, monkeypatch):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "claude-code", b"{}")
    lock, locked = target.path + ".lock", []
    whole = files._require_unchanged
    monkeypatch.setattr(files, "_require_unchanged", lambda *each: locked.append(os.path.isdir(lock)) or whole(*each))
    edit.install(target, entry_of(target))
    assert locked == [True] and not os.path.exists(lock)

    os.mkdir(lock)
    monkeypatch.setattr(files, "_WAIT", 0)
    with pytest.raises(ConfigurationError, match="client_locked"):
        edit.uninstall(target)
    assert "tmkb" in json.loads(read(target.path))["mcpServers"] and os.path.isdir(lock)

    os.utime(lock, (0, 0))  # of a process that ended
    assert edit.uninstall(target).action == "removed" and not os.path.exists(lock)


def test_hard_links_are_reported(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor", b"{}")
    os.link(target.path, tmp_path / "other.json")

    assert edit.install(target, entry_of(target)).warnings == [
        f"{os.path.join('~', '.cursor', 'mcp.json')}: This file has more than one name (hard links); "
        "the others keep the content of before."
    ]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(tmp_path):
    edit = Edit("tmkb", machine(tmp_path))
    target = target_of(edit, "cursor", b"{}")
    os.chown(target.path, 1234, 2345)
    outcome = edit.install(target, entry_of(target))

    for path in (target.path, outcome.backup):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (1234, 2345)


@pytest.mark.skipif(not os.path.exists("/proc/self/comm"), reason="reads /proc")
def test_a_client_that_runs_is_found():
    with open("/proc/self/comm", encoding="utf-8") as file:
        own = file.read().strip()

    assert processes.is_running(Client({"processes": ["other", own]}))
    assert not processes.is_running(Client({"processes": ["no such process"]}))
    assert not processes.is_running(Client({}))


def test_five_backups_are_kept(tmp_path):
    edit = Edit("tmkb", machine(tmp_path), force=True)
    target = target_of(edit, "cursor", b"{}")
    for number in range(8):
        edit.install(target, entry_of(target, "--server", str(number)))
    backups = files.backups(target.path)

    assert len(backups) == 5 and backups == sorted(backups, reverse=True)
    assert [b'"%d"' % number in read(backup) for number, backup in zip((6, 5, 4, 3, 2), backups, strict=True)] == [
        True
    ] * 5


@pytest.mark.parametrize(
    ("prefix", "is_temporary"),
    [
        ("uv cache/archive-v0/x", True),
        ("uv cache/builds-v0/.tmpx", True),
        ("xdg cache/pipx/y", True),
        ("pipx/venvs/tmkb", False),
        ("tmp/project/.venv", True),
        ("archive-videos/.venv", False),
    ],
)
def test_a_python_that_will_be_deleted_is_noticed(tmp_path, monkeypatch, prefix, is_temporary):
    monkeypatch.setattr("sys.prefix", str(tmp_path / prefix))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / prefix).mkdir(parents=True)
    if "pipx" in prefix:
        (tmp_path / prefix / "pipx_metadata.json").touch()

    assert launch.temporary_folder() == (str(tmp_path / prefix) if is_temporary else None)

"""`tmkb schema get`, `set`, `add`, `remove`, `new` and `eject`."""

import functools
import json
import os
import pathlib

import pytest

from tmkb.cli import main
from tmkb.schema import export, metaschema, paths
from tmkb.schema import overlay as overlays

pytestmark = pytest.mark.process


@pytest.fixture
def schema(run_tmkb, monkeypatch, tmp_path):
    """Run `tmkb schema` in an empty folder; gives exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TMKB_SCHEMAS", raising=False)

    return functools.partial(run_tmkb, "schema")


@pytest.fixture
def mine(schema, tmp_path):
    """The same with a folder of one's own."""
    return lambda *words: schema(*words, "--schemas", "mine")


def text(tmp_path, place):
    return (tmp_path / "mine" / place).read_text(encoding="utf-8")


def test_get_shows_the_value_and_where_it_comes_from(schema):
    assert schema("get", "errors:errors.unknown_tool.message") == (0, "Unknown tool: {tool}\n", "")
    shown = json.loads(schema("get", "2025-11-25:methods.tools/call.capability", "--json")[1])
    assert (shown["place"], shown["value"]) == ("protocol/2025-11-25", "tools")
    assert os.sep + os.path.join("protocol", "2024-11-05.yaml") in shown["origin"]


def test_get_of_a_missing_path(schema):
    assert schema("get", "errors:errors.unknown_tol") == (
        1,
        "",
        "tmkb: There is no 'unknown_tol' in errors. Did you mean 'unknown_tool'?\n",
    )
    assert schema("get", "erors:errors")[0] == 1


def test_set_creates_an_overlay(mine, tmp_path):
    diff = mine("set", "errors:errors.unknown_tool.message", "No {tool}: sorry", "--dry-run")[1]

    assert diff.splitlines()[-1] == '+  unknown_tool: {message: "No {tool}: sorry"}'
    assert not (tmp_path / "mine").exists()
    assert mine("set", "errors:errors.unknown_tool.message", "No {tool}: sorry") == (
        0,
        f"{os.path.join('mine', 'errors.yaml')}: written.\n",
        "",
    )
    assert text(tmp_path, "errors.yaml") == (
        'kind: errors\nextends: packaged\nerrors:\n  unknown_tool: {message: "No {tool}: sorry"}\n'
    )
    assert mine("get", "errors:errors.unknown_tool.message")[1] == "No {tool}: sorry\n"
    assert mine("set", "errors:errors.unknown_tool.message", "No {tool}: sorry")[1].endswith("unchanged.\n")


def test_invalid_results_are_not_written(mine, tmp_path):
    status, out, err = mine("set", "errors:errors.unknown_tool.message", "No {toll}")

    assert (status, out) == (2, "")
    assert err.endswith("The field 'toll' does not exist here. Did you mean 'tool'?\n")
    assert err.startswith(os.path.join("mine", "errors.yaml") + ":4:")
    assert not (tmp_path / "mine").exists()


def test_an_edit_keeps_other_bytes(mine, overlay, tmp_path):
    (tmp_path / "mine" / "servers" / "tmkb").mkdir(parents=True)
    file = tmp_path / "mine" / "servers" / "tmkb" / "server.yaml"
    file.write_bytes(b"# mine\r\nkind:   server\r\nextends: packaged\r\nlimits: {page_size: 50}   # few\r\n")

    assert mine("set", "tmkb:limits.page_size", "40")[0] == 0
    assert mine("add", "tmkb:title", "5")[0] == 2  # a title is a text
    assert mine("add", "tmkb:title", '"5"')[0] == 0
    assert file.read_bytes() == (
        b'# mine\r\nkind:   server\r\nextends: packaged\r\nlimits: {page_size: 40}   # few\r\ntitle: "5"\r\n'
    )
    assert mine("remove", "tmkb:title")[0] == 0
    assert mine("set", "tmkb:limits.page_size", "50")[0] == 0
    assert file.read_bytes().endswith(b"limits: {page_size: 50}   # few\r\n")


def test_hidden_files_are_ignored(mine, tmp_path):
    folder = tmp_path / "mine"
    (folder / ".idea").mkdir(parents=True)
    (folder / ".idea" / "misc.yaml").write_text("{")
    (folder / ".errors.yaml").write_text("kind: ")
    (folder / ".#errors.yaml").symlink_to("ada@desk.4711")  # as Emacs locks what is being edited

    assert mine("set", "errors:errors.unknown_tool.message", "No {tool}") == (
        0,
        f"{os.path.join('mine', 'errors.yaml')}: written.\n",
        "",
    )
    assert mine("check")[0] == 0


def test_lists_are_written_completely(mine, tmp_path):
    assert mine("remove", "tmkb:revisions.4")[0] == 0
    assert mine("remove", "tmkb:revisions[0]")[0] == 0
    assert mine("add", "tmkb:revisions", "2026-07-28")[0] == 0
    assert mine("set", "tmkb:revisions.0", "2025-11-25")[0] == 0
    assert text(tmp_path, "servers/tmkb/server.yaml").splitlines()[2] == (
        'revisions: ["2025-11-25", "2025-03-26", "2024-11-05", "2026-07-28"]'
    )


def test_an_entry_of_an_inherited_list_is_set_in_a_copy_of_the_list(mine, tmp_path):
    assert mine("set", "tmkb_query:input.properties.language.enum.0", "go")[0] == 0
    assert text(tmp_path, "servers/tmkb/tools/tmkb_query.yaml").endswith("properties: {language: {enum: [go]}}\n")


def test_a_new_error_replaces_the_null_of_its_table(mine, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "errors.yaml").write_text("kind: errors\nextends: packaged\nerrors: null\n")

    assert mine("new", "error", "no_room")[0] == 0
    assert text(tmp_path, "errors.yaml").splitlines()[2:] == [
        'errors: {no_room: {surface: tool, fields: [what], message: "{what} did not work"}}'
    ]


def test_an_inherited_key_is_removed_by_null(mine, tmp_path):
    assert mine("remove", "2025-11-25:methods.ping")[0] == 0
    assert text(tmp_path, "protocol/2025-11-25.yaml").endswith("methods:\n  ping: null\n")
    assert mine("get", "2025-11-25:methods.ping")[0] == 1
    assert mine("remove", "2025-11-25:methods.ping")[0] == 1


def test_a_file_in_the_users_folder_is_removed(mine, tmp_path):
    file = os.path.join("mine", "servers", "tmkb", "tools", "motto.yaml")
    assert mine("new", "tool", "motto")[0] == 0

    assert mine("remove", "motto", "--dry-run")[1].startswith(f"--- {file}\n+++ {os.devnull}\n")
    assert mine("remove", "motto:") == (
        1,
        "",
        "tmkb: motto: is a whole file. Add a colon and the keys, joined by dots.\n",
    )
    assert (tmp_path / file).exists()
    assert mine("remove", "motto") == (0, f"{file}: removed.\n", "")
    assert not (tmp_path / file).exists()


def test_packaged_or_required_files_are_not_removed(mine, tmp_path):
    own = os.path.join("mine", "servers", "tmkb", "tools", "tmkb_query.yaml")
    assert mine("remove", "tmkb_query")[2].startswith(f"{own}:1:1: ")
    assert "packaged files cannot be changed" in mine("remove", "tmkb_query")[2]
    assert mine("new", "revision", "2099-01-01")[0] == 0
    assert mine("add", "tmkb:revisions", "2099-01-01")[0] == 0

    status, _, err = mine("remove", "2099-01-01")
    assert status == 2 and "2099-01-01" in err
    assert (tmp_path / "mine" / "protocol" / "2099-01-01.yaml").exists()


def test_json_files_are_edited_too(mine, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "errors.json").write_text('{\n  "kind": "errors",\n  "extends": "packaged"\n}\n')

    assert mine("set", "errors:errors.unknown_tool.code", "-32001")[0] == 0
    assert text(tmp_path, "errors.json") == (
        '{\n  "kind": "errors",\n  "extends": "packaged",\n  "errors": {"unknown_tool": {"code": -32001}}\n}\n'
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "errors:errors.unknown_tol.code", "5"], "There is no 'unknown_tol' in errors."),
        (
            ["set", "errors:errors.unknown_tool.cod", "5"],
            "There is no 'cod' in errors.unknown_tool. Did you mean 'code'?",
        ),
        (["set", "errors", "5"], "errors is a whole file. Add a colon and the keys, joined by dots."),
        (["add", "errors:errors.unknown_tool.code", "5"], "errors.unknown_tool.code already exists."),
        (["remove", "errors:errors.unknown_tool.cod"], "Did you mean 'code'?"),
        (["remove", "errrs:errors"], "There is no schema errrs. Did you mean errors?"),
    ],
)
def test_an_unknown_path(mine, words, message):
    status, out, err = mine(*words)

    assert (status, out) == (1, "")
    assert message in err


def test_packaged_files_are_not_edited(schema):
    status, _, err = schema("set", "tmkb:title", "x")

    assert status == 2
    assert "Packaged files cannot be changed. Pass your own folder with --schemas DIR" in err


def test_in_a_checkout_the_packaged_folder_can_be_named(schema):
    status, out, _ = schema("set", "tmkb:cache.ttlMs", "5", "--schemas", paths.SCHEMAS, "--dry-run")

    assert status == 0
    assert [line for line in out.splitlines() if line.startswith(("+", "-"))][2:] == [
        "-cache: {ttlMs: 300000, cacheScope: public}",
        "+cache: {ttlMs: 5, cacheScope: public}",
    ]


@pytest.mark.parametrize("kind", overlays.NEW_FILES)
def test_new_files_are_valid_and_have_comments(mine, tmp_path, kind):
    name = "2099-01-01" if kind == "revision" else "hello"
    file = json.loads(mine("new", kind, name, "--json")[1])["file"]
    begun = (tmp_path / file).read_text(encoding="utf-8")

    assert name in begun and "NAME" not in begun and "#" in begun
    assert mine("check")[0] == 0
    status, _, err = mine("new", kind, name)
    assert status == 2
    assert "already exists" in err


def test_new_files_belong_to_the_named_server(mine, tmp_path):
    assert mine("new", "server", "hello")[0] == 0
    assert mine("new", "tool", "greet", "--server", "hello")[0] == 0
    assert mine("new", "error", "one")[0] == 0
    assert mine("new", "error", "two")[0] == 0
    assert (tmp_path / "mine" / "servers" / "hello" / "tools" / "greet.yaml").exists()
    assert text(tmp_path, "errors.yaml").endswith(
        '  two: {surface: tool, fields: [what], message: "{what} did not work"}\n'
    )


@pytest.mark.parametrize("name", ["../greet", "a b", ".greet", ""])
def test_an_invalid_name(mine, tmp_path, name):
    sentence = f"'{name}' is not a valid file name. Use at most 128 letters, digits, _, - and dots."

    assert mine("new", "tool", name) == (2, "", f"NAME: {sentence}\n")
    assert not (tmp_path / "mine").exists()


def test_eject_copies_the_packaged_file(schema, tmp_path):
    assert schema("eject", "2025-11-25", "mine")[0] == 0
    with open(os.path.join(paths.SCHEMAS, "protocol", "2025-11-25.yaml"), encoding="utf-8") as source:
        packaged = source.read()
    assert text(tmp_path, "protocol/2025-11-25.yaml") == packaged.partition("\n")[2]
    assert schema("check", "mine")[0] == 0

    status, _, err = schema("eject", "2025-11-25", "mine")
    assert status == 2
    assert "already exists and was not changed" in err
    assert schema("eject", "2025-11-26", "mine")[0] == 1


def test_eject_of_an_inherited_file(schema, tmp_path):
    assert schema("eject", "servers/tmkb-full/tools/tmkb_query", "mine")[0] == 0
    assert "name: tmkb_query\n" in text(tmp_path, "servers/tmkb-full/tools/tmkb_query.yaml")
    assert schema("check", "mine")[0] == 0


@pytest.mark.parametrize(
    ("words", "place", "kind"),
    [
        (["new", "tool", "greet", "--server", "tmkb"], "servers/tmkb/tools/greet.yaml", "tool"),
        (["eject", "tmkb_query"], "servers/tmkb/tools/tmkb_query.yaml", "tool"),
        (["set", "limits:limits.running", "1"], "limits.yaml", "limits"),
    ],
)
def test_in_a_checkout_files_point_editors_to_their_schema(schema, monkeypatch, tmp_path, words, place, kind):
    assert schema(*words, *(["elsewhere"] if words[0] == "eject" else ["--schemas", "elsewhere"]))[0] == 0
    monkeypatch.setattr(paths, "ROOT", str(tmp_path))
    assert schema(*words, *(["mine"] if words[0] == "eject" else ["--schemas", "mine"]))[0] == 0
    first, rest = text(tmp_path, place).split("\n", 1)
    target = first.removeprefix(metaschema.POINTER)

    other = (tmp_path / "elsewhere" / place).read_text(encoding="utf-8")
    assert rest == (other.split("\n", 1)[1] if words[0] == "new" else other)  # which has one for this machine
    folder = tmp_path / "mine" / os.path.dirname(place)
    assert os.path.normpath(folder / target) == os.path.join(export.EDITOR, f"{kind}.json")


def test_the_index_after_the_last_entry_appends(mine, tmp_path):
    assert mine("set", "tmkb_query:input.properties.language.enum.1", "go")[0] == 0
    assert "enum: [python, go]" in text(tmp_path, "servers/tmkb/tools/tmkb_query.yaml")


@pytest.mark.parametrize("action", ["get", "set", "remove"])
def test_an_index_out_of_range_is_reported(mine, tmp_path, action):
    (tmp_path / "mine").mkdir()
    status, out, err = mine(action, "tmkb:revisions.7", *(["x"] if action == "set" else []))

    assert (status, out, err) == (1, "", "tmkb: There is no '7' in revisions. Known: 0, 1, 2, 3, 4.\n")


@pytest.mark.parametrize("action", ["set", "add"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tmkb:revisions.²", "tmkb: There is no '²' in revisions. Known: 0, 1, 2, 3, 4."),
        ("tmkb:revisions.9", "tmkb: There is no '9' in revisions. Known: 0, 1, 2, 3, 4."),
        ("tmkb:revisions.0.a", "tmkb: revisions.0 has no keys, and so no 'a'. Change revisions.0 itself."),
        ("tmkb:limits.running.0", "tmkb: limits.running has no keys, and so no '0'. Change limits.running itself."),
        ("tmkb:name.a.b", "tmkb: name has no keys, and so no 'a'. Change name itself."),
        (r'tmkb:"a\q".b', r'PATH: The quoted key "a\q" has an invalid escape sequence. Write \\ for a backslash and \" for a quote.'),
        (":name", "PATH: The name of the file is missing before the colon. Write NAME:KEY.KEY."),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere(mine, action, path, message):
    status, out, err = mine(action, path, "x")

    assert (status > 0, out, err) == (True, "", f"{message}\n")


def test_without_schemas_for_editors_a_new_file_names_none(mine, monkeypatch, tmp_path):
    monkeypatch.setattr(export, "EDITOR", str(tmp_path / "missing"))
    mine("new", "tool", "say_hello")

    assert text(tmp_path, "servers/tmkb/tools/say_hello.yaml").splitlines()[:3] == [
        "kind: tool",
        "name: say_hello                 # the name that clients call; equal to the file name",
        "description: Says hello. Describe here, for models, what the tool does and when to call it.",
    ]


@pytest.mark.parametrize(
    ("words", "expected", "message"),
    [
        (["new", "tool", "x", "--server", "tmkbb"], 2, "--server: There is no server 'tmkbb'. Did you mean 'tmkb'?"),
        (["new", "error", "unknown_tool"], 2, "errors.unknown_tool already exists. Change it with `tmkb schema set`."),
        (
            ["check"],
            1,
            "mine: This is a file, not a folder of schemas. Use the folder that contains errors.yaml or servers/.",
        ),
    ],
)
def test_what_cannot_be_created_or_checked(mine, tmp_path, words, expected, message):
    if words == ["check"]:
        (tmp_path / "mine").touch()
    status, out, err = mine(*words)

    assert status == expected and (out + err).endswith(f"{message}\n")


def test_a_users_server_gets_its_own_error_table(mine, tmp_path):
    assert mine("new", "server", "acme")[0] == 0
    assert mine("new", "error", "bad", "--server", "acme") == (
        0,
        f"{os.path.join('mine', 'servers', 'acme', 'errors.yaml')}: written.\n",
        "",
    )
    assert "extends" not in text(tmp_path, "servers/acme/errors.yaml")
    assert mine("new", "error", "worse", "--server", "acme")[0] == 0
    assert mine("new", "error", "bad", "--server", "tmkb")[0] == 0
    assert "extends: packaged" in text(tmp_path, "servers/tmkb/errors.yaml")


@pytest.mark.parametrize("server", ["tmkb", "acme"])
@pytest.mark.parametrize(("kind", "capability"), [("prompt", "prompts"), ("resource", "resources")])
def test_new_files_are_served(mine, server, kind, capability):
    if server == "acme":
        mine("new", "server", "acme")
    status, out, _ = mine("new", kind, "hello", "--server", server)

    assert (status, out.count("written.")) == (0, 2)
    assert mine("get", f"{server}:capabilities.{capability}")[:2] == (0, "{}\n")
    shown = json.loads(mine("new", kind, "again", "--server", server, "--json")[1])
    assert len(shown["files"]) == 1


def test_a_new_file_points_editors_to_an_existing_schema(mine, monkeypatch, tmp_path):
    monkeypatch.setattr(export, "EDITOR", str(tmp_path / "packaged"))
    main.main(["schema", "export", export.EDITOR])
    mine("new", "tool", "one")
    first = text(tmp_path, "servers/tmkb/tools/one.yaml").splitlines()[0]
    way = first.removeprefix(metaschema.POINTER).removeprefix("file://")
    assert first.startswith(metaschema.POINTER)
    assert json.loads(pathlib.Path(way).read_text(encoding="utf-8"))["title"] == "A tool"

    assert mine("check")[0] == 0
    main.main(["schema", "export", str(tmp_path / "mine" / "editor")])
    mine("new", "tool", "two")
    assert text(tmp_path, "servers/tmkb/tools/two.yaml").splitlines()[0] == (
        f"{metaschema.POINTER}../../../editor/tool.json"
    )
    assert mine("check")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["eject", "tmkb_query", "FILE"],
        ["new", "tool", "zz", "--schemas", "FILE"],
        ["set", "errors:errors.unknown_tool.message", "hi", "--schemas", "FILE"],
        ["export", "FILE"],
    ],
)
def test_a_file_instead_of_a_folder(tmp_path, capsys, words):
    file = tmp_path / "file"
    file.touch()

    assert main.main(["schema", *(str(file) if word == "FILE" else word for word in words)]) == 2
    assert "is not a folder. Use a folder; it is created if it does not exist." in capsys.readouterr().err


def test_a_folder_that_cannot_be_created(tmp_path, capsys):
    (tmp_path / "file").touch()

    assert main.main(["schema", "eject", "tmkb_query", str(tmp_path / "file" / "below")]) == 2
    assert "Cannot create" in capsys.readouterr().err

"""Tables are added to TOML texts and taken out; everything else stays."""

import tomllib

import pytest

from tmkb.clients import tomltext
from tmkb.clients.faults import TextError

KEY = ("mcp_servers",)
ENTRY = {"command": "C:\\x\\tmkb.exe", "args": ["serve", "--patterns", "/a b/ü"]}
TEXTS = {
    "empty": "",
    "one line": "model = 'x'\n",
    "comments": "# top\nmodel = 'x' # m\n\n[mcp_servers.other] # o\ncommand = 'y' # k\n\n# end\n",
    "sub-tables": '[mcp_servers.a]\ncommand = "a"\n[mcp_servers.a.env]\nX = "1"\n\n[projects."/p"]\ntrust_level = "trusted"\n',
    "strings of several lines": '[a]\nb = """\n[mcp_servers.tmkb]\ncommand = "no"\n"""\nc = \'\'\'\n# no\'\'\'\nd = """x"""""\n',
    "arrays of several lines": "a = [\n  1, # [x]\n  [2, 3],\n]\n[[b]]\nc = {d = 1}\n[[b]]\nc = {d = '}'}\n",
    "inline entries": "[mcp_servers]\nx = {command = 'a'}\n",
    "dotted keys": "mcp_servers.x.command = 'a'\n",
    "quoted keys": "[mcp_servers.'a.b']\ncommand = 'x'\n[\"mcp_servers\".\"c d\"]\ncommand = 'y'\n",
    "line ends of Windows": "a = 1\r\n\r\n[mcp_servers.x]\r\ncommand = 'y'\r\n",
    "dates and numbers": "a = 1979-05-27T07:32:00Z\nb = 1.10\nc = nan\nd = 0xff\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_entry_is_added_and_taken_out(text):
    added = tomltext.with_entry(text, KEY, "tmkb", ENTRY)

    assert added.startswith(text)
    assert ("\r\n" in text) == ("\r\n" in added) and added.count("\n") == added.count("\r\n" if "\r" in text else "\n")
    assert tomllib.loads(added)["mcp_servers"]["tmkb"] == ENTRY
    assert tomltext.rest(added, KEY, "tmkb") == tomltext.rest(text, KEY, "tmkb")
    assert tomltext.without_entry(added, KEY, "tmkb") == text


def test_an_entry_with_tables_below_it_is_replaced_and_taken_out():
    text = (
        "# a\n[mcp_servers.tmkb]\ncommand = 'old' # c\n# inside\n[mcp_servers.tmkb.env]\nA = '1'\n\n# b\n"
        "[mcp_servers.z]\ncommand = 'z'\n\n[mcp_servers.tmkb.tools.q]\napprove = true\n"
    )
    replaced = tomltext.with_entry(text, KEY, "tmkb", {"command": "new"})

    assert replaced == "# a\n[mcp_servers.tmkb]\ncommand = \"new\"\n\n# b\n[mcp_servers.z]\ncommand = 'z'\n\n"
    assert tomltext.without_entry(text, KEY, "tmkb") == "# a\n\n# b\n[mcp_servers.z]\ncommand = 'z'\n"


def test_entries_have_places():
    text = "[mcp_servers]\nx = {command = 'a'}\n[mcp_servers.'y z']\ncommand = 'b'\n"

    assert tomltext.entries(text, KEY) == {"x": ({"command": "a"}, 14), "y z": ({"command": "b"}, 34)}


@pytest.mark.parametrize(
    ("text", "rule", "offset"),
    [
        ("a = \n", "client_syntax", 4),
        ("a = 1\nb = [1,\n", "client_syntax", 14),
        ("a = 1\na = 2\n", "client_syntax", 11),
        ("a = '\u2028\x85'\nb = 1\na = \n", "client_syntax", 19),
        ("mcp_servers = 1\n", "client_not_a_map", 0),
        ("a = 1\nx=" + "1" * 5000, "client_long_number", 8),
        ("a = " + "[" * 5000 + "]" * 5000, "client_too_deep", 0),
        ("a = 1\nmcp_servers = {x = {command = 'a'}}\n", "client_one_line", 6),
        ("[mcp_servers]\ntmkb = 'x'\n[mcp_servers.y]\n", None, 0),
    ],
)
def test_what_cannot_have_an_entry_is_an_error(text, rule, offset):
    if rule is None:  # an entry that is no table can be replaced all the same
        assert tomllib.loads(tomltext.with_entry(text, KEY, "tmkb", ENTRY))["mcp_servers"]["tmkb"] == ENTRY
        return
    with pytest.raises(TextError) as raised:
        tomltext.with_entry(text, KEY, "tmkb", ENTRY)

    assert (raised.value.rule, raised.value.offset) == (rule, offset)


def test_a_path_is_written_with_dots():
    with pytest.raises(TextError) as raised:
        tomltext.entries("[a.b]\n[a.b]\n", KEY)

    assert raised.value.fields["reason"] == "cannot declare a.b twice"


def test_an_entry_on_one_line_with_others_is_not_taken_out():
    with pytest.raises(TextError) as raised:
        tomltext.without_entry("mcp_servers = {tmkb = {command = 'a'}, b = {command = 'b'}}\n", KEY, "tmkb")

    assert raised.value.rule == "client_one_line"

"""docs/formats.md, and `tmkb schema formats`, which writes it."""

import os
import re

import pytest

from tests.support.repository import ROOT, source
from tmkb.cli import main
from tmkb.schema import formats, paths, reader


@pytest.fixture
def printed(capsys):
    """What the command prints with these words after it."""

    def run(*words):
        assert main.main(["schema", "formats", *words]) == 0
        return capsys.readouterr().out

    return run


def test_the_page_is_what_is_printed(printed):
    assert source(os.path.join(ROOT, "docs", "formats.md")) == printed(), "run `tmkb schema formats > docs/formats.md`"


def test_every_kind_of_file_is_told_once():
    kinds = formats.kinds()

    assert sorted([*kinds, "file"]) == sorted(paths.meta_schemas())
    assert re.findall(r"^## (.*)$", formats.page(), re.M) == kinds


def test_every_key_at_the_top_of_a_file_has_its_line():
    for kind, file in paths.meta_schemas().items():
        for key in reader.read(file).mapping().get("properties", {}):
            assert f"\n| `{key}` | " in formats.section(kind)


def test_links_lead_to_headings():
    page = formats.page()
    headings = {re.sub(r"[^\w-]", "", heading) for heading in re.findall(r"^#+ (.*)$", page, re.M)}

    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


def test_tables_have_four_columns():
    lines = [line for line in formats.page().splitlines() if line.startswith("| `")]

    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {6}


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("tool", "| `coerce` | map of name (coercion) |  | Argument → "),
        ("limits", "| `limits.running` | integer ≥ 1 | yes | Maximum number of "),
        ("prompt", "| `arguments.*.required` | boolean |  | Whether "),
        ("server", "| `log` | map |  | Line id → overrides "),  # what every server is given is not asked of any
        ("script", "| `steps.*.ask.*.as` | string | yes | The KEY "),
        (
            "lifecycle",
            '| `states.*.accepts` | map of name (state) |  | Accepted method or event → the next state. "\\*" is every other ',
        ),
    ],
)
def test_a_line(printed, kind, line):
    assert f"\n{line}" in printed(kind)


def test_what_is_told_elsewhere_is_linked(printed):
    assert re.search(r"\| `icons` \| list \|  \| .* As in \[server\]\(#server\)\. \|", printed("tool"))


def test_an_unknown_kind(capsys):
    assert main.main(["schema", "formats", "tol"]) == 1
    assert capsys.readouterr().err == "tmkb: There is no kind tol. Did you mean tool?\n"

"""`tmkb export skill`: a skill within the limits of the format, whose index leads to every pattern."""

import json
import posixpath
import re

import pytest

from tmkb.cli import main
from tmkb.knowledge import idioms, library, stacks, tokens
from tmkb.publishing import folder, skill
from tmkb.schema import reader

INDEX = "SKILL.md"


@pytest.fixture(scope="module")
def patterns():
    return {each.pattern["id"]: (each.path, each.pattern) for each in library.load(None).folders}


@pytest.fixture(scope="module")
def files(patterns):
    return skill.files(patterns)


def split(text):
    """The front matter of SKILL.md as a mapping, and its body."""
    _, head, body = text.split("---\n", 2)
    return reader.parse(head, "head.yaml").mapping(), body


def test_the_front_matter_is_within_the_limits_of_the_format(files):
    head, body = split(files[INDEX])

    assert head.keys() == {"name", "description", "metadata"}
    assert head["name"] == skill.FOLDER and len(skill.FOLDER) <= 64
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", skill.FOLDER) and not re.search("anthropic|claude", skill.FOLDER)
    assert len(head["description"]) <= 1024 and not re.search("[<>{]", head["description"])
    assert "Use before" in head["description"]
    assert all(isinstance(each, str) for each in head["metadata"].values())
    assert tokens.count(body) < 5000 and len(body.splitlines()) < 500


def test_the_index_has_a_line_and_a_file_for_each_pattern(patterns, files):
    lines = re.findall(r"^- (references/(\S+)\.md) (.+?) \((.+)\)$", files[INDEX], re.M)

    assert sorted(id_ for _, id_, _, _ in lines) == sorted(patterns)
    assert {INDEX, *(path for path, *_ in lines)} == set(files)
    for _, id_, name, work in lines:
        assert (name, work.split("; ")) == (patterns[id_][1]["name"], patterns[id_][1]["triggers"]["actions"])
    assert [line for line in files[INDEX].splitlines() if line.startswith("## ")] == sorted(
        line for line in files[INDEX].splitlines() if line.startswith("## ")
    )


def test_every_link_leads_to_a_file(files):
    for path, text in files.items():
        for link in re.findall(r"\]\(([^)]+)\)", text.partition("\n## Code\n")[0]):
            assert posixpath.join(posixpath.dirname(path), link) in files, path


def test_a_file_has_what_is_known_of_its_pattern(patterns, files):
    names = stacks.packaged().stacks
    for id_, (place, pattern) in patterns.items():
        text = files[f"references/{id_}.md"]
        squeezed = " ".join(text.split())
        expected = [*pattern["agent_summary"].values(), *pattern.get("testing", ())]
        for stack, idiom in idioms.served(place, pattern).items():
            assert f"### {names[stack]['name']} ({idiom['status']})\n" in text, id_
            expected += [value for key, value in idiom.items() if key != "status"]
        assert [each for each in expected if " ".join(each.split()) not in squeezed] == [], id_
        assert len(text.partition("\n## Code\n")[0]) < 5_000, id_  # readers take only their stack of the rest


def test_a_stack_can_be_cut_out_by_its_heading(files):
    """SKILL.md names a command that prints from the heading of a stack to the next heading."""
    for path, text in files.items():
        assert path == INDEX or text.count("\n## Code\n") == 1, path
        for code in text.split("```")[1::2]:
            assert not re.search("^##+ ", code, re.M), path
        assert text.count("\n```") == 2 * text.count("\n### "), path


def test_only_exported_patterns_are_linked(patterns):
    chosen = {id_: patterns[id_] for id_ in ("TMKB-AUTH-036", "TMKB-AUTH-002")}
    files = skill.files(chosen)

    assert files == skill.files(dict(reversed(chosen.items())))
    assert set(files) == {INDEX, "references/TMKB-AUTH-002.md", "references/TMKB-AUTH-036.md"}
    test_every_link_leads_to_a_file(files)
    assert "[TMKB-AUTH-002](TMKB-AUTH-002.md)" in files["references/TMKB-AUTH-036.md"]


def test_a_pattern_without_code_has_a_file(tmp_path, patterns):
    _, pattern = patterns["TMKB-AUTH-007"]
    bare = {
        key: pattern[key] for key in ("id", "name", "category", "severity", "likelihood", "agent_summary", "language")
    }
    bare |= {"description": "x\n", "triggers": {"keywords": ["idor"]}, "related_patterns": [{"id": "TMKB-AUTH-007"}]}
    files = skill.files({"TMKB-AUTH-007": (str(tmp_path), bare)})

    assert f"- references/TMKB-AUTH-007.md {pattern['name']}\n" in files[INDEX]
    assert "Stacks: none." in files[INDEX]
    page = files["references/TMKB-AUTH-007.md"]
    assert page.endswith("- [TMKB-AUTH-007](TMKB-AUTH-007.md)\n")
    assert "- **Fix**: " in page and "## Code" not in page


def test_the_framework_of_a_pattern_of_your_own_can_be_any(tmp_path, patterns):
    _, pattern = patterns["TMKB-AUTH-007"]
    page = skill.files({"ACME-AUTH-001": (str(tmp_path), {**pattern, "id": "ACME-AUTH-001", "framework": "bottle"})})

    assert "### bottle (text)\n" in page["references/ACME-AUTH-001.md"]


def test_the_skill_lies_in_a_folder_with_its_name(capsys, tmp_path):
    (tmp_path / "other-skill").mkdir()
    place = tmp_path / skill.FOLDER
    for ids, removed in ((["7", "36"], []), (["7"], ["references/TMKB-AUTH-036.md"])):
        assert main.main(["export", "skill", "-o", str(tmp_path), *ids, "--json"]) == 0
        value = json.loads(capsys.readouterr().out)
        assert (value["folder"], value["removed"]) == (str(place), removed)

    found = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    assert found == {INDEX, "references/TMKB-AUTH-007.md", folder.RECORD}
    assert [each.name for each in tmp_path.iterdir() if each.name != skill.FOLDER] == ["other-skill"]


def test_a_folder_with_other_files_is_refused(capsys, tmp_path):
    own = tmp_path / skill.FOLDER / INDEX
    own.parent.mkdir()
    own.write_text("mine\n")

    assert main.main(["export", "skill", "-o", str(tmp_path), "7"]) == 2
    assert own.read_text() == "mine\n" and "--force" in capsys.readouterr().err
    assert list(own.parent.iterdir()) == [own]

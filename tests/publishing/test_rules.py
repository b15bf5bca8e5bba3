"""`tmkb rules`: short rules for coding agents, in a file of which all other bytes stay."""

import functools
import json
import os
import shutil

import pytest

from tmkb.publishing import rules
from tmkb.schema import paths, reader

BEGIN, END = rules.BEGIN, rules.END


@pytest.fixture
def export(run_tmkb):
    """Run `tmkb rules agents-md`; gives exit status, stdout, stderr."""

    return functools.partial(run_tmkb, "rules", "agents-md")


def test_the_instructions_are_short_and_complete(export, found):
    status, text, _ = export()
    lines = text.splitlines()

    assert status == 0 and len(lines) < 60
    assert (lines[0].encode(), lines[-1].encode()) == (BEGIN, END)
    for named in (*(each["name"] for each in found.spec["tools"].values()), "tmkb query", "tmkb get", "tmkb review"):
        assert f"`{named}" in text
    listed = [line for line in lines if line.startswith("- TMKB-AUTH-")]
    assert len(listed) == len(rules._USUAL) == len(set(listed))
    assert all(line.endswith("?") for line in listed)


def test_ids_choose_the_checks(export):
    status, text, _ = export("36", "7", "--json")

    assert status == 0
    listed = [line.split()[1] for line in json.loads(text)["text"].splitlines() if line.startswith("- ")]
    assert listed == ["TMKB-AUTH-036", "TMKB-AUTH-007"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_only_the_lines_between_the_markers_change(export, tmp_path, ending):
    file = tmp_path / "AGENTS.md"
    before = ending.join([b"\xef\xbb\xbf# Rules\xff", b"In text: " + BEGIN, b"\r", b""])
    after = ending.join([b"", b"Last line without an end  "])
    file.write_bytes(before + BEGIN + ending + b"old" + ending + END + after)

    assert export("-o", file, "7") == (0, f"{file} is written.\n", "")
    first = file.read_bytes()
    assert first.startswith(before + BEGIN + ending + b"## Authorization" + ending)
    assert first.endswith(ending + END + after)
    assert first.count(b"\n") == first.count(ending) and b"old" not in first

    status = os.stat(file)
    assert export("-o", file, "7") == (0, f"{file} is up to date.\n", "")
    assert file.read_bytes() == first and os.stat(file).st_mtime_ns == status.st_mtime_ns
    assert json.loads(export("-o", file, "36", "--json")[1]) == {"file": str(file), "changed": True}
    assert b"TMKB-AUTH-007" not in file.read_bytes()


def test_a_missing_file_is_created_with_markers(export, tmp_path):
    file = tmp_path / "new" / "AGENTS.md"

    assert export("-o", file)[0] == 0
    assert file.read_text() == export()[1]
    assert export("-o", file) == (0, f"{file} is up to date.\n", "")


def test_a_link_stays_a_link(export, tmp_path):
    file, link = tmp_path / "AGENTS.md", tmp_path / "CLAUDE.md"
    file.write_bytes(BEGIN + b"\n" + END + b"\n")
    link.symlink_to(file.name)

    assert export("-o", link)[0] == 0
    assert link.is_symlink() and b"tmkb_query" in file.read_bytes()


@pytest.mark.parametrize("form", rules.FORMS)
def test_a_folder_gets_the_file_that_its_agents_read(run_tmkb, tmp_path, form):
    file = tmp_path / rules.FORMS[form].file

    assert run_tmkb("rules", form, "-o", tmp_path) == (0, f"{file} is written.\n", "")
    assert file.read_text() == run_tmkb("rules", form)[1]
    assert run_tmkb("rules", form, "-o", tmp_path, "--remove") == (0, f"{file} has no rules of TMKB now.\n", "")
    assert not file.exists()
    assert run_tmkb("rules", form, "-o", tmp_path, "--remove") == (0, f"{file} had no rules of TMKB.\n", "")


def test_a_file_that_git_converted_is_deleted_too(run_tmkb, tmp_path):
    file = tmp_path / "tmkb.mdc"
    run_tmkb("rules", "cursor", "-o", file)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert run_tmkb("rules", "cursor", "-o", file, "--remove")[0] == 0 and not file.exists()


def test_the_file_for_cursor_begins_with_its_front_matter(run_tmkb):
    _, head, body = run_tmkb("rules", "cursor")[1].split("---\n", 2)

    assert reader.parse(head, "head.yaml").mapping().keys() == {"description", "alwaysApply"}
    assert reader.parse(head, "head.yaml").mapping()["alwaysApply"] is True
    assert body.startswith(BEGIN.decode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"# Rules",
        b"# Rules\n",
        b"# Rules\n\n",
        b"\xef\xbb\xbf# Rules\r\n",
        b"# Rules\r\n\r\nNo end",
        b"In text: " + BEGIN + b" and " + END + b"\n",
        b"---\nalwaysApply: false\n---\nMine \xff\n",
    ],
)
@pytest.mark.parametrize("form", ["agents-md", "cursor"])
def test_rules_follow_what_is_there_and_leave_it_as_it_was(run_tmkb, tmp_path, content, form):
    file = tmp_path / "AGENTS.md"
    file.write_bytes(content)
    call = functools.partial(run_tmkb, "rules", form, "-o", file)

    assert call()[0] == 0
    first = file.read_bytes()
    assert first.startswith(content) and b"tmkb_query" in first
    assert (b"\r\n" in content) == (b"\r\n" in first) == (b"\r\n## Authorization\r\n" in first)
    assert call() == (0, f"{file} is up to date.\n", "")
    assert call("36")[0] == call()[0] == 0 and file.read_bytes() == first
    assert call("--remove")[0] == 0 and file.read_bytes() == content


def test_text_after_the_rules_stays(export, tmp_path):
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"# Rules\n")
    export("-o", file)
    file.write_bytes(file.read_bytes() + b"\n# More\n")

    assert export("-o", file, "7")[0] == 0 and file.read_bytes().endswith(b"\n\n# More\n")
    assert export("-o", file, "--remove")[0] == 0 and file.read_bytes() == b"# Rules\n\n# More\n"


@pytest.mark.parametrize(
    "content",
    [
        BEGIN + b"\n",
        END + b"\n",
        END + b"\n" + BEGIN + b"\n",
        2 * (BEGIN + b"\n" + END + b"\n"),
        b"In text: " + BEGIN + b"\n" + END + b"\n",
    ],
)
@pytest.mark.parametrize("more", [[], ["--remove"]])
def test_a_file_with_other_markers_is_refused(export, tmp_path, content, more):
    file = tmp_path / "AGENTS.md"
    file.write_bytes(content)

    status, _, err = export("-o", file, *more)
    assert status == 2 and BEGIN.decode() in err and END.decode() in err
    assert file.read_bytes() == content


def test_wrong_input_is_refused(export, tmp_path):
    (tmp_path / "file").write_text("")

    (tmp_path / "utf16").write_text("x", "utf-16")
    assert export("-o", tmp_path / "utf16")[0] == 2
    assert export("-o", tmp_path / "file" / "AGENTS.md")[0] == 2
    assert export("--remove")[0] == 2
    assert export("-o", tmp_path / "missing", "--remove")[0] == 0 and not (tmp_path / "missing").exists()
    assert export("907")[0] == 1
    shutil.copytree(os.path.join(paths.PATTERNS, "tmkb_auth_003"), tmp_path / "patterns" / "tmkb_auth_003")
    status, _, err = export("--patterns", tmp_path / "patterns")
    assert status == 1 and "Name the ids of others" in err
    assert export("3", "--patterns", tmp_path / "patterns")[0] == 0

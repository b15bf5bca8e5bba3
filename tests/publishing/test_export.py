"""`tmkb export`: the folder that it writes, and its errors."""

import functools
import json

import pytest

from tmkb.errors import SpecError
from tmkb.publishing import folder


@pytest.fixture
def export(run_tmkb):
    """Run `tmkb export`; gives exit status, stdout, stderr."""

    return functools.partial(run_tmkb, "export")


def test_a_second_export_replaces_the_files_of_the_first(tmp_path):
    place = tmp_path / "new" / "rules"
    assert folder.write(place, "semgrep", {"a.yaml": "1\n", "deep/b.yaml": "2\n"}) == []
    (place / "own.yaml").write_text("mine\n")

    assert folder.write(place, "semgrep", {"a.yaml": "3\n"}) == ["deep/b.yaml"]
    assert (place / "a.yaml").read_text() == "3\n"
    assert (place / "own.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    "record",
    [
        None,
        "{",
        "[]",
        '{"target": "skill", "files": []}',
        '{"target": "semgrep", "files": ["../kept"]}',
        '{"target": "semgrep", "files": ["/kept"]}',
    ],
)
def test_a_folder_that_no_export_of_this_format_wrote_is_refused(tmp_path, record):
    (tmp_path / "kept").write_text("mine\n")
    place = tmp_path / "rules"
    place.mkdir()
    (place / "own").write_text("mine\n")
    if record:
        (place / folder.RECORD).write_text(record)

    with pytest.raises(SpecError):
        folder.write(place, "semgrep", {"a.yaml": "1\n"})
    assert not (place / "a.yaml").exists()

    assert folder.write(place, "semgrep", {"a.yaml": "1\n"}, force=True) == []
    assert (place / "own").exists() and (tmp_path / "kept").exists()
    assert json.loads((place / folder.RECORD).read_text()) == {"target": "semgrep", "files": ["a.yaml"]}


def test_errors_say_what_to_do(export, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "file.txt").write_text("")

    assert export("semgrep", "-o", file, "7") == (
        2,
        "",
        f"--output: {file} is not a folder. Use a folder; it is created if it does not exist.\n",
    )
    assert export("semgrep", "-o", tmp_path / "new", "907") == (
        1,
        "",
        "tmkb: There is no pattern 907. See `tmkb list`.\n",
    )
    status, _, err = export("semgrep", "-o", tmp_path, "7")
    assert status == 2 and "--force" in err
    assert not (tmp_path / "new").exists()

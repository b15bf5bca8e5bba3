"""Regions, syntax trees and exploits of example files."""

import pytest

from tmkb.errors import DocumentError
from tmkb.knowledge import examples


def region(text, name="a"):
    problems = []
    return examples.region(examples.Source(text, "file.py"), name, problems), [(p.rule, p.line) for p in problems]


def test_a_region_is_dedented_and_loses_its_markers():
    text = "x = 0\nif x:\n    # region a\n    y = 1\n    # region b\n    z = 2\n    # endregion\n    # endregion\n"

    assert region(text) == ("y = 1\nz = 2\n", [])
    assert region(text, "b") == ("z = 2\n", [])


def test_at_most_two_blank_lines_remain_of_a_marker():
    text = "# region a\nx = 1\n\n\n# region b\ny = 1\n\n\n# endregion\n\n\nz = 1\n\n\n# endregion\n"

    assert region(text) == ("x = 1\n\n\ny = 1\n\n\nz = 1\n", [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# region a\n", ("region_not_closed", 1)),
        ("x = 1\n# endregion\n", ("region_not_open", 2)),
        ("x = 1\n", ("region_count", 1)),
        ("# region a\n# endregion\n# region a\n# endregion\n", ("region_count", 1)),
    ],
)
def test_unbalanced_regions_are_reported(text, problem):
    assert region(text)[1] == [problem]


@pytest.mark.parametrize("name", ["../other/secure.py", "/etc/passwd", "absent.py", "link.py"])
def test_a_file_outside_the_folder_is_not_read(tmp_path, name):
    (tmp_path / "link.py").symlink_to("/etc/hostname")

    assert examples.read(str(tmp_path), name, name) is None


def test_a_file_that_is_not_utf8_is_reported_with_its_place(tmp_path):
    (tmp_path / "latin.py").write_bytes(b"x\n# \xe9")
    with pytest.raises(DocumentError) as caught:
        examples.read(str(tmp_path), "latin.py", "latin.py")

    assert [(p.rule, p.line, p.column) for p in caught.value.problems] == [("not_utf8", 2, 3)]


@pytest.mark.parametrize("count", [200, 5_000, 100_000])
@pytest.mark.parametrize("form", ["-*1", "a.b*", "lambda: *1", "1 + *1", "a[0]*", "a()*", "1 if 1 else *1"])
def test_deeply_nested_code_is_reported(form, count):
    """The parser, or a recursive walk over its tree, would raise MemoryError or RecursionError."""
    before, repeated, after = _split(form)
    problems = []
    tree = examples.parse(examples.Source(f"a = 1\nx = {before}{repeated * count}{after}\n", "file.py"), problems)

    assert [(p.rule, p.line) for p in problems] == [("too_deep", 2)]
    assert tree.body == []


def _split(form):
    """Return what precedes the repeated part, that part, which ends at ``*``, and what follows it."""
    head, _, after = form.partition("*")
    before = "a" if head.startswith("a") else ""
    return before, head.removeprefix(before), after


def test_exploits_are_named_functions_in_order():
    proof = 'def exploit_b(e):\n    """Second."""\ndef help():\n    """No."""\ndef exploit_a(e):\n    pass\n'
    problems = []

    assert list(examples.exploits(examples.parse(examples.Source(proof, "p"), problems))) == ["b", "a"]


def test_invalid_python_is_reported():
    problems = []
    examples.parse(examples.Source("x = (\n", "file.py"), problems)

    assert [(p.rule, p.file, p.line) for p in problems] == [("not_python", "file.py", 1)]

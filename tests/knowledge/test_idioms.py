"""Idioms of patterns: what is read, what is reported, and their status."""

import pytest

from tmkb.knowledge import idioms, pattern, provenance
from tmkb.schema import problems

NAME = "acme_auth_026"
CODE = "def f():\n    return 1\n"


@pytest.fixture
def folder(patterns):
    return patterns(NAME) / NAME


def write(folder, entry, app=None):
    """Write an idioms.yaml with this entry, and its application."""
    (folder / "idioms.yaml").write_text(f"kind: idioms\nstacks:\n  {entry}\n")
    if app is not None:
        (folder / "idioms").mkdir(exist_ok=True)
        (folder / "idioms" / "fastapi.py").write_text(app)


def read(folder):
    """Return the idioms, and the lines of the problems without the folder."""
    found, faults = idioms.read(str(folder))
    return found, [problems.line(each).replace(f"{folder}/", "") for each in faults]


def test_the_region_of_an_application_is_the_code(folder):
    write(folder, "fastapi: {app: idioms/fastapi.py}", f"import os\n\n\n# region idiom\n{CODE}\n\n# endregion\n")

    assert read(folder) == ({"fastapi": idioms.Idiom(CODE, None, "idioms/fastapi.py")}, [])


def test_the_marks_of_a_region_in_javascript(folder):
    write(folder, "express: {app: idioms/express.mjs}", "")
    (folder / "idioms" / "express.mjs").write_text("// region idiom\nf();\n// endregion\n")

    assert read(folder)[0]["express"].code == "f();\n"


@pytest.mark.parametrize(
    ("entry", "app", "problem"),
    [
        ("fastapy: {code: x}", None, "There is no stack 'fastapy'. Did you mean fastapi?"),
        ("fastapi: {app: idioms/fastapi.py}", None, "This folder has no file idioms/fastapi.py."),
        ("fastapi: {app: idioms/fastapi.py}", "x = 1\n", "# region idiom occurs 0 times; it must occur once."),
        (
            "fastapi: {app: idioms/fastapi.py}",
            "x = (\n# region idiom\n# endregion\n",
            "Not valid Python: '(' was never closed.",
        ),
        ('fastapi: {code: "x\\u200by"}', None, "Hidden or control character U+200B"),
        ("fastapi: {code: x, app: idioms/fastapi.py}", "", ""),
    ],
)
def test_an_idiom_with_a_problem_is_left_out(folder, entry, app, problem):
    write(folder, entry, app)
    found, faults = read(folder)

    assert found == {}
    assert any(problem in fault for fault in faults)


def test_long_code_is_reported(folder):
    (folder / "idioms.yaml").write_text(
        f"kind: idioms\nstacks:\n  go: {{code: {'x' * 461}}}\n  rails:\n    code: |\n" + "      x\n\n" * 9
    )
    found, faults = read(folder)

    assert [*found] == ["go", "rails"]
    assert faults == [
        "idioms.yaml:3:3: The idiom for go has 461 characters; the limit is 460.",
        "idioms.yaml:4:3: The idiom for rails has 9 lines of code; the limit is 8.",
    ]


def test_the_status_is_what_is_recorded_for_the_same_files(folder):
    write(folder, "fastapi: {app: idioms/fastapi.py, caution: Yes.}", f"# region idiom\n{CODE}# endregion\n")
    loaded = pattern.read(str(folder)).pattern

    def status():
        return idioms.served(str(folder), loaded)["fastapi"]["status"]

    def record(**checked):
        proven = provenance.digest(str(folder), loaded)
        provenance.record({loaded["id"]: (str(folder), proven)}, "2026-01-02", "1.0", {loaded["id"]: checked})

    idiom = read(folder)[0]["fastapi"]
    assert status() == "text"
    compiled = {"fastapi": idioms.compiled_digest("fastapi", idiom)}
    record(compiled=compiled)
    assert status() == "compiled"
    record(compiled=compiled, idioms={"fastapi": idioms.digest(str(folder), "fastapi", idiom)})
    assert status() == "proven"
    app = folder / "idioms" / "fastapi.py"
    app.write_text(app.read_text() + "more = 1\n")
    assert status() == "compiled"
    app.write_text(app.read_text().replace("return 1", "return 2"))
    assert status() == "text"

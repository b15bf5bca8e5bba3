"""`docs/dependencies.md` has a row for each requirement of `pyproject.toml`, in the section of its extra, and no other."""

import os
import re
import tomllib

from packaging.requirements import Requirement

from tests.support.repository import ROOT, source


def test_every_requirement_has_its_row():
    project = tomllib.loads(source(os.path.join(ROOT, "pyproject.toml")))["project"]
    wanted = {"Core": project["dependencies"], **project["optional-dependencies"]}
    sections = re.split(r"^##+ `?(\w+).*\n", source(os.path.join(ROOT, "docs", "dependencies.md")), flags=re.M)
    documented = {
        name: re.findall(r"^\| `(\S+)` \|", text, re.M)
        for name, text in zip(sections[1::2], sections[2::2], strict=True)
    }

    for extra, requirements in wanted.items():
        names = [Requirement(each).name for each in requirements]
        assert documented[extra] == [name for name in names if name != "tmkb"], extra


def test_no_cell_is_empty():
    rows = re.findall(r"^\| `\S+` \|.*\|$", source(os.path.join(ROOT, "docs", "dependencies.md")), re.M)

    assert all(cell.strip() for row in rows for cell in row.strip("|").split("|"))

"""What is recorded of proofs, and what it is held against."""

import os

import pytest

from tmkb.knowledge import library, pattern, provenance
from tmkb.schema import metaschema, paths, problems, reader

NAME = "acme_auth_026"
ID = "ACME-AUTH-026"


@pytest.fixture
def folder(patterns):
    return patterns(NAME, "acme_auth_024") / NAME


def read(folder):
    return pattern.read(str(folder)).pattern


def write(folder, digest="", date="2026-01-02", release="1.0"):
    """Record the pattern in ``folder`` as proven, or as it is told."""
    found = read(folder)
    proven = provenance.digest(str(folder), found) if digest == "" else digest
    return provenance.record({found["id"]: (str(folder), proven)}, date, release)


def status(folder):
    return provenance.status(str(folder), read(folder))


def test_proven_then_changed_then_as_it_was(folder):
    assert status(folder) == "unproven"
    assert write(folder) == [str(folder.parent / "_proven.yaml")]
    assert status(folder) == "proven"

    path = folder / "secure.py"
    text = path.read_bytes()
    path.write_bytes(text + b"\n")
    assert status(folder) == "changed"
    path.write_bytes(text)
    assert status(folder) == "proven"


@pytest.mark.parametrize("name", ["pattern.yaml", "vulnerable.py", "secure.py", "secure_epoch.py", "proof.py"])
def test_every_file_that_is_named_counts(folder, name):
    write(folder)
    path = folder / name
    path.write_bytes(path.read_bytes() + b"# more\n")

    assert status(folder) == "changed"


def test_other_files_do_not_count(folder):
    write(folder)
    (folder / "notes.py").write_text("later")

    assert status(folder) == "proven"


def test_the_stage_counts_and_what_judges_does_not(folder, tmp_path, monkeypatch):
    package = tmp_path / "proof"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "stage.py").write_text("from tmkb.authoring.proofs.people import add\n")
    (package / "people.py").write_text("")
    (package / "runner.py").write_text("")
    monkeypatch.setattr(paths, "PROOF", str(package))
    write(folder)
    seen = {}
    for name in ("__init__", "stage", "people", "runner"):
        path = package / f"{name}.py"
        text = path.read_text()
        path.write_text(text + "# more\n")
        seen[name] = status(folder)
        path.write_text(text)

    assert seen == {"__init__": "changed", "stage": "changed", "people": "changed", "runner": "proven"}
    assert status(folder) == "proven"


def test_without_code_nothing_is_proven(folder):
    write(folder)
    found = read(folder)
    del found["code"]

    assert provenance.status(str(folder), found) == "unproven"


def test_a_line_that_is_true_stays_and_one_that_is_not_goes(folder):
    write(folder)
    write(folder, date="2026-02-03", release="2.0")
    assert provenance.line(str(folder), read(folder))["date"] == "2026-01-02"

    write(folder, digest=None)
    assert status(folder) == "unproven"
    assert "patterns: {}" in (folder.parent / "_proven.yaml").read_text()


def test_others_keep_their_lines_while_they_are_there(folder):
    other = folder.parent / "acme_auth_024"
    write(other)
    write(folder)
    assert (status(folder), status(other)) == ("proven", "proven")

    (other / "pattern.yaml").unlink()
    write(folder)
    assert "ACME-AUTH-024" not in (folder.parent / "_proven.yaml").read_text()


def test_a_record_with_a_fault_says_nothing_and_is_told(folder):
    write(folder)
    path = folder.parent / "_proven.yaml"
    path.write_text(path.read_text().replace("2026-01-02", "yesterday"))
    (problem,) = provenance.problems([str(folder)])

    assert status(folder) == "unproven"
    assert problems.line(problem).startswith(f"{path}:4:")
    path.write_text("kind: [")
    assert len(provenance.problems([str(folder)])) == 1


def test_in_a_checkout_the_record_points_editors_to_its_schema(folder, monkeypatch):
    write(folder)
    record = folder.parent / "_proven.yaml"
    elsewhere = record.read_text()
    monkeypatch.setattr(paths, "ROOT", str(folder.parent.parent))
    write(folder)
    first, _, rest = record.read_text().partition("\n")

    assert rest == elsewhere
    assert (record.parent / first.removeprefix(metaschema.POINTER)).samefile(provenance.SCHEMA)


def test_readers_are_told_where_it_comes_from(folder):
    facts = provenance.facts(str(folder), read(folder))
    assert (facts["version"], facts["proof"], facts["proven"]) == ("1.0", "unproven", None)
    assert facts["sources"] == read(folder)["references"]["sources"]

    write(folder)
    assert provenance.facts(str(folder), read(folder))["proven"] == {"date": "2026-01-02", "tmkb": "1.0"}


def test_a_record_is_no_pattern(folder):
    write(folder)

    assert [p["id"] for p in library.load([str(folder.parent)]).patterns] == ["ACME-AUTH-024", ID]
    assert library.load([str(folder.parent)]).problems == []


def test_the_packaged_record_can_be_read(ids):
    path = f"{paths.PATTERNS}/_proven.yaml"

    assert provenance.recorded(path)[1] == []
    assert set(reader.read(path).mapping()["patterns"]) <= set(ids)


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_no_link_or_fifo_takes_the_place_of_the_record(folder, tmp_path, kind):
    path = folder.parent / "_proven.yaml"
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    if kind == "link":
        path.symlink_to(victim)
    else:
        os.mkfifo(path)
    write(folder)

    assert victim.read_text() == "untouched"
    assert path.is_file() and not path.is_symlink()
    assert sorted(each.name for each in folder.parent.iterdir() if each.name.startswith("_")) == ["_proven.yaml"]
    assert status(folder) == "proven"

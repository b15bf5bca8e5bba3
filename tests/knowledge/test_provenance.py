"""Records of proofs, and the status of patterns."""

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
    """Record the pattern in ``folder`` with its own or the given digest."""
    loaded = read(folder)
    proven = provenance.digest(str(folder), loaded) if digest == "" else digest
    return provenance.record({loaded["id"]: (str(folder), proven)}, date, release)


def status(folder):
    return provenance.status(str(folder), read(folder))


def test_a_change_is_detected_until_it_is_undone(folder):
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
def test_the_digest_covers_every_named_file(folder, name):
    write(folder)
    path = folder / name
    path.write_bytes(path.read_bytes() + b"# more\n")

    assert status(folder) == "changed"


def test_the_digest_covers_no_other_files(folder):
    write(folder)
    (folder / "notes.py").write_text("later")

    assert status(folder) == "proven"


def test_the_digest_covers_the_stage_but_not_the_runner(folder, tmp_path, monkeypatch):
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


@pytest.mark.parametrize(
    "statement",
    [
        "def f():\n    {}",
        "class A:\n    async def f(self):\n        {}",
        "if 0:\n    pass\nelif 1:\n    pass\nelse:\n    {}",
        "try:\n    pass\nexcept OSError:\n    {}\nfinally:\n    pass",
        "try:\n    pass\nfinally:\n    {}",
        "with open('x'):\n    for _ in ():\n        while 1:\n            {}",
        "match 1:\n    case 1:\n        {}",
    ],
)
def test_an_import_inside_another_statement_belongs_to_the_stage(folder, tmp_path, monkeypatch, statement):
    package = tmp_path / "proof"
    package.mkdir()
    imports = "import tmkb.authoring.proofs.people"
    (package / "stage.py").write_text(f"{statement.format(imports)}\n")
    (package / "people.py").write_text("")
    monkeypatch.setattr(paths, "PROOF", str(package))
    write(folder)
    (package / "people.py").write_text("# more\n")

    assert status(folder) == "changed"


def test_a_pattern_without_code_is_unproven(folder):
    write(folder)
    loaded = read(folder)
    del loaded["code"]

    assert provenance.status(str(folder), loaded) == "unproven"


def test_an_unchanged_entry_stays_and_an_unproven_one_is_removed(folder):
    write(folder)
    write(folder, date="2026-02-03", release="2.0")
    assert provenance.lookup(str(folder), read(folder))["date"] == "2026-01-02"

    write(folder, digest=None)
    assert status(folder) == "unproven"
    assert "patterns: {}" in (folder.parent / "_proven.yaml").read_text()


def test_entries_of_other_patterns_stay_while_they_exist(folder):
    other = folder.parent / "acme_auth_024"
    write(other)
    write(folder)
    assert (status(folder), status(other)) == ("proven", "proven")

    (other / "pattern.yaml").unlink()
    write(folder)
    assert "ACME-AUTH-024" not in (folder.parent / "_proven.yaml").read_text()


def test_an_invalid_record_counts_as_empty_and_is_reported(folder):
    write(folder)
    path = folder.parent / "_proven.yaml"
    path.write_text(path.read_text().replace("2026-01-02", "yesterday"))
    (problem,) = provenance.problems([str(folder)])

    assert status(folder) == "unproven"
    assert problems.line(problem).startswith(f"{path}:4:")
    path.write_text("kind: [")
    assert len(provenance.problems([str(folder)])) == 1


def test_in_a_checkout_the_record_refers_to_its_schema(folder, monkeypatch):
    write(folder)
    record = folder.parent / "_proven.yaml"
    elsewhere = record.read_text()
    monkeypatch.setattr(paths, "ROOT", str(folder.parent.parent))
    write(folder)
    first, _, rest = record.read_text().partition("\n")

    assert rest == elsewhere
    assert (record.parent / first.removeprefix(metaschema.POINTER)).samefile(provenance.SCHEMA)


def test_facts_for_readers(folder):
    facts = provenance.facts(str(folder), read(folder))
    assert (facts["version"], facts["proof"], facts["proven"]) == ("1.0", "unproven", None)
    assert facts["sources"] == read(folder)["references"]["sources"]

    write(folder)
    assert provenance.facts(str(folder), read(folder))["proven"] == {"date": "2026-01-02", "tmkb": "1.0"}


def test_a_record_is_not_loaded_as_a_pattern(folder):
    write(folder)

    assert [p["id"] for p in library.load([str(folder.parent)]).patterns] == ["ACME-AUTH-024", ID]
    assert library.load([str(folder.parent)]).problems == []


def test_the_packaged_record_is_valid(ids):
    path = f"{paths.PATTERNS}/_proven.yaml"

    assert provenance.read(path)[1] == []
    assert set(reader.read(path).mapping()["patterns"]) <= set(ids)


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_a_link_or_fifo_is_replaced_by_the_record(folder, tmp_path, kind):
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

"""Exported JSON Schemas for editors accept every packaged file and reject misspellings."""

import glob
import json
import os
import posixpath
import re

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tmkb.cli import main
from tmkb.schema import export, paths, reader
from tmkb.server import sources


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Kind → a validator of the exported schema."""
    folder = tmp_path_factory.mktemp("exported")
    assert main.main(["schema", "export", str(folder)]) == 0
    schemas = {str(file.relative_to(folder)): json.loads(file.read_text()) for file in folder.rglob("*.json")}
    registry = Registry().with_contents(schemas.items(), default_specification=DRAFT202012)
    return {
        name.removesuffix(".json"): jsonschema.Draft202012Validator(schema, registry=registry)
        for name, schema in schemas.items()
    }


def violations(exported, value):
    return [error.message for error in exported[value["kind"]].iter_errors(value)]


@pytest.mark.parametrize(
    "folder", ["schemas", "conformance", "docs/examples", pytest.param("patterns", marks=pytest.mark.full)]
)
def test_every_file_is_valid(exported, folder):
    files = [
        file
        for file in sorted(glob.glob(os.path.join(paths.ROOT, folder, "**", "*.yaml"), recursive=True))
        if file not in paths.meta_schemas().values()
        and f"schemas{os.sep}templates" not in file
        and os.path.join("examples", "provider") not in file  # names a provider that only its own package has
    ]
    errors = {os.path.relpath(file, paths.ROOT): violations(exported, reader.read(file).mapping()) for file in files}

    assert errors
    assert {file: messages for file, messages in errors.items() if messages} == {}


def test_every_exported_schema_is_valid(exported):
    for validator in exported.values():
        validator.check_schema(validator.schema)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "tool", "provider": "script.anser"}, "'script.anser' is not one of"),
        ({"kind": "server", "providers": {"files": {"symlinks": "flase"}}}, "'flase' is not"),
        ({"kind": "tool", "descripton": "x"}, "'descripton' was unexpected"),
        ({"kind": "log", "lines": {"x": {"level": "loud"}}}, "'loud' is not one of"),
        ({"kind": "pattern"}, "is a required property"),
    ],
)
def test_a_misspelling_is_invalid(exported, value, message):
    assert any(message in each for each in violations(exported, value))


def test_a_provider_without_settings_has_no_schema():
    names = sources.names()
    texts = dict(export.texts({**names, "provider": [*names["provider"], "house"]}))

    assert "providers/files.json" in texts and "providers/house.json" not in texts


def test_references_name_exported_files():
    texts = dict(export.texts(sources.names()))
    named = {
        posixpath.join(posixpath.dirname(file), name)
        for file, text in texts.items()
        for name in re.findall(r'"\$ref":"([^"#]+)', text)
    }

    assert {"transcript.json", "providers/files.json"} <= named <= texts.keys()


def test_written_files_are_named(tmp_path):
    written = export.write(str(tmp_path), sources.names())

    assert sorted(written) == sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.json"))


def test_only_files_with_other_content_are_replaced(tmp_path):
    first, second, *_ = export.write(str(tmp_path), sources.names())
    (tmp_path / second).write_text("{}")
    before = (tmp_path / first).stat().st_ino, (tmp_path / second).stat().st_ino
    export.write(str(tmp_path), sources.names())
    after = (tmp_path / first).stat().st_ino, (tmp_path / second).stat().st_ino

    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    assert (tmp_path / second).read_text() != "{}"


def test_a_file_that_extends_another_needs_a_kind():
    schema = json.loads(dict(export.texts(sources.names()))["tool.json"])

    assert schema["required"] == ["kind"]


def test_null_removes(exported):
    assert violations(exported, {"kind": "revision", "extends": "2025-11-25", "methods": {"ping": None}}) == []


def test_an_unwritable_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")

    assert main.main(["schema", "export", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err


def test_null_removes_a_key_of_any_type(exported):
    removed = {"lines": {"x": {"level": None, "message": None, "fields": None}}}

    assert violations(exported, {"kind": "log", "extends": "packaged", **removed}) == []

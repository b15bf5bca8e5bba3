"""Actions of ``tmkb schema`` that read or change one value, create a file, or copy a packaged file."""

from __future__ import annotations

import argparse
import difflib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from tmkb.cli import layout, output
from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import load, overlay, paths, reader, textfile
from tmkb.schema.documents import Schemas
from tmkb.schema.overlay import Overlay
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonValue
from tmkb.server import sources

Place = Callable[[Schemas, str], str | None]

_PATH = "NAME:KEY.KEY, for example errors:errors.unknown_tool.message; NAME as in `show`"
_ABOUT = {
    "get": "show one value, and the file and line it comes from",
    "set": "change an existing value",
    "add": "add a new key, or an entry to a list",
    "remove": "remove a key or an entry, or without KEY a whole file in your folder",
}


def configure(actions: Any, place: Place) -> None:
    """Add the actions and their options; ``place`` finds a file by its name."""
    editing = []
    for name, about in _ABOUT.items():
        action = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        action.add_argument("path", metavar="PATH", help=_PATH)
        if name in ("set", "add"):
            action.add_argument(
                "value",
                metavar="VALUE",
                help="a string if the current value is one, else YAML, for example 5 or [a, b]",
            )
            action.add_argument(
                "--yaml", action="store_true", help="parse VALUE as YAML even if the current value is a string"
            )
        action.set_defaults(act=_get if name == "get" else _change, place=place, edit=name)
        editing.append(action)
    new = actions.add_parser("new", help="create a valid file with comments in your folder")
    new.add_argument("kind", metavar="KIND", choices=[*overlay.NEW_FILES], help=", ".join(overlay.NEW_FILES))
    new.add_argument("name", metavar="NAME", help="its name; for a revision its date")
    new.add_argument("--server", metavar="SERVER", help="the server it belongs to (default: tmkb; for an error: all)")
    new.set_defaults(act=_new)
    eject = actions.add_parser("eject", help="copy a packaged file into your folder")
    eject.add_argument("name", metavar="NAME", help="as in `show`")
    eject.add_argument("folder", metavar="DIR", help="the folder to copy it into")
    eject.set_defaults(act=_eject, place=place, schemas=None)
    for action in [*editing, new, eject]:
        if action is not eject:
            sources.configure_schemas(action)
        if action not in (editing[0], eject):
            action.add_argument("--dry-run", action="store_true", help="show the difference without writing")
        output.configure(action)


def _get(args: argparse.Namespace) -> int:
    """Print one value. Return 1 if it does not exist."""
    schemas = read(paths.named(args.schemas, "TMKB_SCHEMAS"))
    if (target := _target(args, schemas)) is None:
        return 1
    place, path = target
    if fault := overlay.missing(schemas, place, path):
        output.fail_each([fault])
        return 1
    doc = schemas.documents[place]
    value = reader.at(doc.value, path)
    at = doc.values.get(path) or doc.keys.get(path)
    origin = f"{at.file}:{at.line}" if at else None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = {"place": place, "path": [*path], "value": value, "origin": origin}
    output.write(args, shown, layout.code(text, "yaml"))
    return 0


def _change(args: argparse.Namespace) -> int:
    """Change one value. Return 1 if the path does not exist. Raises SpecError if the result is invalid."""
    overlay_ = _overlay(args)
    schemas = read(overlay_.existing_folders)
    if (target := _target(args, schemas)) is None:
        return 1
    place, path = target
    if args.edit == "remove" and ":" not in args.path:
        return _write(args, overlay_, {overlay_.existing(place): None}, schemas)
    up = overlay.missing(schemas, place, path[:-1])
    if up or not path:
        output.fail_each([up or Problem.of_argument("no_keys", args.path, name=args.path)])
        return 1
    try:
        value = _value(args, schemas.documents[place], path) if args.edit != "remove" else None
        text = overlay_.edit(schemas, place, args.edit, path, value)
    except SpecError as error:
        output.fail_each(error.problems)
        return 1
    return _write(args, overlay_, {text.file: text.text}, schemas)


def _new(args: argparse.Namespace) -> int:
    """Create a file, and declare the capability it needs. Raises SpecError if it exists or would be invalid."""
    overlay_ = _overlay(args)
    schemas = read(overlay_.existing_folders)
    server = args.server or (None if args.kind == "error" else "tmkb")
    file, text = overlay_.new_file(schemas, args.kind, args.name, server)
    texts: dict[str, str | None] = {file: text}
    if server and (server_file := overlay_.with_capability(schemas, args.kind, server)):
        texts[server_file.file] = server_file.text
    return _write(args, overlay_, texts, schemas)


def _eject(args: argparse.Namespace) -> int:
    """Copy a packaged file. Return 1 if no file has the name. Raises SpecError if the folder already has it."""
    schemas = read([])
    if (place := args.place(schemas, args.name)) is None:
        return 1
    args.dry_run = False
    overlay_ = Overlay([args.folder], sources.names())
    file, text = overlay_.eject(schemas, place)
    return _write(args, overlay_, {file: text}, read([args.folder]) if os.path.isdir(args.folder) else schemas)


def _write(args: argparse.Namespace, overlay_: Overlay, texts: Mapping[str, str | None], schemas: Schemas) -> int:
    """Write the files, or show the difference; None deletes a file. Raises SpecError if the result is invalid."""
    if faults := overlay_.faults(texts, schemas.problems):
        raise SpecError(faults)
    diffs, lines, changed = [], [], False
    for file, text in texts.items():
        shown, before = paths.shown(file), ""
        if os.path.exists(file):
            with open(file, encoding="utf-8", newline="") as source:
                before = source.read()
        diffs.append(_diff(shown, before, text))
        if not args.dry_run and text != before:
            try:
                textfile.save(file, text)
            except OSError as error:
                fields = {"folder": os.path.dirname(shown) or os.curdir, "reason": error.strerror}
                raise SpecError([Problem.of_argument("unwritable", shown, **fields)]) from error
        changed = changed or text != before
        lines.append(f"{shown}: {'removed' if text is None else 'written' if text != before else 'unchanged'}.")
    diff = "".join(diffs)
    text_output = diff if args.dry_run else "\n".join(lines)
    files = [paths.shown(file) for file in texts]
    written = changed and not args.dry_run
    value = {"file": files[0], "files": files, "changed": changed, "written": written, "diff": diff}
    output.write(args, value, layout.code(text_output, "diff") if text_output else "No differences.")
    return 0


def _diff(shown: str, before: str, text: str | None) -> str:
    names = shown if before else os.devnull, os.devnull if text is None else shown
    lines = difflib.unified_diff(_lines(before), _lines(text or ""), *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").splitlines(keepends=True)


def _overlay(args: argparse.Namespace) -> Overlay:
    """Return the user's folder. Raises SpecError if none is named."""
    folders = paths.named(args.schemas, "TMKB_SCHEMAS")
    if not folders:
        raise SpecError([Problem.of_argument("no_own_folder", "--schemas")])
    return Overlay(folders, sources.names())


def read(folders: list[str]) -> Schemas:
    """Load all schemas. Raises SpecError if they cannot be resolved."""
    schemas = load.read(folders, sources.names())
    if not schemas.documents:
        raise SpecError(schemas.problems)
    return schemas


def _target(args: argparse.Namespace, schemas: Schemas) -> tuple[str, Path] | None:
    """Return place and path from the argument; None, with a message on stderr, if no file has the name."""
    name, _, keys = args.path.partition(":")
    if not name:
        raise SpecError([Problem.of_argument("no_name", "PATH")])
    place = args.place(schemas, name)
    return None if place is None else (place, overlay.steps(schemas.documents[place].value, keys))


def _value(args: argparse.Namespace, doc: reader.Document, path: Path) -> JsonValue:
    """Parse VALUE: a string if the current value is one, else YAML, else a string."""
    current = reader.at(doc.value, path) if overlay.has(doc.value, path) else None
    text: str = args.value
    if isinstance(current, str) and not args.yaml:
        return text
    try:
        return reader.parse(text, args.path).value
    except DocumentError as error:
        if args.yaml:
            raise SpecError(error.problems) from error
        return text

"""The actions of ``tmkb schema`` that read or change one value of a file, begin a file, or copy one to start from."""

from __future__ import annotations

import argparse
import difflib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from tmkb.cli import output
from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import edit, load, overlay, paths, problems, reader
from tmkb.schema.documents import Schemas
from tmkb.schema.overlay import Overlay
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonValue
from tmkb.server import sources

Place = Callable[[Schemas, str], str | None]

_PATH = "NAME:KEY.KEY, as errors:errors.unknown_tool.message; NAME is as in `show`"
_ABOUT = {
    "get": "show one value, and the file and line it comes from",
    "set": "give a value that is there another one",
    "add": "add a key that is not there, or an entry to a list",
    "remove": "take a key or an entry away, or, without KEY, a whole file of your own",
}


def configure(actions: Any, place: Place) -> None:
    """The actions and their options; ``place`` finds the file that is called by a name."""
    made = []
    for name, about in _ABOUT.items():
        action = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        action.add_argument("path", metavar="PATH", help=_PATH)
        if name in ("set", "add"):
            action.add_argument("value", metavar="VALUE", help="a text where a text stands; else YAML, as 5 or [a, b]")
            action.add_argument("--yaml", action="store_true", help="read VALUE as YAML also where a text stands")
        action.set_defaults(act=_get if name == "get" else _change, place=place, edit=name)
        made.append(action)
    new = actions.add_parser("new", help="begin a file of your own, with comments and valid as it stands")
    new.add_argument("kind", metavar="KIND", choices=[*overlay.BEGUN], help=", ".join(overlay.BEGUN))
    new.add_argument("name", metavar="NAME", help="what it is called; of a revision its date")
    new.add_argument("--server", metavar="SERVER", help="the server that it is for (default: tmkb; of an error: all)")
    new.set_defaults(act=_new)
    eject = actions.add_parser("eject", help="copy a packaged file into a folder of your own, to start from")
    eject.add_argument("name", metavar="NAME", help="as in `show`")
    eject.add_argument("folder", metavar="DIR", help="the folder of schemas that it is copied into")
    eject.set_defaults(act=_eject, place=place, schemas=None)
    for action in [*made, new, eject]:
        if action is not eject:
            sources.configure_schemas(action)
        if action not in (made[0], eject):
            action.add_argument("--dry-run", action="store_true", help="show the difference, and change nothing")
        output.configure(action)


def _get(args: argparse.Namespace) -> int:
    """Print one value. 1 where there is none."""
    found = _read(paths.named(args.schemas, "TMKB_SCHEMAS"))
    if (target := _target(args, found)) is None:
        return 1
    place, path = target
    if fault := overlay.missing(found, place, path):
        output.fail(problems.sentence(fault))
        return 1
    doc = found.documents[place]
    value = doc.part(path).value
    at = doc.values.get(path) or doc.keys.get(path)
    origin = f"{at.file}:{at.line}" if at else None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = {"place": place, "path": [*path], "value": value, "origin": origin}
    output.write(args, shown, output.code(text, "yaml"))
    return 0


def _change(args: argparse.Namespace) -> int:
    """Change one value in the folder of one's own. 1 where the path leads nowhere, 2 where the result is not valid."""
    mine = _mine(args)
    found = _read([folder for folder in (mine.folder, *mine.below) if os.path.isdir(folder)])
    if (target := _target(args, found)) is None:
        return 1
    place, path = target
    if args.edit == "remove" and ":" not in args.path:
        return _keep(args, mine, {mine.taken(place): None}, found)
    up = overlay.missing(found, place, path[:-1])
    if up or not path:
        output.fail(problems.sentence(up or Problem.of_argument("no_keys", args.path, name=args.path)))
        return 1
    try:
        value = _value(args, found.documents[place], path) if args.edit != "remove" else None
        text = mine.changed(found, place, args.edit, path, value)
    except SpecError as error:
        for problem in error.problems:
            output.fail(problems.sentence(problem))
        return 1
    return _keep(args, mine, {text.file: text.text}, found)


def _new(args: argparse.Namespace) -> int:
    """Begin a file, and declare the capability it needs. 2 where it is there already, or would not be valid."""
    mine = _mine(args)
    found = _read([folder for folder in (mine.folder, *mine.below) if os.path.isdir(folder)])
    server = args.server or (None if args.kind == "error" else "tmkb")
    file, text = mine.begun(found, args.kind, args.name, server)
    texts: dict[str, str | None] = {file: text}
    if server and (declared := mine.declared(found, args.kind, server)):
        texts[declared.file] = declared.text
    return _keep(args, mine, texts, found)


def _eject(args: argparse.Namespace) -> int:
    """Copy a packaged file. 1 where there is none of the name, 2 where the folder has it already."""
    found = _read([])
    if (place := args.place(found, args.name)) is None:
        return 1
    args.dry_run = False
    mine = Overlay([args.folder], sources.names())
    file, text = mine.ejected(found, place)
    return _keep(args, mine, {file: text}, _read([args.folder]) if os.path.isdir(args.folder) else found)


def _keep(args: argparse.Namespace, mine: Overlay, texts: Mapping[str, str | None], found: Schemas) -> int:
    """Show what differs, or write it; a file without a text is removed. Raises SpecError where it is not valid."""
    if faults := mine.faults(texts, found.problems):
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
                edit.save(file, text)
            except OSError as error:
                fields = {"folder": os.path.dirname(shown) or os.curdir, "reason": error.strerror}
                raise SpecError([Problem.of_argument("unwritable", shown, **fields)]) from error
        changed = changed or text != before
        lines.append(f"{shown}: {'removed' if text is None else 'written' if text != before else 'as it was'}.")
    diff = "".join(diffs)
    said = diff if args.dry_run else "\n".join(lines)
    files = [paths.shown(file) for file in texts]
    written = changed and not args.dry_run
    value = {"file": files[0], "files": files, "changed": changed, "written": written, "diff": diff}
    output.write(args, value, output.code(said, "diff") if said else "Nothing would differ.")
    return 0


def _diff(shown: str, before: str, text: str | None) -> str:
    names = shown if before else os.devnull, os.devnull if text is None else shown
    lines = difflib.unified_diff(_lines(before), _lines(text or ""), *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").splitlines(keepends=True)


def _mine(args: argparse.Namespace) -> Overlay:
    """The folder of one's own. Raises SpecError where none is named."""
    folders = paths.named(args.schemas, "TMKB_SCHEMAS")
    if not folders:
        raise SpecError([Problem.of_argument("no_own_folder", "--schemas")])
    return Overlay(folders, sources.names())


def _read(folders: list[str]) -> Schemas:
    """All schemas. Raises SpecError where they cannot be resolved."""
    found = load.read(folders, sources.names())
    if not found.documents:
        raise SpecError(found.problems)
    return found


def _target(args: argparse.Namespace, found: Schemas) -> tuple[str, Path] | None:
    """The place and the path that the argument means; None, and the reason on stderr, where there is none."""
    name, _, keys = args.path.partition(":")
    place = args.place(found, name)
    return None if place is None else (place, overlay.steps(found.documents[place].value, keys))


def _value(args: argparse.Namespace, doc: reader.Document, path: Path) -> JsonValue:
    """What VALUE means: a text where one stands, else YAML, else what it is."""
    now = doc.part(path).value if overlay.has(doc.value, path) else None
    given: str = args.value
    if isinstance(now, str) and not args.yaml:
        return given
    try:
        return reader.parse(given, args.path).value
    except DocumentError as error:
        if args.yaml:
            raise SpecError(error.problems) from error
        return given

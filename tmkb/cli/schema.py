"""``tmkb schema``: check the schemas, show one resolved with the file of each line, compare two, change one, export
what editors check by, say what each kind of file may hold."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from tmkb.cli import differences, edits, output
from tmkb.errors import Problem, SpecError
from tmkb.providers import registry
from tmkb.schema import documents, export, formats, load, metaschema, paths
from tmkb.schema.documents import Schemas
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="say everything that is wrong with the schemas")
    check.add_argument("folders", nargs="*", metavar="DIR", help="folders looked through before the packaged schemas")
    sources.configure_python(check)
    check.set_defaults(act=_check)
    show = actions.add_parser("show", help="show one file resolved, with the origin of each line")
    show.add_argument(
        "name",
        metavar="NAME",
        help="a revision, lifecycle, server, tool, prompt or resource, `errors`, `limits` or `log`; or its path",
    )
    show.set_defaults(act=_show)
    editors = actions.add_parser("export", help="write JSON Schemas of all kinds of files, for editors")
    editors.add_argument("folder", metavar="DIR", help="where to; files of the same names are replaced")
    editors.set_defaults(act=_export)
    output.configure(editors)
    kinds = actions.add_parser("formats", help="say what each kind of file may hold, in Markdown")
    kinds.add_argument("kind", nargs="?", metavar="KIND", help="only this one")
    kinds.set_defaults(act=_formats)
    output.configure(kinds)
    for action in (check, show):
        sources.configure_schemas(action)
        output.configure(action)
    differences.configure(actions, _place)
    edits.configure(actions, _place)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    status: int = args.act(args)
    return status


def _check(args: argparse.Namespace) -> int:
    """Print the problems. 2 where there is any: a mistake in the schemas."""
    folders = paths.named([*args.folders, *(args.schemas or [])], "TMKB_SCHEMAS")
    found = load.read(folders, sources.names(), offer=registry.offer if args.allow_python else None)
    count = len(found.documents.keys() - found.inherited)
    mine = "".join(f"{folder}: {_held(found, folder)} of " for folder in folders)
    text = output.problem_lines(found.problems) or f"{mine}{count} files, no problems."
    if found.warnings and not args.json:
        sys.stderr.write("".join(f"Warning: {line}\n" for line in output.problem_lines(found.warnings).splitlines()))
    problems, warnings = (output.problem_values(each) for each in (found.problems, found.warnings))
    output.write(args, {"files": count, "problems": problems, "warnings": warnings}, text)
    return 2 if found.problems else 0


def _held(found: Schemas, folder: str) -> int:
    """How many of the files that were read lie below ``folder``: those of other suffixes are none of ours."""
    files = {os.path.abspath(doc.file) for layers in found.layers.values() for doc in layers}
    return sum(file.startswith(os.path.join(os.path.abspath(folder), "")) for file in files)


def _show(args: argparse.Namespace) -> int:
    """Print the resolved file. 1 where there is none of that name. Raises SpecError where none can be resolved."""
    found = load.read(paths.named(args.schemas, "TMKB_SCHEMAS"), sources.names())
    if not found.documents:
        raise SpecError(found.problems)
    if (place := _place(found, args.name)) is None:
        return 1
    doc = found.documents[place]
    rows = list(_rows(doc, doc.value, (), 0))
    origins = {".".join(map(str, path)): _origin(doc, path) for path in doc.values if path}
    value = {"place": place, "value": doc.value, "origins": origins}
    output.write(args, value, _gutter(rows) if sys.stdout.isatty() else _commented(rows))
    return 0


def _commented(rows: list[tuple[str, str]]) -> object:
    """The lines with their origins as comments, which keep them YAML."""
    width = min(max(len(line) for line, _ in rows), 98)
    return output.code("\n".join(f"{line:<{width}}  # {origin}" if origin else line for line, origin in rows), "yaml")


def _gutter(rows: list[tuple[str, str]]) -> object:
    """The lines behind a number for the file and the line in it: a terminal has no room for paths in each line."""
    from rich.console import Group
    from rich.text import Text

    files = list(dict.fromkeys(origin.rpartition(":")[0] for _, origin in rows if origin))
    short = {file: str(number) for number, file in enumerate(files, 1)}
    heads = [f"{short[file]}:{line}" if file else "" for file, _, line in (each.rpartition(":") for _, each in rows)]
    width = max(map(len, heads))
    legend = [Text(f"{short[file]} = {file}", style="dim") for file in files]
    lines = [
        output.Indented(output.code(line, "yaml"), Text(f"{head:<{width}}  ", style="dim", end=""))
        for head, (line, _) in zip(heads, rows, strict=True)
    ]
    return Group(*legend, Text(), *lines)


def _export(args: argparse.Namespace) -> int:
    """Write the schemas. 2 where they cannot be written."""
    written = []
    if os.path.exists(args.folder) and not os.path.isdir(args.folder):
        raise SpecError([Problem.of_argument("not_a_place", "DIR", folder=args.folder)])
    try:
        for name, text in export.texts(sources.names()):
            target = os.path.join(args.folder, *name.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
            written.append(name)
    except OSError as error:
        output.fail(f"{args.folder}: {error.strerror}.")
        return 2
    output.write(args, {"files": [*written]}, f"{len(written)} files.")
    return 0


def _formats(args: argparse.Namespace) -> int:
    """Print the page, or the section of one kind. 1 where there is no such kind."""
    known = formats.kinds()
    if args.kind not in (None, *known):
        near = metaschema.nearest(args.kind, known)
        hint = f"Did you mean {near}?" if near else f"Known: {', '.join(known)}."
        output.fail(f"There is no kind {args.kind}. {hint}")
        return 1
    text = formats.section(args.kind) if args.kind else formats.page()
    output.write(args, {"kind": args.kind, "text": text}, output.code(text, "markdown"))
    return 0


def _place(found: Schemas, name: str) -> str | None:
    """The place of the file that is called so; None, and the reason on stderr, where there is none or several."""
    named = [place for place in found.documents if documents.name(place) == name and place not in found.inherited]
    places = [name] if name in found.documents else named
    if not places:
        known = sorted({documents.name(place) for place in found.documents} | set(found.documents))
        near = metaschema.nearest(name, known)
        output.fail(f"There is no schema {name}." + (f" Did you mean {near}?" if near else ""))
    elif len(places) > 1:
        output.fail(f"{name} is the name of several: {', '.join(places)}.")
    return places[0] if len(places) == 1 else None


def _rows(doc: Document, value: JsonValue, path: Path, depth: int) -> Iterator[tuple[str, str]]:
    """Each line of ``value`` written as YAML, and where it comes from."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        here = (*path, key)
        head = "  " * depth + ("- " if isinstance(key, int) else f"{_key(key)}: ")
        nested = isinstance(inner, dict | list) and bool(inner)
        plain = isinstance(inner, list) and not any(isinstance(item, dict | list) for item in inner)
        written = "" if nested and not plain else json.dumps(inner, ensure_ascii=False)
        yield (head + written).rstrip(), _origin(doc, here)
        if nested and not plain:
            yield from _rows(doc, inner, here, depth + 1)


def _origin(doc: Document, path: Path) -> str:
    """Where the key at ``path`` was last written, or the entry of a list stands; nothing where it is in no file."""
    at = doc.keys.get(path) or doc.values.get(path)
    return f"{at.file}:{at.line}" if at else ""


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() and not key[0].isdigit() else json.dumps(key, ensure_ascii=False)

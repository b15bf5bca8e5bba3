"""``tmkb schema``: check, show, compare and edit schemas, export them for editors, and print the file formats."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from tmkb.cli import differences, edits, layout, output
from tmkb.cli.layout import Line
from tmkb.errors import Problem, SpecError
from tmkb.providers import registry
from tmkb.schema import documents, export, formats, load, paths
from tmkb.schema.documents import Schemas
from tmkb.schema.reader import Document, Path, entries
from tmkb.schema.values import JsonValue
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="report every problem of the schemas")
    check.add_argument("folders", nargs="*", metavar="DIR", help="folders searched before the packaged schemas")
    sources.configure_python(check)
    check.set_defaults(act=_check)
    show = actions.add_parser("show", help="show one file resolved, with the origin of each line")
    show.add_argument(
        "name",
        metavar="NAME",
        help="a revision, lifecycle, server, tool, prompt or resource, `errors`, `limits` or `log`; or its path",
    )
    show.set_defaults(act=_show)
    editors = actions.add_parser("export", help="write a JSON Schema for each kind of file, for editors")
    editors.add_argument("folder", metavar="DIR", help="the target folder; existing files are overwritten")
    editors.set_defaults(act=_export)
    output.configure(editors)
    kinds = actions.add_parser("formats", help="print the reference of file formats in Markdown")
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
    """Print the problems. Return 1 if there are any."""
    folders = paths.named([*args.folders, *(args.schemas or [])], "TMKB_SCHEMAS")
    schemas = load.read(folders, sources.names(), offer=registry.offer if args.allow_python else None)
    count = len(schemas.documents.keys() - schemas.inherited)
    own = "".join(f"{folder}: {_count(schemas, folder)} of " for folder in folders)
    text = output.problem_lines(schemas.problems) or f"{own}{count} files, no problems."
    if schemas.warnings and not args.json:
        sys.stderr.write("".join(f"Warning: {line}\n" for line in output.problem_lines(schemas.warnings).splitlines()))
    problems, warnings = (output.problem_values(each) for each in (schemas.problems, schemas.warnings))
    output.write(args, {"files": count, "problems": problems, "warnings": warnings}, text)
    return 1 if schemas.problems else 0


def _count(schemas: Schemas, folder: str) -> int:
    """Return the number of schema files below ``folder``."""
    files = {os.path.abspath(doc.file) for layers in schemas.layers.values() for doc in layers}
    return sum(file.startswith(os.path.join(os.path.abspath(folder), "")) for file in files)


def _show(args: argparse.Namespace) -> int:
    """Print the resolved file. Return 1 if no file has the name. Raises SpecError if nothing can be resolved."""
    schemas = edits.read(paths.named(args.schemas, "TMKB_SCHEMAS"))
    if (place := _place(schemas, args.name)) is None:
        return 1
    doc = schemas.documents[place]
    rows = list(_rows(doc, doc.value, (), 0))
    origins = {".".join(map(str, path)): _origin(doc, path) for path in doc.values if path}
    value = {"place": place, "value": doc.value, "origins": origins}
    output.write(args, value, _gutter(rows) if sys.stdout.isatty() else _commented(rows))
    return 0


def _commented(rows: list[tuple[str, str]]) -> list[Line]:
    """Return the lines with their origins as YAML comments."""
    width = min(max(len(line) for line, _ in rows), 98)
    return layout.code("\n".join(f"{line:<{width}}  # {origin}" if origin else line for line, origin in rows), "yaml")


def _gutter(rows: list[tuple[str, str]]) -> list[Line]:
    """Return the lines prefixed with numbers for file and line, because paths are too long for a terminal."""
    files = list(dict.fromkeys(origin.rpartition(":")[0] for _, origin in rows if origin))
    short = {file: str(number) for number, file in enumerate(files, 1)}
    heads = [f"{short[file]}:{line}" if file else "" for file, _, line in (each.rpartition(":") for _, each in rows)]
    width = max(map(len, heads))
    lines = layout.text(("\n".join(f"{short[file]} = {file}" for file in files), "dim")) + layout.text()
    for head, (line, _) in zip(heads, rows, strict=True):
        lines += layout.indented(layout.code(line, "yaml"), (f"{head:<{width}}  ", "dim"))
    return lines


def _export(args: argparse.Namespace) -> int:
    """Write the schemas. Return 2 if that fails."""
    if os.path.exists(args.folder) and not os.path.isdir(args.folder):
        raise SpecError([Problem.of_argument("not_a_place", "DIR", folder=args.folder)])
    try:
        names = export.write(args.folder, sources.names())
    except OSError as error:
        output.fail(f"{args.folder}: {error.strerror}.")
        return 2
    output.write(args, {"files": names}, f"{len(names)} files.")
    return 0


def _formats(args: argparse.Namespace) -> int:
    """Print the page, or the section of one kind. Return 1 if the kind is unknown."""
    known = formats.kinds()
    if args.kind not in (None, *known):
        hint = output.did_you_mean(args.kind, known, f"Known: {', '.join(known)}.")
        output.fail(f"There is no kind {args.kind}. {hint}")
        return 1
    text = formats.section(args.kind) if args.kind else formats.page()
    output.write(args, {"kind": args.kind, "text": text}, layout.code(text, "markdown"))
    return 0


def _place(schemas: Schemas, name: str) -> str | None:
    """Return the place of the file named ``name``; None, with a message on stderr, if none or several match.

    A file of the server that is extended stands for those that replace it.
    """
    matching = [
        place for place in schemas.documents if documents.name(place) == name and place not in schemas.inherited
    ]
    original = [place for place in matching if place not in schemas.replaced]
    places = [name] if name in schemas.documents else original or matching
    if not places:
        known = sorted({documents.name(place) for place in schemas.documents} | set(schemas.documents))
        otherwise = "Use the name of a server, tool, prompt, resource or revision, or `errors`, `limits` or `log`."
        output.fail(f"There is no schema {name}. {output.did_you_mean(name, known, otherwise)}")
    elif len(places) > 1:
        output.fail(f"{name} is ambiguous: {', '.join(places)}.")
    return places[0] if len(places) == 1 else None


def _rows(doc: Document, value: JsonValue, path: Path, depth: int) -> Iterator[tuple[str, str]]:
    """Yield each line of ``value`` as YAML, with its origin."""
    for key, inner in entries(value):
        here = (*path, key)
        head = "  " * depth + ("- " if isinstance(key, int) else f"{_key(key)}: ")
        nested = isinstance(inner, dict | list) and bool(inner)
        plain = isinstance(inner, list) and not any(isinstance(item, dict | list) for item in inner)
        text = "" if nested and not plain else json.dumps(inner, ensure_ascii=False)
        yield (head + text).rstrip(), _origin(doc, here)
        if nested and not plain:
            yield from _rows(doc, inner, here, depth + 1)


def _origin(doc: Document, path: Path) -> str:
    """Return file and line of the key or list entry at ``path``; an empty string if it is in no file."""
    at = doc.keys.get(path) or doc.values.get(path)
    return f"{at.file}:{at.line}" if at else ""


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() and not key[0].isdigit() else json.dumps(key, ensure_ascii=False)

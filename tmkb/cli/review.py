"""``tmkb review``: comment on changed code that makes an authorization mistake."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tmkb.cli import layout, output, pages
from tmkb.cli.layout import Line
from tmkb.cli.query import SERVER
from tmkb.knowledge import library, stacks
from tmkb.knowledge.pattern import Pattern
from tmkb.review import changes, judge, sarif, suppression
from tmkb.review.changes import Section
from tmkb.review.judge import Comment
from tmkb.schema import paths, textfile
from tmkb.server import sources
from tmkb.server.server import Server

STDIN = "-"
_CONTEXT = 8  # unchanged lines around a change, which can contain the check
_COUNTED = {"ignored": "are ignored in the code", "in_baseline": "are in the baseline"}
_GITHUB = {"critical": "error", "high": "warning", "medium": "warning", "low": "notice"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TARGET",
        help="commits (A..B, A...B, or one with which the working tree is compared), files or folders, or - for a diff "
        "on stdin; without any, the changes that are not committed",
    )
    form = parser.add_mutually_exclusive_group()
    output.configure(form)
    form.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0")
    form.add_argument("--github", action="store_true", help="print annotations for GitHub Actions")
    parser.add_argument("--baseline", metavar="FILE", help="leave out the comments that are listed in FILE")
    parser.add_argument("--write-baseline", metavar="FILE", help="list all comments in FILE, and leave them out")
    parser.add_argument("--exit-zero", action="store_true", help="return 0 even if there are comments")
    sources.configure_patterns(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comments. Return 1 if there are any, and 2 for targets that cannot be read."""
    try:
        sections = [*_sections(args.target, stacks.packaged().is_reviewed)]
        before = suppression.baseline(*_read(args.baseline)) if args.baseline else set()
    except OSError as error:
        output.fail(f"cannot read {error.filename}: {error.strerror}")
        return 2
    except _Git as error:
        output.fail(f"git: {error}")
        return 2
    provider: Any = Server.load(SERVER, patterns=args.patterns).provider("knowledge")
    folders = library.resolve(paths.named(args.patterns, "TMKB_PATTERNS"))
    judging = judge.Judge(provider.index, judge.path(folders), lambda *asked: json.loads(provider.advise_on(*asked)))
    pairs = [(section, comment) for section in sections if (comment := judging.comment(section))]
    ignored = {section: suppression.in_code(section) for section in sections}
    for each in (each for found in ignored.values() for each in found if not each.reason):
        output.fail(f"{each.path}:{each.line}: `tmkb: ignore[…]` has no effect without a reason behind it.")
    comments = [comment for section, comment in pairs if not suppression.is_ignored(comment, ignored[section])]
    left = len(pairs) - len(comments)
    if args.write_baseline:
        textfile.save(args.write_baseline, suppression.write(comments).encode())
    new = [] if args.write_baseline else [each for each in comments if each.fingerprint not in before]
    described = {pattern["id"]: _described(pattern) for _, pattern in sources.patterns_by_id(args.patterns).values()}
    counts = {"sections": len(sections), "ignored": left, "in_baseline": len(comments) - len(new)}
    _print(args, new, described, counts)
    return int(bool(new) and not args.exit_zero)


class _Git(Exception):
    """Git refused a command, or is missing."""


def _sections(targets: Sequence[str], is_reviewed: Callable[[str], bool]) -> Iterator[Section]:
    """Yield the sections of all targets, each of which is a diff, commits, a file or a folder."""
    for target in targets or ["HEAD"]:
        if target == STDIN:
            found = changes.of_diff(sys.stdin.buffer.read().decode(errors="replace"), "<stdin>")
        elif os.path.isdir(target):
            found = [
                section for path in _files(target) if is_reviewed(path) for section in changes.of_file(*_read(path))
            ]
        elif os.path.exists(target):
            found = changes.of_file(*_read(target))
        else:
            found = changes.of_diff(_diff(target))
        yield from (section for section in found if is_reviewed(section.path))


def _diff(commits: str) -> str:
    _git("rev-parse", "--git-dir")  # outside of a repository, `git diff` compares files
    options = ["--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--find-renames"]
    return _git(
        "-c", "core.quotePath=false", "diff", *options, f"--unified={_CONTEXT}", "--end-of-options", commits, "--"
    )


def _files(folder: str) -> Iterator[str]:
    """Yield the files below ``folder`` that Git does not ignore; without a repository, those that are not hidden."""
    try:
        names = _git("-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        yield from filter(os.path.isfile, (os.path.join(folder, name) for name in sorted({*names}) if name))
    except _Git:
        for base, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            yield from (os.path.join(base, name) for name in sorted(names) if not name.startswith("."))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise _Git("it is not installed. Pass files, or a diff on stdin with `-`.") from error
    if done.returncode:
        raise _Git(done.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: "))
    return done.stdout.decode(errors="replace")


def _read(path: str) -> tuple[str, str]:
    """Return ``path`` with slashes, and the text of its file. Raises OSError."""
    with open(path, "rb") as file:
        return os.path.normpath(path).replace(os.sep, "/"), file.read().decode(errors="replace")


def _described(pattern: Pattern) -> dict[str, Any]:
    """Return what forms of output say about ``pattern`` beside the advice."""
    return {"name": pattern["name"], "severity": pattern["severity"], "cwe": pattern["references"].get("cwe", [])}


def _print(
    args: argparse.Namespace, comments: Sequence[Comment], described: Mapping[str, Any], counts: Mapping[str, int]
) -> None:
    if args.sarif:
        print(json.dumps(sarif.log(comments, described), indent=1))
    elif args.github:
        for each in comments:
            print(_annotation(each, described[each.pattern]))
    else:
        values = [_value(each, described[each.pattern]) for each in comments]
        output.write(args, {"comments": values, **counts}, _page(values, counts))


def _value(comment: Comment, pattern: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pattern": comment.pattern,
        "name": pattern["name"],
        "severity": pattern["severity"],
        "path": comment.path,
        "line": comment.line,
        "lines": [*comment.lines],
        "probability": comment.probability,
        "fingerprint": comment.fingerprint,
        **{key: comment.advice["patterns"][0][key] for key in ("threat", "check", "principle")},
        **({"code": comment.advice["code_pattern"]} if "code_pattern" in comment.advice else {}),
    }


def _annotation(comment: Comment, pattern: Mapping[str, Any]) -> str:
    """Return a workflow command of GitHub Actions."""
    texts = sarif.message(comment).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    cells = {"file": comment.path, "line": comment.line, "title": f"{comment.pattern} {pattern['name']}"}
    escaped = {
        key: str(value).replace("%", "%25").replace(":", "%3A").replace(",", "%2C") for key, value in cells.items()
    }
    return f"::{_GITHUB[pattern['severity']]} {','.join(f'{key}={value}' for key, value in escaped.items())}::{texts}"


def _page(values: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> list[Line]:
    lines: list[Line] = []
    for each in values:
        severity = each["severity"], pages.STYLES[each["severity"]]
        others = ", ".join(str(line) for line in each["lines"] if line != each["line"])
        place = f"{each['path']}:{each['line']}" + (f" (and {others})" if others else "")
        lines += layout.text((place, "bold"), "  ", severity, "  ", (each["pattern"], "bold"), f"  {each['name']}")
        for key in ("threat", "check", "principle"):
            lines += layout.indented(layout.indented(layout.text(each[key]), (f"{key.capitalize():<11}", "bold")))
        if code := each.get("code"):
            lines += layout.indented(layout.indented(layout.code(code["secure_template"], code["language"])))
            lines += layout.indented(layout.text(code["caution"])) if "caution" in code else []
        lines += layout.text()
    left_out = [f"; {counts[key]} {about}" for key, about in _COUNTED.items() if counts[key]]
    return lines + layout.text((f"{len(values)} comments on {counts['sections']} sections{''.join(left_out)}.", "dim"))

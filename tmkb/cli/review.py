"""``tmkb review``: comment on changed code that makes an authorization mistake."""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmkb.cli import layout, output, pages
from tmkb.cli.layout import Line
from tmkb.cli.query import SERVER
from tmkb.knowledge import library, stacks
from tmkb.knowledge.retrieval import index
from tmkb.review import github, hook, judge, sarif, suppression
from tmkb.review.changes import Section
from tmkb.review.judge import Comment
from tmkb.review.targets import GitError, Reader
from tmkb.schema import hidden, problems, template, textfile
from tmkb.server import sources
from tmkb.server.server import Server

STDIN = "-"
_COUNTED = {"ignored": "ignored in the code", "in_baseline": "in the baseline"}


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
    form.add_argument(
        "--hook",
        action="store_true",
        help="read the event of a PostToolUse hook of Claude Code from stdin and print the answer; always return 0",
    )
    parser.add_argument("--baseline", metavar="FILE", help="leave out the comments that are listed in FILE")
    parser.add_argument("--write-baseline", metavar="FILE", help="list all comments in FILE, and leave them out")
    parser.add_argument("--exit-zero", action="store_true", help="return 0 even if there are comments")
    sources.configure_patterns(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comments. Return 1 if there are any, and 2 if something cannot be read or written."""
    if args.hook:
        return _run_hook(args)
    reader = Reader(stacks.packaged().is_reviewed)
    before: Counter[str] = Counter()
    try:
        sections = [*dict.fromkeys(_sections(reader, args.target))]
        if args.baseline:
            before = suppression.baseline(args.baseline, textfile.read(args.baseline, args.baseline))
    except GitError as error:
        output.fail(f"git: {error}")
        return 2
    provider = _provider(args)
    if not provider.index.patterns:  # as the warning says; without comments, all would look well
        return 2
    with output.progress(f"Reviewing {template.plural(len(sections), 'section')}"):
        comments, count = _comments(args, provider, sections)
    if args.write_baseline and not _is_written(args.write_baseline, suppression.write(comments)):
        return 2
    shown = [] if args.write_baseline else suppression.new(comments, before)
    counts = {"sections": len(sections), "ignored": count - len(comments), "in_baseline": len(comments) - len(shown)}
    full = provider.operation("get", {})
    _print(args, shown, {id_: _described(full(id_)) for id_ in {comment.pattern for comment in shown}}, counts)
    for problem in reader.problems:
        output.fail(problems.line(problem))
    return 2 if reader.problems else int(bool(shown) and not args.exit_zero)


def _run_hook(args: argparse.Namespace) -> int:
    """Tell a coding agent about its edit, and return 0, because another status can stop the agent."""
    try:
        event = json.loads(sys.stdin.buffer.read(hook.LARGEST))
        is_code = stacks.packaged().is_reviewed
        code = (section for section in hook.sections(event) if is_code(section.path))
        if sections := [*itertools.islice(code, hook.MOST)]:
            provider = _provider(args)
            comments, _ = _comments(args, provider, sections)
            rows = provider.operation("find", {})()["patterns"]
            if answer := hook.answer(comments, {row["id"]: row["name"] for row in rows}):
                print(hidden.escape(json.dumps(answer)))
    except Exception as error:  # whatever it is, the edit was made and the agent goes on
        output.fail(f"The edit was not reviewed: {type(error).__name__}: {error}")
    return 0


def _provider(args: argparse.Namespace) -> Any:
    """Return the provider of the patterns. Print what is wrong with them."""
    server = Server.load(SERVER, patterns=args.patterns)
    output.warn(server)
    return server.provider("knowledge")


def _sections(reader: Reader, targets: Sequence[str]) -> Iterator[Section]:
    """Yield the sections of all targets, each of which is a diff, commits, a file or a folder."""
    if not targets:
        yield from reader.uncommitted()
    for target in targets:
        if target == STDIN:
            yield from reader.diff(sys.stdin.buffer.read().decode(errors="replace"), "<stdin>")
        elif os.path.isdir(target):
            yield from reader.folder(target)
        elif os.path.lexists(target):
            yield from reader.file(target)
        else:
            yield from reader.commits(target)


def _comments(args: argparse.Namespace, provider: Any, sections: Sequence[Section]) -> tuple[list[Comment], int]:
    """Return the comments that the code does not ignore, and how many there are with those. Print faulty ignores."""
    folders = library.resolve(provider.settings.get("folders"))
    model = index.path(folders, index.REVIEW_FILE)
    judging = judge.Judge(provider.index, model, lambda *asked: json.loads(provider.advise_on(*asked)))
    ids = provider.operation("ids", {})()
    comments, count = [], 0
    for section in sections:
        ignored = suppression.in_code(section)
        for each in ignored:
            if faults := suppression.faults(each, ids):
                output.fail(f"{each.path}:{each.line}: `tmkb: ignore` has no effect: {'; '.join(faults)}.")
        if comment := judging.comment(section):
            count += 1
            comments += [] if suppression.is_ignored(comment, ignored) else [comment]
    return comments, count


def _is_written(path: str, text: str) -> bool:
    """Write a baseline and return True; if that is not possible, print why and return False."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise FileExistsError(errno.EEXIST, "it is not a file")
        textfile.save(path, text)
    except OSError as error:
        output.fail(f"cannot write {path}: {error.strerror}")
        return False
    return True


def _described(pattern: Mapping[str, Any]) -> dict[str, Any]:
    """Return what forms of output say about ``pattern`` beside the advice."""
    return {"name": pattern["name"], "severity": pattern["severity"], "cwe": pattern["references"].get("cwe", [])}


def _print(
    args: argparse.Namespace, comments: Sequence[Comment], described: Mapping[str, Any], counts: Mapping[str, int]
) -> None:
    if args.sarif:
        print(json.dumps(sarif.log(comments, described), indent=1))
    elif args.github:
        for each in comments:
            print(github.annotation(each, described[each.pattern]))
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
    counted = f"{template.plural(len(values), 'comment')} on {template.plural(counts['sections'], 'section')}"
    return lines + layout.text((f"{counted}{''.join(left_out)}.", "dim"))

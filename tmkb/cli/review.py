"""``tmkb review``: comment on changed code that makes an authorization mistake."""

from __future__ import annotations

import argparse
import errno
import functools
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmkb.cli import comments, layout, output, pages
from tmkb.cli.comments import Reviewed
from tmkb.cli.layout import Line
from tmkb.cli.query import SERVER
from tmkb.knowledge import stacks
from tmkb.review import github, hook, reviewer, sarif, suppression
from tmkb.review.changes import Section
from tmkb.review.judge import Comment
from tmkb.review.reviewer import ReviewerError
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
    parser.add_argument(
        "--reviewer",
        metavar="COMMAND",
        help="let a language model review: COMMAND reads a prompt with the code from stdin and writes its answer to "
        "stdout, such as 'claude -p' (default: TMKB_REVIEWER)",
    )
    parser.add_argument(
        "--reviewer-timeout",
        type=_seconds,
        default=reviewer.TIMEOUT,
        metavar="SECONDS",
        help="timeout for each prompt (default: %(default)g)",
    )
    parser.add_argument("--show-prompt", action="store_true", help="print what a reviewer would read, and ask nobody")
    parser.add_argument("--exit-zero", action="store_true", help="return 0 even if there are comments")
    sources.configure_patterns(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comments. Return 1 if there are any, and 2 if something cannot be read, written or asked."""
    if args.hook:
        return _run_hook(args)
    try:
        command = _command(args)
        reader = Reader(stacks.packaged().is_reviewed, with_removed=bool(command or args.show_prompt))
        sections = [*dict.fromkeys(_sections(reader, args.target))]
        before = _baseline(args.baseline)
    except GitError as error:
        output.fail(f"git: {error}")
        return 2
    except ReviewerError as error:
        output.fail(f"The reviewer: {error}")
        return 2
    provider = _provider(args)
    if not provider.index.patterns:  # as the warning says; without comments, all would look well
        return 2
    if args.show_prompt:
        prompts = comments.prompts(provider, sections, reader.current)
        print(hidden.escape("\n".join(prompt.text for prompt in prompts)))
        return 0
    with output.progress(f"Reviewing {template.plural(len(sections), 'section')}") as show:
        if command:
            ask = functools.partial(reviewer.ask, command, timeout=args.reviewer_timeout)
            reviewed = comments.by_reviewer(provider, sections, reader.current, ask, show)
        else:
            reviewed = comments.by_model(provider, sections)
    failures = [f"The reviewer: {failure}" for failure in reviewed.failures]
    failures += map(problems.line, reader.problems)
    return _report(args, provider, reviewed, before, failures)


def _report(
    args: argparse.Namespace,
    provider: Any,
    reviewed: Reviewed,
    before: Counter[str],
    failures: Sequence[str],
) -> int:
    """Print new comments and failures, write the baseline if that is wanted, and return the exit status."""
    for fault in reviewed.faults:
        output.fail(fault)
    found, is_baseline = reviewed.comments, bool(args.write_baseline and not reviewed.failures)
    if is_baseline and (failure := _write(args.write_baseline, suppression.write(found))):
        failures, is_baseline = [*failures, failure], False
    shown = [] if is_baseline else suppression.new(found, before)
    counts = {"sections": reviewed.sections, "ignored": reviewed.ignored, "in_baseline": len(found) - len(shown)}
    full = provider.operation("get", {})
    _print(args, shown, {id_: _described(full(id_)) for id_ in {comment.pattern for comment in shown}}, counts)
    for failure in failures:
        output.fail(failure)
    return 2 if failures else int(bool(shown) and not args.exit_zero)


def _seconds(text: str) -> float:
    from tmkb.cli import target

    return target.seconds(text)


def _run_hook(args: argparse.Namespace) -> int:
    """Tell a coding agent about its edit, and return 0, because another status can stop the agent."""
    try:
        event = json.loads(sys.stdin.buffer.read(hook.LARGEST))
        is_code = stacks.packaged().is_reviewed
        code = (section for section in hook.sections(event) if is_code(section.path))
        if sections := [*itertools.islice(code, hook.MOST)]:
            provider = _provider(args)
            reviewed = comments.by_model(provider, sections)
            for fault in reviewed.faults:
                output.fail(fault)
            rows = provider.operation("find", {})()["patterns"]
            if answer := hook.answer(reviewed.comments, {row["id"]: row["name"] for row in rows}):
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


def _baseline(path: str | None) -> Counter[str]:
    return suppression.baseline(path, textfile.read(path, path)) if path else Counter()


def _command(args: argparse.Namespace) -> list[str]:
    """Return the words of the command that reviews; none without one. Raises ReviewerError."""
    text = os.environ.get(reviewer.VARIABLE) if args.reviewer is None else args.reviewer
    return reviewer.words(text) if text else []


def _write(path: str, text: str) -> str:
    """Write a baseline. Return an empty text, or why that is not possible."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise FileExistsError(errno.EEXIST, "it is not a file")
        textfile.save(path, text)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return ""


def _described(pattern: Mapping[str, Any]) -> dict[str, Any]:
    """Return what forms of output say about ``pattern`` beside the advice."""
    return {"name": pattern["name"], "severity": pattern["severity"], "cwe": pattern["references"].get("cwe", [])}


def _print(
    args: argparse.Namespace, shown: Sequence[Comment], described: Mapping[str, Any], counts: Mapping[str, int]
) -> None:
    if args.sarif:
        print(json.dumps(sarif.log(shown, described), indent=1))
    elif args.github:
        for each in shown:
            print(github.annotation(each, described[each.pattern]))
    else:
        values = [_value(each, described[each.pattern]) for each in shown]
        output.write(args, {"comments": values, **counts}, _page(values, counts))


def _value(comment: Comment, pattern: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pattern": comment.pattern,
        "name": pattern["name"],
        "severity": pattern["severity"],
        "path": comment.path,
        "line": comment.line,
        "lines": [*comment.lines],
        **({} if comment.probability is None else {"probability": comment.probability}),
        "fingerprint": comment.fingerprint,
        **({"who": comment.who, "reason": comment.reason} if comment.reason else {}),
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
        for key in ("reason", "who", "threat", "check", "principle"):
            if key not in each:
                continue
            lines += layout.indented(layout.indented(layout.text(each[key]), (f"{key.capitalize():<11}", "bold")))
        if code := each.get("code"):
            lines += layout.indented(layout.indented(layout.code(code["secure_template"], code["language"])))
            lines += layout.indented(layout.text(code["caution"])) if "caution" in code else []
        lines += layout.text()
    left_out = [f"; {counts[key]} {about}" for key, about in _COUNTED.items() if counts[key]]
    counted = f"{template.plural(len(values), 'comment')} on {template.plural(counts['sections'], 'section')}"
    return lines + layout.text((f"{counted}{''.join(left_out)}.", "dim"))

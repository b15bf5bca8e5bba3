"""``tmkb rules``: print instructions for coding agents, or write them into the file that the agent reads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tmkb.cli import get, loader, output
from tmkb.knowledge.pattern import Pattern
from tmkb.publishing import rules
from tmkb.publishing.rules import Form
from tmkb.schema import hidden, paths
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("form", choices=[*rules.FORMS], metavar="FORM", help=f"{', '.join(rules.FORMS)}")
    parser.add_argument("arguments", nargs="*", metavar="ID", help="the patterns whose checks are listed")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="write them between two marker lines of this file, or in this folder of the file that agents read there: "
        + ", ".join(form.file for form in rules.FORMS.values()),
    )
    parser.add_argument("--remove", action="store_true", help="remove from PATH what an earlier call wrote")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print, write or remove the rules. Return 1 if there is no such pattern, and 2 for wrong use.

    Raises:
        DocumentError: the file cannot be read.
        SpecError: the file has no place for the rules, or cannot be written.
    """
    form = rules.FORMS[args.form]
    if args.remove:
        return _remove(args, form)
    with output.progress("Reading the patterns"):
        patterns = loader.patterns_by_id(args.patterns)
    ids = get.existing(args.arguments, patterns) if args.arguments else rules.usual([*patterns])
    if ids is None:
        return 1
    if not ids:
        output.fail("None of the patterns that are usually listed is there. Name the ids of others.")
        return 1
    _write(args, form, [patterns[id_][1] for id_ in ids])
    return 0


def _write(args: argparse.Namespace, form: Form, patterns: Sequence[Pattern]) -> None:
    """Print the rules with the checks of ``patterns``, or write them into the file."""
    text = rules.text(patterns)
    if args.output is not None:
        file = rules.place(args.output, form)
        has_changed = rules.write(file, form, text)
        sentence = f"{paths.shown(file)} {'is written' if has_changed else 'is up to date'}."
        output.write(args, {"file": file, "changed": has_changed}, sentence)
    elif args.json:
        output.write(args, {"text": rules.head(form) + text}, "")
    else:  # not wrapped, so that it can be saved
        sys.stdout.write(hidden.escape(rules.head(form) + text))


def _remove(args: argparse.Namespace, form: Form) -> int:
    """Remove the rules from the file."""
    if args.output is None:
        output.fail("--remove needs -o: the file or folder from which the rules are removed.")
        return 2
    file = rules.place(args.output, form)
    has_changed = rules.remove(file, form)
    sentence = f"{paths.shown(file)} " + ("has no rules of TMKB now." if has_changed else "had no rules of TMKB.")
    output.write(args, {"file": file, "changed": has_changed}, sentence)
    return 0

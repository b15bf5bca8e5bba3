"""``tmkb usage``: report what is asked, from the query logs of ``tmkb serve --usage``."""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tmkb.cli import layout, loader, output
from tmkb.cli.layout import Line, text
from tmkb.insight import questions, report
from tmkb.schema import hidden, template
from tmkb.server import sources

_WIDTH = 80  # columns
_BAR = 24
_MOST_ROWS = 15  # of a table
_MOST_GROUPS = 20
_DAYS = re.compile(r"(\d{1,4})d")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "report which patterns, stacks and questions are asked, and what has no answer"
    command = actions.add_parser("report", help=about, description=f"{about[0].upper()}{about[1:]}.")
    command.add_argument("folders", nargs="+", metavar="FOLDER", help="a folder of `tmkb serve --usage`")
    command.add_argument("--since", type=_since, metavar="WHEN", help="a date such as 2026-01-31, or days such as 7d")
    command.add_argument("--html", metavar="FILE", help="write one HTML page with plots; needs the extra `site`")
    sources.configure_patterns(command)
    output.configure(command)


def run(args: argparse.Namespace) -> int:
    """Print or write the report. Return 2 if a folder cannot be read, or a file cannot be written."""
    if args.html and importlib.util.find_spec("jinja2") is None:
        return output.lacks_extra("usage report --html", "site")
    with output.progress("Reading the patterns"):
        patterns = loader.patterns_by_id(args.patterns)
    names = {id_: pattern["name"] for id_, (_, pattern) in patterns.items()}
    try:
        with output.progress("Reading the query logs"):
            value = report.report(report.lines(args.folders), names, args.since or "")
    except OSError as error:
        return output.cannot_read(str(error.filename), error)
    if args.html:
        from tmkb.insight import reportpage

        page = reportpage.page(value, _about_questions(value))
        return 0 if output.save({args.html: page.encode("utf-8", "backslashreplace")}) else 2
    output.write(args, value, _text(value))
    return 0


def _since(given: str) -> str:
    """Return the time of ``--since`` as query logs have it."""
    if match := _DAYS.fullmatch(given):
        began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=int(match[1]))
        return began.strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return datetime.date.fromisoformat(given).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{given}' is neither a date, as 2026-01-31, nor days, as 7d") from None


def _text(value: Mapping[str, Any]) -> list[Line]:
    lines = _summary(value)
    lines += _table("Stacks", value["stacks"])
    lines += _table("Languages and frameworks that no stack is known for", value["unknown"])
    lines += _table("Views", value["views"])
    lines += _table("Days", value["days"][-_MOST_ROWS:])
    lines += _patterns(value["patterns"])
    lines += _questions(value)
    lines += _never(value["never"])
    return [line._replace(wraps=False) for line in lines]


def _summary(value: Mapping[str, Any]) -> list[Line]:
    if not value["queries"]:
        return text("No queries.")
    share = f"{100 * value['unanswered'] / value['queries']:.0f} %"
    lines = text(f"{value['queries']} queries from {value['from']} to {value['to']}")
    lines += text(f"{value['unanswered']} without an answer ({share})")
    lines += text(f"{value['principals']} principals") if value["principals"] else []
    unreadable = value["unreadable_lines"]
    return lines + (text(f"{unreadable} lines could not be read") if unreadable else [])


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return numbers by name with bars, in which the queries without an answer are lighter."""
    if not rows:
        return []
    most = max(row["queries"] for row in rows)
    cells = [
        [_cut(row["name"], 32), _bar(row, most), str(row["queries"]), str(row["unanswered"])]
        for row in rows[:_MOST_ROWS]
    ]
    more = text((f"and {len(rows) - _MOST_ROWS} more", "dim")) if len(rows) > _MOST_ROWS else []
    return [*text(), *text((title, "bold")), *layout.table(["name", "", "queries", "unanswered"], cells), *more]


def _bar(row: Mapping[str, Any], most: int) -> str:
    if not row["queries"]:
        return ""
    whole: int = max(1, round(_BAR * row["queries"] / most))
    empty: int = round(whole * row["unanswered"] / row["queries"])
    return "█" * (whole - empty) + "░" * empty


def _patterns(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    if not rows:
        return []
    cells = [
        [row["id"], str(row["answers"]), str(row["first"]), _cut(row["name"], _WIDTH - 38)] for row in rows[:_MOST_ROWS]
    ]
    more = text((f"and {len(rows) - _MOST_ROWS} more", "dim")) if len(rows) > _MOST_ROWS else []
    header = layout.table(["pattern", "answers", "as first", "name"], cells)
    return [*text(), *text(("Patterns", "bold")), *header, *more]


def _questions(value: Mapping[str, Any]) -> list[Line]:
    if not value["unanswered"]:
        return []
    lines = [*text(), *text(("Questions without an answer", "bold")), *_wrapped(_about_questions(value))]
    for group in value["question_groups"][:_MOST_GROUPS]:
        words = f": {', '.join(group['words'])}" if group["words"] else ""
        lines += _wrapped(f"{template.plural(group['queries'], 'time')}{words}")
        lines += [line for each in group["questions"] for line in text(f"  {_cut(each, _WIDTH - 2)}")]
        more = group["different"] - len(group["questions"])
        lines += text((f"  and {more} more", "dim")) if more else []
    more = len(value["question_groups"]) - _MOST_GROUPS
    return lines + (text((f"and {more} more groups; see --json or --html", "dim")) if more > 0 else [])


def _about_questions(value: Mapping[str, Any]) -> str:
    """Return a sentence on what is known of the questions."""
    counts = value["questions"]
    if not value["unanswered"]:
        return "Every query had an answer."
    if not counts["different"]:
        return "The text was not logged. Serve with --usage-context text to group them."
    if not counts["with_text"]:
        repeated = f"{counts['repeated']} of them more than once"
        return f"{counts['different']} different ones, {repeated}. Only their hashes were logged."
    sentence = f"{counts['different']} different ones{', the latest' if counts['older'] else ''}."
    return sentence if questions.can_group() else f"{sentence} Install the extra `train` to group similar ones."


def _never(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    if not rows:
        return []
    ids = ", ".join(row["id"] for row in rows)
    return [*text(), *text((f"Patterns that no answer contains ({len(rows)})", "bold")), *_wrapped(ids)]


def _wrapped(sentence: str) -> list[Line]:
    import textwrap

    return [line for row in textwrap.wrap(sentence, _WIDTH, break_on_hyphens=False) for line in text(row)]


def _cut(content: str, width: int) -> str:
    """Return ``content`` on one line of at most ``width`` columns, escaped."""
    line = hidden.line(content)
    return line if len(line) <= width else line[: width - 1] + "…"

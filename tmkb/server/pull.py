"""Which commit of each Git source is served: pull new ones, try them, and keep the last good ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tmkb.errors import SpecError
from tmkb.schema import paths, problems, reader, template
from tmkb.server import cache, repository
from tmkb.server.repository import Version
from tmkb.server.selection import Selection

Lines = list[list[Any]]  # ids and fields of log lines
Entries = Mapping[str, cache.Entry]  # by view
Build = Callable[[Selection], Entries]  # raises SpecError

FRESH = 60.0  # seconds after a pull in which commands do not pull again


def start(selection: Selection, build: Build, fresh: float) -> tuple[Selection, Entries, Lines]:
    """Return the selection to serve, its entries, and log lines about its sources.

    The last good commits are served if a pull fails or has problems. Without any, the first commit is served like a
    folder: patterns with problems are left out.

    Args:
        selection: requests, whose sources have no versions yet.
        build: builds the entries of a selection.
        fresh: seconds after a pull in which a source is not pulled again.

    Raises:
        SpecError: if a source cannot be pulled for the first time, or `build` fails.
    """
    lines: Lines = []
    candidates: list[Version] = []
    for source in selection.sources.values():
        version = repository.current(source)
        if version is None or repository.age(source) > fresh:
            try:
                newest = repository.fetch(source)
            except SpecError as error:
                if version is None:
                    raise
                lines += unreachable(version, error)
            else:
                if version is None or version.commit == newest.commit:
                    version = newest
                    repository.accept(newest)
                else:
                    candidates.append(newest)
        selection = selection.at(version)
    entries = build(selection)
    for newest in candidates:
        selection, entries, more = advance(selection, entries, newest, build)
        lines += more
    return selection, entries, lines


def advance(selection: Selection, entries: Entries, newest: Version, build: Build) -> tuple[Selection, Entries, Lines]:
    """Return the selection with the commit ``newest`` if it has no new problems, else the same; with log lines."""
    before = warnings(entries)
    try:
        tried = build(selection.at(newest))
        wrong = [warning for warning in warnings(tried) if warning not in before]
    except SpecError as error:
        wrong = [["problem", {"problem": problems.line(each)}] for each in error.problems]
    if wrong:
        return selection, entries, [*rejected(selection.versions[newest.source.text], newest), *wrong]
    repository.accept(newest)
    return selection.at(newest), tried, [["pulled", fields(newest)]]


def warnings(entries: Entries) -> Lines:
    """Return the warnings of all entries."""
    heads: list[Any] = [entry.head for entry in entries.values()]
    return [[line, fields] for head in heads for line, fields in head["warnings"]]


def served(selection: Selection) -> Lines:
    """Return log lines that name the commit of each source."""
    return [["serving", fields(version)] for version in selection.versions.values()]


def unreachable(version: Version, error: SpecError) -> Lines:
    """Return the log lines of a pull that failed."""
    reason = " ".join(problems.sentence(problem) for problem in error.problems)
    return [["pull_failed", {**fields(version), "reason": reason}]]


def rejected(version: Version, newest: Version) -> Lines:
    """Return the log line about a commit with problems."""
    return [["pull_rejected", {**fields(version), "newest": newest.commit[:7]}]]


def sentences(lines: Sequence[Sequence[Any]]) -> list[str]:
    """Return the texts of log lines that report a failure, for commands that have no log."""
    known: Any = reader.read(os.path.join(paths.SCHEMAS, "log.yaml")).section("lines")
    return [template.fill(known[line]["message"], fields) for line, fields in lines if known[line]["level"] != "info"]


def fields(version: Version) -> dict[str, str]:
    """Return the fields of log lines about ``version``."""
    return {"source": version.source.text, "commit": version.commit[:7], "date": version.date}

"""The report on query logs: what is asked, in which stacks, and what has no answer.

The files contain what clients sent. Lines of another shape are left out, and everything that is shown is escaped by
those who show it.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tmkb.insight import querylog, questions
from tmkb.insight.observer import OTHER

_MOST_LINE = 65536  # characters; longer lines are not from a query log
_MOST_QUESTIONS = 2000  # different ones without an answer, the latest, because grouping compares all of them
_MOST_NAMES = 1000  # of one kind; clients choose the names of unknown stacks
_MOST_DAYS = 400  # from the first to the last, within which days without queries are listed
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SHOWN = 3  # typical questions of a group
UNKNOWN = "none"  # instead of a stack


def report(lines: Iterable[str], names: Mapping[str, str], since: str = "") -> dict[str, Any]:
    """Return the report as JSON values.

    Args:
        lines: of query logs; see `lines`.
        names: id → name of the served patterns.
        since: leaves out lines before this date or time (RFC 3339).
    """
    tally = _Tally()
    for line in lines:
        query = _query(line)
        if query is None:
            tally.unreadable += 1
        elif query["time"] >= since:
            tally.add(query)
    return tally.report(names)


def lines(folders: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the query logs in ``folders``, file by file. Raises OSError if a file cannot be read."""
    for folder in folders:
        for name in sorted(filter(querylog.is_log, os.listdir(folder))):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                while line := file.readline(_MOST_LINE):
                    if line.strip():
                        yield line


def _query(line: str) -> dict[str, Any] | None:
    """Return a line as JSON; None if it is cut or not from a query log."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    texts = ("language", "framework", "context", "context_hash", "principal_hash", "view")
    if (
        not isinstance(value, dict)
        or not _TIME.fullmatch(str(value.get("time")))
        or not isinstance(value.get("patterns"), list)
        or not all(isinstance(each, str) for each in value["patterns"])
        or not isinstance(value.get("stack"), str | None)
        or not all(isinstance(value.get(name, ""), str) for name in texts)
    ):
        return None
    return value


class _Tally:
    """The numbers of all queries so far."""

    def __init__(self) -> None:
        self.unreadable = 0  # lines
        self.queries = self.unanswered = 0
        self.times: list[str] = []  # of the first and the last query
        self.answers: Counter[str] = Counter()  # pattern → answers with it
        self.first: Counter[str] = Counter()  # pattern → answers that it leads
        self.groups = {name: _Group() for name in ("stacks", "days", "views", "unknown")}
        self.principals: set[str] = set()
        self.questions: dict[str, questions.Question] = {}  # without an answer, by hash or text without case
        self.older = 0  # of them that are left out

    def add(self, query: Mapping[str, Any]) -> None:
        patterns, stack = query["patterns"], query["stack"] or UNKNOWN
        self.queries += 1
        self.unanswered += not patterns
        self.times = [min([*self.times[:1], query["time"]]), max([*self.times[1:], query["time"]])]
        self.answers.update({*patterns})
        self.first.update(patterns[:1])
        self.groups["stacks"].add(stack, patterns)
        self.groups["days"].add(query["time"][:10], patterns)
        if "view" in query:
            self.groups["views"].add(query["view"] or "default", patterns)
        if query["stack"] is None and (named := " ".join(filter(None, map(query.get, ("language", "framework"))))):
            self.groups["unknown"].add(named.lower(), patterns)
        self.principals.update(filter(None, [query.get("principal_hash")]))
        if not patterns:
            self._add_question(query, stack)

    def _add_question(self, query: Mapping[str, Any], stack: str) -> None:
        text = query.get("context", "")
        key = query.get("context_hash") or " ".join(text.lower().split())
        if not key:
            return
        question = self.questions.pop(key, None) or questions.Question(text, Counter())
        question.stacks[stack] += 1
        self.questions[key] = question  # the latest is the last
        if len(self.questions) > _MOST_QUESTIONS:
            del self.questions[next(iter(self.questions))]
            self.older += 1

    def report(self, names: Mapping[str, str]) -> dict[str, Any]:
        texts = [question for question in self.questions.values() if question.text]
        repeated = sum(1 for question in self.questions.values() if question.times > 1)
        return {
            "from": self.times[0] if self.times else None,
            "to": self.times[-1] if self.times else None,
            "queries": self.queries,
            "unanswered": self.unanswered,
            "unreadable_lines": self.unreadable,
            "principals": len(self.principals) or None,
            "patterns": [
                {"id": id_, "name": names.get(id_, ""), "answers": count, "first": self.first[id_]}
                for id_, count in _sorted(self.answers)
            ],
            "never": [{"id": id_, "name": name} for id_, name in names.items() if id_ not in self.answers],
            **{name: group.rows(_sorted(group.queries)) for name, group in self.groups.items()},
            "days": self.groups["days"].rows(_days(self.groups["days"].queries)),
            "questions": {
                "different": len(self.questions),
                "older": self.older,
                "repeated": repeated,
                "with_text": len(texts),
            },
            "question_groups": [
                {
                    "queries": group.times,
                    "questions": [question.text for question in group.typical[:_SHOWN]],
                    "different": len(group.typical),
                    "words": group.words,
                    "stacks": dict(_sorted(group.stacks)),
                }
                for group in questions.grouped(texts)
            ],
        }


class _Group:
    """Numbers of queries by a name."""

    def __init__(self) -> None:
        self.queries: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()

    def add(self, name: str, patterns: Sequence[str]) -> None:
        if len(self.queries) >= _MOST_NAMES and name not in self.queries:
            name = OTHER
        self.queries[name] += 1
        self.unanswered[name] += not patterns

    def rows(self, ordered: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
        return [{"name": name, "queries": count, "unanswered": self.unanswered[name]} for name, count in ordered]


def _days(counter: Counter[str]) -> list[tuple[str, int]]:
    """Return the entries by day, with those between them that have no queries."""
    try:
        days = sorted(map(datetime.date.fromisoformat, counter))
    except ValueError:  # such as February 30
        return sorted(counter.items())
    count = (days[-1] - days[0]).days + 1 if days else 0
    if count > _MOST_DAYS:
        return sorted(counter.items())
    listed = [str(days[0] + datetime.timedelta(days=number)) for number in range(count)]
    return [(day, counter[day]) for day in listed]


def _sorted(counter: Counter[str]) -> list[tuple[str, int]]:
    """Return the entries, the largest first, of equal ones by name."""
    return sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))

"""One pattern as its page shows it: code with marked changes, cases of the attacks, idioms, proof and evidence."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tmkb.knowledge import attacks, evidence, idioms, provenance
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.attacks import Attacks, Case, WrongFix
from tmkb.knowledge.pattern import Pattern, folder_name

_SERVICES = {"celery": "a Celery worker", "postgresql": "PostgreSQL", "redis": "Redis"}
_ERROR = 400  # the first status of a response that refuses a request
_BLANK = re.compile(r"\n{3,}")


class Row(NamedTuple):
    """A row of the access matrix: who, in which state, and the case of each verb that is tried."""

    relation: str
    state: str
    refused_before: bool  # by the vulnerable code, too
    cells: Mapping[str, Case]


class Story(NamedTuple):
    """An attack that the matrix cannot express."""

    case: Case
    text: str


@dataclass(frozen=True, eq=False)
class Entry:
    """A pattern, and what is recorded about it."""

    folder: str
    pattern: Pattern

    @property
    def id(self) -> str:
        """The id of the pattern."""
        return self.pattern["id"]

    @property
    def name(self) -> str:
        """The name of the pattern on one line."""
        return unwrap(self.pattern["name"])

    @property
    def family(self) -> str:
        """The category of the pattern."""
        return self.pattern["category"]

    @property
    def summary(self) -> dict[str, str]:
        """Threat, check, principle, fix and caution."""
        return self.pattern["agent_summary"]

    @property
    def page(self) -> str:
        """The path of its page below the folder of the site."""
        return f"pattern/{self.slug}.html"

    @property
    def slug(self) -> str:
        """The id in lower case with hyphens."""
        return folder_name(self.id).replace("_", "-")

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `tmkb.knowledge.provenance` knows: version, proof, numbers of attacks and wrong fixes."""
        return provenance.facts(self.folder, self.pattern)

    @cached_property
    def idioms(self) -> dict[str, dict[str, str]]:
        """The fix by stack, with that of the pattern's own code. See `tmkb.knowledge.idioms.served`."""
        return idioms.served(self.folder, self.pattern)

    @cached_property
    def own_stack(self) -> str | None:
        """The stack of the pattern's own code."""
        return next(iter(self.idioms), None) if "template" in self.pattern else None

    @property
    def missed(self) -> evidence.Evidence | None:
        """What developers missed, if that was measured."""
        return evidence.packaged().get(self.id)

    @cached_property
    def attacks(self) -> Attacks | None:
        """The content of attacks.yaml."""
        return attacks.read(self.folder)[0] if "attacks" in self.pattern.get("code", {}) else None

    @cached_property
    def cases(self) -> dict[str, Case]:
        """The cases of the attacks, by name."""
        return {case.name: case for case in self.attacks.cases} if self.attacks else {}

    @property
    def services(self) -> dict[str, int]:
        """The number of cases that were played on a real service, by its name."""
        return Counter(_SERVICES[name] for case in self.cases.values() for name in case.services)

    @property
    def wrong(self) -> dict[str, WrongFix]:
        """The wrong fixes, by name."""
        return self.attacks.wrong if self.attacks else {}

    @cached_property
    def verbs(self) -> dict[str, str]:
        """The requests that the matrix tries, by verb, in the order of the file."""
        used = {verb for row in self.rows for verb in row.cells}
        verbs = self.attacks.value.get("verbs", {}) if self.attacks else {}
        return {verb: request(step) for verb, step in verbs.items() if verb in used}

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the access matrix."""
        cases = iter(self.cases.values())
        rows = []
        for each in self.attacks.value.get("matrix", []) if self.attacks else []:
            verbs = [verb for key in ("allowed", "refused") for verb in each.get(key, {})]
            cells = dict(zip(verbs, cases, strict=False))
            state = each.get("state", "").replace("_", " ")
            rows.append(Row(each["relation"], state, "vulnerable" in each, cells))
        return rows

    @cached_property
    def stories(self) -> list[Story]:
        """The attacks outside of the matrix."""
        named = self.attacks.value["attacks"] if self.attacks else {}
        return [Story(self.cases[name], unwrap(each["story"])) for name, each in named.items()]

    def comparison(self) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
        """Return the vulnerable and the secure code in parts: whether the other version lacks a part, and its text."""
        versions = condensed(self.pattern["vulnerable"]).splitlines(), condensed(self.secure).splitlines()
        parts: tuple[list[tuple[bool, str]], list[tuple[bool, str]]] = [], []
        for tag, *bounds in difflib.SequenceMatcher(None, *versions, autojunk=False).get_opcodes():
            for index, lines in enumerate(versions):
                if chosen := lines[bounds[2 * index] : bounds[2 * index + 1]]:
                    parts[index].append((tag != "equal", "\n".join(chosen)))
        return parts

    @property
    def secure(self) -> str:
        """The example of the first mitigation that has one."""
        return next((each["secure"] for each in self.pattern["mitigations"] if "secure" in each), "")


def by_family(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return the entries of each family, in the order of families and ids."""
    found: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda each: (each.family, each.id)):
        found.setdefault(entry.family, []).append(entry)
    return found


def family_title(category: str) -> str:
    """Return the name of a family for people."""
    return category.replace("-", " ").capitalize().replace("Ai ", "AI ")


def condensed(code: str) -> str:
    """Return code with at most one blank line in a row, as short examples need no more."""
    return _BLANK.sub("\n\n", code).rstrip()


def request(step: Mapping[str, Any]) -> str:
    """Return what a step does, on one line."""
    if "send" in step:
        return str(step["send"])
    for key, text in (("event", "event {}"), ("state", "look at {}"), ("wait", "wait {} seconds")):
        if key in step:
            return text.format(str(step[key]).replace("_", " "))
    return "run the queued jobs"


def outcome(case: Case) -> str:
    """Return how the secure version responds: the status, or what else shows that an attack has failed."""
    condition = case.refused if isinstance(case.refused, dict) else {"status": case.refused}
    listed = condition.get("status", [])
    numbers = listed if isinstance(listed, list) else [listed]
    statuses = " or ".join(map(str, numbers))
    if case.allowed:
        return f"served {statuses}".rstrip()
    if condition.get("raises"):
        return f"the job ends with {condition['raises']}"
    if condition.keys() == {"status"} and min(numbers) >= _ERROR:
        return f"refused {statuses}"
    return ", ".join(filter(None, (statuses, "nothing gained")))


def falls_to(entry: Entry, wrong: WrongFix) -> Iterator[str]:
    """Yield the names of the attacks that succeed against a wrong fix, in the order of the file."""
    yield from (name for name in entry.cases if name in wrong.falls_to)
    yield from sorted(wrong.falls_to - entry.cases.keys())

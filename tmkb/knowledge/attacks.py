"""Read attacks.yaml: who may do what with the application of a pattern, and the attacks that secure code refuses.

Nothing here runs an attack. `tmkb.authoring.play` does.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import examples
from tmkb.knowledge.examples import WRONG
from tmkb.schema import metaschema, paths, reader, textfile
from tmkb.schema.reader import Document

NAME = "attacks.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "attacks.yaml")

Step = Mapping[str, Any]


class Case(NamedTuple):
    """One attempt by one actor: allowed, or an attack that must be refused."""

    name: str
    allowed: bool
    refused_before: bool  # by the vulnerable code, too
    services: tuple[str, ...]  # real ones that it needs
    values: Mapping[str, Any]
    secrets: list[Any]
    steps: list[Step]  # after those of `Attacks.setup`
    attempt: Step
    observe: list[Step]
    refused: Any  # conditions; of an allowed case, those of the response that shows that it was served
    gained: Any


class WrongFix(NamedTuple):
    """A fix that people write and that does not hold."""

    file: str  # in the folder of the pattern
    why: str
    falls_to: frozenset[str]  # names of cases


class Attacks:
    """The content of one attacks.yaml."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.value = value
        self.setup: list[Step] = value.get("setup", [])  # before every case
        self.config: dict[str, Any] = value.get("config", {})
        self.cases = [*_matrix(value), *_named(value)]
        succeeding = [attack for attack in value["attacks"].values() if "vulnerable" not in attack]
        self.stories = [" ".join(attack["story"].split()) for attack in succeeding]
        self.wrong = {
            name: WrongFix(f"{WRONG}/{name}.py", each["why"], frozenset(each["falls_to"]))
            for name, each in value.get("wrong", {}).items()
        }

    @classmethod
    def parse(cls, text: str) -> Attacks:
        """Return the attacks in the ``text`` of an attacks.yaml.

        Raises:
            DocumentError: the text is not a valid attacks.yaml.
        """
        doc = reader.parse(text, NAME)
        if problems := _problems(doc):
            raise DocumentError(problems)
        return cls(doc.mapping())

    def uses(self) -> dict[str, set[str]]:
        """Return the kinds of steps that a target must offer, each with the names that it is called with."""
        value = self.value
        groups = [*value.get("states", {}).values(), [*value.get("verbs", {}).values()], self.setup]
        groups += [value.get("observe", [])]
        for attack in value["attacks"].values():
            groups += [attack.get("steps", []), [attack["attempt"]]]
        steps = [step for group in groups for step in group]
        steps += [inner for step in steps for inner in step.get("during", {}).get("steps", [])]
        uses: dict[str, set[str]] = {}
        for step in steps:
            for key in step.keys() & {"event", "state", "work", "wait", "during"}:
                uses.setdefault(key, set()).add(str(step[key]))
        return uses

    def case(self, name: str) -> Case:
        """Return the case with this name."""
        return next(case for case in self.cases if case.name == name)

    @property
    def refusals(self) -> list[str]:
        """The names of all cases that must be refused."""
        return [case.name for case in self.cases if not case.allowed]


def read(folder: str) -> tuple[Attacks | None, list[Problem]]:
    """Read the attacks of the pattern in ``folder``. Return None with the problems if there are any."""
    file = os.path.join(folder, NAME)
    doc, problems = _read(file, paths.shown(file), *textfile.version(file))
    if doc is not None:
        problems = [*_unknown_attacks(doc, folder), *(_wrong_files(doc, folder) if has_wrong_fixes(folder) else [])]
    return (None, problems) if doc is None or problems else (Attacks(doc.mapping()), [])


def has_wrong_fixes(folder: str) -> bool:
    """Return whether the files of the wrong fixes are expected: everywhere but in a wheel, which leaves them out."""
    return os.path.isdir(os.path.join(folder, WRONG)) or not paths.is_installed(folder)


@functools.lru_cache(maxsize=128)
def _read(file: str, shown: str, _mtime: int, _size: int) -> tuple[Document | None, list[Problem]]:
    """Return the document, or None and its problems."""
    try:
        doc = reader.read(file, shown)
    except DocumentError as error:
        return None, error.problems
    problems = _problems(doc)
    return (None, problems) if problems else (doc, [])


def _problems(doc: Document) -> list[Problem]:
    return metaschema.check(doc, SCHEMA) or [*_unknown_names(doc)] or [*_case_names(doc)]


def _matrix(value: Mapping[str, Any]) -> Iterator[Case]:
    for row in value.get("matrix", []):
        steps = value["states"][row["state"]] if "state" in row else []
        for key in ("allowed", "refused"):
            for verb, condition in row.get(key, {}).items():
                attempt = value["verbs"][verb]
                yield Case(
                    name=f"{_row_name(row)}_{verb}",
                    allowed=key == "allowed",
                    refused_before="vulnerable" in row,
                    services=_services(value, row),
                    values=row.get("values", {}),
                    secrets=row.get("secrets", value.get("secrets", [])),
                    steps=steps,
                    attempt={"by": row["actor"], **attempt},
                    observe=value.get("observe", []),
                    refused=condition,
                    gained=row.get("gained"),
                )


def _row_name(row: Mapping[str, Any]) -> str:
    return str(row.get("name") or "_".join(row[key] for key in ("actor", "state") if key in row))


def _named(value: Mapping[str, Any]) -> Iterator[Case]:
    for name, attack in value["attacks"].items():
        yield Case(
            name=name,
            allowed=False,
            refused_before="vulnerable" in attack,
            services=_services(value, attack),
            values={},
            secrets=attack.get("secrets", value.get("secrets", [])),
            steps=attack.get("steps", []),
            attempt=attack["attempt"],
            observe=value.get("observe", []),
            refused=attack["refused"],
            gained=attack.get("gained"),
        )


def _services(value: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted({*value.get("services", []), *([part["service"]] if "service" in part else [])}))


def _unknown_names(doc: Document) -> Iterator[Problem]:
    """Report each verb and state of the matrix that does not exist."""
    value: Any = doc.value
    for index, row in enumerate(value.get("matrix", [])):
        for key in ("allowed", "refused"):
            for verb in row.get(key, {}):
                if verb not in value["verbs"]:
                    yield doc.key_problem(
                        "unknown_name", ("matrix", index, key, verb), **_near("verb", verb, value["verbs"])
                    )
        state, states = row.get("state"), value.get("states", {})
        if state is not None and state not in states:
            yield doc.problem("unknown_name", ("matrix", index, "state"), **_near("state", state, states))


def _case_names(doc: Document) -> Iterator[Problem]:
    """Report names that two cases have."""
    value: Any = doc.value
    cases = Attacks(value).cases
    names = [case.name for case in cases]
    for name in sorted({name for name in names if names.count(name) > 1}):
        path = ("attacks", name) if name in value["attacks"] else ("matrix",)
        yield doc.key_problem("repeated_case", path, name=name)


def _near(kind: str, name: str, known: Iterable[str]) -> dict[str, str]:
    return {"kind": kind, "name": name, **metaschema.near(name, list(known))}


def _unknown_attacks(doc: Document, folder: str) -> Iterator[Problem]:
    """Report each name under `falls_to` that is neither a case to refuse nor a function exploit_NAME of proof.py."""
    value: Any = doc.value
    proof = examples.read(folder, "proof.py", "")
    known = [*Attacks(value).refusals, *(re.findall(r"^def exploit_(\w+)", proof.text, re.M) if proof else [])]
    for wrong, each in value.get("wrong", {}).items():
        for index, name in enumerate(each["falls_to"]):
            if name not in known:
                yield doc.problem("unknown_name", ("wrong", wrong, "falls_to", index), **_near("attack", name, known))


def _wrong_files(doc: Document, folder: str) -> Iterator[Problem]:
    """Check that each wrong fix has a file, and each file in the folder is listed."""
    value: Any = doc.value
    listed = value.get("wrong", {})
    place = os.path.join(folder, WRONG)
    files = os.listdir(place) if os.path.isdir(place) else []
    there = {name.removesuffix(".py") for name in files if name.endswith(".py")}
    for name in listed:
        if name not in there:
            yield doc.key_problem("no_wrong_file", ("wrong", name), file=f"{WRONG}/{name}.py")
    for name in sorted(there - {*listed}):
        yield doc.key_problem("unlisted_wrong_file", ("wrong",), file=f"{WRONG}/{name}.py")

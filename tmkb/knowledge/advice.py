"""Render answers for a stack: the first pattern with the idiom of the stack, and the questions of the others.

An answer has the form of those of `tmkb.knowledge.answer` and is joined from prepared fragments like them.
"""

from __future__ import annotations

import math

from tmkb import stdlib
from tmkb.knowledge import reminders
from tmkb.knowledge.answer import CODE, Renderer, counted, fragment, house_rule, without_empty
from tmkb.knowledge.reminders import Reminders
from tmkb.knowledge.retrieval import words
from tmkb.knowledge.retrieval.memo import Memo
from tmkb.knowledge.stacks import Stacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.answer import Answer
    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

_NOTE = 'note":%s,"'
_NOTED = 3  # patterns that count more than the note
_UNSHOWN = 2  # stacks of which an answer says how their code differs
_OWNER = 'pattern":"%s","'  # before the other keys of code that is not of the first pattern
_KEYS = '":{"'  # before the keys of code
_DECODED = b'{"%s":0}'  # of the text of code, which begins in its key and ends in the next one
_FARTHER = 0.6  # of the likeness of code for the next stack
_LEAST = 0.5  # added to the likeness, so that of two codes that are hardly like the question the nearer is shown
_GENERAL = 0.5  # of the likeness of code for a stack in general


def fragments(
    patterns: Sequence[Pattern],
    idioms: Mapping[str, Mapping[str, Mapping[str, str]]],
    stacks: Stacks,
    no_match: str,
    reminder: tuple[Sequence[Mapping[str, Any]], str] | None,
    count: Callable[[str], int],
) -> dict[str, JsonObject]:
    """Return the parts that `Adviser` joins.

    Args:
        patterns: all patterns.
        idioms: id of a pattern → stack → code, status and, if there is one, caution.
        stacks: the stacks of the idioms.
        no_match: the note of an answer without patterns.
        reminder: the sentences and the last one of the note of an answer with patterns; None for no note.
        count: returns the tokens of a text.
    """

    def code(stack: str, idiom: Mapping[str, str]) -> JsonObject:
        return counted(CODE, shown_code(stacks.stacks[stack]["language"], stack, idiom), count)

    rendered: list[Any] = [
        {
            "full": fragment(_full(pattern), count),
            "short": fragment(_short(pattern), count),
            "owner": {"text": (owner := _OWNER % pattern["id"]), "tokens": count(owner)},
            "code": {
                stack: code(stack, idiom)
                for stack, idiom in idioms.get(pattern["id"], {}).items()
                if stack in stacks.stacks
            },
        }
        for pattern in patterns
    ]
    facts: Any = {"languages": stacks.languages, "stacks": stacks.stacks}
    notes: Any = {
        "no_match": counted(_NOTE, no_match, count),
        "reminders": reminder and reminders.fragments(*reminder, stacks.stacks, count),
    }
    return {"advice": {"patterns": rendered, **notes, **facts}}


def shown_code(language: str, stack: str, idiom: Mapping[str, str]) -> dict[str, Any]:
    """Return an idiom, with its code, status and, if there is one, caution, under the keys of answers."""
    keys = {"secure_template": idiom["code"], "caution": idiom.get("caution"), "status": idiom["status"]}
    return without_empty({"language": language, "framework": stack, **keys})


class Adviser:
    """Joins fragments to answers for a stack. Patterns are identified by their index in the library."""

    def __init__(self, renderer: Renderer, part: Callable[[str], JsonObject], rarity: Callable[[str], float]) -> None:
        """``part`` returns a part of `fragments` by name, and ``rarity`` the inverse document frequency of a stem."""
        advice: Any = part("advice")
        self.renderer = renderer
        self.rarity = rarity
        self.patterns = advice["patterns"]
        self.no_match = advice["no_match"]
        self.reminders = Reminders(advice["reminders"]) if advice["reminders"] else None
        self.stacks = Stacks(advice["languages"], advice["stacks"])
        self._forms = Memo(self._form)

    def for_agent(
        self,
        numbers: Sequence[int],
        nearest: Sequence[str],
        limit: int,
        question: str = "",
        close: Sequence[float] = (1,),
    ) -> Answer:
        """Return the first pattern, an idiom, and as many others as fit into ``limit`` tokens.

        The idiom counts most, then three patterns, then the note with the reminders of ``question`` that fit, then the
        others. Without patterns the answer is a note on what that means.

        Args:
            numbers: the patterns, best first.
            nearest: the stacks of the idiom, as `Stacks.choose` returns them.
            limit: tokens of the answer.
            question: the text of the question.
            close: of the first patterns, whose code can be shown: their probability in relation to that of the first.
        """
        if not numbers:
            return self.renderer.join([], 0, self.no_match, False)
        first, *others = [self.patterns[number] for number in numbers]
        chosen = [first["full"], *(each["short"] for each in others)]
        code, shown_for = self._code([first, *others][: len(close)], nearest, question, close)
        noted = []
        if self.reminders:
            unshown = self._unshown(nearest, question, code, shown_for)
            sentences = self.reminders.of(question, self.stacks.fallbacks(next(iter(nearest), None)), unshown)
            fewest = min(_NOTED, len(chosen))
            whole = self.reminders.note(sentences)
            noted = [(count, (code, whole)) for count in range(len(chosen), fewest, -1)]
            room = limit - self.renderer.size(chosen[:fewest], _joined([code]), fewest < len(chosen))
            noted.append((fewest, (code, self.reminders.note(sentences, room))))
        shown = [
            (count, (idiom,)) for idiom in ((code, None) if code else (None,)) for count in range(len(chosen), 0, -1)
        ]
        for count, more in [*noted, *shown]:
            cut = count < len(chosen) or (code is not None and code not in more)
            if self.renderer.size(chosen[:count], joined := _joined(more), cut) <= limit:
                return self.renderer.join(chosen, count, joined, cut)
        return self.renderer.join(chosen, 0, None, True)

    def for_human(self, numbers: Sequence[int], nearest: Sequence[str]) -> Answer:
        """Return the patterns in full, and the idiom of the first for one of the stacks ``nearest``."""
        if not numbers:
            return self.renderer.join([], 0, self.no_match, False)
        return self.renderer.for_human(numbers, self._code([self.patterns[numbers[0]]], nearest)[0])

    def _code(
        self,
        patterns: Sequence[Mapping[str, Any]],
        nearest: Sequence[str],
        question: str = "",
        shares: Sequence[float] = (1,),
    ) -> tuple[Any, str | None]:
        """Return the code of one of ``patterns`` for one of the stacks ``nearest``, and that stack; None without any.

        Code that is not of the first of ``patterns`` names its own.
        """
        known = [
            (rank, stack) for stack in nearest for rank, pattern in enumerate(patterns) if stack in pattern["code"]
        ]
        if not known:
            return None, None
        rank, stack = self._fitting(known, patterns, question, shares) if len(known) > 1 else known[0]
        code = patterns[rank]["code"][stack]
        return code if rank == 0 else _owned(code, patterns[rank]["owner"]), stack

    def _unshown(self, nearest: Sequence[str], question: str, code: Any, stack: str | None) -> list[str]:
        """Return those of the stacks ``nearest`` that ``question`` names, and of whose code ``code`` shows nothing.

        They are at most two, nearest first. ``code`` is a fragment for ``stack`` or None.
        """
        stacks, shown = self.stacks.stacks, self.stacks.fallbacks(stack)
        text = decoded(code["text"])["secure_template"] if code else ""
        return [
            name
            for name in nearest
            if name not in shown
            and "of" in stacks[name]
            and stacks[name].keys() & {"lookup", "note"}
            and self.stacks.is_named(name, question)
            and not self.stacks.is_named(name, text)
        ][:_UNSHOWN]

    def _fitting(
        self,
        known: Sequence[tuple[int, str]],
        patterns: Sequence[Mapping[str, Any]],
        question: str,
        shares: Sequence[float],
    ) -> tuple[int, str]:
        """Return the one of ``known``, which are ranks of ``patterns`` and stacks, whose code fits ``question`` best.

        Its form is like the question, its pattern is probable, and its stack is near. It is in the language of the
        nearest or in one that is used beside others. Decision 30 has figures.
        """
        asked, stacks = {*words.words(question)}, self.stacks.stacks
        usable = {stacks[known[0][1]]["language"], *self.stacks.beside}
        order = {stack: place for place, stack in enumerate(dict.fromkeys(stack for _, stack in known))}

        def fit(each: tuple[int, str]) -> float:
            rank, stack = each
            weights = self._forms[patterns[rank]["code"][stack]["text"]]
            likeness = math.fsum(weights[stem] for stem in weights.keys() & asked)
            general = 1 if "of" in stacks[stack] else _GENERAL
            return (_LEAST + likeness * general) * shares[rank] ** 2 * _FARTHER ** order[stack]

        return max((each for each in known if stacks[each[1]]["language"] in usable), key=fit)

    def _form(self, text: str) -> dict[str, float]:
        """Return the stems of code, of which ``text`` is the fragment, with the weight of each.

        The sum of the weights of those in a question is the cosine of both times the length of the question, with stems
        weighted by rarity. Stems of the name of the stack are left out, because they show no form.
        """
        code = decoded(text)
        named = words.words(code["framework"])
        stems = {stem for stem in words.words(code["secure_template"]) if len(stem) > 1}.difference(named)
        squares = {stem: self.rarity(stem) ** 2 for stem in stems}
        length = math.sqrt(math.fsum(squares.values()))
        return {stem: square / length for stem, square in squares.items()}


def decoded(text: str) -> dict[str, Any]:
    """Return the code of which ``text`` is the fragment."""
    code: dict[str, Any] = stdlib.loads(_DECODED % text.encode())["code_pattern"]
    return code


def _owned(code: Mapping[str, Any], owner: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fragment ``code`` with the id of its pattern before its other keys."""
    text = code["text"].replace(_KEYS, _KEYS + owner["text"], 1)
    return {"text": text, "tokens": code["tokens"] + owner["tokens"]}


def _joined(fragments: Sequence[Any]) -> dict[str, Any]:
    """Return one fragment of all ``fragments`` that are not None."""
    present = [each for each in fragments if each is not None]
    return {"text": "".join(each["text"] for each in present), "tokens": sum(each["tokens"] for each in present)}


def _full(pattern: Pattern) -> dict[str, str]:
    texts = pattern["agent_summary"]
    principle = texts.get("principle", texts["fix"])
    shown = {**_names(pattern), "threat": texts["threat"], "check": texts["check"], "principle": principle}
    return shown | _rule(pattern)


def _short(pattern: Pattern) -> dict[str, str]:
    return {**_names(pattern), "check": pattern["agent_summary"]["check"], **_rule(pattern)}


def _rule(pattern: Pattern) -> dict[str, str]:
    rule = house_rule(pattern)
    return {"house_rule": rule} if rule else {}


def _names(pattern: Pattern) -> dict[str, str]:
    return {"id": pattern["id"], "severity": pattern["severity"]}

"""Search: which patterns matter for what somebody is about to write. Deterministic; ties are broken by id.

What is found in a question (concepts, terms, marks and shapes of code) adds up the cues that ask for it; BM25 over the
patterns' text adds a little, and orders where nobody wrote a cue. Whether there is an answer at all is another
question, and it is asked first. All weights are worked out when the index is built (docs/retrieval.md).
"""

from __future__ import annotations

import json
import re

from tmkb.knowledge.retrieval import bm25, spelling, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

ENOUGH = 0.2  # of the best score; what is below it is noise
TEXT = 0.2  # what BM25 weighs beside cues
MANY = 6  # words; longer questions are not general
FULL = 3  # patterns in an answer to a general question
SHOWN = 20_000  # characters of code in which shapes are looked for
UNCURATED, KEYWORD = 4.0, 1.0  # what a keyword weighs: of a pattern without cues of its own, and of one with them
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
EVERY = frozenset(
    ("cues", "keywords", "text", "gate", "code", "pairs", "spelling", "relations")
)  # what can be left out


def build(patterns: Sequence[Pattern], lexicon: dict[str, JsonObject] | None = None) -> dict[str, JsonObject]:
    """The parts that `Index` searches, as JSON; without a ``lexicon``, with the packaged one."""
    from tmkb.knowledge.retrieval import lexicon as lexicons

    values = lexicons.read().values if lexicon is None else lexicon
    compiled = lexicons.Compiled(values)
    numbers = {pattern["id"]: number for number, pattern in enumerate(patterns)}
    cues: dict[str, list[Any]] = {}
    curated: Any = values["cues"].get("patterns", {})
    for id_ in sorted(curated):
        for cue, weight in curated[id_].items():
            first, *rest = (compiled.feature(term) for term in lexicons.parts(cue))
            if id_ in numbers:
                cues.setdefault(str(first), []).append([numbers[id_], weight, rest])
    keywords: dict[str, list[Any]] = {}
    for pattern in patterns:
        weight = KEYWORD if pattern["id"] in curated else UNCURATED
        for keyword in sorted(set(pattern["triggers"]["keywords"])):
            found = keywords.setdefault(str(compiled.feature(keyword.lower())), [])
            if len(found) < bm25.LONGEST:
                found.append([numbers[pattern["id"]], weight])
    code: Any = values["code"]
    told: Any = [{"id": p["id"], "language": p["language"], "framework": p["framework"]} for p in patterns]
    related: Any = [[numbers[r["id"]] for r in p.get("related_patterns", []) if r["id"] in numbers] for p in patterns]
    postings = bm25.postings(patterns)
    scope = _scope(values["scope"], compiled)
    shapes: Any = [
        [compiled.shapes[name], shape["needs"], shape["regex"], compiled.marks.pop(f"#{name}", [])]
        for name, shape in code.get("shapes", {}).items()
        if name in compiled.shapes
    ]
    known = sorted({*compiled.phrases, *(w for ps in compiled.phrases.values() for rest, _ in ps for w in rest)})
    asked: Any = {
        "patterns": told,
        "related": related,
        "postings": packed(postings),
        "phrases": packed(compiled.phrases),
        "marks": packed(compiled.marks),
        "shapes": shapes,
        "boilerplate": sorted({stem for word in code.get("boilerplate", []) for stem in words.words(word)}),
        "cues": packed(cues),
        "keywords": packed(keywords),
        "scope": scope,
    }
    return {"index": asked, "spelling": packed(spelling.build(known)), "names": {"names": list(compiled.names)}}


def _scope(value: JsonObject, compiled: Any) -> JsonObject:
    """What speaks for an answer and against one, by the numbers of what is found."""
    rules: Any = value
    inside = [
        [group["most"], group["weight"], sorted({compiled.feature(term) for term in group["terms"]})]
        for group in rules.get("inside", [])
    ]
    outside: dict[str, list[Any]] = {}
    seen: set[tuple[str, ...]] = set()
    for topic, group in rules.get("outside", {}).items():
        for term in group["terms"]:
            stems = tuple(words.words(term))
            if stems not in seen:  # singular and plural are one word, and count once
                seen.add(stems)
                outside[str(compiled.feature(term.lower()))] = [topic, group["weight"]]
    general = sorted({stem for term in rules.get("general", []) for stem in words.words(term)})
    return {
        "least": rules.get("least", 0),
        "most": rules.get("most", 0),
        "inside": inside,
        "outside": outside,
        "general": general,
    }


def packed(table: Mapping[str, Any]) -> JsonObject:
    """``table`` with its values as texts, in the order of its keys."""
    return {key: _ENCODE(table[key]) for key in sorted(table)}


class Table:
    """A table that was `packed`: a start reads it as texts, and only what a question asks for is taken apart."""

    __slots__ = ("known", "packed")

    def __init__(self, table: Any) -> None:
        self.packed: dict[str, str] = table
        self.known: dict[str, Any] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.packed

    def get(self, key: str, default: Any = ()) -> Any:
        """The value of ``key``, taken apart when it is first asked for."""
        if key not in self.packed:
            return default
        if key not in self.known:
            self.known[key] = json.loads(self.packed[key])
        return self.known[key]


class Question:
    """A question as search sees it: its ``stems`` in order, the ``found`` features, and whether it is ``code``."""

    __slots__ = ("code", "found", "mended", "stems")

    def __init__(self, stems: list[str], found: dict[int, None], code: bool, mended: dict[str, str]) -> None:
        self.stems = stems
        self.found = found
        self.code = code
        self.mended = mended


class Verdict:
    """Whether to answer: what speaks for it (``cues``, ``people``), what is ``needed``, and ``topics`` against it."""

    __slots__ = ("answer", "cues", "needed", "people", "topics")

    def __init__(self, cues: float, people: float, needed: float, topics: dict[str, list[int]], answer: bool) -> None:
        self.cues = cues
        self.people = people
        self.needed = needed
        self.topics = topics
        self.answer = answer


class Index:
    """A built index, ready to be asked; ``use`` names the parts of it that count, for measuring what each is worth."""

    def __init__(self, part: Callable[[str], Any], use: Collection[str] = EVERY) -> None:
        self.part = part
        self.built: Any = part("index")
        self.patterns: Any = self.built["patterns"]
        self.phrases = Table(self.built["phrases"])
        self.marks = Table(self.built["marks"])
        self.postings = Table(self.built["postings"])
        self.cues = Table(self.built["cues"])
        self.keywords = Table(self.built["keywords"])
        self.spellings: Table | None = None
        self.outside = {int(number): topic for number, topic in self.built["scope"]["outside"].items()}
        self.inside = [(most, weight, frozenset(numbers)) for most, weight, numbers in self.built["scope"]["inside"]]
        self.general = frozenset(self.built["scope"]["general"])
        self.boilerplate = frozenset(self.built["boilerplate"])
        self.shapes: Any = None
        self.use = frozenset(use)

    def search(self, context: str, language: str | None = None, framework: str | None = None) -> list[int]:
        """The numbers of the patterns that matter for ``context``, best first; of this language and framework only."""
        question = self.read(context)
        cues = self.cued(question)
        if "gate" in self.use and not self.judge(question, cues).answer:
            return []
        ranked = self.rank(question, cues)
        passing = [number for number in ranked if self._passes(number, language, framework)]
        if "relations" in self.use and passing and len(passing) < FULL and self._is_general(question):
            near = [other for number in passing for other in self.built["related"][number]]
            passing += [n for n in dict.fromkeys(near) if n not in passing and self._passes(n, language, framework)]
            return passing[:FULL]
        return passing

    def read(self, context: str) -> Question:
        """What is found in ``context``."""
        text = context[: words.READ]
        code = "code" in self.use and words.is_code(text)
        stems = [s for s in words.parts(text) if s not in self.boilerplate] if code else words.words(text)
        mended: dict[str, str] = {}
        if "spelling" in self.use and not code:
            stems = [self._mend(stem, mended) for stem in stems]
        found: dict[int, None] = {}
        phrases = self.phrases
        for at, stem in enumerate(stems):
            for rest, numbers in phrases.get(stem, ()):
                if not rest or stems[at + 1 : at + 1 + len(rest)] == rest:
                    found.update(dict.fromkeys(numbers))
        if "code" in self.use and ("_" in text or "(" in text or "@" in text or "/" in text or "=" in text):
            self._read_code(text, found)
        return Question(stems, found, code, mended)

    def _mend(self, stem: str, mended: dict[str, str]) -> str:
        if stem in self.phrases or stem in self.postings or len(stem) < spelling.SHORTEST:
            return stem
        if self.spellings is None:
            self.spellings = Table(self.part("spelling"))
        meant = spelling.nearest(stem, self.spellings)
        if meant != stem:
            mended[stem] = meant
        return meant

    def _read_code(self, text: str, found: dict[int, None]) -> None:
        for mark in sorted(words.marks(text) & self.marks.packed.keys()):
            found.update(dict.fromkeys(self.marks.get(mark)))
        if self.shapes is None:
            self.shapes = [(n, needs, re.compile(regex), also) for n, needs, regex, also in self.built["shapes"]]
        shown = text[:SHOWN]
        for number, needs, regex, also in self.shapes:
            if needs in shown and regex.search(shown):
                found.update(dict.fromkeys([number, *also]))

    def cued(self, question: Question) -> dict[int, float]:
        """Pattern → the weight of its cues that are in ``question``."""
        found = question.found
        scores: dict[int, float] = {}
        pairs = "pairs" in self.use
        if "cues" in self.use:
            for feature in found:
                for number, weight, rest in self.cues.get(str(feature), ()):
                    if not rest or (pairs and all(other in found for other in rest)):
                        scores[number] = scores.get(number, 0.0) + weight
        if "keywords" in self.use:
            for feature in found:
                for number, weight in self.keywords.get(str(feature), ()):
                    scores[number] = scores.get(number, 0.0) + weight
        return scores

    def rank(self, question: Question, cues: dict[int, float]) -> list[int]:
        """The numbers of patterns, best first, but for those that hardly count beside the best."""
        scores = self.scored(question, cues)
        least = ENOUGH * max(scores.values(), default=0.0)
        ordered = sorted((-score, self.patterns[n]["id"], n) for n, score in scores.items() if score >= least > 0)
        return [number for _, _, number in ordered]

    def scored(self, question: Question, cues: dict[int, float]) -> dict[int, float]:
        """Pattern → its cues and its share of BM25."""
        scores = dict(cues)
        if "text" in self.use:
            asked = (stem for stem in dict.fromkeys(question.stems) if stem not in bm25.STOP)
            for number, weight in bm25.scores(self.postings.get, asked).items():
                scores[number] = scores.get(number, 0.0) + TEXT * weight
        return scores

    def judge(self, question: Question, cues: dict[int, float]) -> Verdict:
        """Whether ``question`` is about somebody's rights: its best cues, and its people, against other trades."""
        found = question.found
        people = sum(min(most, weight * len(numbers & found.keys())) for most, weight, numbers in self.inside)
        topics: dict[str, list[int]] = {}
        against = 0.0
        for feature in found:
            if feature in self.outside and not question.code:
                topic, weight = self.outside[feature]
                topics.setdefault(topic, []).append(feature)
                against += weight
        best = min(self.built["scope"]["most"], max(cues.values(), default=0.0))
        needed = self.built["scope"]["least"] + against
        return Verdict(best, people, needed, topics, best + people >= needed)

    def explain(self, context: str, chosen: Sequence[int]) -> JsonObject:
        """Why the ``chosen`` patterns are the answer to ``context``; without any, why not, and what came nearest."""
        names: Any = self.part("names")["names"]
        question = self.read(context)
        cues = self.cued(question)
        verdict = self.judge(question, cues)
        scores = self.scored(question, cues)
        shown = [*chosen] or self.rank(question, cues)[:FULL]
        told: Any = [
            {
                "id": self.patterns[number]["id"],
                "score": round(scores.get(number, 0.0), 2),
                "cues": [
                    {"cue": " + ".join(names[feature] for feature in features), "weight": weight}
                    for weight, features in self._reasons(question, number)
                ],
                "text": round(scores.get(number, 0.0) - cues.get(number, 0.0), 2),
                "related": number not in cues and bool(chosen),
            }
            for number in shown
        ]
        against: Any = {topic: [names[n] for n in features] for topic, features in verdict.topics.items()}
        mended: Any = question.mended
        return {
            "answered": verdict.answer,
            "code": question.code,
            "found": [names[feature] for feature in question.found],
            "mended": mended,
            "for": {"cues": round(verdict.cues, 2), "people": round(verdict.people, 2)},
            "needed": round(verdict.needed, 2),
            "against": against,
            "patterns" if chosen else "nearest": told,
        }

    def _reasons(self, question: Question, number: int) -> list[tuple[float, list[int]]]:
        """The cues of a pattern that are in ``question``, the heaviest first."""
        found = question.found
        reasons = [
            (weight, [feature, *rest])
            for feature in found
            for other, weight, rest in self.cues.get(str(feature), ())
            if other == number and all(each in found for each in rest)
        ]
        reasons += [
            (weight, [feature])
            for feature in found
            for other, weight in self.keywords.get(str(feature), ())
            if other == number
        ]
        return sorted(reasons, key=lambda reason: -abs(reason[0]))

    def _is_general(self, question: Question) -> bool:
        return len(question.stems) <= MANY and all(stem in self.general for stem in question.stems)

    def _passes(self, number: int, language: str | None, framework: str | None) -> bool:
        told = self.patterns[number]
        return _fits(told["language"], language) and _fits(told["framework"], framework)


def _fits(has: str, wanted: str | None) -> bool:
    return wanted in (None, "any", has) or has == "any"

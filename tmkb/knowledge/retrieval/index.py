"""Search patterns for a question. Results are deterministic; ties are broken by id.

A question contains features: concepts, terms, marks and shapes of code. The score of a pattern is the weight of its
cues, which are combinations of features, plus a share of its BM25 score. Before that, the gate decides independently
whether to answer at all. All weights are computed when the index is built (docs/retrieval.md).
"""

from __future__ import annotations

import json
import re
from collections import namedtuple

from tmkb.knowledge.retrieval import bm25, spelling, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

MIN_SHARE = 0.2  # of the best score; lower scores are noise
TEXT = 0.2  # weight of BM25 in relation to cues
MAX_GENERAL = 6  # words of a general question
FULL = 3  # patterns in an answer to a general question
MAX_SHAPED = 20_000  # characters of code in which shapes are searched
UNCURATED, KEYWORD = 4.0, 1.0  # weight of a keyword of a pattern without cues, and of one with cues
EVERY = frozenset(("cues", "keywords", "text", "gate", "code", "pairs", "spelling", "relations"))  # parts of search
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

Question = namedtuple("Question", "stems features is_code corrections")
Verdict = namedtuple("Verdict", "is_answered cues people needed topics")


def build(patterns: Sequence[Pattern], lexicon: dict[str, JsonObject] | None = None) -> dict[str, JsonObject]:
    """Return the parts that `Index` searches, as JSON. The default lexicon is the packaged one."""
    from tmkb.knowledge.retrieval import lexicon as lexicons

    values = lexicons.read().values if lexicon is None else lexicon
    compiler = lexicons.Compiler(values)
    numbers = {pattern["id"]: number for number, pattern in enumerate(patterns)}
    cues: dict[str, list[Any]] = {}
    curated: Any = values["cues"].get("patterns", {})
    for id_ in sorted(curated):
        for cue, weight in curated[id_].items():
            first, *rest = (compiler.feature(term) for term in lexicons.parts(cue))
            if id_ in numbers:
                cues.setdefault(str(first), []).append([numbers[id_], weight, rest])
    keywords: dict[str, list[Any]] = {}
    for number, pattern in enumerate(patterns):
        weight = KEYWORD if pattern["id"] in curated else UNCURATED
        for keyword in sorted(set(pattern["triggers"]["keywords"])):
            rows = keywords.setdefault(str(compiler.feature(keyword.lower())), [])
            if len(rows) < bm25.MAX_POSTINGS:
                rows.append([number, weight])
    code: Any = values["code"]
    facts: Any = [{"id": p["id"], "language": p["language"], "framework": p["framework"]} for p in patterns]
    related: Any = [[numbers[r["id"]] for r in p.get("related_patterns", []) if r["id"] in numbers] for p in patterns]
    scope = _scope(values["scope"], compiler)
    shapes: Any = [
        [compiler.shapes[name], shape["needs"], shape["regex"], compiler.marks.pop(f"#{name}", [])]
        for name, shape in code.get("shapes", {}).items()
        if name in compiler.shapes
    ]
    phrases = compiler.phrases
    known = sorted({*phrases, *(word for each in phrases.values() for rest, _ in each for word in rest)})
    index: Any = {
        "patterns": facts,
        "related": related,
        "postings": _packed(bm25.postings(patterns)),
        "phrases": _packed(phrases),
        "marks": _packed(compiler.marks),
        "shapes": shapes,
        "boilerplate": sorted({stem for word in code.get("boilerplate", []) for stem in words.words(word)}),
        "cues": _packed(cues),
        "keywords": _packed(keywords),
        "scope": scope,
    }
    return {"index": index, "spelling": _packed(spelling.build(known)), "names": {"names": list(compiler.names)}}


def _scope(rules: Any, compiler: Any) -> JsonObject:
    """Return the rules of the gate, with features instead of terms."""
    inside = [
        [group["most"], group["weight"], sorted({compiler.feature(term) for term in group["terms"]})]
        for group in rules.get("inside", [])
    ]
    outside: dict[str, list[Any]] = {}
    seen: set[tuple[str, ...]] = set()
    for topic, group in rules.get("outside", {}).items():
        for term in group["terms"]:
            stems = tuple(words.words(term))
            if stems not in seen:  # singular and plural count once
                seen.add(stems)
                outside[str(compiler.feature(term.lower()))] = [topic, group["weight"]]
    general: Any = sorted({stem for term in rules.get("general", []) for stem in words.words(term)})
    least, most = rules.get("least", 0), rules.get("most", 0)
    return {"least": least, "most": most, "inside": inside, "outside": outside, "general": general}


def _packed(table: Mapping[str, Any]) -> JsonObject:
    """Return ``table`` sorted by key, with each value encoded as text."""
    return {key: _ENCODE(table[key]) for key in sorted(table)}


class Table:
    """A table whose values are decoded at first use, so that a start does not decode all of them."""

    def __init__(self, packed: Any) -> None:
        self.packed: dict[str, str] = packed
        self.decoded: dict[str, Any] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.packed

    def get(self, key: str, default: Any = ()) -> Any:
        """Return the decoded value of ``key``."""
        if key not in self.packed:
            return default
        if key not in self.decoded:
            self.decoded[key] = json.loads(self.packed[key])
        return self.decoded[key]


class Index:
    """A search index. ``use`` names the parts of search that count, to measure the effect of each."""

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
        """Return the numbers of the patterns that match ``context`` and the filters, best first."""
        question = self.read(context)
        cues = self.cue_scores(question)
        if "gate" in self.use and not self.judge(question, cues).is_answered:
            return []
        ranked = self.rank(self.scores(question, cues))
        passing = [number for number in ranked if self._passes(number, language, framework)]
        if "relations" in self.use and passing and len(passing) < FULL and self._is_general(question):
            related = [other for number in passing for other in self.built["related"][number]]
            passing += [n for n in dict.fromkeys(related) if n not in passing and self._passes(n, language, framework)]
            return passing[:FULL]
        return passing

    def read(self, context: str) -> Question:
        """Return the features of ``context``, with its stems in order and their corrected spelling."""
        text = context[: words.MAX_CHARACTERS]
        is_code = "code" in self.use and words.is_code(text)
        stems = [s for s in words.parts(text) if s not in self.boilerplate] if is_code else words.words(text)
        corrections: dict[str, str] = {}
        if "spelling" in self.use and not is_code:
            stems = [self._correct(stem, corrections) for stem in stems]
        features: dict[int, None] = {}
        phrases = self.phrases
        for at, stem in enumerate(stems):
            for rest, numbers in phrases.get(stem, ()):
                if not rest or stems[at + 1 : at + 1 + len(rest)] == rest:
                    features.update(dict.fromkeys(numbers))
        if "code" in self.use and any(sign in text for sign in "_(@/="):
            self._read_code(text, features)
        return Question(stems, features, is_code, corrections)

    def _correct(self, stem: str, corrections: dict[str, str]) -> str:
        if stem in self.phrases or stem in self.postings or len(stem) < spelling.MIN_LENGTH:
            return stem
        if self.spellings is None:
            self.spellings = Table(self.part("spelling"))
        corrected = spelling.nearest(stem, self.spellings)
        if corrected != stem:
            corrections[stem] = corrected
        return corrected

    def _read_code(self, text: str, features: dict[int, None]) -> None:
        for mark in sorted(words.marks(text) & self.marks.packed.keys()):
            features.update(dict.fromkeys(self.marks.get(mark)))
        if self.shapes is None:
            self.shapes = [(n, needs, re.compile(regex), also) for n, needs, regex, also in self.built["shapes"]]
        sample = text[:MAX_SHAPED]
        for number, needs, regex, also in self.shapes:
            if needs in sample and regex.search(sample):
                features.update(dict.fromkeys([number, *also]))

    def cue_scores(self, question: Question) -> dict[int, float]:
        """Return the weight of the cues and keywords in ``question``, by pattern."""
        features = question.features
        by_pattern: dict[int, float] = {}
        pairs = "pairs" in self.use
        if "cues" in self.use:
            for feature in features:
                for number, weight, rest in self.cues.get(str(feature), ()):
                    if not rest or (pairs and all(other in features for other in rest)):
                        by_pattern[number] = by_pattern.get(number, 0.0) + weight
        if "keywords" in self.use:
            for feature in features:
                for number, weight in self.keywords.get(str(feature), ()):
                    by_pattern[number] = by_pattern.get(number, 0.0) + weight
        return by_pattern

    def scores(self, question: Question, cues: dict[int, float]) -> dict[int, float]:
        """Return ``cues`` plus the share of BM25, by pattern."""
        by_pattern = dict(cues)
        if "text" in self.use:
            stems = (stem for stem in dict.fromkeys(question.stems) if stem not in bm25.STOP)
            for number, weight in bm25.scores(self.postings.get, stems).items():
                by_pattern[number] = by_pattern.get(number, 0.0) + TEXT * weight
        return by_pattern

    def rank(self, scores: dict[int, float]) -> list[int]:
        """Return the patterns in ``scores``, best first, without those far below the best."""
        least = MIN_SHARE * max(scores.values(), default=0.0)
        ordered = sorted((-score, self.patterns[n]["id"], n) for n, score in scores.items() if score >= least > 0)
        return [number for _, _, number in ordered]

    def judge(self, question: Question, cues: dict[int, float]) -> Verdict:
        """Decide whether to answer: compare the best cues and words for people with words of other topics."""
        features = question.features
        people = sum(min(most, weight * len(numbers & features.keys())) for most, weight, numbers in self.inside)
        topics: dict[str, list[int]] = {}
        against = 0.0
        for feature in () if question.is_code else features:
            if feature in self.outside:
                topic, weight = self.outside[feature]
                topics.setdefault(topic, []).append(feature)
                against += weight
        best = min(self.built["scope"]["most"], max(cues.values(), default=0.0))
        needed = self.built["scope"]["least"] + against
        return Verdict(best + people >= needed, best, people, needed, topics)

    def explain(self, context: str, chosen: Sequence[int]) -> JsonObject:
        """Explain why the patterns ``chosen`` answer ``context``; without any, why not, with the nearest patterns."""
        names: Any = self.part("names")["names"]
        question = self.read(context)
        cues = self.cue_scores(question)
        verdict = self.judge(question, cues)
        scores = self.scores(question, cues)
        patterns: Any = [
            {
                "id": self.patterns[number]["id"],
                "score": round(scores.get(number, 0.0), 2),
                "cues": [
                    {"cue": " + ".join(names[feature] for feature in features), "weight": weight}
                    for weight, features in self._cues_of(number, question)
                ],
                "text": round(scores.get(number, 0.0) - cues.get(number, 0.0), 2),
                "related": number not in cues and bool(chosen),
            }
            for number in [*chosen] or self.rank(scores)[:FULL]
        ]
        against: Any = {topic: [names[n] for n in features] for topic, features in verdict.topics.items()}
        return {
            "answered": verdict.is_answered,
            "code": question.is_code,
            "features": [names[feature] for feature in question.features],
            "corrections": question.corrections,
            "for": {"cues": round(verdict.cues, 2), "people": round(verdict.people, 2)},
            "needed": round(verdict.needed, 2),
            "against": against,
            "patterns" if chosen else "nearest": patterns,
        }

    def _cues_of(self, number: int, question: Question) -> list[tuple[float, list[int]]]:
        """Return the weights and features of the cues of a pattern in ``question``, the heaviest first."""
        features = question.features
        cues = [
            (weight, [feature, *rest])
            for feature in features
            for other, weight, rest in self.cues.get(str(feature), ())
            if other == number and all(each in features for each in rest)
        ]
        cues += [
            (weight, [feature])
            for feature in features
            for other, weight in self.keywords.get(str(feature), ())
            if other == number
        ]
        return sorted(cues, key=lambda cue: -abs(cue[0]))

    def _is_general(self, question: Question) -> bool:
        return len(question.stems) <= MAX_GENERAL and all(stem in self.general for stem in question.stems)

    def _passes(self, number: int, language: str | None, framework: str | None) -> bool:
        pattern = self.patterns[number]
        filters = ((pattern["language"], language), (pattern["framework"], framework))
        return all(wanted in (None, "any", value) or value == "any" for value, wanted in filters)

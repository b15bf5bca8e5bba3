"""Search patterns for a question. Results are deterministic; ties are broken by id.

Patterns that a model was trained on get their scores from it, all others from centroids, and those with questions of an
organization the higher of both. Then the gate decides whether
to answer at all. Scores become probabilities; a second or third pattern that is probably irrelevant is not shown.
"""

from __future__ import annotations

import math
import os
import zlib

from tmkb.errors import Problem, SpecError
from tmkb.knowledge.retrieval import centroids, words
from tmkb.knowledge.retrieval.model import Model
from tmkb.schema import paths
from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

FILE = os.path.join("_questions", "model.bin")  # beside the folders of patterns
REVIEW_FILE = os.path.join("_questions", "review.bin")  # the model of reviews
_UNCOMPRESSED = b"{"  # a model begins with its facts
SHOWN = 8  # features of an explanation, for and against each
NEAREST = 3  # patterns that explain an empty result


@record
class Scored:
    """The probability that there is an answer, scores by pattern number, and the patterns that may be shown."""

    answer: float
    scores: dict[int, float]
    shown: set[int]


def path(folders: Sequence[str], file: str = FILE) -> str:
    """Return the ``file`` of the model for patterns in ``folders``: that of the last one that has a model, or ours."""
    own = (os.path.join(folder, file) for folder in reversed(folders))
    return next(filter(os.path.isfile, own), os.path.join(paths.PATTERNS, file))


def build(
    patterns: Sequence[Pattern], model: str, contexts: Callable[[list[str]], Mapping[str, Sequence[str]]]
) -> dict[str, JsonObject]:
    """Return the parts that `Index` searches, as JSON.

    Args:
        patterns: what is searched.
        model: the path of its file.
        contexts: reads the questions of patterns that the model does not know, by id.
    """
    trained = read(model)
    known = {*trained.facts["patterns"]}
    others = {number: pattern for number, pattern in enumerate(patterns) if pattern["id"] not in known}
    asked = contexts([pattern["id"] for pattern in others.values()])
    samples = {number: centroids.of(pattern, asked.get(pattern["id"], ())) for number, pattern in others.items()}
    for number, pattern in enumerate(patterns):
        if questions := pattern.get("house", {}).get("questions"):
            samples[number] = [*samples.get(number, []), *questions]
    facts: Any = [{"id": p["id"], "language": p["language"], "framework": p["framework"]} for p in patterns]
    packed = centroids.build(samples, lambda feature: _rarity(trained, feature)) if samples else {}
    return {"index": {"patterns": facts, "model": model}, "model": {"path": None}, "centroids": packed}


def uncompressed(path: str) -> dict[str, bytes]:
    """Return the content of a compressed model as the file `model` for `Prepared`: the first question needs it."""
    packed = _bytes(path)
    return {} if packed.startswith(_UNCOMPRESSED) else {"model": _unpacked(packed)}


def read(path: str) -> Model:
    """Read the file of a model, which can be compressed by zlib. Raises SpecError."""
    try:
        return Model(_unpacked(_bytes(path)))
    except (OSError, LookupError, ValueError, zlib.error) as error:
        raise SpecError([bad_model(path, str(error))]) from error


def _mapped(path: str) -> Model | None:
    """Return the uncompressed model of a file that no process changes; None if there is none.

    A question needs a few pages of it, and processes share them.
    """
    import mmap

    try:
        with open(path, "rb") as file:
            return Model(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, LookupError, ValueError):  # deleted, empty or damaged
        return None


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _unpacked(packed: bytes) -> bytes:
    return packed if packed.startswith(_UNCOMPRESSED) else zlib.decompress(packed)


def bad_model(path: str, reason: str) -> Problem:
    """Return the problem of a model that cannot be used."""
    return Problem("bad_model", paths.shown(path), reason=reason, folder=folder_of(path))


def folder_of(path: str) -> str:
    """Return the argument of ``--patterns`` for the folder whose model is ``path``."""
    folder = os.path.dirname(os.path.dirname(path))
    return "packaged" if folder == paths.PATTERNS else paths.shown(folder)


def _rarity(model: Model, feature: str) -> float:
    """Return the rarity of ``feature``, which for an unknown one is that of a feature seen once."""
    rarest: float = model.facts["calibration"]["rarest"]
    return model.rarity(feature) or rarest


class Index:
    """A search index. The model is read at the first question."""

    def __init__(self, part: Callable[[str], Any]) -> None:
        self.part = part
        self.patterns: Any = part("index")["patterns"]
        self._model: Model | None = None
        self._outputs: list[tuple[int, int]] = []
        self._centroids = centroids.Table({})

    @property
    def model(self) -> Model:
        """The trained model."""
        if self._model is None:
            kept = self.part("model")["path"]
            self._model = model = (kept and _mapped(kept)) or read(self.part("index")["model"])
            outputs = {id_: output for output, id_ in enumerate(model.facts["patterns"])}
            self._outputs = [(n, outputs[p["id"]]) for n, p in enumerate(self.patterns) if p["id"] in outputs]
            self._centroids = centroids.Table(self.part("centroids"))
        return self._model

    def search(self, context: str, language: str | None = None, framework: str | None = None) -> list[int]:
        """Return the numbers of the patterns that match ``context`` and the filters, best first."""
        return [n for n in self.matches(context) if self._passes(n, language, framework)]

    def matches(self, context: str) -> dict[int, float]:
        """Return the numbers of the patterns that match ``context``, best first, with their scores."""
        scored = self.score(context)
        calibration = self.model.facts["calibration"]
        if not scored.shown or scored.answer < calibration["answered"]:
            return {}
        slope, intercept = calibration["relevant"]
        shown = (math.log(calibration["shown"] / (1 - calibration["shown"])) - intercept) / slope
        least = min(shown, max(scored.scores[number] for number in scored.shown))
        return {number: scored.scores[number] for number in self.rank(scored, least) if number in scored.shown}

    def score(self, context: str) -> Scored:
        """Return the probability that ``context`` has an answer, and the score of each pattern."""
        model = self.model
        calibration = model.facts["calibration"]
        outputs = model.scores(context)
        scores = {number: outputs[output] for number, output in self._outputs}
        gate = logistic(calibration["gate"], outputs[-1] + calibration["best"] * max(outputs[:-1]))
        answer, shown = gate if scores else 0.0, {*scores}
        if self._centroids.packed:
            question = centroids.unit(words.features(context), lambda feature: _rarity(model, feature))
            slope, intercept = calibration["centroid"]
            cosines = centroids.cosines(self._centroids, question)
            answer = max(answer, self._gate_of_centroids(max(cosines.values(), default=0.0)))
            least = -calibration["own"][1] / calibration["own"][0]  # from which on a pattern is probably meant
            shown |= {number for number, cosine in cosines.items() if cosine >= least}
            for number, cosine in cosines.items():
                own = slope * cosine + intercept
                known = scores.get(number, own)  # of a pattern of the model with questions of the house
                scores[number] = max(known, own) if cosine >= least else known
        return Scored(answer, scores, shown)

    def _gate_of_centroids(self, cosine: float) -> float:
        """Return the probability of an answer for the best cosine, so that one half opens the gate of the model."""
        calibration = self.model.facts["calibration"]
        probability, needed = logistic(calibration["own"], cosine), calibration["answered"]
        return float(2 * probability * needed if probability < 0.5 else 1 - 2 * (1 - probability) * (1 - needed))

    def rank(self, scored: Scored, least: float = -math.inf) -> list[int]:
        """Return the numbers of the patterns whose score is at least ``least``, best first."""
        order = [(-round(score, 9), self.patterns[n]["id"], n) for n, score in scored.scores.items() if score >= least]
        return [number for _, _, number in sorted(order)]

    def probability(self, score: float) -> float:
        """Return the probability that a pattern with ``score`` belongs among the three that are shown."""
        return logistic(self.model.facts["calibration"]["relevant"], score)

    def rarity(self, feature: str) -> float:
        """Return the inverse document frequency of ``feature``; for an unknown one, that of a feature seen once."""
        return _rarity(self.model, feature)

    def explain(self, context: str, chosen: Sequence[int]) -> JsonObject:
        """Explain why the patterns ``chosen`` answer ``context``; without any, why not, with the nearest patterns."""
        scored = self.score(context)
        outputs = dict(self._outputs)
        patterns: Any = [
            {
                "id": self.patterns[number]["id"],
                "score": round(scored.scores[number], 3),
                "probability": round(self.probability(scored.scores[number]), 3),
                **(self._reasons(context, outputs[number]) if number in outputs else self._shared(context, number)),
            }
            for number in [*chosen] or self.rank(scored)[:NEAREST]
        ]
        return {
            "answered": bool(chosen),
            "probability": round(scored.answer, 3),
            "needed": self.model.facts["calibration"]["answered"],
            **self._reasons(context, -1),
            "patterns" if chosen else "nearest": patterns,
        }

    def _reasons(self, context: str, output: int) -> dict[str, Any]:
        """Return the features of ``context`` that count most for and against ``output``, with their weights."""
        model = self.model
        weights: dict[str, float] = {}
        for numbers in model.known(context):
            length = model.length(numbers)
            weights |= {model.name(n): round(model.sums([n])[output] * model.length([n]) / length, 3) for n in numbers}
        ordered = sorted(weights, key=lambda name: (-abs(weights[name]), name))
        strong = {sign: [name for name in ordered if weights[name] * sign > 0][:SHOWN] for sign in (1, -1)}
        return {
            key: [{"feature": name, "weight": weights[name]} for name in strong[sign]]
            for key, sign in (("for", 1), ("against", -1))
        }

    def _shared(self, context: str, number: int) -> dict[str, Any]:
        """Return the features of ``context`` that a centroid shares, with their weights."""
        slope = self.model.facts["calibration"]["centroid"][0]
        question = centroids.unit(words.features(context), self.rarity)
        weights = {
            name: round(slope * centroids.cosines(self._centroids, {name: weight}).get(number, 0.0), 3)
            for name, weight in question.items()
        }
        strong = sorted((name for name in weights if weights[name] > 0), key=lambda name: (-weights[name], name))
        return {"for": [{"feature": name, "weight": weights[name]} for name in strong[:SHOWN]], "against": []}

    def _passes(self, number: int, language: str | None, framework: str | None) -> bool:
        pattern = self.patterns[number]
        filters = ((pattern["language"], language), (pattern["framework"], framework))
        return all(wanted in (None, "any", value) or value == "any" for value, wanted in filters)


def logistic(line: Sequence[float], value: float) -> float:
    """Return the logistic function of slope ⋅ value + intercept; ``line``: slope and intercept."""
    slope, intercept = line
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, slope * value + intercept))))

"""How good answers to judged questions are, with what chance alone explains of it.

A judged question has grades for the patterns that it is about (3: what it is about, 2: belongs among the three shown,
1: useful); without any, the right answer is none. Extra patterns behind the third are ignored.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

SHOWN = 3
ROUNDS = 1000  # samples drawn for an interval
NAMES = ("ndcg", "recall", "mrr", "first")


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The questions of a file of JSON lines. Raises ValueError for one without an id or a text."""
    found = [json.loads(line) for line in lines if line.strip()]
    for number, question in enumerate(found, 1):
        if not isinstance(question, dict) or not {"id", "context", "relevant"} <= question.keys():
            raise ValueError(f"question {number} lacks id, context or relevant")
    if not found:
        raise ValueError("it has no questions")
    return found


def score(relevant: Mapping[str, int], ids: Sequence[str]) -> dict[str, float]:
    """The measures of one answer to a question that has one."""
    grades = [relevant.get(id_, 0) for id_ in dict.fromkeys(ids)][:SHOWN]
    ideal = _gain(sorted(relevant.values(), reverse=True)[:SHOWN])
    strong = {id_ for id_, grade in relevant.items() if grade >= 2}
    return {
        "ndcg": _gain(grades) / ideal,
        "recall": len(strong & set(ids[:SHOWN])) / len(strong) if strong else 0.0,
        "mrr": next((1 / (rank + 1) for rank, grade in enumerate(grades) if grade >= 2), 0.0),
        "first": 1.0 if grades and grades[0] >= 2 else 0.0,
    }


def judge(questions: Sequence[Mapping[str, Any]], answer: Callable[[Mapping[str, Any]], list[str]]) -> dict[str, Any]:
    """All measures by kind of question, their intervals, and the misses, the worst first."""
    kinds: dict[str, list[dict[str, float]]] = {}
    silent: list[float] = []
    misses: list[dict[str, Any]] = []
    for question in questions:
        ids = answer(question)
        told = {"id": question["id"], "context": question["context"], "relevant": question["relevant"], "got": ids[:3]}
        if question["relevant"]:
            found = score(question["relevant"], ids)
            kinds.setdefault(question.get("kind", "other"), []).append(found)
            misses += [{**told, "ndcg": round(found["ndcg"], 3)}] if found["ndcg"] < 0.999 else []
        else:
            silent.append(float(bool(ids)))
            misses += [{**told, "ndcg": 0.0}] if ids else []
    every = [found for group in kinds.values() for found in group]
    return {
        "kinds": {kind: _row(kinds[kind]) for kind in sorted(kinds)},
        "all": _row(every),
        "negatives": {"n": len(silent), "answered": _mean(silent), "interval": interval(silent)},
        "misses": sorted(misses, key=lambda miss: (miss["ndcg"], miss["id"])),
    }


def interval(values: Sequence[float]) -> list[float]:
    """Where the mean would lie in 95 of 100 other draws of such questions (bootstrap, with a fixed seed)."""
    if not values:
        return [0.0, 0.0]
    draw = random.Random(len(values))
    means = sorted(_mean(draw.choices(values, k=len(values))) for _ in range(ROUNDS))
    return [round(means[int(ROUNDS * at)], 3) for at in (0.025, 0.975)]


def _row(found: Sequence[dict[str, float]]) -> dict[str, Any]:
    means = {name: _mean([each[name] for each in found]) for name in NAMES}
    return {"n": len(found), **means, "interval": interval([each["ndcg"] for each in found])}


def _gain(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0

"""Score retrieval on a labelled query set, with confidence intervals.

A query grades its relevant patterns (3: the topic, 2: belongs among the three that are shown, 1: useful). A query
without grades is a negative: no pattern should be returned. Patterns after the third are ignored.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

MAX_SHOWN = 3
SAMPLES = 1000  # of the bootstrap
NAMES = ("ndcg", "recall", "mrr", "first")


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the queries of a JSON Lines file. Raises ValueError if one lacks a key, or there are none."""
    queries = [json.loads(line) for line in lines if line.strip()]
    for number, query in enumerate(queries, 1):
        if not isinstance(query, dict) or not {"id", "context", "relevant"} <= query.keys():
            raise ValueError(f"question {number} lacks id, context or relevant")
    if not queries:
        raise ValueError("it has no questions")
    return queries


def score(relevant: Mapping[str, int], ids: Sequence[str]) -> dict[str, float]:
    """Return the metrics of the patterns ``ids`` for one query with the grades ``relevant``."""
    grades = [relevant.get(id_, 0) for id_ in dict.fromkeys(ids)][:MAX_SHOWN]
    ideal = _gain(sorted(relevant.values(), reverse=True)[:MAX_SHOWN])
    strong = {id_ for id_, grade in relevant.items() if grade >= 2}
    return {
        "ndcg": _gain(grades) / ideal,
        "recall": len(strong & set(ids[:MAX_SHOWN])) / len(strong) if strong else 0.0,
        "mrr": next((1 / (rank + 1) for rank, grade in enumerate(grades) if grade >= 2), 0.0),
        "first": 1.0 if grades and grades[0] >= 2 else 0.0,
    }


def evaluate(queries: Sequence[Mapping[str, Any]], answer: Callable[[Mapping[str, Any]], list[str]]) -> dict[str, Any]:
    """Return the metrics by kind of query with their intervals, and the misses, the worst first."""
    kinds: dict[str, list[dict[str, float]]] = {}
    negatives: list[float] = []
    misses: list[dict[str, Any]] = []
    for query in queries:
        ids = answer(query)
        if query["relevant"]:
            scores = score(query["relevant"], ids)
            kinds.setdefault(query.get("kind", "other"), []).append(scores)
            ndcg, is_miss = round(scores["ndcg"], 3), scores["ndcg"] < 0.999
        else:
            negatives.append(float(bool(ids)))
            ndcg, is_miss = 0.0, bool(ids)
        if is_miss:
            misses.append({**{key: query[key] for key in ("id", "context", "relevant")}, "got": ids[:3], "ndcg": ndcg})
    every = [scores for group in kinds.values() for scores in group]
    return {
        "kinds": {kind: _row(kinds[kind]) for kind in sorted(kinds)},
        "all": _row(every),
        "negatives": {"n": len(negatives), "answered": _mean(negatives), "interval": interval(negatives)},
        "misses": sorted(misses, key=lambda miss: (miss["ndcg"], miss["id"])),
    }


def interval(values: Sequence[float]) -> list[float]:
    """Return the 95 % confidence interval of the mean (bootstrap with a fixed seed)."""
    if not values:
        return [0.0, 0.0]
    draw = random.Random(len(values))
    means = sorted(_mean(draw.choices(values, k=len(values))) for _ in range(SAMPLES))
    return [round(means[int(SAMPLES * at)], 3) for at in (0.025, 0.975)]


def _row(scores: Sequence[dict[str, float]]) -> dict[str, Any]:
    means = {name: _mean([each[name] for each in scores]) for name in NAMES}
    return {"n": len(scores), **means, "interval": interval([each["ndcg"] for each in scores])}


def _gain(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0

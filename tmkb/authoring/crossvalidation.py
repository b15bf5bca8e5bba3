"""Measure retrieval on authors that were held out, and report it as Markdown.

Each author's questions are answered by a model, and with thresholds, that were trained without them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tmkb.authoring import bm25, metrics, training
from tmkb.authoring.training import Array
from tmkb.knowledge.pattern import Pattern
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import index

_VERB = "(Get|Post|Put|Patch|Delete)"
FRAMEWORKS = {
    "Express": r"\bexpress\b|\b(app|router)\.(get|post|put|patch|delete)\(|\breq\.(body|params|query|user)\b",
    "Next.js": r"\bnext\.?js\b|\bNext(Response|Request)\b|\b(pages/api/|app/api/.*route\.ts)|server action",
    "Rails": r"\b(rails|sidekiq|pundit|before_action|ActiveRecord)\b|\bparams\[:|app/controllers/|_controller\.rb",
    "Spring": rf"\bspring\b|@PreAuthorize|@{_VERB}Mapping|@(PathVariable|RestController)|JpaRepository",
    "Go": r"\b(gin|gorm|golang|echo\.Context|http\.HandlerFunc)\b|^func |\bGo (service|handler)\b|\bchi\b router",
    "ASP.NET": rf"asp\.net|\bEF Core\b|\[Http{_VERB}|\[(Authorize|FromBody)|IActionResult|\bDbContext\b|\.NET\b",
    "Laravel": r"\b(laravel|eloquent|artisan|FormRequest)\b|\bRoute::|\$request->",
    "NestJS": r"\bnest\.?js\b|@UseGuards|@(Controller|Injectable|Param)\(",
    "Supabase": r"\bsupabase\b",
    "GraphQL": r"\b(graphql|resolvers?|apollo|hasura)\b",
}
CURVE = (1, 2, 4, 8)  # authors that the learning curve is trained on
PAIRS = 15  # confused patterns that are listed
BINS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # of probabilities

Groups = list[tuple[str, list[int]]]
Answer = Callable[[int], list[str]]


def answers(held: Array, questions: Sequence[Question], ids: Sequence[str]) -> dict[int, list[str]]:
    """Return the answer to each question that was held out, with thresholds from the other authors."""
    found: dict[int, list[str]] = {}
    names = np.array([question.author for question in questions])
    measured = ~np.isnan(held[:, -1])
    for author in sorted({*names[measured].tolist()}):
        others: list[int] = np.flatnonzero(measured & (names != author)).tolist()
        limits = training.thresholds(held[others], [questions[at] for at in others], ids)
        for at in np.flatnonzero(names == author).tolist():
            found[at] = _answer(held[at], ids, limits)
    return found


def _answer(scores: Array, ids: Sequence[str], limits: Mapping[str, Any]) -> list[str]:
    if index.logistic(limits["gate"], scores[-1]) < limits["answered"]:
        return []
    best, *others = np.argsort(-scores[:-1], kind="stable")[: metrics.MAX_SHOWN]
    shown = [at for at in others if index.logistic(limits["relevant"], scores[at]) >= limits["shown"]]
    return [ids[at] for at in [best, *shown]]


def report(questions: Sequence[Question], patterns: Sequence[Pattern]) -> str:
    """Return the report as Markdown. Training a model for each group of authors takes minutes."""
    ids = [pattern["id"] for pattern in patterns]
    held = training.folds(questions, patterns)
    found = answers(held, questions, ids)
    every = [*found]
    ranked = bm25.ranking(patterns)

    def ours(at: int) -> list[str]:
        return found[at]

    def theirs(at: int) -> list[str]:
        return ranked(questions[at].context)[: metrics.MAX_SHOWN]

    measured = [questions[at] for at in every]
    lines = [
        f"{len(measured)} questions of {len({q.author for q in measured})} authors, "
        f"{sum(not q.grades for q in measured)} of them negatives; "
        f"{training.GROUPS} groups of authors were held out in turn.",
        "",
        *_table("", [("all", every)], questions, ours),
        *_table("BM25, without a gate", [("all", every)], questions, theirs),
        *_table(
            "Kind", _groups(every, lambda at: [questions[at].kind] if questions[at].grades else []), questions, ours
        ),
        *_table("Language", _groups(every, lambda at: [questions[at].language]), questions, ours),
        *_table("Framework", _groups(every, lambda at: _frameworks(questions[at])), questions, ours),
        *_table("Author", _groups(every, lambda at: [questions[at].author]), questions, ours),
        *_curve(questions, patterns),
        *_calibration(held, questions, ids),
        *_confusions(found, questions),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _groups(every: Iterable[int], names: Callable[[int], Iterable[str]]) -> Groups:
    found: dict[str, list[int]] = {}
    for at in every:
        for name in names(at):
            found.setdefault(name, []).append(at)
    return sorted(found.items())


def _frameworks(question: Question) -> list[str]:
    return [name for name, sign in FRAMEWORKS.items() if re.search(sign, question.context, re.I | re.M)]


def _table(
    title: str, groups: Groups, questions: Sequence[Question], answer: Callable[[int], list[str]]
) -> Iterator[str]:
    """Yield a table of scores, one row for each group of question numbers."""
    yield f"| {title} | questions | nDCG@3 | 95 % | recall@3 | first is right | negatives | answered | 95 % |"
    yield "|---|--:|--:|---|--:|--:|--:|--:|---|"
    for name, numbers in groups:
        positive = [questions[at].grades for at in numbers if questions[at].grades]
        scores = [metrics.score(questions[at].grades, answer(at)) for at in numbers if questions[at].grades]
        strong = [each for each, grades in zip(scores, positive, strict=True) if max(grades.values()) >= 2]
        wrong = [float(bool(answer(at))) for at in numbers if not questions[at].grades]
        cells = [str(len(scores)), *_cells([each["ndcg"] for each in scores])]
        cells += [_mean([each["recall"] for each in strong]), _mean([each["first"] for each in strong])]
        yield f"| {name} | {' | '.join([*cells, str(len(wrong)), *_cells(wrong)])} |"
    yield ""


def _cells(values: Sequence[float]) -> list[str]:
    low, high = metrics.interval(values)
    return [_mean(values), f"{low:.3f} to {high:.3f}" if values else ""]


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else ""


def _curve(questions: Sequence[Question], patterns: Sequence[Pattern]) -> Iterator[str]:
    """Yield the learning curve: models of few authors, measured on all others."""
    ids = [pattern["id"] for pattern in patterns]
    every, grades = training.prepare(questions, patterns)
    authors = sorted(training.held_authors(questions), key=lambda name: name[::-1])
    names = np.array([question.author for question in questions] + [""] * len(patterns))
    yield "| Authors | questions | nDCG@3 on the other authors, without the gate |"
    yield "|--:|--:|--:|"
    for count in CURVE:
        if count >= len(authors):
            break
        chosen = np.isin(names, [*authors[:count], ""])
        trained = training.train(every.take(chosen), grades[chosen])
        tested: list[int] = np.flatnonzero(~chosen & grades.any(axis=1)).tolist()
        scores = training.held_scores(trained, every.take(tested))[:, :-1]
        best = np.argsort(-scores, axis=1, kind="stable")[:, : metrics.MAX_SHOWN]
        ndcg = [
            metrics.score(questions[at].grades, [ids[number] for number in row])["ndcg"]
            for at, row in zip(tested, best, strict=True)
        ]
        yield f"| {count} | {int(chosen.sum()) - len(patterns)} | {_mean(ndcg)} |"
    yield ""


def _calibration(held: Array, questions: Sequence[Question], ids: Sequence[str]) -> Iterator[str]:
    """Yield how often questions with a predicted probability have an answer, and shown patterns are relevant."""
    measured: list[int] = np.flatnonzero(~np.isnan(held[:, -1])).tolist()
    asked = [questions[at] for at in measured]
    limits = training.thresholds(held[measured], asked, ids)
    answered = [(index.logistic(limits["gate"], held[at, -1]), bool(questions[at].grades)) for at in measured]
    relevant = [
        (index.logistic(limits["relevant"], held[at, number]), questions[at].grades.get(ids[number], 0) >= 2)
        for at in measured
        if questions[at].grades
        for number in np.argsort(-held[at, :-1], kind="stable")[: metrics.MAX_SHOWN].tolist()
    ]
    yield "| Probability | questions | have an answer | patterns | are relevant |"
    yield "|---|--:|--:|--:|--:|"
    for low, high in pairwise(BINS):
        cells: list[str] = []
        for pairs in (answered, relevant):
            truths = [float(truth) for probability, truth in pairs if low <= probability < high]
            cells += [str(len(truths)), _mean(truths)]
        yield f"| {low} to {high} | {' | '.join(cells)} |"
    yield ""


def _confusions(found: Mapping[int, list[str]], questions: Sequence[Question]) -> Iterator[str]:
    """Yield the pairs of patterns of which the second most often comes first instead of the first."""
    pairs: Counter[tuple[str, str]] = Counter()
    for at, answer in found.items():
        grades = questions[at].grades
        if grades and answer and grades.get(answer[0], 0) < 2:
            pairs[max(grades, key=grades.__getitem__), answer[0]] += 1
    yield "| Expected | first instead | times |"
    yield "|---|---|--:|"
    for (expected, instead), times in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:PAIRS]:
        yield f"| {expected} | {instead} | {times} |"

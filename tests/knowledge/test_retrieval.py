"""What retrieval has to find: patterns of one's own without training, and the measured quality in docs/retrieval.md."""

import json
import os
import re

import pytest

from tmkb.authoring import bm25, metrics
from tmkb.knowledge import library
from tmkb.knowledge.retrieval import index as indexes
from tmkb.knowledge.retrieval.index import Index
from tmkb.schema import paths, reader

DATA = os.path.join(paths.ROOT, "tests", "data")


@pytest.fixture(scope="module")
def patterns():
    return library.load(None).patterns


@pytest.fixture(scope="module")
def made_up(patterns):
    """An index of all packaged patterns and ten others, and the questions to find those."""
    values = reader.read(os.path.join(DATA, "own_patterns.yaml")).value
    own, contexts, asked = [], {}, {}
    for number, value in enumerate(values.values(), 1):
        id_ = f"ACME-X-{number:03}"
        summary = dict.fromkeys(("threat", "check", "fix"), value["name"])
        texts = {"name": value["name"], "description": value["name"], "agent_summary": summary, "steps": []}
        own.append({**patterns[0], **texts, "id": id_, "triggers": {"keywords": []}, "blind_spots": []})
        contexts[id_], asked[id_] = value["known"], value["asked"]
    built = indexes.build([*patterns, *own], indexes.path([]), lambda ids: {id_: contexts[id_] for id_ in ids})
    return Index(json.loads(json.dumps(built)).__getitem__), asked


def first(index, context):
    return next((index.patterns[number]["id"] for number in index.search(context)), None)


def test_patterns_of_ones_own_are_found_without_training(made_up):
    index, asked = made_up
    hits = {id_: sum(first(index, context) == id_ for context in contexts) for id_, contexts in asked.items()}

    assert len(hits) == 10
    assert all(found >= 6 for found in hits.values()), hits


def test_patterns_of_ones_own_leave_the_others_as_they_are(made_up, patterns, packaged_questions):
    index, _ = made_up
    plain = Index(json.loads(json.dumps(indexes.build(patterns, indexes.path([]), lambda ids: {}))).__getitem__)
    asked = packaged_questions[::120]

    same = sum(first(index, question.context) == first(plain, question.context) for question in asked)
    assert same >= 0.97 * len(asked)


def test_search_beats_bm25_on_the_questions_it_was_trained_on(patterns, packaged_questions):
    """No measure of quality (`tmkb eval --cross` is), but a check that model, patterns and search fit together."""
    asked = [each._asdict() for each in packaged_questions[::60] if each.is_query]
    labelled = [{**question, "id": str(at), "relevant": question["grades"]} for at, question in enumerate(asked)]
    index = Index(json.loads(json.dumps(indexes.build(patterns, indexes.path([]), lambda ids: {}))).__getitem__)
    ranked = bm25.ranking(patterns)
    ours = metrics.evaluate(labelled, lambda q: [index.patterns[n]["id"] for n in index.search(q["context"])])
    theirs = metrics.evaluate(labelled, lambda q: ranked(q["context"]))

    assert ours["all"]["ndcg"] >= 1.3 * theirs["all"]["ndcg"]
    assert ours["negatives"]["answered"] <= 0.1 * theirs["negatives"]["answered"]


def test_the_measured_quality_has_not_fallen():
    """The tables are written by `tmkb eval --cross --write docs/retrieval.md`."""
    with open(os.path.join(paths.ROOT, "docs", "retrieval.md"), encoding="utf-8") as file:
        text = file.read()
    rows = re.search(r"^\| Kind .*\n.*\n((?:\|.*\n)+)", text, re.M)[1].splitlines()
    kinds = {(cells := row.split("|"))[1].strip(): [float(cells[at]) for at in (2, 3, 5, 6)] for row in rows}
    answered = re.search(r"^\| all \|(.*)\|$", text, re.M)[1].split("|")[6]
    ordinary = [kinds.pop("request"), kinds.pop("brief")]
    ndcg, recall = (
        sum(row[0] * row[at] for row in kinds.values()) / sum(row[0] for row in kinds.values()) for at in (1, 2)
    )

    assert ndcg >= 0.875
    assert recall >= 0.90
    assert all(row[1] >= 0.79 for row in kinds.values())
    assert all(row[1] >= floor for row, floor in zip(ordinary, (0.70, 0.63), strict=True))
    assert float(answered) <= 0.04


def test_metrics():
    assert metrics.score({"A": 3, "B": 2}, ["A", "B"]) == {"ndcg": 1.0, "recall": 1.0, "mrr": 1.0, "first": 1.0}
    assert metrics.score({"A": 3}, ["B", "A"])["mrr"] == 0.5
    assert metrics.score({"A": 1}, [])["recall"] == 0.0
    low, high = metrics.interval([0.0, 1.0] * 20)
    assert 0.3 < low < 0.5 < high < 0.7
    assert metrics.interval([]) == [0.0, 0.0]
    with pytest.raises(ValueError, match="question 1 lacks"):
        metrics.read([json.dumps({"id": "x"})])

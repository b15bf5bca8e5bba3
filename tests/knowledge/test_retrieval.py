"""Minimum scores of search on the labelled query sets, absolute and relative to BM25. See docs/retrieval.md."""

import json
import os

import pytest

from tmkb.authoring import metrics
from tmkb.knowledge import library
from tmkb.knowledge.retrieval import bm25
from tmkb.knowledge.retrieval.index import Index, build

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
SETS = ["queries.jsonl", "queries_own.jsonl", "queries_held.jsonl", "queries_third.jsonl", "queries_last.jsonl"]


@pytest.fixture(scope="module")
def patterns():
    return library.load(None).patterns


@pytest.fixture(scope="module")
def index(patterns):
    return Index(build(patterns).__getitem__)


def queries(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return metrics.read(file)


def plain(patterns):
    ranked = bm25.ranking(patterns)
    return lambda question: ranked(question["context"])


def searched(index):
    def answer(question):
        found = index.search(question["context"], question.get("language"), question.get("framework"))
        return [index.patterns[number]["id"] for number in found]

    return answer


@pytest.mark.parametrize("name", SETS)
def test_search_beats_bm25(index, patterns, name):
    query_set = queries(name)
    ours, theirs = metrics.evaluate(query_set, searched(index)), metrics.evaluate(query_set, plain(patterns))

    assert ours["all"]["ndcg"] >= 1.1 * theirs["all"]["ndcg"]
    assert ours["negatives"]["answered"] <= 0.25 * theirs["negatives"]["answered"]


def test_minimum_scores_of_the_dev_set(index):
    found = metrics.evaluate(queries("queries.jsonl"), searched(index))

    assert found["all"]["ndcg"] >= 0.90
    assert found["all"]["recall"] >= 0.92
    assert found["negatives"]["answered"] <= 0.07


def test_metrics():
    assert metrics.score({"A": 3, "B": 2}, ["A", "B"]) == {"ndcg": 1.0, "recall": 1.0, "mrr": 1.0, "first": 1.0}
    assert metrics.score({"A": 3}, ["B", "A"])["mrr"] == 0.5
    assert metrics.score({"A": 1}, [])["recall"] == 0.0
    low, high = metrics.interval([0.0, 1.0] * 20)
    assert 0.3 < low < 0.5 < high < 0.7
    assert metrics.interval([]) == [0.0, 0.0]
    with pytest.raises(ValueError, match="question 1 lacks"):
        metrics.read([json.dumps({"id": "x"})])

"""Search: what it finds, in which order, and what it stays silent about."""

import json
import random

import pytest

from tmkb.knowledge import library
from tmkb.knowledge.index import Index, build, stems

THREE = ("TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026")


@pytest.fixture(scope="module")
def found():
    return [pattern for pattern in library.load(None).patterns if pattern["id"] in THREE]


@pytest.fixture(scope="module")
def index(found):
    return index_of(found)


def index_of(patterns):
    return Index(json.loads(json.dumps(build(patterns))))


def searched(index, question, **filters):
    return [index.patterns[number]["id"][-3:] for number in index.search(question, **filters)]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("background job processing", "001"),
        ("background job authorization", "001"),
        ("Move the PDF rendering into a Celery task", "001"),
        ("a nightly digest mail for every customer", "024"),
        ("celery beat schedule for weekly reports", "024"),
        ("put the user's role into the JWT", "026"),
        ("revoke access when somebody is demoted", "026"),
    ],
)
def test_the_best_pattern_comes_first(index, question, first):
    assert searched(index, question)[:1] == [first]


@pytest.mark.parametrize("question", ["", "xyzzy", "the of and", "center a div with css", "\ud800", "日本語"])
def test_nothing_is_found_where_nothing_matters(index, question):
    assert searched(index, question) == []


def test_the_contracts_example_finds_three(index):
    assert searched(index, "background job processing") == ["001", "024", "026"]


def test_the_order_of_patterns_changes_nothing(found):
    question = "background job processing with celery"
    shuffled = [*found]
    random.Random(1).shuffle(shuffled)

    assert searched(index_of(shuffled), question) == searched(index_of(found), question)


def test_filters(found):
    anywhere = {**found[0], "id": "TMKB-AUTH-900", "language": "any", "framework": "any"}
    elsewhere = {**found[0], "id": "TMKB-AUTH-901", "language": "go", "framework": "gin"}
    index = index_of([found[0], anywhere, elsewhere])

    def search(**filters):
        return searched(index, "celery task", **filters)

    assert search() == ["001", "900", "901"]
    assert search(language="python") == ["001", "900"]
    assert search(framework="flask") == ["001", "900"]
    assert search(framework="any") == ["001", "900", "901"]
    assert search(language="python", framework="gin") == ["900"]


def test_no_patterns_are_searched_too():
    assert searched(index_of([]), "celery") == []


@pytest.mark.parametrize("question", ["multi-tenant isolation", "background job authorization", "admin panel security"])
def test_the_contracts_questions_are_answered(question):
    assert searched(index_of(library.load(None).patterns), question)


def test_words_meet_in_their_stems():
    assert stems("Jobs being processed; the queries' tasks") == stems("job be process query task") or stems(
        "jobs"
    ) == stems("job")
    assert stems("processing") == stems("processed") == stems("process")
    assert stems("access class") == ["access", "class"]

"""Search: what it finds, in which order, and what it stays silent about."""

import random

import pytest

from tmkb.knowledge import library
from tmkb.knowledge.index import Index, stems


@pytest.fixture(scope="module")
def found():
    return library.load([library.PACKAGED]).patterns


@pytest.fixture(scope="module")
def index(found):
    return Index(found)


def ids(patterns):
    return [pattern["id"][-3:] for pattern in patterns]


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
    assert ids(index.search(question))[:1] == [first]


@pytest.mark.parametrize("question", ["", "xyzzy", "the of and", "center a div with css", "\ud800", "日本語"])
def test_nothing_is_found_where_nothing_matters(index, question):
    assert index.search(question) == []


def test_the_contracts_example_finds_three(index):
    assert ids(index.search("background job processing")) == ["001", "024", "026"]


def test_the_order_of_patterns_changes_nothing(found):
    expected = ids(Index(found).search("background job processing with celery"))
    shuffled = [*found]
    random.Random(1).shuffle(shuffled)

    assert ids(Index(shuffled).search("background job processing with celery")) == expected


def test_filters(found):
    anywhere = {**found[0], "id": "TMKB-AUTH-900", "language": "any", "framework": "any"}
    elsewhere = {**found[0], "id": "TMKB-AUTH-901", "language": "go", "framework": "gin"}
    index = Index([found[0], anywhere, elsewhere])

    def search(**filters):
        return ids(index.search("celery task", **filters))

    assert search() == ["001", "900", "901"]
    assert search(language="python") == ["001", "900"]
    assert search(framework="flask") == ["001", "900"]
    assert search(framework="any") == ["001", "900", "901"]
    assert search(language="python", framework="gin") == ["900"]


def test_no_patterns_are_searched_too():
    assert Index([]).search("celery") == []


def test_words_meet_in_their_stems():
    assert stems("Jobs being processed; the queries' tasks") == stems("job be process query task") or stems(
        "jobs"
    ) == stems("job")
    assert stems("processing") == stems("processed") == stems("process")
    assert stems("access class") == ["access", "class"]

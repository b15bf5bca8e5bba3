"""Search: what it finds, in which order, and what it stays silent about."""

import json
import random
import time

import pytest

from tmkb.knowledge import library
from tmkb.knowledge.retrieval import lexicon
from tmkb.knowledge.retrieval.index import EVERY, Index, build
from tmkb.knowledge.retrieval.words import is_code, marks, words

THREE = ("TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026")


@pytest.fixture(scope="module")
def found():
    return [pattern for pattern in library.load(None).patterns if pattern["id"] in THREE]


@pytest.fixture(scope="module")
def index(found):
    return index_of(found)


@pytest.fixture(scope="module")
def whole():
    return index_of(library.load(None).patterns)


def index_of(patterns, use=EVERY):
    return Index(json.loads(json.dumps(build(patterns))).__getitem__, use)


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

    assert sorted(search()) == ["001", "900", "901"]
    assert sorted(search(language="python")) == ["001", "900"]
    assert sorted(search(framework="flask")) == ["001", "900"]
    assert sorted(search(framework="any")) == ["001", "900", "901"]
    assert search(language="python", framework="gin") == ["900"]


def test_no_patterns_are_searched_too():
    assert searched(index_of([]), "celery") == []


@pytest.mark.parametrize("question", ["multi-tenant isolation", "background job authorization", "admin panel security"])
def test_the_contracts_questions_are_answered_in_full(whole, question):
    assert len(searched(whole, question)) >= 3


@pytest.mark.parametrize(
    "question",
    [
        "rotate the password of the tenant database",
        "the admin page has a typo in its heading text",
        "celery worker runs out of memory, max tasks per child",
        "change the color of the export button",
        "rate limit the invitation endpoint",
        "unit tests for the role service",
    ],
)
def test_other_trades_are_not_answered(whole, question):
    assert searched(whole, question) == []


def test_slips_of_the_pen_are_forgiven(whole):
    assert searched(whole, "autocompelte over documants") == searched(whole, "autocomplete over documents") != []


def test_of_code_the_shape_counts(whole):
    assert searched(whole, "@app.get('/a/<int:x>/b/<int:y>')\ndef f(x, y):\n    return B.query.get(y).z()")[0] == "013"
    assert searched(whole, "for k, v in data.items():\n    setattr(thing, k, v)")[0] == "006"


def test_patterns_for_any_framework_pass_every_filter(whole):
    assert "041" in searched(whole, "graphql resolver", framework="flask")


def test_names_that_nobody_curated_are_found_by_their_keywords(found):
    own = {**found[0], "id": "ACME-X-001", "triggers": {"keywords": ["frobnicator"]}}

    assert [p["id"] for p in [own]] == ["ACME-X-001"]
    index = index_of([own])
    assert index.search("frobnicator for the users") == [0]


def test_an_answer_can_be_explained(whole):
    question = "nightly digest for a member who left the team"
    told = whole.explain(question, whole.search(question)[:3])
    assert told["answered"]
    assert told["patterns"][0]["id"] == "TMKB-AUTH-024"
    assert {"cue": "SCHEDULE + GONE", "weight": 2} in told["patterns"][0]["cues"]


def test_silence_can_be_explained(whole):
    told = whole.explain("bcrypt cost of the nightly export", [])
    assert not told["answered"]
    assert told["against"] == {"cryptography": ["bcrypt"]}
    assert told["nearest"][0]["id"] in ("TMKB-AUTH-024", "TMKB-AUTH-036")


def test_long_questions_take_no_longer_than_what_is_read_of_them(whole):
    for text in ("celery " * 1_300_000, "/a/<b" * 1_800_000, "(" * 9_000_000, "data.update(" * 700_000):
        started = time.perf_counter()
        whole.search(text)
        assert time.perf_counter() - started < 2


def test_words_meet_in_their_stems():
    assert words("Jobs processed twice") == words("job process twice")
    assert words("processing") == words("processed") == words("process")
    assert words("access class") == ["access", "class"]
    assert words("a colleague's notes") == words("colleague note")


def test_code_is_told_from_prose():
    assert is_code("x = Thing.query.get_or_404(id)\nreturn jsonify(x.to_dict())")
    assert not is_code("Who may delete (or rename) the albums of others?")
    assert {"@task", ".delay(", "get_or_404", "role="} <= marks("@app.task\nf.delay(x, role=2)\nget_or_404(1)")


def test_the_lexicon_is_valid_and_names_patterns_that_exist():
    assert lexicon.review() == []
    known = {pattern["id"] for pattern in library.load(None).patterns}
    assert set(lexicon.read().values["cues"]["patterns"]) == known

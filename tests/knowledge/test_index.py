"""Search results, their order, and queries without an answer."""

import json
import math
import os
import random
import shutil
import subprocess
import sys

import pytest

from tmkb.errors import SpecError
from tmkb.knowledge import library, questions
from tmkb.knowledge.retrieval import expressions, memo, model, words
from tmkb.knowledge.retrieval import index as indexes
from tmkb.knowledge.retrieval.index import Index
from tmkb.schema import paths

THREE = ("TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026")
MODEL = indexes.path([])


@pytest.fixture(scope="module")
def three():
    return [pattern for pattern in library.load(None).patterns if pattern["id"] in THREE]


@pytest.fixture(scope="module")
def index(three):
    return index_of(three)


@pytest.fixture(scope="module")
def whole():
    return index_of(library.load(None).patterns)


def index_of(patterns, contexts=None):
    built = indexes.build(patterns, MODEL, lambda ids: contexts or {})
    return Index(json.loads(json.dumps(built)).__getitem__)


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
    ],
)
def test_the_best_pattern_comes_first(index, question, first):
    assert searched(index, question)[:1] == [first]


@pytest.mark.parametrize("question", ["", "xyzzy", "the of and", "center a div with css", "\ud800", "日本語"])
def test_queries_about_other_topics_have_no_results(whole, question):
    assert searched(whole, question) == []


@pytest.mark.parametrize("question", ["multi-tenant isolation", "background job authorization", "admin panel security"])
def test_the_queries_of_the_contract_have_results(whole, question):
    assert searched(whole, question)


def test_the_example_of_the_contract(whole):
    assert searched(whole, "background job processing")[:3] == ["001", "024", "026"]


def test_the_order_of_patterns_does_not_matter(three):
    question = "background job processing with celery"
    shuffled = [*three]
    random.Random(1).shuffle(shuffled)

    assert searched(index_of(shuffled), question) == searched(index_of(three), question)


def test_filters(three):
    anywhere = {**three[0], "id": "TMKB-AUTH-900", "language": "any", "framework": "any"}
    elsewhere = {**three[0], "id": "TMKB-AUTH-901", "language": "go", "framework": "gin"}
    contexts = {each["id"]: ["celery task for the invoices"] for each in (anywhere, elsewhere)}
    index = index_of([three[0], anywhere, elsewhere], contexts)

    def search(**filters):
        return searched(index, "celery task for the invoices", **filters)

    assert sorted(search()) == ["001", "900", "901"]
    assert sorted(search(language="python")) == ["001", "900"]
    assert sorted(search(framework="flask")) == ["001", "900"]
    assert sorted(search(framework="any")) == ["001", "900", "901"]
    assert search(language="python", framework="gin") == ["900"]


def test_an_empty_library():
    assert searched(index_of([]), "celery") == []


@pytest.mark.parametrize(
    "question",
    [
        "the admin page has a typo in its heading text",
        "celery worker runs out of memory, max tasks per child",
        "change the color of the export button",
    ],
)
def test_topics_other_than_authorization_are_not_answered(whole, question):
    assert searched(whole, question) == []


def test_patterns_for_any_framework_pass_every_filter(whole):
    question = "GraphQL resolver for Invoice.customer returns the parent's customer without a check"
    assert "041" in searched(whole, question, framework="flask")


def test_a_pattern_without_questions_is_found_by_its_keywords(three):
    own = {**three[0], "id": "ACME-X-001", "triggers": {"keywords": ["frobnicator", "frobnication"]}}

    assert index_of([own]).search("frobnication with a frobnicator") == [0]


def test_explain_an_answer(whole):
    question = "a nightly digest mail for every customer"
    explanation = whole.explain(question, whole.search(question)[:3])
    best = explanation["patterns"][0]

    assert explanation["answered"]
    assert best["id"] == "TMKB-AUTH-024"
    assert {"nightly", "digest"} & {each["feature"] for each in best["for"]}
    assert all(each["weight"] > 0 for each in best["for"])
    assert all(each["weight"] < 0 for each in best["against"])


def test_the_weights_of_an_explanation_add_up_to_the_score(whole, monkeypatch):
    monkeypatch.setattr(indexes, "SHOWN", 10_000)
    question = "a nightly digest mail for every customer"
    best = whole.explain(question, whole.search(question)[:1])["patterns"][0]
    bias = whole.model.facts["biases"][whole.model.facts["patterns"].index(best["id"])]

    total = bias + sum(each["weight"] for each in best["for"] + best["against"])
    assert total == pytest.approx(best["score"], abs=0.05)


def test_explain_why_there_is_no_answer(whole):
    explanation = whole.explain("bcrypt cost of the password hash", [])

    assert not explanation["answered"]
    assert explanation["probability"] < explanation["needed"]
    assert explanation["against"][0]["weight"] < 0
    assert len(explanation["nearest"]) == 3


def test_explain_a_pattern_of_ones_own(three):
    own = {**three[0], "id": "ACME-X-001"}
    index = index_of([own], {"ACME-X-001": ["frobnicate the widget"]})

    best = index.explain("frobnicate the widget", [0])["patterns"][0]

    assert best["for"][0]["weight"] > 0
    assert "frobnicat" in {each["feature"] for each in best["for"]}


def test_long_queries_are_truncated(whole):
    question = "Move the PDF rendering into a Celery task. "
    text = question * (words.MAX_CHARACTERS // len(question))

    assert whole.score(text.ljust(words.MAX_CHARACTERS) + "xyzzy" * 200_000) == whole.score(text)


@pytest.mark.process
def test_results_do_not_depend_on_hash_randomization():
    code = (
        "from tmkb.knowledge.retrieval import index; m = index.read(index.path([]));"
        "text = 'def export(id): return Report.query.get(id).rows  # nightly, for admins';"
        "print([x.hex() for x in m.scores(text)])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=paths.ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(found) == 1


def test_a_model_is_packed_and_read():
    facts = {"biases": [0.5, 0.0, -1.0], "unit": 0.25, "patterns": ["A-001", "B-001"]}
    names = ["task", "~tas", "~task"]
    packed = model.pack(facts, names, [[1, 24, 7, -7, 0], [1, 24, 0, 0, 1], [2, 48, -1, 0, 3]])
    read = model.Model(packed)

    assert read.is_intact() and not model.Model(packed[:-1] + b"\x00").is_intact()
    assert read.scores("nothing of it") == facts["biases"]
    assert [sorted(map(read.name, block)) for block in read.known("Tasks")] == [["task"], ["~tas", "~task"]]
    assert read.sums([read.number("task")]) == [1.75, -1.75, 0.0]  # 7 and -7 units; one rarity has no effect
    assert read.sums([read.number("~task")]) == [-0.25, 0.0, 0.75]
    assert read.rarity("task") == 1.0 and read.rarity("other") is None
    assert read.name(read.number("~task")) == "~task" and read.number("other") is None
    with pytest.raises(ValueError, match="size"):
        model.Model(packed[:-1])


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"names": 4, "biases": [1]}\ntask\n'])
def test_a_model_that_cannot_be_read_is_reported(tmp_path, content):
    path = tmp_path / "model.bin"
    path.write_bytes(content)

    with pytest.raises(SpecError) as caught:
        indexes.read(str(path))
    assert [problem.rule for problem in caught.value.problems] == ["bad_model"]


def test_the_model_of_the_last_folder_is_used(tmp_path):
    assert indexes.path([str(tmp_path)]) == MODEL
    (tmp_path / "_questions").mkdir()
    shutil.copy(MODEL, tmp_path / "_questions")
    assert indexes.path([str(tmp_path)]) == str(tmp_path / "_questions" / "model.bin")


def test_the_model_knows_every_packaged_pattern_and_is_small():
    trained = indexes.read(MODEL)

    assert trained.facts["patterns"] == [pattern["id"] for pattern in library.load(None).patterns]
    with open(MODEL, "rb") as file:
        assert len(file.read()) <= 2_000_000


def test_stems():
    assert words.words("Jobs processed twice") == words.words("job process twice")
    assert words.words("processing") == words.words("processed") == words.words("process")
    assert words.words("access class") == ["access", "class"]
    assert words.words("a colleague's notes") == words.words("colleague note")
    assert words.words("getUserRole HTTPServer tenant_id") == ["get", "user", "role", "http", "server", "tenant", "id"]


def test_features():
    text = "order.update(params)"

    assert {"order", "order updat", "order _ param", "order|.", "(|params"} <= words.features(text)
    assert words.parts(text)[2] == ["order", ".update(", "params", ")"]
    assert {"~ .u", "~date(", "~e( "} <= words.ngrams(text)
    assert words.ngrams("a") == {"~ a "}


@pytest.mark.parametrize("chunk", ["job", "Flask", "API", "the", "The", "A", "processing", "fooBar", "été", "job's"])
def test_a_plain_word_is_split_as_any_other(chunk):
    lower = chunk.lower()

    assert words.parts(chunk) == (words.words(chunk), expressions.tokens(lower), expressions.pieces(lower))


@pytest.mark.parametrize(
    ("feature", "parts"),
    [
        ("task", ("task", "")),
        ("task queue", ("task ", "queue")),
        ("task _ queue", ("task _ ", "queue")),
        ("task|(", ("task|", "(")),
        ("|||", ("||", "|")),
        ("~a b", ("~a b", "")),
        ("~tasks", ("~tas", "ks")),
    ],
)
def test_a_feature_has_a_head_and_a_tail(feature, parts):
    assert words.split(feature) == parts


def test_the_model_finds_the_features_that_it_is_trained_on(whole, packaged_questions):
    """Training writes features as strings, and a search finds them by head and tail."""
    trained = whole.model
    texts = [question.context for question in packaged_questions[::291]]
    for text in [*texts, "\n".join(texts), "a || b|c ~x \ud800 日本語", "x" * 300]:
        found = [{trained.name(number) for number in block} for block in trained.known(text)]
        expected = [
            {name for name in block if trained.number(name) is not None}
            for block in (words.features(text), words.ngrams(text))
        ]
        assert found == expected


def test_sums_of_more_rows_than_lanes_can_hold():
    row = [model.MAX_FACTOR, 24, 7, -7]
    names = [f"name{number}" for number in range(2 * model.MOST + 1)]
    read = model.Model(model.pack({"biases": [0, 0], "unit": 1.0}, names, [row] * len(names)))

    expected = 7 * model.MAX_FACTOR * math.sqrt(len(names))
    assert read.sums(range(len(names))) == pytest.approx([expected, -expected])


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}\n"], ids=["deleted", "empty", "cut", "without facts"])
def test_a_kept_model_that_cannot_be_read_is_not_needed(three, tmp_path, content):
    """The cache has it only so that the first question finds it uncompressed."""
    kept = tmp_path / "kept.bin"
    if content is not None:
        kept.write_bytes(content)
    built = {**indexes.build(three, MODEL, lambda ids: {}), "model": {"path": str(kept)}}

    assert Index(built.__getitem__).search("background job processing")


def test_what_is_kept_has_a_limit(monkeypatch):
    monkeypatch.setattr(memo, "CHARACTERS", 10)
    read = indexes.read(MODEL)
    first = read.scores("a nightly digest mail for every customer of every tenant")

    assert sum(map(len, read._chunks)) <= 10
    assert read.scores("a nightly digest mail for every customer of every tenant") == first


def test_questions_of_a_pattern_are_read_for_the_index(tmp_path, three):
    folder = tmp_path / "acme_x_001"
    folder.mkdir()
    (folder / "questions.yaml").write_text(
        'kind: questions\nquestions:\n  - {context: "kettle override in the taproom", kind: agent, author: me}\n'
    )
    asked = questions.read([str(tmp_path)])

    assert asked.problems == []
    assert asked.contexts() == {"ACME-X-001": ["kettle override in the taproom"]}
    own = {**three[0], "id": "ACME-X-001"}
    index = index_of([*three, own], asked.contexts())
    assert searched(index, "override of the kettle in a taproom")[0] == "001"
    assert index.patterns[index.search("override of the kettle in a taproom")[0]]["id"] == "ACME-X-001"


# --- Patterns that the model does not know

WARD = (
    "list the patients of a ward on the terminal",
    "show the medication chart of a bed",
    "nurse opens the patient record from the bed list",
    "add a discharge letter to a patient's chart",
    "print wristbands for all beds of a ward",
    "search patients by name on the ward terminal",
    "vital signs endpoint for bedside monitors",
    "hand over notes between shifts",
)


@pytest.fixture(scope="module")
def with_own():
    packaged = library.load(None).patterns
    texts = {
        "threat": "A nurse reads records of patients of other wards, because the terminal trusts the ward id in the URL.",
        "check": "Does each read of a record compare the ward of the patient with the shift of the nurse?",
        "fix": "Compare the ward of the patient with the shift of the nurse.",
    }
    own = packaged[0] | {
        "id": "ACME-CLINIC-001",
        "name": "Ward Terminal Shows Records Of Other Wards",
        "category": "patient-records",
        "description": texts["threat"],
        "triggers": {"keywords": ["ward terminal", "patient record", "shift roster", "bed list"]},
        "agent_summary": texts,
        "steps": [],
        "blind_spots": [],
    }
    return index_of([*packaged, own], {"ACME-CLINIC-001": WARD})


@pytest.mark.parametrize(
    "question",
    [
        "endpoint that returns the chart for a bed number",
        "bedside device posts temperature for a patient",
        "page that shows who lies in which bed",
        "export discharge letters of the ward as pdf",
    ],
)
def test_an_own_pattern_is_found_by_its_questions_without_training(with_own, question):
    assert _first(with_own, question) == "ACME-CLINIC-001"


def _first(index, question):
    return next((index.patterns[number]["id"] for number in index.search(question)), "")


@pytest.mark.parametrize(
    "question",
    [
        "background job processing",
        "show the invoices that a customer has not paid",
        "find users by their mail address",
        "export documents as pdf",
        "endpoint that returns a record by its number",
        "print the labels of a shipment",
        "sort a list of numbers",
    ],
)
def test_an_own_pattern_that_is_not_meant_changes_no_answer(whole, with_own, question):
    def found(index):
        return [index.patterns[number]["id"] for number in index.search(question)]

    assert found(with_own) == found(whole)

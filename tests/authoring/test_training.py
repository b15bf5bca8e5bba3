"""Training: the stored model scores as the trained one, and thresholds are those of authors held out."""

import pytest

from tmkb.authoring import inputs
from tmkb.knowledge import library
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval.model import Model

pytestmark = pytest.mark.needs("sklearn")

TOPICS = {
    "TMKB-AUTH-001": "celery worker job queue",
    "TMKB-AUTH-017": "redis cache key entry",
    "": "css colour font margin",
}
STARTS = ("add the", "change a", "why does our", "remove every", "test that the", "move this")


@pytest.fixture(scope="module")
def patterns():
    return [pattern for pattern in library.load(None).patterns if pattern["id"] in TOPICS]


@pytest.fixture(scope="module")
def asked():
    return [
        Question(f"{start} {word} {other} {author}", "task", "any", author, {id_: 3} if id_ else {})
        for author in ("ann", "bob")
        for id_, words in TOPICS.items()
        for start in STARTS
        for word in words.split()
        for other in words.split()
        if word != other
    ]


def test_the_stored_model_scores_as_the_trained_one(tmp_path, asked, patterns):
    from tmkb.authoring import training

    every, grades = training.prepare(asked, patterns)
    trained = training.train(every, grades)
    facts = {"inputs": inputs.digests(asked, patterns)}
    training.write(str(tmp_path / "model.bin"), trained, [pattern["id"] for pattern in patterns], facts)
    model = Model((tmp_path / "model.bin").read_bytes())

    expected = training.held_scores(trained, every)
    for question, row in zip(asked[::50], expected[::50], strict=False):
        scores = model.scores(question.context)
        scores[-1] += training.BEST * max(scores[:-1])
        assert scores == pytest.approx(row.tolist(), abs=1e-5)


def test_training_is_deterministic(tmp_path, asked, patterns):
    from tmkb.authoring import training

    for name in ("one", "other"):
        trained = training.train(*training.prepare(asked, patterns))
        training.write(str(tmp_path / name), trained, [pattern["id"] for pattern in patterns], {})

    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_each_author_is_answered_by_a_model_of_the_others(asked, patterns):
    from tmkb.authoring import crossvalidation

    report = crossvalidation.report(asked, patterns)

    assert "2 authors" in report
    assert "| all | 288 | 1.000 |" in report
    assert {"| Kind", "| Language", "| Framework", "| Author", "| Authors", "| Probability", "| Expected"} <= {
        line[: line.index(" |", 2)] for line in report.splitlines() if line.startswith("| ")
    }


def test_thresholds_answer_few_negatives(asked, patterns):
    from tmkb.authoring import training

    held = training.folds(asked, patterns)
    calibration = training.calibrate(held, asked, patterns)

    assert 0 < calibration["answered"] < 1
    assert calibration["gate"][0] > 0 and calibration["relevant"][0] > 0 and calibration["centroid"][0] > 0


def test_small_authors_are_not_held_out(asked):
    from tmkb.authoring import training

    assert training.held_authors([*asked, asked[0]._replace(author="eve")]) == ["ann", "bob"]


def test_patterns_with_few_questions_are_left_to_their_centroids(asked, patterns):
    few = [Question(f"few {number}", "task", "any", "ann", {"ACME-AUTH-001": 3}) for number in range(8)]
    both = Question("both", "task", "any", "ann", {"ACME-AUTH-001": 3, "TMKB-AUTH-001": 2})
    chosen, kept = inputs.selected([*patterns, {"id": "ACME-AUTH-001"}], [*asked, *few, both])

    assert chosen == patterns
    assert kept == [*asked, both._replace(grades={"TMKB-AUTH-001": 2})]

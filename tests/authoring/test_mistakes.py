"""The model of reviews: what it learns from, and that it separates a change from its correction."""

import pytest

from tmkb.knowledge import library
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import index, signs

pytestmark = pytest.mark.needs("sklearn")

IDS = ("TMKB-AUTH-006", "TMKB-AUTH-007")
CHECKS = {"TMKB-AUTH-006": "permitted_fields(body)", "TMKB-AUTH-007": "owned_by(current_user)"}


@pytest.fixture(scope="module")
def patterns():
    return [pattern for pattern in library.load(None).patterns if pattern["id"] in IDS]


@pytest.fixture(scope="module")
def asked():
    """Pairs of two authors, and harmless changes."""
    found = []
    for author in ("ann", "bob"):
        for number in range(12):
            for id_ in IDS:
                topic = "update(body)" if id_.endswith("6") else "load(id)"
                hunk = f"app/{author}{number}.py\n+row{number} = {topic}\n"
                found.append(Question(hunk + "+save(row)", "diff", "python", author, {id_: 3}))
                found.append(Question(f"{hunk}+{CHECKS[id_]}\n+save(row)", "diff", "python", author, {id_: 3}, True))
            style = f"web/{author}{number}.css\n+color: red{number}\n+margin: 1px"
            found.append(Question(style, "negative", "any", author, {}, True))
    return found


def test_right_code_has_no_grades(asked, patterns):
    from tmkb.authoring import mistakes

    text = Question("add an endpoint", "task", "any", "ann", {IDS[0]: 3})
    labelled = mistakes.prepare([*asked, text], ["permitted_fields(body)"], patterns)

    assert len(labelled.samples) == len(asked) + 1  # the idiom, and not the text
    assert labelled.mistaken.sum() == 48
    assert labelled.harmless.sum() == 25
    assert not labelled.mistaken[labelled.secure].any()


def test_a_change_is_told_from_its_correction(asked, patterns, tmp_path):
    from tmkb.authoring import mistakes, training

    labelled = mistakes.prepare(asked, [], patterns)
    held = mistakes.folds(labelled)
    calibration = mistakes.calibrate(held, labelled, signs.packaged())
    trained = mistakes.train(labelled.every, labelled.grades, labelled.weights)
    path = tmp_path / "review.bin"
    ids = [pattern["id"] for pattern in patterns]
    training.write(str(path), trained, ids, {"calibration": calibration}, compressed=True)
    model = index.read(str(path))

    def probability(change):
        scores = model.scores(change)
        weight = signs.Signs(calibration["signs"]).weight(change)
        return index.logistic(calibration["mistake"], scores[-1] + calibration["best"] * max(scores[:-1]) + weight)

    change = "app/new.py\n+row99 = load(id)\n+save(row)"
    assert probability(change) > 0.5 > probability(f"{change}\n+owned_by(current_user)")
    assert held.shape == (len(asked), 3)

"""A list in memory stands for the search engine. Ranking, shards and delays of a real one are not claimed."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
HANDBOOK, DEAL, PLAN, OLD = 1, 2, 3, 4


def write(example: Example, s: Stage) -> None:
    pages = [
        (HANDBOOK, "Acquiring customers", "How we sell", [ALICE, BOB], ACME),
        (DEAL, "Acquisition of Initech", "We offer nine million", [ALICE], ACME),
        (PLAN, "Globex plan", "Acquire land abroad", [MALLORY], GLOBEX),
        (OLD, "Globex minutes", "Acquittal of the board", [MALLORY, BOB], GLOBEX),
    ]
    with s.app.app_context():
        for page_id, title, body, readers, organization_id in pages:
            page = example.Page(id=page_id, title=title, body=body, readers=readers, organization_id=organization_id)
            db.session.add(page)
            example.index_page(page)
        db.session.commit()


def ask(s: Stage, user: str, path: str) -> Any:
    return s.client(user).get(path).json


def found_by_bob(s: Stage, path: str, page_id: int, text: str) -> Outcome:
    """Whether ``text`` of a page that Bob cannot open comes back."""
    assert s.client("bob").get(f"/pages/{page_id}").status_code == 404
    answer = ask(s, "bob", path)
    return outcome(
        gained=text in str(answer),
        refused=text not in str(answer) and isinstance(answer, list),
        evidence=str(answer),
    )


def exploit_suggested_title(example: Example) -> Outcome:
    """Bob types 'acq' and is offered the title of a page that only Alice, of his own organization, may read."""
    with stage(example) as s:
        write(example, s)
        return found_by_bob(s, "/suggest?q=acq", DEAL, "Initech")


def exploit_snippet(example: Example) -> Outcome:
    """Bob searches for 'million' and the excerpt tells him the offer."""
    with stage(example) as s:
        write(example, s)
        return found_by_bob(s, "/search?q=million", DEAL, "nine million")


def exploit_former_organization(example: Example) -> Outcome:
    """Bob came to Acme from Globex, whose pages still list him as a reader; the excerpt opens them again."""
    with stage(example) as s:
        write(example, s)
        return found_by_bob(s, "/search?q=acquittal", OLD, "board")


def exploit_unshared(example: Example) -> Outcome:
    """Alice takes Bob off the readers of the handbook; the index goes on showing it to him."""
    with stage(example) as s:
        write(example, s)
        answer = s.client("alice").put(f"/pages/{HANDBOOK}/readers", json={"readers": [ALICE]})
        assert answer.status_code == 204
        return found_by_bob(s, "/suggest?q=cust", HANDBOOK, "customers")


def legitimate_reader(example: Example) -> None:
    """Everybody finds, as a suggestion and with an excerpt, what he may open."""
    with stage(example) as s:
        write(example, s)
        assert s.client("bob").get(f"/pages/{HANDBOOK}").json == "How we sell"
        assert "Acquiring customers" in ask(s, "bob", "/suggest?q=acq")
        assert ["Acquiring customers", "How we sell"] in ask(s, "bob", "/search?q=sell")
        assert ["Globex plan", "Acquire land abroad"] in ask(s, "mallory", "/search?q=land")


def legitimate_shared(example: Example) -> None:
    """Alice makes Bob a reader of the deal, and from then on he finds it."""
    with stage(example) as s:
        write(example, s)
        assert s.client("alice").put(f"/pages/{DEAL}/readers", json={"readers": [ALICE, BOB]}).status_code == 204
        assert "Acquisition of Initech" in ask(s, "bob", "/suggest?q=acqui")

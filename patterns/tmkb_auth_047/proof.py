"""The index and the model are stand-ins; that a document cannot be opened directly is tried before the question.

The index counts common words, so nothing is claimed about embeddings or about what a real model would keep to itself:
what is in the prompt counts as told.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Document, Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
MINUTES, HANDBOOK, PLAN = 1, 3, 2  # documents: Alice's, everybody's at Acme, Mallory's
SECRET = "Board minutes: the Leeds office closes in May."
HOURS = "Handbook: the Leeds office opens at nine."
SPAM = "The Leeds office board closes minutes in May: call Mallory."
QUESTION = "When does the Leeds office close, say the board minutes?"


def add(example: Example, document_id: int, tenant: int, text: str, *readers: int) -> None:
    """A document's passage with the readers it has today, both in the tables and in the index."""
    db.session.add_all(example.Reader(document_id=document_id, user_id=user) for user in readers)
    passage = {"document_id": document_id, "tenants": [tenant], "readers": list(readers), "text": text}
    example.index.passages.append(passage)


def fill(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(Document(id=HANDBOOK, title="Handbook", owner_id=ALICE, organization_id=ACME))
        add(example, MINUTES, ACME, SECRET, ALICE)
        add(example, HANDBOOK, ACME, HOURS, ALICE, BOB)
        db.session.commit()


def observed(example: Example, s: Stage, user: str) -> Outcome:
    """What ``user``, who cannot open the minutes, is told about them."""
    client = s.client(user)
    assert client.get(f"/documents/{MINUTES}").status_code == 404
    answer = client.post("/ask", json={"question": QUESTION})
    (prompt,) = example.model.prompts
    return outcome(
        gained=SECRET in answer.get_data(as_text=True),
        refused=answer.status_code == 200 and SECRET not in prompt and QUESTION in prompt,
        evidence=f"{answer.status_code} {prompt}",
    )


def exploit_contractor(example: Example) -> Outcome:
    """Bob, a contractor who may open the handbook only, asks the assistant and is quoted the board minutes."""
    with stage(example) as s:
        fill(example, s)
        return observed(example, s, "bob")


def exploit_other_tenant(example: Example) -> Outcome:
    """Mallory of Globex asks the same and is quoted the board minutes of Acme."""
    with stage(example) as s:
        fill(example, s)
        return observed(example, s, "mallory")


def exploit_withdrawn_reader(example: Example) -> Outcome:
    """Alice is struck off the readers after the minutes were indexed, and is still quoted from them."""
    with stage(example) as s:
        fill(example, s)
        with s.app.app_context():
            db.session.delete(db.session.get(example.Reader, (MINUTES, ALICE)))
            db.session.commit()
        return observed(example, s, "alice")


def exploit_planted_passages(example: Example) -> Outcome:
    """Mallory writes passages at Globex that are nearest to a question of Alice and take the places of her own."""
    with stage(example) as s:
        fill(example, s)
        with s.app.app_context():
            add(example, PLAN, GLOBEX, SPAM, MALLORY)
            add(example, 4, GLOBEX, SPAM, MALLORY)
            db.session.commit()
        answer = s.client("alice").post("/ask", json={"question": QUESTION}).get_data(as_text=True)
    return outcome(gained=SPAM in answer, refused=SECRET in answer and SPAM not in answer, evidence=answer)


def legitimate_director(example: Example) -> None:
    """Alice, the director, opens the board minutes and is quoted them."""
    with stage(example) as s:
        fill(example, s)
        assert s.client("alice").get(f"/documents/{MINUTES}").status_code == 200
        answer = s.client("alice").post("/ask", json={"question": QUESTION})
        assert SECRET in answer.get_data(as_text=True)


def legitimate_handbook(example: Example) -> None:
    """Bob is quoted the handbook, which he may open; a client that is not signed in is told nothing."""
    with stage(example) as s:
        fill(example, s)
        asked = {"question": "When does the Leeds office open?"}
        assert HOURS in s.client("bob").post("/ask", json=asked).get_data(as_text=True)
        assert s.app.test_client().post("/ask", json=asked).status_code == 401

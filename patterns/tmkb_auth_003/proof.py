"""Everything is done through the API; what became of a deleted bid is read from the table."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

BID = "/bids/1"
LIVE = [{"id": 1, "price": 900, "text": "night shift"}]


def place(example: Example, s: Stage) -> None:
    """A bid of Acme."""
    with s.app.app_context():
        db.session.add(example.Bid(id=1, price=900, text="night shift", organization_id=1))
        db.session.commit()


def delete(example: Example, s: Stage) -> None:
    """The bid, deleted by Acme's administrator Alice and gone from Bob's list."""
    place(example, s)
    assert s.client("alice").delete(BID).json["deleted_at"] is not None
    assert s.client("bob").get("/bids").json == []


def stored(s: Stage) -> list[tuple[int, bool]]:
    """What the table holds: of each bid its price, and whether it is deleted."""
    with s.app.app_context():
        rows = db.session.execute(db.text("SELECT price, deleted_at IS NOT NULL FROM bid ORDER BY id"))
        return [(price, bool(deleted)) for price, deleted in rows]


def exploit_revive(example: Example) -> Outcome:
    """Alice, Acme's administrator, deletes a bid; Bob, who may not restore, sets deleted_at to null and it is back."""
    with stage(example) as s:
        delete(example, s)
        answer = s.client("bob").patch(BID, json={"deleted_at": None})
        return outcome(
            gained=s.client("bob").get("/bids").json == LIVE,
            refused=answer.status_code == 404 and stored(s) == [(900, True)],
            evidence=answer.status,
        )


def exploit_edit_deleted(example: Example) -> Outcome:
    """Bob changes the price of the deleted bid; Alice restores it, and it is not what she deleted."""
    with stage(example) as s:
        delete(example, s)
        answer = s.client("bob").patch(BID, json={"price": 1})
        assert s.client("alice").post(f"{BID}/restore").status_code == 204
        return outcome(
            gained=s.client("alice").get("/bids").json == [{**LIVE[0], "price": 1}],
            refused=answer.status_code == 404 and stored(s) == [(900, False)],
            evidence=answer.status,
        )


def exploit_copy_deleted(example: Example) -> Outcome:
    """Bob copies the deleted bid and has it again, alive, under a new number."""
    with stage(example) as s:
        delete(example, s)
        answer = s.client("bob").post(f"{BID}/copies")
        return outcome(
            gained=s.client("bob").get("/bids").json == [{**LIVE[0], "id": 2}],
            refused=answer.status_code == 404 and stored(s) == [(900, True)],
            evidence=answer.status,
        )


def exploit_delete_by_update(example: Example) -> Outcome:
    """Bob, who may not delete either, writes a time into deleted_at of a live bid, and it is gone."""
    with stage(example) as s:
        place(example, s)
        answer = s.client("bob").patch(BID, json={"deleted_at": 1767225600})
        bids = s.client("alice").get("/bids").json
        return outcome(
            gained=bids == [] and stored(s) == [(900, True)],
            refused=answer.status_code == 204 and bids == LIVE and stored(s) == [(900, False)],
            evidence=answer.status,
        )


def legitimate_editing(example: Example) -> None:
    """Bob edits and copies a live bid of Acme; Mallory of Globex can do neither."""
    with stage(example) as s:
        place(example, s)
        bob, mallory = s.client("bob"), s.client("mallory")
        assert bob.patch(BID, json={"price": 800}).status_code == 204
        assert bob.post(f"{BID}/copies").status_code == 201
        assert mallory.patch(BID, json={"price": 1}).status_code == 404
        assert mallory.post(f"{BID}/copies").status_code == 404
        assert [bid["price"] for bid in bob.get("/bids").json] == [800, 800]


def legitimate_restore(example: Example) -> None:
    """Alice restores the bid that she deleted; Bob may neither delete nor restore."""
    with stage(example) as s:
        delete(example, s)
        assert s.client("bob").post(f"{BID}/restore").status_code == 403
        assert s.client("mallory").post(f"{BID}/restore").status_code == 404
        assert s.client("alice").post(f"{BID}/restore").status_code == 204
        assert s.client("bob").get("/bids").json == LIVE
        assert s.client("bob").delete(BID).status_code == 403

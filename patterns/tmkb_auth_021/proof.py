"""Statements that a handler may write are run inside requests or with a tenant entered, as views and jobs do it."""

from collections.abc import Callable
from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
OWN, FOREIGN = 1, 2


def ship(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for shipment_id, organization_id in ((OWN, ACME), (FOREIGN, GLOBEX)):
            shipment = example.Shipment(id=shipment_id, state="delivered", organization_id=organization_id)
            db.session.add(shipment)
        db.session.commit()


def attempt(example: Example, query: Callable[[], list[Any]], foreign: Any) -> Outcome:
    """What a handler of Acme gets from ``query``, whose answer has ``foreign`` in it if it sees Globex's rows."""
    with stage(example) as s:
        ship(example, s)
        with s.app.app_context():
            example.enter_tenant(ACME)
            assert [row.id for row in db.session.scalars(db.select(example.Shipment))] == [OWN]
            try:
                found: Any = query()
            except PermissionError as refusal:
                return outcome(gained=False, refused=True, evidence=repr(refusal))
    return outcome(gained=foreign in found, refused=False, evidence=repr(found))


def exploit_report(example: Example) -> Outcome:
    """Bob of Acme opens the count of states, a statement written by hand, and Globex's shipment is counted in."""
    with stage(example) as s:
        ship(example, s)
        answer = s.client("bob").get("/shipments/states").json
    return outcome(gained=answer == [["delivered", 2]], refused=answer == [["delivered", 1]], evidence=str(answer))


def exploit_bulk_update(example: Example) -> Outcome:
    """Bob closes what is delivered, and Globex's shipment is closed as well, since the hook looks at selects only."""
    with stage(example) as s:
        ship(example, s)
        status = s.client("bob").post("/shipments/close").status_code
        with s.app.app_context():
            rows = db.select(example.Shipment.__table__.c.state).order_by(example.Shipment.id)
            with db.engine.connect() as connection:
                states = list(connection.scalars(rows))
    return outcome(
        gained=states[1] == "closed",
        refused=status == 204 and states == ["closed", "delivered"],
        evidence=str(states),
    )


def exploit_report_without_tenant(example: Example) -> Outcome:
    """Somebody adds a report that forgets the tenant, and it lists the shipments of all."""
    return attempt(example, lambda: example.report("SELECT id FROM shipment"), (FOREIGN,))


def exploit_plain_statement(example: Example) -> Outcome:
    """A handler selects from the bare table, which no ORM filter covers."""

    def query() -> list[Any]:
        return list(db.session.scalars(db.select(example.Shipment.__table__.c.id)))

    return attempt(example, query, FOREIGN)


def exploit_text_into_objects(example: Example) -> Outcome:
    """A handler turns hand-written SQL into objects, so that it looks like an ORM query and is filtered like none."""

    def query() -> list[Any]:
        statement = db.select(example.Shipment).from_statement(db.text("SELECT * FROM shipment"))
        return [shipment.id for shipment in db.session.scalars(statement)]

    return attempt(example, query, FOREIGN)


def exploit_update_by_keys(example: Example) -> Outcome:
    """A handler saves a list of changes by primary key, one of them for Globex's shipment."""

    def query() -> list[Any]:
        db.session.execute(db.update(example.Shipment), [{"id": FOREIGN, "state": "lost"}])
        db.session.commit()
        with db.engine.connect() as connection:
            return list(connection.scalars(db.select(example.Shipment.__table__.c.state)))

    return attempt(example, query, "lost")


def exploit_identity_map(example: Example) -> Outcome:
    """A job that goes from Globex to Acme loads by primary key and is handed what the session still holds."""
    with stage(example) as s:
        ship(example, s)
        with s.app.app_context():
            example.enter_tenant(GLOBEX)
            before = db.session.get(example.Shipment, FOREIGN)
            assert before.organization_id == GLOBEX
            example.enter_tenant(ACME)
            found = db.session.get(example.Shipment, FOREIGN)
            own = db.session.get(example.Shipment, OWN)
            return outcome(gained=found is before, refused=found is None and own is not None, evidence=repr(found))


def legitimate_report(example: Example) -> None:
    """A tenant counts, lists and closes its own shipments."""
    with stage(example) as s:
        with s.app.app_context():
            db.session.add(example.Shipment(id=OWN, state="delivered", organization_id=ACME))
            db.session.commit()
        bob = s.client("bob")
        assert bob.get("/shipments/states").json == [["delivered", 1]]
        assert bob.post("/shipments/close").status_code == 204
        assert bob.get("/shipments/states").json == [["closed", 1]]
        assert bob.get("/shipments").json == [OWN]


def legitimate_lists(example: Example) -> None:
    """Each tenant lists its own shipments, and loads one of them by its key."""
    with stage(example) as s:
        ship(example, s)
        assert s.client("bob").get("/shipments").json == [OWN]
        assert s.client("mallory").get("/shipments").json == [FOREIGN]
        with s.app.app_context():
            example.enter_tenant(GLOBEX)
            assert db.session.get(example.Shipment, FOREIGN).state == "delivered"

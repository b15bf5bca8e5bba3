"""No PostgreSQL runs here; SQLite with the functions and lifetimes of its settings stands for it.

A view stands for the policy. What is shown is what the application sets, and when that ends; that PostgreSQL enforces
policies, and that FORCE binds the owner, is taken from its documentation. The pool is the real one of SQLAlchemy.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
BOB = 2


def pooled(example: Example) -> dict[str, object]:
    """One connection for everybody, which is lent and comes back."""
    return {"pool_size": 1, "max_overflow": 0, "connect_args": {"factory": example.Connection}}


def write(example: Example, s: Stage) -> None:
    with s.app.app_context():
        example.upgrade()
        db.session.execute(db.text("INSERT INTO ticket_row VALUES ('Acme printer', '1'), ('Globex door', '2')"))
        db.session.get(User, BOB).organization_id = None
        db.session.commit()


def exploit_reused_connection(example: Example) -> Outcome:
    """Bob, who has left Acme, sets no tenant; he is lent the connection that Alice used and reads Acme's tickets."""
    with stage(example, SQLALCHEMY_ENGINE_OPTIONS=pooled(example)) as s:
        write(example, s)
        assert s.client("alice").post("/tickets/read").status_code == 204
        subjects = s.client("bob").get("/tickets").json
    return outcome(gained=subjects == ["Acme printer"], refused=subjects == [], evidence=subjects)


def exploit_no_tenant(example: Example) -> Outcome:
    """Bob is lent a new connection on which nobody has set a tenant, and the policy lets all rows pass."""
    with stage(example, SQLALCHEMY_ENGINE_OPTIONS=pooled(example)) as s:
        write(example, s)
        subjects = s.client("bob").get("/tickets").json
    return outcome(gained=len(subjects) == 2, refused=subjects == [], evidence=subjects)


def exploit_owner(example: Example) -> Outcome:
    """The digest for Acme runs as the owner of the table, whom the policy leaves out, and contains Globex's ticket."""
    with stage(example, SQLALCHEMY_ENGINE_OPTIONS=pooled(example)) as s:
        write(example, s)
        with s.app.app_context():
            subjects = example.nightly_digest(ACME)
    return outcome(gained="Globex door" in subjects, refused=subjects == ["Acme printer"], evidence=subjects)


def legitimate_alternating(example: Example) -> None:
    """Alice and Mallory take turns on the one connection and each lists her own tickets."""
    with stage(example, SQLALCHEMY_ENGINE_OPTIONS=pooled(example)) as s:
        write(example, s)
        for _ in range(2):
            for user, subject in (("alice", "Acme printer"), ("mallory", "Globex door")):
                assert s.client(user).get("/tickets").json == [subject]
                assert s.client(user).post("/tickets/read").status_code == 204


def legitimate_digest(example: Example) -> None:
    """The digest for Globex contains its ticket."""
    with stage(example, SQLALCHEMY_ENGINE_OPTIONS=pooled(example)) as s:
        write(example, s)
        with s.app.app_context():
            assert "Globex door" in example.nightly_digest(GLOBEX)

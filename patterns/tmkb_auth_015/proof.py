"""Nobody is shown a link: requests go straight to the addresses, and what they did is read from the database."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
NOTE = "Alice read the payroll"


def people(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for user_id, organization_id in {ALICE: ACME, BOB: ACME, MALLORY: GLOBEX}.items():
            db.session.add(example.Membership(user_id=user_id, organization_id=organization_id))
        db.session.add(example.AuditEntry(text=NOTE, organization_id=ACME))
        db.session.commit()


def role(s: Stage, user_id: int, name: str) -> None:
    with s.app.app_context():
        db.session.get(User, user_id).role = name
        db.session.commit()


def disabled(example: Example, s: Stage) -> list[int]:
    with s.app.app_context():
        rows = db.select(example.Membership.user_id).filter_by(active=False).order_by("user_id")
        return list(db.session.scalars(rows))


def disabling(example: Example, as_role: str) -> Outcome:
    """What came of Bob's request to disable Alice while he has this role."""
    with stage(example) as s:
        people(example, s)
        role(s, BOB, as_role)
        answer = s.client("bob").post(f"/admin/users/{ALICE}/disable")
        gone = disabled(example, s)
    return outcome(gained=gone == [ALICE], refused=answer.status_code == 403 and not gone, evidence=answer.status)


def exploit_member(example: Example) -> Outcome:
    """Bob, a plain member of Acme, posts to the address that disables accounts and locks out its administrator."""
    return disabling(example, "member")


def exploit_audit_log(example: Example) -> Outcome:
    """Bob opens the audit log, which no page of his links to."""
    with stage(example) as s:
        people(example, s)
        answer = s.client("bob").get("/admin/audit")
    return outcome(gained=NOTE in answer.text, refused=answer.status_code == 403, evidence=answer.text)


def exploit_auditor(example: Example) -> Outcome:
    """Bob is made an auditor, who may read the log and nothing else, and disables Alice."""
    return disabling(example, "auditor")


def exploit_unknown_role(example: Example) -> Outcome:
    """Bob holds a role that has since been abolished, and disables Alice."""
    return disabling(example, "owner")


def exploit_unnamed_operation(example: Example) -> Outcome:
    """Somebody adds a maintenance route to the area and names no permission for it; Bob finds it and runs it."""
    purged = []
    example.bp.add_url_rule("/purge", "purge", lambda: (purged.append("all") or "", 204), methods=["POST"])
    with stage(example) as s:
        answer = s.client("bob").post("/admin/purge")
    return outcome(gained=purged == ["all"], refused=answer.status_code == 403 and not purged, evidence=answer.status)


def legitimate_administrator(example: Example) -> None:
    """Alice disables Bob and finds it in Acme's log; accounts of Globex are not hers to disable."""
    with stage(example) as s:
        people(example, s)
        alice = s.client("alice")
        assert alice.post(f"/admin/users/{MALLORY}/disable").status_code == 404
        assert alice.post(f"/admin/users/{BOB}/disable").status_code == 204
        assert disabled(example, s) == [BOB]
        assert alice.get("/admin/audit").json == [NOTE, f"{BOB} disabled"]
        assert s.client("mallory").get("/admin/audit").json == []


def legitimate_auditor(example: Example) -> None:
    """An auditor reads the log, and whoever is not signed in is told to sign in."""
    with stage(example) as s:
        people(example, s)
        role(s, BOB, "auditor")
        assert s.client("bob").get("/admin/audit").json == [NOTE]
        assert s.client("nobody").get("/admin/audit").status_code == 401

"""Alice owns Acme, Bob is a manager there; Carol is invited, and Mallory owns Globex.

An address is made from the name, in place of a verified one. That an invitation is old is shown by sending it with the
application's clock set back. How rights end when the inviter's do is not claimed.
"""

from datetime import timedelta

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY, CAROL = 1, 2, 3, 4


def enrol(example: Example, s: Stage) -> None:
    people = [(ACME, ALICE, "owner"), (ACME, BOB, "manager"), (GLOBEX, MALLORY, "owner")]
    with s.app.app_context():
        db.session.add(User(id=CAROL, name="carol"))
        for organization_id, user_id, role in people:
            db.session.add(example.Membership(organization_id=organization_id, user_id=user_id, role=role))
        db.session.commit()


def role_of(example: Example, s: Stage, organization_id: int, user_id: int) -> str | None:
    with s.app.app_context():
        membership = db.session.get(example.Membership, (organization_id, user_id))
        return None if membership is None else str(membership.role)


def invite(s: Stage, grantor: str, role: str, email: str = "carol@example.com") -> tuple[int, str]:
    """The status, and the token that the invited person gets by mail."""
    answer = s.client(grantor).post(f"/organizations/{ACME}/invitations", json={"email": email, "role": role})
    return answer.status_code, answer.json["token"] if answer.status_code == 201 else "none"


def accept(s: Stage, user: str, token: str, organization_id: int = ACME, **body: str) -> int:
    return s.client(user).post(f"/organizations/{organization_id}/invitations/{token}/accept", json=body).status_code


def change(s: Stage, grantor: str, user_id: int, role: str) -> int:
    return s.client(grantor).put(f"/organizations/{ACME}/members/{user_id}", json={"role": role}).status_code


def exploit_owner_invited(example: Example) -> Outcome:
    """Bob, a manager, invites his friend Carol as an owner, and she accepts."""
    with stage(example) as s:
        enrol(example, s)
        code, token = invite(s, "bob", "owner")
        accept(s, "carol", token)
        reached = role_of(example, s, ACME, CAROL)
    return outcome(gained=reached == "owner", refused=code == 403 and reached is None, evidence=f"{code} {reached}")


def exploit_member_promoted(example: Example) -> Outcome:
    """Bob raises Carol, by now a plain member, to his own rank, which only somebody above it may give."""
    with stage(example) as s:
        enrol(example, s)
        accept(s, "carol", invite(s, "bob", "member")[1])
        code = change(s, "bob", CAROL, "manager")
        reached = role_of(example, s, ACME, CAROL)
    return outcome(
        gained=reached == "manager", refused=code == 403 and reached == "member", evidence=f"{code} {reached}"
    )


def exploit_owner_demoted(example: Example) -> Outcome:
    """Bob makes Alice, the owner, a plain member; the role that he grants is below his own."""
    with stage(example) as s:
        enrol(example, s)
        code = change(s, "bob", ALICE, "member")
        reached = role_of(example, s, ACME, ALICE)
    return outcome(gained=reached == "member", refused=code == 403 and reached == "owner", evidence=f"{code} {reached}")


def exploit_unknown_role(example: Example) -> Outcome:
    """Bob invites Carol for a role that the ranking does not know and that another part of the application may."""
    with stage(example) as s:
        enrol(example, s)
        code, token = invite(s, "bob", "superuser")
        accept(s, "carol", token)
        reached = role_of(example, s, ACME, CAROL)
    return outcome(gained=reached == "superuser", refused=code == 403 and reached is None, evidence=f"{code} {reached}")


def exploit_forwarded(example: Example) -> Outcome:
    """Carol's invitation is forwarded, and Mallory of Globex accepts it with her own account."""
    with stage(example) as s:
        enrol(example, s)
        code = accept(s, "mallory", invite(s, "alice", "admin")[1])
        reached = role_of(example, s, ACME, MALLORY)
    return outcome(gained=reached == "admin", refused=code == 404 and reached is None, evidence=f"{code} {reached}")


def exploit_role_in_body(example: Example) -> Outcome:
    """Carol, invited as a member, adds the role of an owner to the call that accepts."""
    with stage(example) as s:
        enrol(example, s)
        accept(s, "carol", invite(s, "alice", "member")[1], role="owner")
        reached = role_of(example, s, ACME, CAROL)
    return outcome(gained=reached == "owner", refused=reached == "member", evidence=reached)


def exploit_other_organization(example: Example) -> Outcome:
    """Carol accepts Acme's invitation under the address of Globex and is an administrator there."""
    with stage(example) as s:
        enrol(example, s)
        code = accept(s, "carol", invite(s, "alice", "admin")[1], GLOBEX)
        reached = role_of(example, s, GLOBEX, CAROL)
    return outcome(gained=reached == "admin", refused=code == 404 and reached is None, evidence=f"{code} {reached}")


def exploit_second_use(example: Example) -> Outcome:
    """Carol accepts, is removed from Acme, and comes back with the same invitation."""
    with stage(example) as s:
        enrol(example, s)
        token = invite(s, "alice", "admin")[1]
        assert accept(s, "carol", token) == 204
        with s.app.app_context():
            db.session.delete(db.session.get(example.Membership, (ACME, CAROL)))
            db.session.commit()
        code = accept(s, "carol", token)
        reached = role_of(example, s, ACME, CAROL)
    return outcome(gained=reached == "admin", refused=code == 404 and reached is None, evidence=f"{code} {reached}")


def exploit_expired(example: Example) -> Outcome:
    """Carol finds an invitation of last month in her mail and accepts it."""
    with stage(example) as s:
        enrol(example, s)
        real = example.now
        example.now = lambda: real() - timedelta(days=30)  # type: ignore[attr-defined]
        token = invite(s, "alice", "admin")[1]
        example.now = real  # type: ignore[attr-defined]
        code = accept(s, "carol", token)
        reached = role_of(example, s, ACME, CAROL)
    return outcome(gained=reached == "admin", refused=code == 404 and reached is None, evidence=f"{code} {reached}")


def legitimate_invitation(example: Example) -> None:
    """Alice invites Carol as an administrator and Mallory as a manager, and each accepts her own invitation."""
    with stage(example) as s:
        enrol(example, s)
        mallorys = invite(s, "alice", "manager", "mallory@example.com")[1]
        assert accept(s, "carol", invite(s, "alice", "admin")[1]) == 204
        assert role_of(example, s, ACME, CAROL) == "admin"
        assert accept(s, "mallory", mallorys) == 204
        assert role_of(example, s, ACME, MALLORY) == "manager"
        assert accept(s, "carol", "guessed") == 404


def legitimate_grants(example: Example) -> None:
    """Bob invites a member, whom Alice makes an administrator; Carol, a member, may invite nobody."""
    with stage(example) as s:
        enrol(example, s)
        assert accept(s, "carol", invite(s, "bob", "member")[1]) == 204
        assert invite(s, "carol", "member")[0] == 403
        assert change(s, "carol", BOB, "member") == 403
        assert change(s, "alice", CAROL, "admin") == 204
        assert role_of(example, s, ACME, CAROL) == "admin"

"""Everybody here may open the profile; whether a reserved value is in the answer is looked for in its text."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME = 1
ALICE, BOB = 1, 2
SALARY, NOTES = 91_250, "on a final warning"


def hire(example: Example, s: Stage) -> None:
    people = [(ALICE, "Alice", 91_250, NOTES), (BOB, "Bob", 48_700, "to be promoted")]
    with s.app.app_context():
        for user_id, name, salary, notes in people:
            person = example.Employee(id=user_id, user_id=user_id, organization_id=ACME, name=name, title="Engineer")
            person.salary, person.notes = salary, notes
            db.session.add(person)
        db.session.commit()


def role(s: Stage, user_id: int, name: str) -> None:
    with s.app.app_context():
        db.session.get(User, user_id).role = name
        db.session.commit()


def reading(example: Example, path: str, user: str, secrets: list[str]) -> Outcome:
    """What of ``secrets`` a guest of Acme, or Alice herself, finds in Alice's profile."""
    with stage(example) as s:
        hire(example, s)
        role(s, BOB, "guest")
        answer = s.client(user).get(path)
    found = [secret for secret in secrets if secret in answer.text]
    return outcome(
        gained=found == secrets,
        refused=answer.status_code == 200 and '"Alice"' in answer.text and not found,
        evidence=answer.text,
    )


def exploit_guest(example: Example) -> Outcome:
    """Bob, a guest of Acme, opens Alice's profile and reads her salary and what is noted about her."""
    return reading(example, f"/employees/{ALICE}", "bob", [str(SALARY), NOTES])


def exploit_list(example: Example) -> Outcome:
    """Bob asks for the list, whose page shows names only, and its answer holds the salary of everybody else."""
    return reading(example, "/employees", "bob", [str(SALARY)])


def exploit_own_notes(example: Example) -> Outcome:
    """Alice opens her own profile and reads what human resources keeps about her."""
    return reading(example, f"/employees/{ALICE}", "alice", [NOTES])


def legitimate_hr(example: Example) -> None:
    """Somebody of human resources sees salary and notes."""
    with stage(example) as s:
        hire(example, s)
        role(s, BOB, "hr")
        answer = s.client("bob").get(f"/employees/{ALICE}").json
        assert (answer["name"], answer["salary"], answer["notes"]) == ("Alice", SALARY, NOTES)


def legitimate_own_profile(example: Example) -> None:
    """Bob sees his own salary, and of Alice the name and title; other organizations see neither."""
    with stage(example) as s:
        hire(example, s)
        bob = s.client("bob")
        assert bob.get(f"/employees/{BOB}").json["salary"] == 48_700
        assert [person["name"] for person in bob.get("/employees").json] == ["Alice", "Bob"]
        assert bob.get(f"/employees/{ALICE}").json["title"] == "Engineer"
        assert s.client("mallory").get(f"/employees/{ALICE}").status_code == 404

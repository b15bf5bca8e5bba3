"""No hidden row is ever returned; the proof does the sums that a viewer would do with the numbers."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
SALES = {BOB: 4000, 11: 4100, 12: 4200, 13: 4300, 14: 4400}
AVERAGE = 4200.0
BOSS = 9700  # Alice, alone in her department


def pay(example: Example, s: Stage) -> None:
    slips = [(user, "Sales", amount, ACME) for user, amount in SALES.items()]
    slips += [(ALICE, "Board", BOSS, ACME), (MALLORY, "Sales", 8000, GLOBEX)]
    slips += [(20, "Legal", 5000 + month, ACME) for month in range(5)]  # five months, one person
    with s.app.app_context():
        for user_id, department, amount, organization_id in slips:
            slip = example.Payslip(user_id=user_id, department=department, organization_id=organization_id)
            slip.amount = amount
            db.session.add(slip)
        db.session.commit()


def exploit_total(example: Example) -> Outcome:
    """Bob, whose list holds one payslip, reads in its total how many there are at Acme and Globex together."""
    with stage(example) as s:
        pay(example, s)
        answer = s.client("bob").get("/payslips").json
    return outcome(
        gained=answer["total"] == 12 and len(answer["ids"]) == 1,
        refused=answer["total"] == len(answer["ids"]) == 1,
        evidence=answer,
    )


def exploit_narrowed_total(example: Example) -> Outcome:
    """Bob halves the interval by the filter until the total has told him what the best paid person earns."""
    with stage(example) as s:
        pay(example, s)
        bob, low, high = s.client("bob"), 4001, 16_384
        while high - low > 1:
            middle = (low + high) // 2
            found = bob.get(f"/payslips?above={middle}").json["total"]
            low, high = (middle, high) if found else (low, middle)
    return outcome(gained=low == BOSS, refused=low == 4001, evidence=f"between {low} and {high}")


def averages(example: Example, user: str) -> dict[str, float]:
    with stage(example) as s:
        pay(example, s)
        return dict(s.client(user).get("/payslips/averages").json)


def exploit_small_group(example: Example) -> Outcome:
    """Bob reads the average of a department of one, which is Alice's pay."""
    found = averages(example, "bob")
    return outcome(gained=found.get("Board") == BOSS, refused="Sales" in found and "Board" not in found, evidence=found)


def exploit_one_person_often(example: Example) -> Outcome:
    """Bob reads the average of a department whose five payslips are all of one person."""
    found = averages(example, "bob")
    return outcome(gained=found.get("Legal") == 5002, refused="Sales" in found and "Legal" not in found, evidence=found)


def exploit_foreign_rows(example: Example) -> Outcome:
    """Bob subtracts Acme's published average from the one he is shown, and has the pay of Globex's only seller."""
    found = averages(example, "bob")
    rest = found["Sales"] * 6 - AVERAGE * 5
    return outcome(gained=round(rest) == 8000, refused=found["Sales"] == AVERAGE, evidence=found)


def legitimate_own_numbers(example: Example) -> None:
    """Bob finds his own payslip and the average of his department, which is large enough."""
    with stage(example) as s:
        pay(example, s)
        bob = s.client("bob")
        assert len(bob.get("/payslips").json["ids"]) == 1
        assert bob.get("/payslips?above=4000").json["ids"] == [1]
        assert "Sales" in bob.get("/payslips/averages").json


def legitimate_administrator(example: Example) -> None:
    """Alice counts those at Acme who earn more than 9000, of whom there is one."""
    with stage(example) as s:
        pay(example, s)
        answer = s.client("alice").get("/payslips?above=9001").json
        assert answer["total"] == len(answer["ids"]) == 1

"""Exports are kept in the database and fetched by number; no job writes them here, which changes nothing."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3


def sell(example: Example, s: Stage) -> None:
    """Bob manages Acme's north, Alice its south, Mallory the only region of Globex."""
    regions = [(1, ACME, BOB), (2, ACME, ALICE), (3, GLOBEX, MALLORY)]
    with s.app.app_context():
        for number, organization_id, manager_id in regions:
            db.session.add(example.Region(id=number, organization_id=organization_id, manager_id=manager_id))
        for number, customer in enumerate(["Northwind", "Southgate", "Overseas"], 1):
            db.session.add(example.Deal(id=number, region_id=number, customer=customer, amount=100 * number, margin=7))
        db.session.commit()


def export(s: Stage, user: str) -> int:
    answer = s.client(user).post("/exports")
    assert answer.status_code == 201, answer.status
    return int(answer.json["id"])


def fetch(s: Stage, user: str, export_id: int) -> tuple[int, list[str]]:
    answer = s.client(user).get(f"/exports/{export_id}")
    return answer.status_code, answer.text.splitlines() if answer.status_code == 200 else []


def exploit_other_regions(example: Example) -> Outcome:
    """Bob, who manages the north and sees its deals only, exports and finds the deals of the south too."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("bob").get("/deals").json == [["Northwind", 100]]
        status, lines = fetch(s, "bob", export(s, "bob"))
    return outcome(
        gained="Southgate,200" in "\n".join(lines),
        refused=status == 200 and [line.split(",")[0] for line in lines] == ["customer", "Northwind"],
        evidence=lines,
    )


def exploit_hidden_column(example: Example) -> Outcome:
    """Bob reads the margin in his export, a column that only administrators are shown."""
    with stage(example) as s:
        sell(example, s)
        status, lines = fetch(s, "bob", export(s, "bob"))
    return outcome(
        gained="Northwind,100,7" in lines, refused=status == 200 and "Northwind,100" in lines, evidence=lines
    )


def exploit_foreign_export(example: Example) -> Outcome:
    """Mallory of Globex counts through the numbers and fetches what Alice has exported for Acme."""
    with stage(example) as s:
        sell(example, s)
        status, lines = fetch(s, "mallory", export(s, "alice"))
    return outcome(gained="Southgate,200,7" in lines, refused=(status, lines) == (404, []), evidence=(status, lines))


def legitimate_manager(example: Example) -> None:
    """Bob exports his region and fetches the file."""
    with stage(example) as s:
        sell(example, s)
        status, lines = fetch(s, "bob", export(s, "bob"))
        assert (status, lines[0].split(",")[:2], lines[1].split(",")[:2]) == (
            200,
            ["customer", "amount"],
            ["Northwind", "100"],
        )


def legitimate_admin(example: Example) -> None:
    """Alice exports all regions of Acme with their margins; Bob's later export does not take the place of hers."""
    with stage(example) as s:
        sell(example, s)
        first, _, third = export(s, "alice"), export(s, "bob"), export(s, "alice")
        whole = (200, ["customer,amount,margin", "Northwind,100,7", "Southgate,200,7"])
        assert first != third
        assert fetch(s, "alice", first) == fetch(s, "alice", third) == whole

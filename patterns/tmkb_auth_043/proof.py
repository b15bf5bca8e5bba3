"""Bob of Acme names an organization in the query, in a form, in JSON, and in two of them at once."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import stage

ACME, GLOBEX = 1, 2
OWN, FOREIGN = {"titles": ["Acme payroll"]}, {"titles": ["Globex plan"]}


def attack(example: Example, path: str, **body: Any) -> Outcome:
    """What Bob is told, who is refused when he names Globex alone."""
    with stage(example) as s:
        bob = s.client("bob")
        assert bob.get(f"/report?org={GLOBEX}").status_code == 403
        answer = bob.post(path, **body)
    return outcome(
        gained=answer.json == FOREIGN,
        refused=answer.status_code == 400,
        evidence=f"{answer.status_code} {answer.get_data(as_text=True)[:60]}",
    )


def exploit_query_and_json(example: Example) -> Outcome:
    """Bob names Acme in the query, which the guard reads, and Globex in the JSON body, which the handler prefers."""
    return attack(example, f"/report?org={ACME}", json={"org": GLOBEX})


def exploit_named_twice(example: Example) -> Outcome:
    """Bob names both in the query; the guard takes the first and the handler the last."""
    return attack(example, f"/report?org={ACME}&org={GLOBEX}")


def exploit_query_and_form(example: Example) -> Outcome:
    """Bob names Acme in the query and Globex in a form."""
    return attack(example, f"/report?org={ACME}", data={"org": GLOBEX})


def legitimate_query(example: Example) -> None:
    """Bob names Acme in the query and reads its report; nobody reads one without signing in."""
    with stage(example) as s:
        assert s.client("bob").get(f"/report?org={ACME}").json == OWN
        assert s.client("mallory").get(f"/report?org={GLOBEX}").json == FOREIGN
        assert s.app.test_client().get(f"/report?org={ACME}").status_code == 401


def legitimate_form(example: Example) -> None:
    """Bob names Acme in a form, with other fields beside it."""
    with stage(example) as s:
        assert s.client("bob").post("/report?sort=title", data={"org": ACME, "year": 2026}).json == OWN
        assert s.client("bob").post("/report", data={"org": GLOBEX}).status_code == 403

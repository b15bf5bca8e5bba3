"""Each list shows names only; what the filters and cursors let out besides is tried. Two customers make a page.

Sorting by a hidden column needs the same list of names; it is not tried here.
"""

import base64
import json

from werkzeug.test import TestResponse

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ROWS = [  # name, city, discount, reset token, organization
    ("Adams", "Leeds", "none", "a7", ACME),
    ("Baker", "York", "half", "b3", ACME),
    ("Clark", "Leeds", "none", "c9", ACME),
    ("Xavier", "Leeds", "none", "x1", GLOBEX),
    ("Young", "York", "none", "y2", GLOBEX),
    ("Zimmer", "York", "none", "z3", GLOBEX),
]


def fill(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for name, city, discount, token, organization_id in ROWS:
            row = {"name": name, "city": city, "discount": discount, "reset_token": token}
            db.session.add(example.Customer(**row, organization_id=organization_id))
        db.session.commit()


def ask(s: Stage, user: str, **query: str) -> TestResponse:
    return s.client(user).get("/customers", query_string=query)


def seen(answer: TestResponse) -> list[str]:
    return list(answer.json["names"]) if answer.is_json else []


def probe(example: Example, **query: str) -> Outcome:
    """Whether Bob learns by a filter that the customer it is true for is Baker."""
    with stage(example) as s:
        fill(example, s)
        answer = ask(s, "bob", **query)
    return outcome(
        gained=seen(answer) == ["Baker"],
        refused=answer.status_code == 400,
        evidence=f"{answer.status_code} {seen(answer)}",
    )


def exploit_hidden_column(example: Example) -> Outcome:
    """Bob filters by the first letter of the reset token and reads it off, letter by letter, from who is listed."""
    return probe(example, reset_token__startswith="b")


def exploit_column_of_another_role(example: Example) -> Outcome:
    """Bob, a member, filters by the discount, which only administrators may know."""
    return probe(example, discount="half")


def exploit_edited_cursor(example: Example) -> Outcome:
    """Bob decodes the cursor of his first page, writes Globex into it, and is given customers of Globex."""
    with stage(example) as s:
        fill(example, s)
        cursor = json.loads(base64.urlsafe_b64decode(ask(s, "bob").json["next"]))
        cursor |= {"organization_id": GLOBEX}
        answer = ask(s, "bob", cursor=base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode())
    return outcome(
        gained="Xavier" in seen(answer),
        refused=answer.status_code == 200 and seen(answer) == ["Clark"],
        evidence=f"{answer.status_code} {seen(answer)}",
    )


def exploit_passed_on_cursor(example: Example) -> Outcome:
    """Bob uses, unedited, a cursor out of a link that Mallory of Globex shared; a signature would be valid."""
    with stage(example) as s:
        fill(example, s)
        answer = ask(s, "bob", cursor=ask(s, "mallory").json["next"])
    return outcome(
        gained=seen(answer) == ["Zimmer"],
        refused=answer.status_code == 200 and seen(answer) == [],
        evidence=f"{answer.status_code} {seen(answer)}",
    )


def legitimate_pages(example: Example) -> None:
    """Bob reads both pages of Acme's customers."""
    with stage(example) as s:
        fill(example, s)
        first = ask(s, "bob")
        assert seen(first) == ["Adams", "Baker"]
        assert seen(ask(s, "bob", cursor=first.json["next"])) == ["Clark"]


def legitimate_filters(example: Example) -> None:
    """Bob filters by city and name, Alice by the discount, and nobody by a column that does not exist."""
    with stage(example) as s:
        fill(example, s)
        assert seen(ask(s, "bob", city="Leeds", name__startswith="C")) == ["Clark"]
        assert seen(ask(s, "alice", discount="half")) == ["Baker"]
        assert ask(s, "alice", colour="red").status_code == 400

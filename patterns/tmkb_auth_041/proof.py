"""Queries run through graphql-core, with the signed-in user as context. An answer is judged with its errors, because
``null`` alone does not tell a refusal from a crash."""

from typing import Any

from graphql import graphql_sync

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import User, db, stage

ACME, GLOBEX = 1, 2  # organizations, and the invoice of each
ALICE, BOB, MALLORY = 1, 2, 3
NOBODYS = 99


def ask(example: Example, user_id: int, *queries: str) -> list[tuple[Any, list[Any]]]:
    """For each query of this user the data and what the resolvers raised."""
    with stage() as s, s.app.app_context():
        for number in (ACME, GLOBEX):
            db.session.add(example.Invoice(id=number, organization_id=number, total=1000 * number))
        db.session.commit()
        user = db.session.get(User, user_id)
        results = [graphql_sync(example.schema, query, vars(example), context_value=user) for query in queries]
        return [(r.data, [error.original_error for error in r.errors or ()]) for r in results]


def denied(errors: list[Any]) -> bool:
    return [type(error) for error in errors] == [PermissionError]


def exploit_node(example: Example) -> Outcome:
    """Mallory, an administrator of Globex, asks for Acme's invoice by its node id."""
    ((data, errors),) = ask(example, MALLORY, '{ node(id: "1") { total } }')
    return outcome(
        gained=data == {"node": {"total": 1000}},
        refused=data == {"node": None} and denied(errors),
        evidence=(data, errors),
    )


def exploit_nested_edge(example: Example) -> Outcome:
    """Bob of Acme, whom the query for invoices refuses, walks from himself to his organization and its invoices."""
    plain, (data, errors) = ask(
        example, BOB, "{ invoices { total } }", "{ me { organization { name invoices { total } } } }"
    )
    assert plain[0] == {"invoices": None} and denied(plain[1])
    reached = data["me"]["organization"]
    return outcome(
        gained=reached["invoices"] == [{"total": 1000}],
        refused=reached == {"name": "Acme", "invoices": None} and denied(errors),
        evidence=(data, errors),
    )


def exploit_mutation_answer(example: Example) -> Outcome:
    """Bob flags an invoice, which every member may, and has its total sent back in the answer."""
    ((data, errors),) = ask(example, BOB, 'mutation { flag(id: "1") { ok invoice { total } } }')
    return outcome(
        gained=data["flag"]["invoice"] == {"total": 1000},
        refused=data == {"flag": {"ok": True, "invoice": None}} and denied(errors),
        evidence=(data, errors),
    )


def exploit_existence(example: Example) -> Outcome:
    """Mallory counts Acme's invoices by asking for node ids and comparing the answers to taken and free ones."""
    taken, free = ask(example, MALLORY, '{ node(id: "1") { id } }', f'{{ node(id: "{NOBODYS}") {{ id }} }}')
    return outcome(
        gained=taken[0] != free[0],
        refused=taken[0] == free[0] and denied(taken[1]) and repr(taken[1]) == repr(free[1]),
        evidence=(taken, free),
    )


def legitimate_admin(example: Example) -> None:
    """Alice reads Acme's invoice in every way: by query, by node id and over the edge."""
    query = '{ invoices { id total } node(id: "1") { total } me { name organization { invoices { total } } } }'
    assert ask(example, ALICE, query) == [
        (
            {
                "invoices": [{"id": "1", "total": 1000}],
                "node": {"total": 1000},
                "me": {"name": "alice", "organization": {"invoices": [{"total": 1000}]}},
            },
            [],
        )
    ]


def legitimate_member(example: Example) -> None:
    """Bob reads his name and organization and flags an invoice without asking for its content."""
    profile, flagged = ask(example, BOB, "{ me { name organization { name } } }", 'mutation { flag(id: "1") { ok } }')
    assert profile == ({"me": {"name": "bob", "organization": {"name": "Acme"}}}, [])
    assert flagged == ({"flag": {"ok": True}}, [])

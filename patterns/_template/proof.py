"""Alice and Bob belong to Acme, Mallory to Globex. Acme's document has number 1, that of Globex number 2."""

# A proof is handed one version of the code and is not told which. Each function gets it anew, in a process of its own.

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import stage


# At least one exploit_…; its docstring is a step of the attack: who does what. `gained` and `refused` are observed
# apart, so that a crash counts as neither.
def exploit_counting(example: Example) -> Outcome:
    """Mallory of Globex opens document 1, which is Acme's, and reads its title."""
    with stage(example) as s:
        answer = s.client("mallory").get("/documents/1")
    return outcome(
        gained=answer.status_code == 200 and answer.json == {"title": "Acme payroll"},
        refused=answer.status_code == 404 and "payroll" not in answer.text,
        evidence=f"{answer.status_code} {answer.text}",
    )


# At least one legitimate_…: what has to go on working, in the vulnerable version as in the secure ones.
def legitimate_own_documents(example: Example) -> None:
    """Bob lists and opens Acme's document, Mallory hers, and a number that does not exist answers 404."""
    with stage(example) as s:
        assert s.client("bob").get("/documents").json == ["Acme payroll"]
        assert s.client("bob").get("/documents/1").json == {"title": "Acme payroll"}
        assert s.client("mallory").get("/documents/2").json == {"title": "Globex plan"}
        assert s.client("mallory").get("/documents/99").status_code == 404

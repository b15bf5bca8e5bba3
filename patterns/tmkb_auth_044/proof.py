"""A member asks for pages of the administration; that the usual address refuses is tried first.

Flask itself distinguishes capitals and joins double slashes by a redirect, so the second spelling is an old mount that
was kept. What a proxy or a server in front decodes, folds or joins is not tried here; the guard of the secure version
does not look at the path at all.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import stage

NAMES = {"names": ["alice", "bob", "mallory"]}


def attack(example: Example, path: str, wanted: object) -> Outcome:
    """What Bob, a member, reads at ``path``."""
    with stage(example) as s:
        bob = s.client("bob")
        assert bob.get("/admin/users").status_code == 403
        answer = bob.get(path)
    return outcome(gained=answer.json == wanted, refused=answer.status_code == 403, evidence=answer.status)


def exploit_second_mount(example: Example) -> Outcome:
    """Bob asks for the users under the API's mount of the same pages, which has another prefix."""
    return attack(example, "/api/v1/admin/users", NAMES)


def exploit_capital(example: Example) -> Outcome:
    """Bob writes Admin with a capital, as an old address did that still works."""
    return attack(example, "/Admin/users", NAMES)


def exploit_missing_slash(example: Example) -> Outcome:
    """Bob leaves out the slash at the end, which the comparison expects and the router does not."""
    return attack(example, "/admin", {"users": 3})


def legitimate_administrator(example: Example) -> None:
    """Alice, an administrator, reads the overview and the users at their usual address."""
    with stage(example) as s:
        assert s.client("alice").get("/admin/users").json == NAMES
        assert s.client("alice").get("/admin/").json == {"users": 3}
        assert s.client("alice").get("/api/v1/admin/users").json == NAMES


def legitimate_member(example: Example) -> None:
    """Bob is welcomed outside the administration, and a client that is not signed in stays out of it."""
    with stage(example) as s:
        assert s.client("bob").get("/welcome").json == {"name": "bob", "theme": "light"}
        assert s.client("bob").get("/administration").status_code == 404
        assert s.app.test_client().get("/admin/users").status_code == 401

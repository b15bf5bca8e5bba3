"""Each guard is in the source of both versions; requests tell whether it is called."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
KEY = 1
BASE = f"/organizations/{ACME}"


def begin(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(example.AccessKey(id=KEY, name="deploy", organization_id=ACME))
        db.session.commit()


def names(example: Example, s: Stage) -> list[str]:
    with s.app.app_context():
        return list(db.session.scalars(db.select(example.AccessKey.name).order_by(example.AccessKey.id)))


def exploit_guard_above_route(example: Example) -> Outcome:
    """Somebody not signed in creates an access key of Acme; the guard wraps a view that is already registered."""
    with stage(example) as s:
        begin(example, s)
        answer = s.client("nobody").post(f"{BASE}/keys", json={"name": "mine"})
        after = names(example, s)
    return outcome(gained=after == ["deploy", "mine"], refused=answer.status_code == 401 and after == ["deploy"])


def exploit_unguarded_method(example: Example) -> Outcome:
    """Bob, a member of Acme, may not rename its key and deletes it, by the one method without the guard."""
    with stage(example) as s:
        begin(example, s)
        bob = s.client("bob")
        assert bob.patch(f"{BASE}/keys/{KEY}", json={"name": "mine"}).status_code == 403
        answer = bob.delete(f"{BASE}/keys/{KEY}")
        after = names(example, s)
    return outcome(gained=after == [], refused=answer.status_code == 403 and after == ["deploy"], evidence=after)


def exploit_outside_group(example: Example) -> Outcome:
    """Mallory of Globex is kept out of Acme's usage and downloads its keys from a blueprint beside the guarded one."""
    with stage(example) as s:
        begin(example, s)
        mallory = s.client("mallory")
        assert mallory.get(f"{BASE}/usage").status_code == 403
        answer = mallory.get(f"{BASE}/keys.csv")
    return outcome(gained="deploy" in answer.text, refused=answer.status_code == 403, evidence=answer.text)


def exploit_walk(example: Example) -> Outcome:
    """Bob calls each address and method that the application knows, and some let him in."""
    with stage(example) as s:
        begin(example, s)
        answers = {}
        for rule in s.app.url_map.iter_rules():
            for method in rule.methods - {"HEAD", "OPTIONS"} if rule.endpoint != "static" else ():
                address = rule.rule.replace("<int:organization_id>", str(ACME)).replace("<int:key_id>", str(KEY))
                answers[method, address] = s.client("bob").open(address, method=method, json={"name": "n"}).status_code
    assert len(answers) == 5
    return outcome(
        gained=any(200 <= status < 300 for status in answers.values()),
        refused=set(answers.values()) == {403},
        evidence=answers,
    )


def legitimate_administrator(example: Example) -> None:
    """Alice creates, renames, counts, exports and deletes keys of Acme."""
    with stage(example) as s:
        begin(example, s)
        alice = s.client("alice")
        assert alice.post(f"{BASE}/keys", json={"name": "backup"}).status_code == 201
        assert alice.patch(f"{BASE}/keys/{KEY}", json={"name": "release"}).status_code == 204
        assert alice.get(f"{BASE}/usage").json == {"keys": 2}
        assert alice.get(f"{BASE}/keys.csv").text == "1,release\n2,backup"
        assert alice.delete(f"{BASE}/keys/{KEY}").status_code == 204
        assert names(example, s) == ["backup"]


def legitimate_other_tenant(example: Example) -> None:
    """Mallory creates a key of Globex, where the same number of Acme's key is not found."""
    with stage(example) as s:
        begin(example, s)
        mallory = s.client("mallory")
        assert mallory.delete(f"/organizations/{GLOBEX}/keys/{KEY}").status_code == 404
        assert mallory.post(f"/organizations/{GLOBEX}/keys", json={"name": "theirs"}).status_code == 201
        assert mallory.get(f"/organizations/{GLOBEX}/keys.csv").text == "2,theirs"

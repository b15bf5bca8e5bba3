"""A table of the same database stands for the warehouse, an open endpoint for a dashboard in another site's frame."""

from urllib.parse import parse_qsl, urlencode

import jwt

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

KEY = "0123456789abcdef0123456789abcdef"
ACME, GLOBEX = 1, 2
PRINTER, DOOR, LAMP = 1, 2, 3


def sell(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for sale_id, product, customer_id in ((PRINTER, "printer", ACME), (DOOR, "door", GLOBEX), (LAMP, "lamp", ACME)):
            db.session.add(example.Sale(id=sale_id, product=product, customer_id=customer_id))
        db.session.commit()
        example.copy_sales()


def products(s: Stage, link: str) -> tuple[int, list[str]]:
    answer = s.app.test_client().get(link)
    return answer.status_code, sorted(answer.json) if answer.status_code == 200 else []


def changed(link: str, **values: str) -> str:
    """The link, with these parameters instead of what it said."""
    path, _, query = link.partition("?")
    return f"{path}?{urlencode({**dict(parse_qsl(query)), **values})}"


def exploit_changed_parameter(example: Example) -> Outcome:
    """Mallory of Globex writes Acme's number into the link of her dashboard and reads Acme's sales."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        link = s.client("mallory").get("/dashboard").json
        status, seen = products(s, changed(link, customer=str(ACME)))
    return outcome(gained="printer" in seen, refused=status == 403 or seen == ["door"], evidence=f"{status} {seen}")


def exploit_own_token(example: Example) -> Outcome:
    """Somebody who never signed in makes up a link for Acme, with a token signed by a key of his own."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        token = jwt.encode({"customer": ACME, "exp": 4102444800}, "f" * 32, algorithm="HS256")
        status, seen = products(s, changed("/embedded/sales", customer=str(ACME), token=token))
    return outcome(gained="printer" in seen, refused=status == 403, evidence=f"{status} {seen}")


def exploit_deleted_sale(example: Example) -> Outcome:
    """Acme has had a sale deleted; after the next copy its dashboard, which partners see as well, still shows it."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        with s.app.app_context():
            db.session.delete(db.session.get(example.Sale, LAMP))
            db.session.commit()
            example.copy_sales()
        _, seen = products(s, s.client("bob").get("/dashboard").json)
    return outcome(gained="lamp" in seen, refused=seen == ["printer"], evidence=str(seen))


def exploit_private_sale(example: Example) -> Outcome:
    """Acme makes a sale private; the copy knows no such thing and goes on showing it."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        with s.app.app_context():
            db.session.get(example.Sale, LAMP).private = True
            db.session.commit()
            example.copy_sales()
        _, seen = products(s, s.client("bob").get("/dashboard").json)
    return outcome(gained="lamp" in seen, refused=seen == ["printer"], evidence=str(seen))


def legitimate_dashboard(example: Example) -> None:
    """Both customers follow their links and see their own numbers."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        assert products(s, s.client("bob").get("/dashboard").json) == (200, ["lamp", "printer"])
        assert products(s, s.client("mallory").get("/dashboard").json) == (200, ["door"])


def legitimate_new_sale(example: Example) -> None:
    """A new sale appears after the next copy, and those of before stay."""
    with stage(example, EMBED_KEY=KEY) as s:
        sell(example, s)
        with s.app.app_context():
            db.session.add(example.Sale(product="safe", customer_id=GLOBEX))
            db.session.commit()
            example.copy_sales()
        assert products(s, s.client("mallory").get("/dashboard").json) == (200, ["door", "safe"])

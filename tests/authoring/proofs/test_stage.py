"""The first stage of a run is prepared before the example is known. It must not differ from later stages."""

import textwrap

import pytest

pytestmark = [pytest.mark.process, pytest.mark.needs("flask", "celery")]


@pytest.fixture
def play(worker):
    """Run an exploit with the given body on an example, and return the answer."""

    def ask(body, example=""):
        head = (
            "from tmkb.authoring.proofs import outcome\nfrom tmkb.authoring.proofs.stage import Document, db, stage\n"
        )
        source = f"{head}def exploit_it(example):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
        return worker.ask(
            {
                "source": f"from tmkb.authoring.proofs.stage import Document, db\n{textwrap.dedent(example)}",
                "proof_source": source,
                "proof_file": "proof.py",
                "function": "exploit_it",
            }
        )

    return ask


NOTE = """
    class Note(db.Model):
        id = db.Column(db.Integer, primary_key=True)
        title = db.Column(db.String, index=True)
"""


def test_a_prepared_stage_equals_a_new_one(play):
    answer = play(
        """
        dumps, engines = [], []
        for _ in range(2):
            with stage(example, KEY="k") as s, s.app.app_context():
                assert s.app.config["KEY"] == "k"
                assert s.client("bob").get("/nowhere").status_code == 404
                engines.append(db.engine)
                dumps.append(list(db.session.connection().connection.dbapi_connection.iterdump()))
        assert engines[0] is not engines[1]
        assert any("CREATE INDEX ix_note_title" in line for line in dumps[0])
        assert any("Globex plan" in line for line in dumps[0])
        return outcome(gained=sorted(dumps[0]) == sorted(dumps[1]), refused=False, evidence=dumps)
        """,
        NOTE,
    )

    assert answer["status"] == "gained", answer


def test_an_example_can_add_to_a_table_of_the_stage(play):
    answer = play(
        """
        with stage(example) as s, s.app.app_context():
            db.session.add(Document(title="Acme payroll", owner_id=1, organization_id=1))
            try:
                db.session.commit()
            except Exception as error:
                return outcome(gained=False, refused="UNIQUE" in str(error), evidence=error)
        return outcome(gained=True, refused=False)
        """,
        'db.Index("one_title", Document.__table__.c.title, unique=True)',
    )

    assert answer["status"] == "refused", answer


def test_engine_options_are_used(play):
    answer = play(
        """
        with stage(example, SQLALCHEMY_ENGINE_OPTIONS={"pool_size": 1}) as s, s.app.app_context():
            size = db.engine.pool.size()
        return outcome(gained=size == 1, refused=size != 1)
        """
    )

    assert answer["status"] == "gained", answer

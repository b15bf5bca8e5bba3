"""Notes of organizations in PostgreSQL. Each organization has a schema of its own and is reached by its host name.

The schemas contain views of tables in the schema public, because the stage restores only the tables there. All queries
name the tables without a schema, so `search_path` decides which organization's notes they read.
"""

from flask import Blueprint, request
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, db


class Note(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("notes", __name__)


def organization_of_host():
    """Return the select of the organization whose name is the first label of the host: acme.example.com."""
    return db.select(Organization).where(db.func.lower(Organization.name) == request.host.partition(".")[0].lower())


@bp.errorhandler(ProgrammingError)
def no_table(error):
    if error.orig.sqlstate != "42P01":  # undefined_table
        raise error
    db.session.rollback()
    return "", 404


@bp.get("/notes")
def list_notes():
    return [note.text for note in db.session.scalars(db.select(Note).order_by(Note.id))]


@bp.post("/notes")
def create_note():
    note = Note(text=request.get_json()["text"])
    db.session.add(note)
    db.session.commit()
    return {"id": note.id}, 201


@bp.delete("/notes/<int:note_id>")
def delete_note(note_id):
    db.session.delete(db.get_or_404(Note, note_id))
    db.session.commit()
    return "", 204


@bp.get("/notes/search")
def search_notes():
    statement = db.text("SELECT text FROM note WHERE text LIKE :part")
    return list(db.session.scalars(statement, {"part": f"%{request.args['part']}%"}))


def event_create_schemas():
    """Create the schemas of Acme and Globex, and no table note outside them."""
    with db.engines["superuser"].begin() as connection:
        connection.execute(db.text("DROP TABLE public.note"))
        for number in (1, 2):
            connection.execute(
                db.text(f"CREATE TABLE public.note_{number} (id serial PRIMARY KEY, text text NOT NULL)")
            )
            connection.execute(db.text(f"CREATE SCHEMA org_{number}"))
            connection.execute(db.text(f"CREATE VIEW org_{number}.note AS SELECT * FROM public.note_{number}"))
            connection.execute(db.text(f"GRANT USAGE ON SCHEMA org_{number} TO app"))
            connection.execute(db.text(f"GRANT SELECT, INSERT, UPDATE, DELETE ON org_{number}.note TO app"))
            connection.execute(db.text(f"GRANT USAGE ON SEQUENCE public.note_{number}_id_seq TO app"))


def event_report():
    """Return the notes that a script reads on a pooled connection without naming an organization."""
    with db.engine.connect() as connection:
        try:
            return list(connection.scalars(db.select(Note.text)))
        except ProgrammingError:
            return []


def state_notes():
    statement = "SELECT 1, id, text FROM public.note_1 UNION ALL SELECT 2, id, text FROM public.note_2 ORDER BY 1, 2"
    with db.engines["superuser"].connect() as connection:
        return [list(row) for row in connection.execute(db.text(statement))]

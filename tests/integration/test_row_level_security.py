"""What TMKB-AUTH-022 says of row policies, held against PostgreSQL itself; its own proof plays on a stand-in.

Two organizations have a ticket each. The policy compares with a setting of the session. The pool has one connection, so
whoever comes next is lent what the one before has left.
"""

import pytest

pytestmark = pytest.mark.full

psycopg = pytest.importorskip("psycopg", reason="needs psycopg, a development tool")
sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy, of the extra proofs")

ACME, GLOBEX = "1", "2"
SESSION = "SELECT set_config('app.organization_id', :id, false)"
TRANSACTION = "SELECT set_config('app.organization_id', :id, true)"
SCHEMA = """
    CREATE ROLE owner LOGIN;
    CREATE ROLE application LOGIN;
    CREATE ROLE backup LOGIN BYPASSRLS;
    SET ROLE owner;
    CREATE TABLE ticket (organization_id text NOT NULL, subject text NOT NULL);
    GRANT SELECT, INSERT, UPDATE ON ticket TO application, backup;
    INSERT INTO ticket VALUES ('1', 'Acme printer'), ('2', 'Globex door');
    ALTER TABLE ticket ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON ticket USING (organization_id = current_setting('app.organization_id', true));
    RESET ROLE;
"""


@pytest.fixture
def as_(postgres):
    """A pool of one connection for that login, to a database made for this test."""
    with psycopg.connect(host=postgres, user="postgres", dbname="postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS tickets WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS owner, application, backup")
        connection.execute("CREATE DATABASE tickets")
        connection.execute("GRANT ALL ON DATABASE tickets TO PUBLIC")
    with psycopg.connect(host=postgres, user="postgres", dbname="tickets") as connection:
        connection.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
        connection.execute(SCHEMA)
    engines = []

    def pool(login):
        url = sqlalchemy.URL.create("postgresql+psycopg", login, database="tickets", query={"host": postgres})
        engines.append(sqlalchemy.create_engine(url, pool_size=1, max_overflow=0))
        return engines[-1]

    yield pool
    for engine in engines:
        engine.dispose()


@pytest.fixture
def pool(as_):
    return as_("application")


def enter(connection, statement, organization):
    connection.execute(sqlalchemy.text(statement), {"id": organization})


def subjects(connection):
    return list(connection.scalars(sqlalchemy.text("SELECT subject FROM ticket ORDER BY 1")))


def session_of(connection):
    return connection.scalar(sqlalchemy.text("SELECT pg_backend_pid()"))


def test_a_setting_for_the_session_is_left_to_the_next_borrower(pool):
    with pool.begin() as alice:
        enter(alice, SESSION, ACME)
        session = session_of(alice)
    with pool.begin() as job_of_globex:
        assert session_of(job_of_globex) == session
        assert subjects(job_of_globex) == ["Acme printer"]


def test_a_rollback_takes_back_even_a_setting_for_the_session(pool):
    """Which is why a request that only reads leaves nothing, and the leak waits for the first that commits."""
    with pool.connect() as alice:
        enter(alice, SESSION, ACME)
        assert subjects(alice) == ["Acme printer"]
    with pool.begin() as job_of_globex:
        assert subjects(job_of_globex) == []


@pytest.mark.parametrize("statement", [TRANSACTION, "SET LOCAL app.organization_id = '1'"])
def test_a_setting_for_the_transaction_is_not(pool, statement):
    with pool.begin() as alice:
        enter(alice, statement, ACME)
        assert subjects(alice) == ["Acme printer"]
        session = session_of(alice)
    with pool.begin() as job_of_globex:
        assert session_of(job_of_globex) == session
        assert subjects(job_of_globex) == []


def test_each_reads_and_writes_its_own_in_turns_on_one_connection(pool):
    for organization, subject in ((ACME, "Acme printer"), (GLOBEX, "Globex door")) * 2:
        with pool.begin() as connection:
            enter(connection, TRANSACTION, organization)
            assert subjects(connection) == [subject]
            changed = connection.execute(sqlalchemy.text("UPDATE ticket SET subject = subject"))
            assert changed.rowcount == 1


def test_a_row_for_another_organization_is_refused(pool):
    with pool.connect() as connection:
        enter(connection, TRANSACTION, ACME)
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="violates row-level security policy"):
            connection.execute(sqlalchemy.text("INSERT INTO ticket VALUES ('2', 'Planted')"))


def test_without_a_setting_there_are_no_rows(pool):
    """Neither on a fresh session, where it is null, nor after a transaction that had one, where it is empty."""
    with pool.begin() as connection:
        assert subjects(connection) == []
        enter(connection, TRANSACTION, ACME)
    with pool.begin() as connection:
        assert connection.scalar(sqlalchemy.text("SELECT current_setting('app.organization_id', true)")) == ""
        assert subjects(connection) == []


def test_a_commit_in_the_middle_ends_the_setting(pool):
    with pool.connect() as connection:
        enter(connection, TRANSACTION, ACME)
        connection.commit()
        assert subjects(connection) == []


def test_the_owner_is_not_bound_unless_forced(as_):
    owner = as_("owner")
    with owner.begin() as connection:
        enter(connection, TRANSACTION, ACME)
        assert subjects(connection) == ["Acme printer", "Globex door"]
        connection.execute(sqlalchemy.text("ALTER TABLE ticket FORCE ROW LEVEL SECURITY"))
        assert subjects(connection) == ["Acme printer"]


@pytest.mark.parametrize("login", ["backup", "postgres"])
def test_force_does_not_bind_a_superuser_or_bypassrls(as_, login):
    with as_("owner").begin() as connection:
        connection.execute(sqlalchemy.text("ALTER TABLE ticket FORCE ROW LEVEL SECURITY"))
    with as_(login).begin() as connection:
        enter(connection, TRANSACTION, ACME)
        assert subjects(connection) == ["Acme printer", "Globex door"]


def test_a_reset_when_the_connection_comes_back_is_enough_too(pool):
    """The pattern's second mitigation."""

    @sqlalchemy.event.listens_for(pool, "checkin")
    def forget(connection, _record):
        connection.execute("SELECT set_config('app.organization_id', '', false)")
        connection.commit()

    with pool.begin() as alice:
        enter(alice, SESSION, ACME)
        session = session_of(alice)
    with pool.begin() as job_of_globex:
        assert session_of(job_of_globex) == session
        assert subjects(job_of_globex) == []

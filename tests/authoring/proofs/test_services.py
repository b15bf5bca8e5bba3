"""Patterns that need PostgreSQL or Redis are proven on real servers, and are not proven without them."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from tmkb.authoring.proofs import runner, services
from tmkb.cli.main import main
from tmkb.schema import paths

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery", "psycopg", "redis")]

ROW_SECURITY = f"{paths.PATTERNS}/tmkb_auth_022"
ROLES = (
    "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname IN ('app', 'owner')"
)


@pytest.fixture(scope="module")
def both(running):
    """Both services. Tests are skipped where they are not installed, except in CI."""
    for name in ("postgresql", "redis"):
        if services.program(name) is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"needs {name}")
    return running


@pytest.fixture
def on_postgresql(both):
    """Let the stages of this process use PostgreSQL."""
    from tmkb.authoring.proofs import stage

    stage.use(both.addresses(["postgresql"]), 0)
    yield stage
    stage.use({}, 0)


@pytest.fixture(scope="module")
def worker():
    """One that waits longer than that of other modules: nothing here hangs, and a service can be slow."""
    worker = runner.Worker(timeout=60)
    yield worker
    worker.close()


@pytest.fixture
def execute(worker, both):
    """Execute a line in a proof of a pattern that needs the services, and return the answer."""

    def run(line, *needed):
        request = {
            "app": "",
            "app_file": "",
            "source": "",
            "proof": f"def legitimate_line(example):\n    {line}\n",
            "proof_file": "proof.py",
            "attacks": None,
            "cases": ["legitimate_line"],
            "expected": None,
            "services": both.addresses(needed),
        }
        (answer,) = worker.run(request)
        return answer

    return run


@pytest.fixture
def missing(monkeypatch, running):
    monkeypatch.setattr(running, "_started", {})
    monkeypatch.setattr(services, "program", lambda _name: None)


def test_a_service_that_is_not_installed(missing, prove):
    report = prove(ROW_SECURITY)

    assert not report.proven and not report.cells
    assert report.unavailable == "needs postgresql, which is not installed"
    assert not any(report.legs().values())


def test_cases_that_need_no_service_run_without_it(missing, prove):
    report = prove(f"{paths.PATTERNS}/tmkb_auth_009", mutate=False)

    names = {cell.function for cell in report.cells}
    assert "own_approval" in names and "raised_before_commit" not in names
    assert all(cell.ok for cell in report.cells)
    assert not report.proven and report.unavailable == "needs postgresql, which is not installed"
    assert not any(report.legs().values())


def test_the_command_without_the_service(missing, capsys):
    assert main(["prove", "22"]) == 1
    assert "TMKB-AUTH-022  not proven: needs postgresql, which is not installed\n" in capsys.readouterr().out


def test_a_service_that_does_not_start(monkeypatch, tmp_path):
    initdb = tmp_path / "initdb"
    initdb.write_text("#!/bin/sh\necho 'no space left'\nexit 1\n")
    initdb.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(services, "program", lambda _name: str(tmp_path))
    monkeypatch.setattr(services, "_account", lambda: None)

    with pytest.raises(services.UnavailableError, match="needs postgresql, which does not start: no space left"):
        services.Services().addresses(["postgresql"])


def test_no_service_is_started_for_other_patterns(missing, prove):
    assert prove(f"{paths.PATTERNS}/tmkb_auth_007", mutate=False).proven


def test_the_roles_are_ordinary(on_postgresql):
    with on_postgresql.stage() as s, s.app.app_context():
        db = on_postgresql.db
        session = db.session
        assert session.scalar(db.text("SELECT current_user")) == "app"
        assert session.scalars(db.text(ROLES)).all() == [False, False]
        owners = session.scalars(db.text("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"))
        assert owners.all() == ["owner"]


def test_each_stage_has_a_database_of_its_own(on_postgresql):
    db = on_postgresql.db
    for _ in range(2):
        with on_postgresql.stage() as s, s.app.app_context():
            assert db.session.scalars(db.select(on_postgresql.Document.title)).all() == ["Acme payroll", "Globex plan"]
            db.session.execute(db.delete(on_postgresql.Document))
            db.session.commit()


@pytest.mark.parametrize(
    ("statement", "restored"),
    [
        ("DELETE FROM document", True),
        ("INSERT INTO document (title, state, owner_id, organization_id) VALUES ('Draft', 'new', 1, 1)", True),
        ("ALTER TABLE document ENABLE ROW LEVEL SECURITY", False),
        ("CREATE TABLE other (id integer)", False),
        ("REVOKE SELECT ON document FROM app", False),
    ],
)
def test_rows_are_restored_and_other_changes_are_noticed(on_postgresql, statement, restored):
    db, Document = on_postgresql.db, on_postgresql.Document

    def next_id():
        document = Document(title="Next", owner_id=1, organization_id=1)
        db.session.add(document)
        db.session.commit()
        return document.id

    with on_postgresql.stage() as s:
        saved = s.save()
        with s.app.app_context(), db.engines["superuser"].begin() as connection:
            connection.execute(db.text(statement))
        assert s.restore(saved) is restored
        if restored:
            with s.app.app_context():
                assert db.session.scalars(db.select(Document.title)).all() == ["Acme payroll", "Globex plan"]
                assert next_id() == 11


LEFT = """
    SET statement_timeout = '1h'; SET ROLE owner; CREATE TEMPORARY TABLE left_behind (id integer);
    PREPARE left_behind AS SELECT 1; LISTEN left_behind; SELECT pg_advisory_lock(1)
"""
FOUND = """
    SELECT current_user, current_setting('statement_timeout'), to_regclass('left_behind'),
        (SELECT count(*) FROM pg_prepared_statements) AS prepared,
        (SELECT count(*) FROM pg_listening_channels()) AS listening,
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks
"""


def test_a_connection_that_is_used_again_is_like_a_new_one(on_postgresql):
    db = on_postgresql.db

    def run(statement):
        """Return the process of the server, and the result of ``statement``, of which the client changes, too."""
        with s.app.app_context(), db.engines["superuser"].connect() as connection:
            raw = connection.connection.dbapi_connection
            found = raw.autocommit, raw.prepare_threshold, raw.row_factory.__name__
            raw.autocommit, raw.prepare_threshold, raw.row_factory = True, None, dict_row
            cursor = raw.execute(statement)
            return raw.info.backend_pid, found, list(cursor.fetchone().values()) if cursor.description else None

    from psycopg.rows import dict_row

    with on_postgresql.stage() as s:
        saved = s.save()
        first = run(FOUND)
        assert run(LEFT)[0] == first[0]
        s.restore(saved)
        assert run(FOUND) == first
        assert first[2] == ["postgres", "0", None, 0, 0, 0]


def test_new_rows_get_ids_that_are_free(on_postgresql):
    with on_postgresql.stage() as s, s.app.app_context():
        on_postgresql.db.session.add(on_postgresql.User(name="carol"))
        on_postgresql.db.session.commit()


@pytest.mark.parametrize(("rivals", "order"), [(1, ["attempt", "rival"]), (2, ["rival", "attempt"])])
def test_a_rival_that_waits_for_a_lock_lets_the_attempt_continue(on_postgresql, rivals, order):
    """The rival changes the row that the attempt has locked, and waits; or another row, and ends first."""
    db, Document = on_postgresql.db, on_postgresql.Document

    def change(id_, who):
        with s.app.app_context():
            db.session.execute(db.update(Document).filter_by(id=id_).values(title=who))
            changed = time.monotonic()  # before the commit: the process that waits cannot have got as far
            db.session.commit()
        return {who: changed, "process": os.getpid()}

    with on_postgresql.stage() as s:
        with s.during("UPDATE document", lambda: change(rivals, "rival")) as rival:
            attempt = change(1, "attempt")
        changes = attempt | rival
        assert attempt["process"] != changes.pop("process")
        assert sorted(changes, key=changes.get) == order
        with s.app.app_context():
            assert db.session.get(Document, rivals).title == "rival"


def test_a_rival_before_the_commit(on_postgresql):
    """The rival does not see the change that is not committed yet."""
    db, Document = on_postgresql.db, on_postgresql.Document

    def look():
        with s.app.app_context():
            return {"title": db.session.get(Document, 1).title}

    with on_postgresql.stage() as s:
        with s.during(None, look) as seen, s.app.app_context():
            db.session.get(Document, 1).title = "changed"
            db.session.commit()
        assert seen == {"title": "Acme payroll"} and look() == {"title": "changed"}
        with pytest.raises(RuntimeError, match="no statement is committed"), s.during(None, look):
            look()


def test_the_migration_of_an_example_is_executed_by_the_owner(on_postgresql):
    example = SimpleNamespace(
        MIGRATION="CREATE TABLE extra (by text DEFAULT current_user); INSERT INTO extra DEFAULT VALUES"
    )
    with on_postgresql.stage(example) as s, s.app.app_context():
        assert on_postgresql.db.session.scalar(on_postgresql.db.text("SELECT by FROM extra")) == "owner"


@pytest.mark.parametrize(
    ("line", "needed", "detail"),
    [
        ("import psycopg", [], "import of psycopg halted"),
        ("import psycopg; psycopg.connect('host=/var/run/postgresql')", ["postgresql"], "may only connect to the"),
        ("import psycopg; psycopg.connect('host=127.0.0.1 port=9')", ["postgresql"], "may only connect to the"),
        ("import redis; redis.Redis.from_url('unix:///tmp/other').ping()", ["redis"], "may not use socket.connect"),
        ("import redis; redis.Redis(port=9).ping()", ["redis"], "may not use socket."),
    ],
)
def test_the_guard_allows_no_other_server(execute, line, needed, detail):
    assert detail in execute(line, *needed)["detail"]


def test_a_stage_with_redis(execute):
    line = (
        "from tmkb.authoring.proofs.stage import stage; import redis\n"
        "    with stage() as s: client = redis.Redis.from_url(s.app.config['REDIS_URL'])\n"
        "    assert not client.keys() and client.set('key', 'value')"
    )
    for needed in (["redis"], ["redis", "postgresql"], ["redis"]):
        assert execute(line, *needed)["status"] == "served"


def test_jobs_run_in_a_celery_worker(execute):
    """It is another process, gets messages through Redis, and sees the data of the case."""
    line = (
        "import os; from celery import shared_task; from tmkb.authoring.proofs.stage import Document, db, stage\n"
        "    def who(): return [os.getpid(), db.session.get(Document, 1).title]\n"
        "    def fail(): 1 / 0\n"
        "    for task in (who, fail): shared_task(name=task.__name__)(task)\n"
        "    with stage() as s:\n"
        "        s.celery.send_task('who'); s.celery.send_task('fail')\n"
        "        (pid, title), error = s.results()\n"
        "        assert s.results() == []\n"
        "    assert pid != os.getpid() and title == 'Acme payroll' and type(error).__name__ == 'ZeroDivisionError'"
    )
    answer = execute(line, "celery")
    assert (answer["status"], answer["detail"]) == ("served", "")


def test_keys_are_restored_with_their_expiry(both):
    keys = services.Keys(both.addresses(["redis"])["redis"], services.REDIS_DATABASES - 1)
    with keys.client() as client:
        client.set("lasting", "1")
        client.set("short", "2", ex=100)
        content = keys.content()
        client.set("lasting", "changed")
        client.set("other", "3")
        keys.restore(content)
        assert {key: client.get(key) for key in client.scan_iter()} == {b"lasting": b"1", b"short": b"2"}
        assert client.ttl("lasting") == -1 and 0 < client.ttl("short") <= 100
        keys.clear()
        assert client.dbsize() == 0


@pytest.mark.parametrize("name", ["postgresql", "redis"])
def test_no_server_outlives_a_killed_run(both, name):
    code = (
        "import sys\nfrom tmkb.authoring.proofs import services\n"
        f"print(services.Services().addresses(['{name}'])['{name}'], flush=True)\nsys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as process:
        address = process.stdout.readline().strip()
        assert os.path.exists(address)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while os.path.exists(address):
        assert time.monotonic() < deadline
        time.sleep(0.05)

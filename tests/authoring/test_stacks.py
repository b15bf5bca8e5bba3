"""The stages of FastAPI, Django and Express: what they offer, what they refuse, and how results are reported."""

import os
import shutil
import signal
import threading
import time

import pytest

from tests.support.repository import ROOT
from tmkb.authoring.idiom_checks import check_all
from tmkb.authoring.stacks import express, runner
from tmkb.schema import installation, paths

pytestmark = [pytest.mark.full, pytest.mark.needs("fastapi", "django", "time_machine", "node")]

STACKS = {"fastapi": "fastapi.py", "django": "django.py", "express": "express.mjs"}
DATA = os.path.join(ROOT, "tests", "data", "idioms")
INVOICES = os.path.join(paths.PATTERNS, "tmkb_auth_007")


@pytest.fixture
def play_with(tmp_path):
    """Replace ``old`` by ``new`` in the application of a stack of pattern 007, play it, and return the result.

    ``others``: other pairs of ``old`` and ``new``.
    """

    def play(stack, old, new, *others, timeout=60):
        folder = shutil.copytree(INVOICES, tmp_path / "tmkb_auth_007")
        app = folder / "idioms" / STACKS[stack]
        for before, after in ((old, new), *others):
            assert before in app.read_text()
            app.write_text(app.read_text().replace(before, after))
        (folder / "idioms.yaml").write_text(f"kind: idioms\nstacks: {{{stack}: {{app: idioms/{app.name}}}}}\n")
        (result,) = runner.play_idioms(str(folder), timeout)
        return result

    return play


def statuses(result):
    return {cell.case: cell.status for cell in result.cells}


@pytest.fixture(scope="module")
def features():
    """The results of an application that uses everything, by stack."""
    return {result.stack: result for result in runner.play_idioms(DATA)}


@pytest.mark.parametrize("stack", STACKS)
def test_a_stage_offers_what_cases_use(features, stack):
    unexpected = {cell.case: cell.status for cell in features[stack].cells if not cell.ok}

    assert unexpected == {"crash": "neither", "race": "not played", "cached": "not played"}
    assert not features[stack].proven
    assert str(features[stack]) == f"{stack} 19/22"


@pytest.mark.parametrize("stack", STACKS)
def test_the_exception_behind_a_status_500_is_reported(features, stack):
    detail = next(cell.detail for cell in features[stack].cells if cell.case == "crash")

    assert "Error: nothing here" in detail


def test_every_application_of_the_packaged_patterns_refuses_and_serves():
    folders = {name: os.path.join(paths.PATTERNS, name) for name in os.listdir(paths.PATTERNS) if name[0] != "_"}
    checks = dict(check_all(folders, jobs=2, timeout=60))

    assert checks["tmkb_auth_007"].summary().startswith("idioms: django 27/27, fastapi 27/27, express 27/27, ")
    assert {name: [*each.details()] for name, each in checks.items() if [*each.details()]} == {}


REMOVED = {
    "fastapi": ("select(Invoice).filter_by(organization_id=user.organization_id)", "select(Invoice)"),
    "django": ("Invoice.objects.filter(organization_id=user.organization_id)", "Invoice.objects.all()"),
    "express": ("eq(invoices.organizationId, user.organizationId)", "undefined"),
}
CLOSED = {
    "fastapi": (".filter_by(id=invoice_id)", ".filter_by(id=0)"),
    "django": ("pk=invoice_id", "pk=0"),
    "express": ("invoice ? res", "false ? res"),
}


@pytest.mark.parametrize("stack", STACKS)
def test_without_its_condition_an_idiom_is_exploited(play_with, stack):
    result = play_with(stack, *REMOVED[stack])

    assert statuses(result)["mallory_show"] == "gained"
    assert statuses(result)["bob_show"] == "served"


@pytest.mark.parametrize("stack", STACKS)
def test_refusing_all_requests_is_no_fix(play_with, stack):
    result = play_with(stack, *CLOSED[stack])

    assert statuses(result)["bob_show"] == "failed"
    assert any(cell.failed for cell in result.cells)


BROKEN = {
    "fastapi": ("router = APIRouter()", "router = APIRooter()"),
    "django": ("urlpatterns = [", "urlpatterns = paths["),
    "express": ("export const router = Router();", "export const router = Rooter();"),
}


@pytest.mark.parametrize("stack", STACKS)
def test_an_application_that_cannot_be_executed_is_an_error(play_with, stack):
    result = play_with(stack, *BROKEN[stack])

    assert {cell.status for cell in result.cells} == {"error"}
    assert "not defined" in result.cells[0].detail


@pytest.mark.parametrize(
    ("stack", "old", "attempt"),
    [
        ("fastapi", "router = APIRouter()", "router = APIRouter()\nopen({file!r}, 'w')"),
        ("django", "urlpatterns = [", "open({file!r}, 'w')\nurlpatterns = ["),
        (
            "express",
            "export const router",
            "import fs from 'fs';\nfs.writeFileSync({file!r}, '');\nexport const router",
        ),
    ],
)
def test_an_application_cannot_write_outside_its_folder(play_with, tmp_path, stack, old, attempt):
    file = tmp_path / "written"
    result = play_with(stack, old, attempt.format(file=str(file)))

    assert {cell.status for cell in result.cells} == {"error"}
    assert not file.exists()


def test_a_node_application_cannot_start_processes(play_with):
    result = play_with(
        "express",
        "export const router",
        "import { execSync } from 'child_process';\nexecSync('true');\nexport const router",
    )

    assert {cell.status for cell in result.cells} == {"error"}


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    shutil.copytree(INVOICES, tmp_path / "tmkb_auth_007")
    monkeypatch.setattr(express, "HERE", str(tmp_path))
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None)
    results = {each.stack: each for each in runner.play_idioms(str(tmp_path / "tmkb_auth_007"))}

    assert str(results["express"]) == f"express not proven: needs Node packages: npm install --prefix {tmp_path}"
    assert str(results["django"]) == f"django not proven: needs django: {installation.command('proofs')}"
    assert not any(each.proven or each.cells for each in results.values())


def test_an_application_that_does_not_answer_is_stopped(play_with):
    result = play_with("fastapi", "router = APIRouter()", "router = APIRouter()\nwhile True:\n    pass", timeout=2)

    assert {cell.status for cell in result.cells} == {"error"}
    assert "no answer within 2 s" in result.cells[0].detail


def test_an_interrupt_does_not_wait_for_cases(tmp_path, monkeypatch):
    shutil.copytree(DATA, tmp_path / "idioms")
    app = tmp_path / "idioms" / "idioms" / "fastapi.py"
    app.write_text(f"open('began', 'w').close()\nimport time\ntime.sleep(600)\n{app.read_text()}")
    monkeypatch.setattr(runner, "MEMORY", str(tmp_path))

    def interrupt():
        while not any("began" in files for _, _, files in os.walk(tmp_path)):
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(check_all({"ours": str(tmp_path / "idioms"), "next": DATA}, jobs=1, timeout=60))

    assert time.monotonic() - began < 60  # the timeout of one case
    assert os.listdir(tmp_path) == ["idioms"]


def test_a_process_that_died_while_idle_is_replaced():
    with runner.Workers() as workers:
        before = runner.play_idioms(DATA, 60, workers)
        for each in workers._started:
            each.terminate()
        for each in workers._started:
            each._process.wait()
        after = runner.play_idioms(DATA, 60, workers)

    assert list(map(str, before)) == list(map(str, after))


# Each case that gets this far sees rows, files, modules and environment as the steps before every case left them.
LEAKS = """
    import os, sys, time
    assert not {rows}, "row"
    invoice.total = 1
    assert not os.path.exists("left"), "file"
    open("left", "w").close()
    assert not hasattr(sys, "left"), "module"
    sys.left = True
    assert "LEFT" not in os.environ, "environment"
    os.environ["LEFT"] = "1"
"""


@pytest.mark.parametrize(
    ("stack", "rows"),
    [("fastapi", "db.query(Invoice).filter_by(total=1).all()"), ("django", "Invoice.objects.filter(total=1)")],
)
def test_no_case_sees_what_another_did(play_with, stack, rows):
    statement = '    invoice.state = "cancelled"\n'
    result = play_with(stack, statement, LEAKS.format(rows=rows) + statement)

    assert [str(cell) for cell in result.cells if not cell.ok] == []


def test_no_case_in_node_sees_what_another_did(play_with):
    """Nor does the next application, which runs in the same process."""
    leaks = """
  if (globalThis.left || fetch === left) throw new Error('global');
  [globalThis.left, globalThis.fetch] = [true, left];
  if ('LEFT' in process.env) throw new Error('environment');
  process.env.LEFT = '1';
  if (fs.existsSync('left')) throw new Error('file');
  fs.mkdirSync('left');
"""
    handler = "export const router"
    result = play_with(
        "express",
        handler,
        f"import fs from 'fs';\nfunction left() {{}}\nexport function configure() {{{leaks}}}\n{handler}",
    )

    assert [str(cell) for cell in result.cells if not cell.ok] == []


# Where an application can note that it has served a request: each defines `first`, which is true once.
NOTES = {
    ("fastapi", "module"): """
seen = []
def first():
    seen.append(True)
    return len(seen) == 1
""",
    ("fastapi", "middleware"): """
from contextvars import ContextVar
current = ContextVar("current")
class Noting:
    def __init__(self, app):
        self.app, self.count = app, 0
    async def __call__(self, *request):
        current.set(self)
        await self.app(*request)
def configure(server):
    server.add_middleware(Noting)
def first():
    current.get().count += 1
    return current.get().count == 1
""",
    ("fastapi", "application"): """
servers = []
def configure(server):
    servers[:] = [server]
def first():
    was = hasattr(servers[0].state, "seen")
    servers[0].state.seen = True
    return not was
""",
    ("django", "module"): """
seen = set()
def first():
    was = bool(seen)
    seen.add(True)
    return not was
""",
    ("django", "cache"): """
from django.core.cache import cache
def first():
    return cache.add("seen", True)
""",
}


@pytest.mark.parametrize(("stack", "place"), NOTES)
def test_a_weakness_that_only_the_first_request_has_is_found_by_every_attack(play_with, stack, place):
    old, weak = REMOVED[stack]
    notes = {"fastapi": "router = APIRouter()", "django": "# region idiom"}[stack]
    result = play_with(stack, old, f"({weak} if first() else {old})", (notes, NOTES[stack, place] + notes))

    attacks = ["mallory_show", "mallory_cancel", "named_tenant"]
    assert {name: statuses(result)[name] for name in attacks} == dict.fromkeys(attacks, "gained")


@pytest.mark.parametrize("name", ["tmkb_auth_007", "tmkb_auth_020"])
def test_cases_that_share_a_process_have_the_same_results(name):
    folder = os.path.join(paths.PATTERNS, name)
    shared, separate = (runner.play_idioms(folder, 60, separate=each) for each in (False, True))

    assert [statuses(each) for each in shared] == [statuses(each) for each in separate]


@pytest.mark.parametrize("stack", ["fastapi", "django"])
def test_steps_before_every_case_that_do_not_end_are_stopped(play_with, stack):
    result = play_with(
        stack, "    invoice = Invoice", "    while True:\n        pass\n    invoice = Invoice", timeout=5
    )

    assert {cell.detail for cell in result.cells} == {"no answer within 5 s"}


def test_a_request_that_does_not_end_is_stopped(play_with):
    result = play_with("fastapi", '"cancelled"\n', '"cancelled"\n    while True:\n        pass\n', timeout=5)

    assert statuses(result)["own_cancel"] == "error"
    assert "no answer within 5 s" in next(cell.detail for cell in result.cells if cell.case == "own_cancel")
    assert statuses(result)["mallory_cancel"] == "refused"

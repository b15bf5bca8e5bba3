"""attacks.yaml is given wrong content, wrong fixes and wrong code on purpose; `prove` has to report each."""

import shutil

import pytest

from tmkb.authoring.proofs import runner
from tmkb.knowledge import pattern
from tmkb.schema import paths, problems

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

CHECK = ".filter_by(organization_id=current_user.organization_id)"


@pytest.fixture
def folder(tmp_path):
    """A copy of a packaged pattern whose attacks are data alone."""
    return shutil.copytree(f"{paths.PATTERNS}/tmkb_auth_007", tmp_path / "tmkb_auth_007")


def edit(path, *pairs):
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def unexpected(report):
    return {(cell.leg, cell.function, cell.variant, cell.status) for cell in report.cells if not cell.ok}


def complaints(folder):
    return [problems.line(problem).removeprefix(f"{folder}/") for problem in pattern.read(str(folder)).problems]


def test_secure_code_that_gives_way(folder, prove):
    edit(folder / "secure.py", (CHECK, ""))

    assert {(leg, status) for leg, _, variant, status in unexpected(prove(folder, False)) if variant == "secure"} == {
        (2, "gained")
    }


def test_secure_code_that_refuses_everybody(folder, prove):
    edit(folder / "secure.py", (CHECK, ".filter_by(organization_id=None)"))

    assert (3, "bob_show", "secure", "failed") in unexpected(prove(folder, False))


def test_a_crash_is_no_refusal(folder, prove):
    edit(folder / "secure.py", ("def visible_invoices():\n", "def visible_invoices():\n    abrot(404)\n"))
    report = prove(folder, False)

    assert (2, "mallory_show", "secure", "neither") in unexpected(report)
    assert any("NameError" in cell.detail and "secure.py:" in cell.detail for cell in report.cells)


def test_an_allowed_change_that_changes_nothing(folder, prove):
    edit(folder / "secure.py", ('    invoice.state = "cancelled"\n', ""))

    assert (3, "bob_cancel", "secure", "failed") in unexpected(prove(folder, False))


def test_a_wrong_fix_that_holds(folder, prove):
    shutil.copy(folder / "secure.py", folder / "wrong" / "client_tenant.py")

    assert unexpected(prove(folder, False)) == {(4, "named_tenant", "wrong client_tenant", "refused")}


def test_a_wrong_fix_that_falls_to_more_than_it_lists(folder, prove):
    edit(folder / "attacks.yaml", ("falls_to: [mallory_show, mallory_cancel,", "falls_to: [mallory_show,"))

    assert unexpected(prove(folder, False)) == {(4, "mallory_cancel", "wrong admin_role", "gained")}


def test_a_wrong_fix_that_falls_to_an_attack_of_the_proof(folder, prove):
    edit(folder / "pattern.yaml", ("attacks: attacks.yaml}", "attacks: attacks.yaml, proof: proof.py}"))
    edit(folder / "attacks.yaml", ("falls_to: [named_tenant]", "falls_to: [named_tenant, tenant_in_header]"))
    (folder / "proof.py").write_text(
        "from tmkb.authoring.proofs import outcome\nfrom tmkb.authoring.proofs.stage import stage\n\n\n"
        "def exploit_tenant_in_header(example):\n"
        '    """Mallory names Acme in a header."""\n'
        "    visible = getattr(example, 'visible_invoices', None)\n"
        "    trusting = visible is not None and 'headers' in visible.__code__.co_names\n"
        "    return outcome(gained=trusting, refused=not trusting, evidence='')\n"
    )

    assert complaints(folder) == []
    assert not [cell for cell in unexpected(prove(folder, False)) if cell[2].startswith("wrong")]


def test_a_wrong_fix_that_nobody_would_ship(folder, prove):
    edit(
        folder / "wrong" / "read_only.py",
        ("@login_required\ndef show", "@login_required\ndef other():\n    ...\n\n\ndef show"),
    )

    assert (3, "bob_show", "wrong read_only", "failed") in unexpected(prove(folder, False))


def test_a_version_that_cannot_be_executed(folder, prove):
    """Although no case calls what it lacks, and other versions have the same functions."""
    shutil.copy(folder / "secure.py", folder / "wrong" / "client_tenant.py")
    edit(folder / "wrong" / "client_tenant.py", ("from app import", "from app import absent\nfrom app import"))
    cells = [cell for cell in prove(folder, False).cells if cell.variant == "wrong client_tenant"]

    assert cells and all("cannot import name 'absent'" in cell.detail for cell in cells)


def test_a_step_that_fails_before_the_attempt(folder, prove):
    edit(folder / "attacks.yaml", ("{by: bob, send: POST /invoices,", "{by: bob, send: POST /invoces,"))
    details = {cell.detail for cell in prove(folder, False).cells}

    assert details == {"send POST /invoces before the attempt: unexpected 404"}


def test_a_case_that_hangs_does_not_take_the_others_along(folder, prove):
    edit(
        folder / "secure.py",
        ("from app", "import time\nfrom app"),
        ("    invoice.state =", "    time.sleep(60)\n    invoice.state ="),
    )
    cells = {cell.function: cell for cell in prove(folder, False).cells if cell.variant == "secure"}

    assert cells["bob_cancel"].detail == "no answer within 5 s"
    assert cells["own_show"].status == "served"


# What one case leaves behind, as definitions and statements that fail if the state is not the initial one.
RESTORED = [
    ("seen = []", "assert not seen; seen.append(1)"),
    ("count = 0", "global count; assert count == 0; count += 1"),
    ("nested = ({'a': set()},)", "assert not nested[0]['a']; nested[0]['a'].add(1)"),
    ("def default(seen=[]): seen.append(1); return len(seen)", "assert default() == 1"),
    ("variable = contextvars.ContextVar('seen', default=0)", "assert variable.get() == 0; variable.set(1)"),
    ("local = threading.local()", "assert not hasattr(local, 'seen'); local.seen = 1"),
    ("", "assert 'SEEN' not in current_app.config; current_app.config['SEEN'] = 1"),
    ("", "assert 'SEEN' not in os.environ; os.environ['SEEN'] = '1'"),
    ("", "assert not os.listdir('.') or 'a' not in os.listdir('.'); os.makedirs('a/b'); os.symlink('a', 'c')"),
    ("", "open('a/d', 'w').close(); os.chdir('a')"),
    ("random.seed(1)", "assert random.random() == random.Random(1).random()"),
    ("began = time.time()", "assert time.time() < began + 4 * 3600"),
    ("", "assert 'seen' not in session; session['seen'] = 1"),
]
ENDING = [
    ("class Seen: count = 0", "assert Seen.count == 0; Seen.count += 1"),
    (
        "def closure():\n    count = 0\n    def add(): nonlocal count; count += 1; return count\n    return add\nadd = closure()",
        "assert add() == 1",
    ),
    ("counter = itertools.count()", "assert next(counter) == 0"),
    ("@functools.cache\ndef seen(): return []", "assert not seen(); seen().append(1)"),
    ("", "assert threading.active_count() == 1; threading.Thread(target=time.sleep, args=[9], daemon=True).start()"),
    ("", "assert not event.contains(db.session, 'after_begin', print); event.listen(db.session, 'after_begin', print)"),
    ("kept = Session()", "assert not kept.info; kept.info['seen'] = 1"),
]
IMPORTS = """import contextvars, functools, itertools, os, random, threading, time
from flask import current_app, session
from sqlalchemy import event
from sqlalchemy.orm import Session
"""


@pytest.mark.parametrize(
    "leaks", [RESTORED, *([leak] for leak in ENDING)], ids=lambda leaks: leaks[0][0] or leaks[0][1]
)
def test_no_case_sees_what_another_did(folder, prove, leaks):
    """`visible_invoices` is called once in each case."""
    definitions = "".join(f"{definition}\n" for definition, _ in leaks)
    statements = "".join(f"    {statement}\n" for _, statement in leaks)
    edit(
        folder / "secure.py",
        ("# region example", f"{IMPORTS}{definitions}\n\n# region example"),
        ("def visible_invoices():\n", f"def visible_invoices():\n{statements}"),
    )
    edit(folder / "attacks.yaml", ("  left:\n", "  left:\n    - {wait: 10800}\n"))
    cells = [cell for cell in prove(folder, False).cells if cell.variant == "secure"]

    assert cells and [str(cell) for cell in cells if not cell.ok] == []


# A mutant fails in a case if it sees what another one has left.
LEFT = """
    global count
    import os, sys
    from flask import current_app
    from sqlalchemy import event
    from app import Invoice
    assert count == 0, "global"
    count += 1
    assert not hasattr(sys, "left"), "another module"
    sys.left = True
    assert "LEFT" not in current_app.config, "configuration"
    current_app.config["LEFT"] = True
    assert not hasattr(Invoice, "left"), "model"
    Invoice.left = True
    assert not os.path.exists("left"), "file"
    open("left", "w").close()
    assert not event.contains(Invoice, "load", print), "listener"
    event.listen(Invoice, "load", print)
    assert NUMBER
"""


def test_a_worker_that_died_proves_nothing(folder, running):
    worker = runner.Worker()
    worker.process.terminate()
    worker.process._process.wait()
    report = runner.prove(str(folder), pattern.read(str(folder)).pattern, worker, running=running)
    worker.close()

    assert not report.proven
    assert report.faults == ["the worker process died"]


def test_no_mutant_sees_what_another_did(folder, worker, running):
    edit(folder / "secure.py", ("# region example", "count = 0\n\n\n# region example"))
    proof = runner.Proof(str(folder), pattern.read(str(folder)).pattern)
    proof.start_services(running)
    function = "def visible_invoices():\n"
    base = proof.sources["secure"]
    assert function in base
    for number in range(1, 4):
        mutant = base.replace(function, function + LEFT.replace("NUMBER", str(number)))
        (cell,) = proof.run(worker, "secure", mutant, ["bob_show"], to_the_end=False)
        assert cell.ok, str(cell)
    (cell,) = proof.run(worker, "secure", base.replace(function, f"{function}    count\n"), ["bob_show"], False)
    assert cell.ok, str(cell)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("refused: {show: 404, cancel: 404}", "refused: {shw: 404}", "There is no verb 'shw'. Did you mean 'show'?"),
        ("state: left", "state: lft", "There is no state 'lft'. Did you mean 'left'?"),
        (
            "falls_to: [named_tenant]",
            "falls_to: [named_tenan]",
            "There is no attack 'named_tenan'. Did you mean 'named_tenant'?",
        ),
        ("name: own,", "name: bob,", "Two cases have the name 'bob_show'."),
        ("  client_tenant:\n", "  client:\n", "wrong/client_tenant.py is not listed in `wrong`."),
        ("  client_tenant:\n", "  client:\n", "There is no file wrong/client.py beside attacks.yaml."),
        ("send: GET /invoices/2", "snd: GET /invoices/2", "Unknown key 'snd'"),
    ],
)
def test_a_fault_is_reported_with_its_place(folder, old, new, complaint):
    edit(folder / "attacks.yaml", (old, new))
    lines = [line for line in complaints(folder) if complaint in line]

    assert lines and all(line.startswith("attacks.yaml:") for line in lines)

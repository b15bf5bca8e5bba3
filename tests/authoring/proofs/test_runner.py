"""Reports on proofs and examples with deliberate faults."""

import glob
import os
import shutil
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tmkb.authoring.proofs import runner
from tmkb.authoring.proofs.worker import MEMORY
from tmkb.knowledge import pattern

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

NAME = "acme_auth_026"
USE = '    """An administrator\'s token works, a member\'s does not, and a new one after a promotion does."""\n'


def failing(report):
    return {leg for leg, ok in report.legs().items() if not ok}


def statuses(report):
    return {cell.status for cell in report.cells if not cell.ok}


@pytest.fixture
def folder(patterns):
    return patterns(NAME) / NAME


def test_secure_replaced_by_vulnerable(folder, prove):
    text = (folder / "vulnerable.py").read_text()
    claims = "    claims = jwt.decode"
    (folder / "secure.py").write_text(
        text.replace(claims, f"    # region template\n{claims}").replace(
            "    return jsonify", "    # endregion\n    return jsonify"
        )
    )
    report = prove(folder)

    assert failing(report) == {2}
    assert statuses(report) == {"gained"}


def test_vulnerable_replaced_by_secure(folder, prove):
    shutil.copy(folder / "secure.py", folder / "vulnerable.py")
    report = prove(folder)

    assert failing(report) == {1}
    assert statuses(report) == {"refused"}


def test_a_crash_is_not_a_refusal(prove_with):
    report = prove_with(NAME, "secure.py", "abort(403)", "abrot(403)")

    assert failing(report) == {2, 3}
    assert "neither" in statuses(report)
    assert any("NameError" in cell.detail and "secure.py:" in cell.detail for cell in report.cells if not cell.ok)


def test_refusing_all_users_is_not_a_fix(prove_with):
    report = prove_with(NAME, "secure.py", "    # region template\n", "    abort(403)\n    # region template\n")

    assert failing(report) == {3}
    assert "proof.py:" in next(cell.detail for cell in report.cells if not cell.ok)


def test_a_legitimate_use_without_requests(folder, prove):
    path = folder / "proof.py"
    text = path.read_text()
    path.write_text(text[: text.index("def legitimate")] + 'def legitimate_nothing(example):\n    """Nothing."""\n')
    report = prove(folder)

    assert not failing(report)
    assert any("even when every function in it refuses" in fault for fault in report.faults)


def test_a_proof_without_a_legitimate_use(folder, prove):
    path = folder / "proof.py"
    path.write_text(path.read_text()[: path.read_text().index("def legitimate")])

    assert prove(folder).faults[0] == "the pattern has no legitimate use: no function legitimate_… and no allowed cell"


def test_a_proof_that_inspects_the_file_name(folder, prove):
    (folder / "proof.py").write_text(
        "from tmkb.authoring.proofs import outcome\n"
        "def exploit_fake(example):\n"
        '    """Mallory reads the name of the file."""\n'
        "    secure = 'secure' in example.set_role.__code__.co_filename\n"
        "    return outcome(gained=not secure, refused=secure)\n"
        "def legitimate_fake(example):\n    example.issue_token\n"
    )
    report = prove(folder)

    assert failing(report) == {2}
    assert statuses(report) == {"gained"}


def test_a_guard_without_an_exploit(prove_with):
    guard = "    if request.args.get('colour') == 'red':\n        abort(403)\n    # region template\n"
    report = prove_with(NAME, "secure.py", "    # region template\n", guard)

    assert any("dropped guard" in fault and "colour" in fault for fault in report.faults)


def test_an_unproven_difference_can_be_listed(prove_with, folder, prove):
    path = folder / "secure.py"
    path.write_text(path.read_text().replace("    user.role = role\n", "    user.role = str(role)\n"))
    report = prove(folder)
    assert report.faults == ["secure.py: not proven: reverted hunk at line 20: user.role = str(role)"]

    path = folder / "pattern.yaml"
    listed = '    unproven: [{text: "user.role = str(role)", why: A string stays a string.}]\n    example: secure.py'
    path.write_text(path.read_text().replace("    example: secure.py", listed, 1))
    assert prove(folder).proven

    shutil.copy(folder / "vulnerable.py", folder / "other.py")
    (folder / "secure.py").write_text((folder / "secure.py").read_text().replace("str(role)", "role"))
    assert prove(folder).faults == ["secure.py: listed as unproven, but it is proven or gone: user.role = str(role)"]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "may not use socket."),
        ("import subprocess; subprocess.run(['true'])", "may not use subprocess.Popen"),
        ("open('/tmp/tmkb-out-of-bounds', 'w')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))", "may not use socket."),
        ("import socket; socket.gethostbyname('localhost')", "may not use socket."),
        ("import os; os.fork()", "may not use os.fork"),
        ("import os; os.kill(os.getppid(), 0)", "may not use os.kill"),
        ("import ctypes; ctypes.CDLL(None).system(b'true')", "may not use ctypes."),
        ("open(b'/tmp/tmkb-out-of-bounds', 'w')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.open('/tmp/tmkb-out-of-bounds', os.O_TRUNC)", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.remove('/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.rename('/tmp/tmkb-out-of-bounds', 'x')", "may not write /tmp/tmkb-out-of-bounds"),
        (
            "import os; open('x', 'w'); os.rename('x', '/tmp/tmkb-out-of-bounds')",
            "may not write /tmp/tmkb-out-of-bounds",
        ),
        ("import os; open('x', 'w'); os.link('x', '/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.symlink('x', '/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.truncate('/tmp/tmkb-out-of-bounds', 0)", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.chmod('/tmp/tmkb-out-of-bounds', 0)", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.utime('/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.mkdir('/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.rmdir('/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        ("import os; os.mkdir('x', dir_fd=os.open('/tmp', os.O_RDONLY))", "may not write /tmp/x"),
        ("import os; os.symlink('/tmp', 'x'); open('x/tmkb-out-of-bounds', 'w')", "may not write x/tmkb-out-of-bounds"),
        ("import sqlite3; sqlite3.connect('/tmp/tmkb-out-of-bounds')", "may not write /tmp/tmkb-out-of-bounds"),
        (
            "import sqlite3; sqlite3.connect('file:/tmp/tmkb-out-of-%62ounds?mode=rwc', uri=True)",
            "may not write /tmp/tmkb-out-of-bounds",
        ),
        ("import sqlite3; sqlite3.connect('file:x?mode=memory', uri=True); raise KeyError('done')", "KeyError: 'done'"),
        ("import os; os.mknod('/tmp/tmkb-out-of-bounds')", "may not use os.mknod"),
        ("import os; os.mkfifo('/tmp/tmkb-out-of-bounds')", "may not use os.mkfifo"),
        ("import os; os.fchmod(os.open('/etc/hostname', os.O_RDONLY), 0o644)", "may not write /etc/hostname"),
        ("import os; os.utime(os.open('/etc/hostname', os.O_RDONLY))", "may not write /etc/hostname"),
        ("import os; os.fchmod(os.open('x', os.O_CREAT), 0o600); raise KeyError('done')", "KeyError: 'done'"),
        ("import os; os.link('/etc/hostname', 'x')", "may not write /etc/hostname"),
        (
            "import multiprocessing as m, os; m.get_context('spawn').Process(target=os.getpid).start()",
            "may not use _posixsubprocess.fork_exec",
        ),
        (
            "import os, signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)",
            "may not use signal.pidfd_send_signal",
        ),
        ("import socket; socket.socket().listen()", "may not use socket.listen"),
        (
            "import os\n    for fd in range(3, 30):\n        try: os.write(fd, b'{')\n        except OSError: pass",
            "cannot be read",
        ),
        (
            "import os, shutil, sqlite3; os.makedirs('a/b'); os.symlink('/tmp', 'a/c'); os.remove('a/c');"
            " os.rename('a/b', 'a/d'); shutil.rmtree('a'); sqlite3.connect(':memory:'); sqlite3.connect('y').close();"
            " os.chmod('y', 0o600); os.truncate('y', 0); raise KeyError('done')",
            "KeyError: 'done'",
        ),
        ("import os; os._exit(0)", "the process died"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the process died"),
        ("while True: pass", "no answer within"),
        ("return 1", "returned int; return outcome(...) or nothing"),
        ("print('x' * 100000); raise SystemExit", "SystemExit"),
        ("assert 1 == 2, 'sums'", "proof.py:"),
        ("open('inside', 'w').write('x'); open('/dev/null', 'w'); raise KeyError('done')", "KeyError: 'done'"),
    ],
)
def test_accidents(prove_with, line, detail):
    report = prove_with(NAME, "proof.py", USE, f"{USE}    {line}\n", mutate=False)
    cells = [cell for cell in report.cells if cell.leg == 3]

    assert cells and all(detail in cell.detail for cell in cells), cells


@pytest.mark.parametrize("spawn", [False, True])
def test_nothing_is_imported_from_the_current_folder(folder, tmp_path, monkeypatch, spawn):
    """Neither a worker nor its children import from it, even if this process would."""
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("tempfile", "flask", "json"):
        (planted / f"{name}.py").write_text(f"open({str(planted / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(planted)
    for path in (["", *sys.path], [str(planted), *sys.path]):
        monkeypatch.setattr(sys, "path", path)
        read = pattern.read(str(folder))
        (report,) = runner.prove_all([(str(folder), read.pattern)], jobs=1, mutate=False, spawn=spawn)

        assert not (planted / "ran").exists()
        assert report.proven
        if spawn:
            break


def test_an_exploit_that_is_both_gained_and_refused(prove_with):
    both = prove_with(NAME, "proof.py", "refused=answer.status_code == 403", "refused=True", mutate=False)

    assert "both" in statuses(both)


def test_a_wrong_claim_about_remaining_exploits(prove_with):
    report = prove_with(
        "acme_auth_001",
        "pattern.yaml",
        "leaves: [removed_member, deleted_account]",
        "leaves: [deleted_account]",
        mutate=False,
    )
    (cell,) = [cell for cell in report.cells if not cell.ok]

    assert (cell.leg, cell.function, cell.variant, cell.status) == (
        2,
        "exploit_removed_member",
        "secure_signed",
        "gained",
    )


def test_a_pattern_without_code_is_unproven(folder, prove):
    path = folder / "pattern.yaml"
    text = (
        path.read_text()
        .replace("tier: A", "tier: B")
        .replace("code: {vulnerable: vulnerable.py, proof: proof.py}\n", "")
    )
    path.write_text(text.replace("    example: secure.py\n", "").replace("    example: secure_epoch.py\n", ""))
    report = prove(folder)

    assert (report.has_code, report.proven, report.runs) == (False, False, 0)


def test_a_new_interpreter_for_each_function(folder):
    read = pattern.read(str(folder))
    (report,) = runner.prove_all([(str(folder), read.pattern)], jobs=1, mutate=False, spawn=True)

    assert report.proven
    assert report.seconds > sum(cell.seconds for cell in report.cells) * 0.9


def test_the_timeout_of_a_new_interpreter(folder):
    path = folder / "proof.py"
    path.write_text(path.read_text().replace(USE, USE + "    while True: pass\n"))
    read = pattern.read(str(folder))
    (report,) = runner.prove_all([(str(folder), read.pattern)], jobs=1, mutate=False, timeout=4, spawn=True)

    assert any("no answer within 4" in cell.detail for cell in report.cells)


def test_reports_are_in_order_with_several_jobs(patterns):
    names = [NAME, "acme_auth_024", "acme_auth_001"]
    folder = patterns(*names)
    proofs = [(str(folder / name), pattern.read(str(folder / name)).pattern) for name in names]

    assert [r.id[-3:] for r in runner.prove_all(proofs, jobs=2, mutate=False)] == ["026", "024", "001"]


def test_a_worker_that_died_is_replaced(patterns, monkeypatch):
    def prove(folder, pattern, worker, **options):
        if pattern["id"].endswith("026"):
            worker.process.terminate()
        return original(folder, pattern, worker, **options)

    original = runner.prove
    monkeypatch.setattr(runner, "prove", prove)
    names = [NAME, "acme_auth_024"]
    folder = patterns(*names)
    proofs = [(str(folder / name), pattern.read(str(folder / name)).pattern) for name in names]
    died, proven = runner.prove_all(proofs, jobs=1, mutate=False)

    assert died.faults == ["the worker process died"]
    assert proven.proven


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_worker_that_is_stopped_leaves_nothing(tmp_path):
    name = uuid.uuid4().hex
    texts = dict.fromkeys(("source", "proof", "proof_file"), "")
    app = f"import os, time\nos.mkdir({name!r})\nos.mkdir(f'{name}/{{os.getpid()}}')\ntime.sleep(600)"
    request = {**texts, "app": app, "app_file": "app.py", "attacks": None, "services": {}, "expected": None}
    worker = runner.Worker(timeout=600)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(worker.run, {**request, "cases": ["exploit_nothing"]})
        while not (found := glob.glob(f"{MEMORY or tempfile.gettempdir()}/tmkb-proof-*/{name}/*")) and run.running():
            time.sleep(0.01)
        worker.process.terminate()
    worker.close()

    assert "died" in str(run.exception())
    assert not os.path.exists(found[0])
    with pytest.raises(ProcessLookupError):
        os.kill(int(os.path.basename(found[0])), 0)

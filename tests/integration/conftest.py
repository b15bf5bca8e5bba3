"""A PostgreSQL server of the tests' own: its data in a temporary folder, its socket there, no port."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

UNPRIVILEGED = "postgres", "nobody"


def programs():
    """Return the folder of PostgreSQL's programs, or None. Debian does not put them into PATH.

    The variable POSTGRESQL_PROGRAMS names the folder; an empty one stands for a machine without PostgreSQL.
    """
    if (named := os.environ.get("POSTGRESQL_PROGRAMS")) is not None:
        return named or None
    found = shutil.which("initdb") or max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), default=None)
    return found and os.path.dirname(os.path.realpath(found))


@pytest.fixture(scope="session")
def postgres():
    """Where its socket is, for a superuser named ``postgres``. The server refuses to be run by root."""
    folder_of_programs = programs()
    if folder_of_programs is None:
        # Skipped, except in CI, where skipping would hide that nothing was shown.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs PostgreSQL: apt-get install postgresql")
    account = _account()
    folder = tempfile.mkdtemp(prefix="tmkb-pg-")  # pytest's own folders can be entered by their owner alone
    try:
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}

        def run(program, *args):
            command = [os.path.join(folder_of_programs, program), *args]
            environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
            with open(os.path.join(folder, "log"), "ab") as log:
                return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, **who)

        prepared = run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        assert prepared.wait(60) == 0, _log(folder)
        server = run("postgres", "-D", "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off")
        try:
            _wait(server, folder)
            yield folder
        finally:
            server.send_signal(signal.SIGINT)  # at once, whoever is still connected
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account():
    """Whom to be instead of root; nobody needs it who is not root."""
    if os.geteuid():
        return None
    import pwd

    known = {each.pw_name: each for each in pwd.getpwall()}
    return next(known[name] for name in UNPRIVILEGED if name in known)


def _wait(server, folder):
    deadline = time.monotonic() + 30
    while "ready to accept connections" not in _log(folder):
        assert server.poll() is None and time.monotonic() < deadline, _log(folder)
        time.sleep(0.05)


def _log(folder):
    with open(os.path.join(folder, "log"), encoding="utf-8") as log:
        return log.read()

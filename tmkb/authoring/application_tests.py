"""Write pytest tests that play the attacks of a pattern against the user's own application."""

from __future__ import annotations

import os

from tmkb.knowledge import attacks, examples
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern
from tmkb.schema.edit import Text

_TEXT = '''\
"""{id}: {name}

Pattern version {version}, reviewed {reviewed}. Written by `tmkb get {id} --test`; needs pytest and tmkb.

Check: {check}
Fix: {fix}

1. Complete `App`, which connects these tests to your application.
2. Replace the requests in ATTACKS by those of your application. `{{name}}` is a value that a step has saved.
3. Run pytest. Each attack must be refused and each legitimate use served.
"""

import pytest

from tmkb.authoring import play
from tmkb.knowledge.attacks import Attacks

ATTACKS = Attacks.parse(
    r"""
{attacks}"""
)


class App:
    """Your application, as these tests need it. A test is skipped if it needs a method that you have removed."""

    def __init__(self):
        pytest.fail("Complete App: start your application with the users below and no other data.")
        # alice: admin of the tenant Acme; bob: member of Acme; mallory: admin of the tenant Globex

    def send(self, actor, method, path, parts):
        """Send a request as `actor`. `parts` has json, form, files, data and headers as far as the step has them."""
        client = ...  # a test client that is signed in as `actor`; "anonymous" is not signed in
        answer = client.open(path, method=method, json=parts.get("json"), headers=parts.get("headers"))
        return play.Response(answer.status_code, answer.text, dict(answer.headers))
{methods}

@pytest.mark.parametrize("case", ATTACKS.cases, ids=[case.name for case in ATTACKS.cases])
def test_{function}(case):
    play.check(ATTACKS, case, App())
'''
_METHODS = {
    "event": '''
    def event(self, name, values):
        """Change your data as another part of the application would: {names}."""
        raise NotImplementedError(name)
''',
    "state": '''
    def state(self, name):
        """Return what your data is now, as JSON: {names}."""
        raise NotImplementedError(name)
''',
    "work": '''
    def work(self):
        """Run all queued jobs. Return play.Response(raised=[...]) with the classes of their exceptions."""
        raise NotImplementedError("work")
''',
    "wait": '''
    def wait(self, seconds):
        """Advance the clock, for example with time-machine."""
        raise NotImplementedError("wait")
''',
    "during": '''
    def during(self, after, rival):
        """Return a context manager in which `rival()` runs after the first SQL statement that contains `after`.

        If `after` is None, it runs before the first COMMIT. On a real database run it in another thread, and continue
        as soon as it has ended or waits for a lock.
        """
        raise NotImplementedError("during")
''',
}


def tests(folder: str, pattern: Pattern) -> str | None:
    """Return a module of tests for the ``pattern`` in ``folder``; None if it has no attacks.yaml."""
    source = examples.read(folder, attacks.NAME, "") if "attacks" in pattern.get("code", {}) else None
    found, _ = attacks.read(folder) if source else (None, [])
    if source is None or found is None:
        return None
    uses = found.uses()
    return _TEXT.format(
        id=pattern["id"],
        name=unwrap(pattern["name"]),
        version=pattern["version"],
        reviewed=pattern["reviewed"],
        check=unwrap(pattern["agent_summary"]["check"]),
        fix=unwrap(pattern["agent_summary"]["fix"]),
        attacks=_shared_part(source.text).replace('"""', "'''"),
        methods="".join(
            text.format(names=", ".join(sorted(uses[key]))) for key, text in _METHODS.items() if key in uses
        ),
        function=os.path.basename(os.path.abspath(folder)),
    )


def _shared_part(text: str) -> str:
    """Return the part of attacks.yaml that holds for any application: without wrong fixes, services and comments."""
    edited = Text(text, attacks.NAME)
    for key in ("services", "wrong"):
        if edited.has((key,)):
            edited.remove((key,))
    return "".join(line for line in edited.text.splitlines(keepends=True) if not line.startswith("#"))

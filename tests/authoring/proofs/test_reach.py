"""A result is used again only on versions on which the case must do the same."""

import textwrap

import pytest

from tmkb.authoring.proofs.reach import Results, Version

BASE = '''
"""A version."""
from app import Note, bp
from flask import abort

LIMIT = 3


def rule(note):
    return note.id < LIMIT


@bp.get("/notes")
def show():
    """Show."""
    return rule(Note())


@bp.post("/notes")
def create():
    abort(403)
'''


def known(source, reached, names=()):
    """Return whether the result of a case that has called ``reached`` in BASE is known for ``source``."""
    results = Results(names)
    results.add("case", Version(BASE), reached, {"status": "refused"})
    return results.reader(Version(source))("case") == {"status": "refused"}


def replaced(old, new):
    assert old in BASE
    return BASE.replace(old, new)


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        (BASE, ["show", "rule"]),
        (replaced("abort(403)", "return None"), ["show", "rule"]),
        (replaced("return rule(Note())", "return None"), ["create"]),
        (replaced("< LIMIT", "<= LIMIT"), []),
        (replaced('"""A version."""', '"""Another version."""  # of the code'), ["show", "rule", "create"]),
        (replaced('    """Show."""\n', '    """Show."""\n    # region template\n'), ["show", "rule"]),
        (replaced("import abort", "import abort, request"), ["show", "rule"]),
        (BASE + "\n\ndef other(x=1):\n    return x\n\n\nOTHER = {'a': [1]}\n", ["show", "rule", "create"]),
    ],
)
def test_the_same_is_executed(source, reached):
    assert known(source, reached)


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        (replaced("< LIMIT", "<= LIMIT"), ["show", "rule"]),
        (replaced("LIMIT = 3", "LIMIT = 4"), ["show", "rule"]),
        (replaced("def rule(note):\n    return note.id < LIMIT\n", "rule = bool\n"), ["create"]),
        (replaced('@bp.post("/notes")', '@bp.post("/other")'), ["show", "rule"]),
        (replaced("def create():", "def create(id=None):"), ["show", "rule"]),
        (replaced("import abort", "import request as abort"), ["create"]),
        (replaced("import Note, bp", "import Document as Note, bp"), ["show", "rule"]),
        (BASE + "\n\n@bp.before_request\ndef guard():\n    abort(403)\n", ["show", "rule"]),
        (BASE + "\n\ndef abort(code):\n    return code\n", ["create"]),
        (BASE + "\n\nbp.name = 'other'\n", ["show", "rule"]),
        (BASE + "\n\ndef create():\n    return None\n", ["create"]),
        (replaced("abort(403)", "yield 403"), ["show", "rule"]),
    ],
)
def test_something_else_is_executed(source, reached):
    assert not known(source, reached)


def test_a_name_that_other_code_looks_up():
    source = BASE + "\n\ndef other():\n    return 1\n"

    assert known(source, ["create"]) and not known(source, ["create"], names=["other"])


def test_functions_are_marked_when_they_are_called():
    """Those in classes and in blocks, too; functions inside them belong to them."""
    source = textwrap.dedent(
        """
        class Rule:
            def holds(self):
                def inner(): return True
                return inner()
            def other(self): "Do nothing."
        if True:
            def block(): yield 1
        def again(): return 1
        def again(): return 2
        def late():
            'Text.'
            return 1
        """
    )
    version, module = Version(source), {}
    exec(compile(version.mark(), "example.py", "exec"), module)
    assert version.reached() == []

    assert module["Rule"]().holds() and next(module["block"]()) == 1 and module["again"]() == 2
    assert version.reached() == ["Rule.holds", "block", "again'"]
    assert module["late"].__doc__ == "Text." and "__reached__" not in module

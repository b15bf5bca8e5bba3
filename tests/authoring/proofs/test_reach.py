"""A result is used again only on versions on which the case must do the same, and only these follow in one process."""

import itertools
import random
import re
import textwrap
import types

import pytest

from tmkb.authoring.proofs.reach import Execution, Results, Version, marks, results, set_marks

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
    """Return whether the result of a case that has executed all of ``reached`` in BASE is known for ``source``."""
    results, base = Results(names), Version(BASE)
    places = {place for place in base.places if place.partition(".")[0] in reached}
    results.add("case", base, places, {"status": "refused"})
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


def executed(source):
    """Execute ``source``, and return the execution and its module."""
    module = types.ModuleType("example")
    execution = Execution(Version(textwrap.dedent(source)), module, "example.py")
    execution.execute()
    return execution, module


def test_functions_are_marked_when_they_are_called():
    """Those in classes and in blocks, too."""
    execution, module = executed(
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
    assert execution.reached() == []

    assert module.Rule().holds() and next(module.block()) == 1 and module.again() == 2
    functions = [place for place in execution.reached() if "." not in place.removeprefix("Rule.")]
    assert functions == ["Rule.holds", "block", "again'"]
    assert module.late.__doc__ == "Text." and "__reached__" not in vars(module)


CHECKED = """
def show(note):
    \"\"\"Show.\"\"\"
    if note is None:
        return 404
    for each in note:
        try:
            result = 1 // each
        except ZeroDivisionError:
            result = 0
        if result:
            return result
    return 403
"""


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        ("return 404", "abort(404)\n        return 404", [[1], [0], [], [0, 1]]),
        ("result = 0", "result = int()", [None, [1], []]),
        ("return result", "result = 2", [None, [0], []]),
        ("return 403", "return 404", [None, [1], [0, 1]]),
        ("    return 403\n", "    raise KeyError\n\n\ndef other(): return 1\n", [None, [1], [0, 1]]),
    ],
)
def test_statements_that_are_not_executed_can_differ(old, new, notes):
    assert old in CHECKED
    for note in [None, [1], [0], [], [0, 1]]:
        execution, module = executed(CHECKED)
        module.show(note)
        results = Results(["show"])
        results.add("case", execution.version, execution.reached(), {})
        assert (results.reader(Version(CHECKED.replace(old, new)))("case") is not None) == (note in notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 404", "LIMIT = 1"),  # a local name from now on
        ("return 404", "yield 404"),
        ("return 404", "global LIMIT; LIMIT = 1"),
        ("return 404", "import os as LIMIT"),
        ("return 404", "(LIMIT := 1)"),
    ],
)
def test_effects_of_statements_that_are_not_executed(old, new):
    source = "LIMIT = 3\ndef show(note):\n    if note:\n        return 404\n    return LIMIT\n"
    execution, module = executed(source)
    assert module.show(None) == 3
    results = Results(["show"])
    results.add("case", execution.version, execution.reached(), {})
    reader = results.reader(Version(source.replace(old, "return 405")))
    assert reader("case") is not None
    assert results.reader(Version(source.replace(old, new)))("case") is None


def _program(chance):
    """Return the source of a random function with two parameters, some of whose names may be global."""
    numbers = itertools.count()

    def block(depth):
        lines = []
        for _ in range(chance.randint(1, 3)):
            lines += statement(depth)
        return lines

    def indented(lines):
        return ["    " + line for line in lines]

    def statement(depth):
        name, value = chance.choice("abxyz"), chance.choice(["a", "b", "x", "y", "1", "a + b", "b - 1", "-a"])
        simple = [f"{name} = {value}", f"trace.append(({next(numbers) % 3}, {value}))", f"return {value}", "pass"]
        kind = chance.randint(0, 10 if depth < 3 else 6)
        if kind <= 6:
            return [chance.choice([*simple, f"raise KeyError({value})", f"{name} += {value}"])]
        if kind == 7:
            lines = [f"if {value} > {chance.randint(-1, 1)}:", *indented(block(depth + 1))]
            return lines + (["else:", *indented(block(depth + 1))] if chance.random() < 0.4 else [])
        if kind == 8:
            return [f"for {name} in range({chance.randint(0, 2)}):", *indented(block(depth + 1))]
        if kind == 9:
            lines = ["try:", *indented(block(depth + 1)), "except KeyError as error:", *indented(block(depth + 1))]
            return lines + (["finally:", *indented(block(depth + 1))] if chance.random() < 0.3 else [])
        return [f"def {name}(y={value}):", *indented(block(depth + 1)), f"trace.append({name}())"]

    return "\n".join(["x = 1", "z = 2", "trace = []", "def f(a, b):", *indented(block(0)), ""])


def _changed(source, chance):
    """Return ``source`` with a line of another program, or without one."""
    lines, others = source.splitlines(), _program(chance).splitlines()
    at = chance.randrange(4, len(lines))
    space = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    simple = [each.strip() for each in others[4:] if not each.endswith(":")]
    lines[at : at + chance.randint(0, 1)] = [space + each for each in chance.sample(simple, min(1, len(simple)))]
    return "\n".join(lines) + "\n"


def _outcome(module, arguments):
    module.trace.clear()
    try:
        result = module.f(*arguments)
    except Exception as error:
        result = error
    return re.sub(r"0x\w+", "", repr((result, module.trace)))


def test_random_versions_with_a_known_result_have_this_result():
    """Also when they follow in the same process, where the first one has not been executed yet."""
    chance, known_, become = random.Random(7), 0, 0
    for _ in range(300):
        source, other = _program(chance), ""
        while not other:
            try:
                other = Version(_changed(source, chance)).source
            except SyntaxError:
                other = ""
        arguments = chance.choice([(0, 0), (1, -1), (2, 1)])
        _, second = executed(other)
        execution, module = executed(source)
        start = marks()
        results = Results(["f", "trace"])
        results.add("start", execution.version, execution.reached(), {})
        outcome = _outcome(module, arguments)
        results.add("case", execution.version, execution.reached(), {})
        set_marks(start)
        expected = _outcome(second, arguments)
        reader = results.reader(Version(other))
        if reader("case") is not None:
            known_ += other != source
            assert outcome == expected, (source, other, arguments)
        if reader("start") is not None and execution.become(Version(other)):
            become += 1
            assert _outcome(module, arguments) == expected, (source, other, arguments)
    assert known_ > 30 and become > 100


def test_a_version_becomes_another_one():
    """Functions stay the same objects; definitions that only one version has come and go."""
    execution, module = executed(
        """
        'First.'
        from os import sep
        LIMIT = 3
        registered = []
        class Rule:
            def __init__(self): super().__init__()
            def holds(self): return 1
        @registered.append
        def show(): return LIMIT
        def old(): return 1
        """
    )
    show = module.registered[0]
    text = """
        'Second.'
        from os import sep, curdir
        LIMIT = 4
        OTHER = 5
        registered = []
        class Rule:
            def __init__(self): super().__init__()
            def holds(self): return OTHER
        @registered.append
        def show(): return LIMIT, new()
        def new(): return curdir
        """
    assert execution.become(Version(textwrap.dedent(text)))

    assert (show(), module.Rule().holds(), module.__doc__) == ((4, "."), 5, "Second.")
    assert not hasattr(module, "old") and module.registered == [show]
    assert {"show", "show.0", "new", "new.0", "Rule.holds"} <= {*execution.reached()}


def test_functions_that_were_made_before_keep_their_code():
    source = "def make():\n    def inner():\n        return 1\n    return inner\nmade = make()\n"
    execution, module = executed(source)
    other = Version(source.replace("return 1", "return 2"))
    for places, known in [(execution.reached(), True), (execution.called(), False)]:
        results = Results(["made"])
        results.add("start", execution.version, places, {})
        assert (results.reader(other)("start") is not None) == known
    assert module.made() == 1


@pytest.mark.parametrize(
    ("app", "proof", "version", "looked_up"),
    [
        ("def send(): return Request()", "", "def show(): pass", False),
        ("import example\ndef send(): return example.Request()", "", "def show(): pass", True),
        ("def send(module): return getattr(module, 'Request')", "", "def show(): pass", True),
        ("def send(): return Request()", "", "def show(name): return globals()[name]()", True),
        ("def send(): return Request()", "def exploit_one(example): example.Request()", "def show(): pass", True),
    ],
)
def test_an_import_that_nobody_can_look_up_does_not_matter(app, proof, version, looked_up):
    found = results(app, proof, '{"text": "Request"}')
    found.add("case", Version(version), [], {})

    assert (found.reader(Version(f"from flask import Request\n{version}"))("case") is None) == looked_up


@pytest.mark.parametrize(
    "source", ["LIMIT = 1\nLIMIT = 2\n", "from __future__ import annotations\n", "LIMIT = 1\nLIMIT += 1\n"]
)
def test_a_version_that_has_to_be_executed(source):
    execution, _ = executed("LIMIT = 1\n")

    assert not execution.become(Version(source))

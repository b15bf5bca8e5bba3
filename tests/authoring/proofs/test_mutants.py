"""Mutants of a secure example."""

from tmkb.authoring.proofs import mutants

VULNERABLE = '''"""Docs."""
@route
def view(id):
    return db.select(Item).filter_by(id=id)
'''
SECURE = '''"""Other docs."""
@route
@login_required
def view(id):
    if user is None or not user.active:
        abort(403)
    return db.select(Item).filter_by(id=id, owner=user).where(Item.live, Item.seen)
'''


def test_every_guard_is_dropped_once():
    """A guard that a reverted hunk dropped, here the decorator, is not dropped again."""
    found = mutants.mutants(VULNERABLE, SECURE)

    assert [(m.kind, m.text) for m in found if m.kind != "reverted hunk"] == [
        ("dropped guard", "if user is None or not user.active:"),
        ("dropped condition", "user is None"),
        ("dropped condition", "not user.active"),
        ("dropped filter", "Item.live"),
        ("dropped filter", "Item.seen"),
        ("dropped filter", "owner=user"),
    ]


def test_each_hunk_is_reverted_once_and_docstrings_are_ignored():
    found = mutants.mutants(VULNERABLE, SECURE)

    assert [m.text for m in found if m.kind == "reverted hunk"] == [
        "@login_required",
        "if user is None or not user.active:",
    ]
    assert all("abort" not in m.source for m in found if m.text.startswith("if user") and m.kind == "reverted hunk")


def test_a_missing_line_is_shown_with_a_plus():
    found = mutants.mutants("def f():\n    a()\n    b()\n", "def f():\n    b()\n")

    assert [(m.kind, m.text) for m in found] == [("reverted hunk", "+ a()")]


def test_equal_code_has_no_mutants():
    assert mutants.mutants(SECURE, SECURE) == []


def test_hollow_functions_refuse():
    hollow = mutants.hollow("x = 1\ndef f():\n    return 1\nasync def g():\n    return 2\n")

    assert hollow.count("raise PermissionError('hollow')") == 2
    assert "x = 1" in hollow

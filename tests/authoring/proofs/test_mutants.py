"""Weakened copies of a secure example."""

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


def test_every_part_of_the_fix_is_dropped_once():
    """What a reverted hunk has dropped already (the decorator) is not dropped again."""
    found = mutants.mutants(VULNERABLE, SECURE)

    assert [(m.kind, m.text) for m in found if m.kind != "reverted hunk"] == [
        ("dropped guard", "if user is None or not user.active:"),
        ("dropped condition", "user is None"),
        ("dropped condition", "not user.active"),
        ("dropped filter", "Item.live"),
        ("dropped filter", "Item.seen"),
        ("dropped filter", "owner=user"),
    ]


def test_each_hunk_is_put_back_once_and_docstrings_do_not_count():
    found = mutants.mutants(VULNERABLE, SECURE)

    assert [m.text for m in found if m.kind == "reverted hunk"] == [
        "@login_required",
        "if user is None or not user.active:",
    ]
    assert all("abort" not in m.source for m in found if m.text.startswith("if user") and m.kind == "reverted hunk")


def test_a_removed_line_is_named_with_a_plus():
    found = mutants.mutants("def f():\n    a()\n    b()\n", "def f():\n    b()\n")

    assert [(m.kind, m.text) for m in found] == [("reverted hunk", "+ a()")]


def test_nothing_to_weaken_in_equal_code():
    assert mutants.mutants(SECURE, SECURE) == []


def test_hollow_functions_all_refuse():
    hollow = mutants.hollow("x = 1\ndef f():\n    return 1\nasync def g():\n    return 2\n")

    assert hollow.count("raise PermissionError('hollow')") == 2
    assert "x = 1" in hollow

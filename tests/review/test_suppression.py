"""Comments are ignored with a reason, and those of a baseline stay away wherever their code moves in its file."""

import pytest

from tmkb.errors import DocumentError
from tmkb.review import changes, suppression
from tmkb.review.judge import Comment


def comment(pattern="TMKB-AUTH-007", fingerprint="a"):
    return Comment(pattern, "app/x.py", 3, (3,), 0.9, {}, fingerprint)


@pytest.mark.parametrize(
    ("line", "is_ignored"),
    [
        ("x()  # tmkb: ignore[TMKB-AUTH-007] the id is a secret", True),
        ("x()  // tmkb: ignore[7] the id is a secret", True),
        ("x()  # tmkb:ignore[TMKB-AUTH-014, tmkb-auth-007] - the id is a secret", True),
        ("<!-- tmkb: ignore[007] public page -->", True),
        ("x()  # tmkb: ignore[TMKB-AUTH-014] the id is a secret", False),
        ("x()  # tmkb: ignore[] the id is a secret", False),
        ("x()  # tmkb: ignore[TMKB-AUTH-007]", False),
        ("/* tmkb: ignore[TMKB-AUTH-007] */", False),
        ("x()  # ignore[TMKB-AUTH-007] the id is a secret", False),
    ],
)
def test_a_comment_is_ignored_by_its_pattern_and_with_a_reason(line, is_ignored):
    (section,) = changes.of_file("app/x.py", f"def f():\n    {line}\n    y()\n")

    assert suppression.is_ignored(comment(), suppression.in_code(section)) is is_ignored


def test_a_removed_line_ignores_nothing():
    (section,) = changes.of_diff(
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,1 @@\n-x() # tmkb: ignore[TMKB-AUTH-007] no\n y()\n"
    )

    assert suppression.in_code(section) == []


def test_a_baseline_is_read_as_it_was_written():
    text = suppression.write([comment(fingerprint="b"), comment(fingerprint="a")])

    before = suppression.baseline("base.json", text)
    assert suppression.new([comment(fingerprint="b"), comment(fingerprint="c"), comment(fingerprint="b")], before) == [
        comment(fingerprint="c"),
        comment(fingerprint="b"),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"comments": [1]}', '{"comments": [{}]}', "{"])
def test_what_is_not_a_baseline_is_refused(text):
    with pytest.raises(DocumentError) as caught:
        suppression.baseline("base.json", text)

    assert (caught.value.problems[0].rule, caught.value.problems[0].file) == ("not_a_baseline", "base.json")

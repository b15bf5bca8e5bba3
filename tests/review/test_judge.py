"""Comments: where they stand, what they name, and that no section breaks the judge."""

import json
import pathlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.code import MISTAKE
from tmkb.errors import SpecError
from tmkb.knowledge import library
from tmkb.knowledge.retrieval import index
from tmkb.review import changes, github, judge, sarif

FUNCTION = MISTAKE.partition("\n\n\n")[2]
CHECKED = """--- a/app/orders.py
+++ b/app/orders.py
@@ -10,7 +10,5 @@ def show_order(order_id):
 @bp.get("/orders/<int:order_id>")
 @login_required
 def show_order(order_id):
     order = Order.query.get_or_404(order_id)
-    if order.user_id != current_user.id:
-        abort(403)
     return jsonify(id=order.id, total=order.total, address=order.address)
"""


@pytest.fixture(scope="module")
def judging(full_server):
    provider = full_server.provider("knowledge")
    advise, model = provider.advise_on, index.path(library.resolve(None), index.REVIEW_FILE)
    return judge.Judge(provider.index, model, lambda *asked: json.loads(advise(*asked)))


def commented(judging, text):
    (section,) = changes.of_file("app/profile.py", text)
    return judging.comment(section)


def test_a_mistake_is_named_at_its_line(judging):
    comment = commented(judging, FUNCTION)

    assert comment.pattern == "TMKB-AUTH-006"
    assert {4, 5} & {*comment.lines}
    assert comment.line in comment.lines and 0 < comment.probability <= 1
    assert comment.advice["patterns"][0]["id"] == "TMKB-AUTH-006"
    assert comment.advice["code_pattern"]["framework"] == "flask"


def test_candidates_are_the_likeliest_patterns(judging):
    (section,) = changes.of_file("app/profile.py", FUNCTION)
    found = judging.candidates(section, 6)

    assert found[0] == "TMKB-AUTH-006" and len(set(found)) == 6
    assert judging.candidates(section, 2)[0] == "TMKB-AUTH-006"


def test_a_model_without_signs_is_reported(judging, tmp_path):
    trained = zlib.decompress(pathlib.Path(index.path(library.resolve(None), index.REVIEW_FILE)).read_bytes())
    older = tmp_path / "review.bin"
    older.write_bytes(trained.replace(b'"signs":', b'"other":', 1))

    with pytest.raises(SpecError, match="without signs"):
        judge.Judge(judging.index, str(older), judging.advise)


def test_a_removed_check_is_commented_beside_it(judging):
    (section,) = changes.of_diff(CHECKED)
    comment = judging.comment(section)

    assert comment.line in (13, 14)


def test_a_comment_that_ignores_a_pattern_does_not_change_the_judgement(judging):
    ignored = FUNCTION.replace("key, value)\n", "key, value)  # tmkb: ignore[14] these fields are public\n")

    assert commented(judging, ignored).probability == commented(judging, FUNCTION).probability


@pytest.mark.parametrize("text", ["", "x = 1\n", "import os\nimport sys\n\nfrom flask import request\n", "\n\n"])
def test_what_says_nothing_gets_no_comment(judging, text):
    assert [judging.comment(section) for section in changes.of_file("app/x.py", text)] in ([], [None])


WORDS = st.sampled_from(
    ["setattr(current_user, key, value)", "log.info('x')", "}", "", "é\x0c\u2028", "get_or_404(id)", "abort(403)"]
)


@given(st.lists(st.tuples(st.sampled_from("+- "), WORDS), max_size=60))
def test_no_section_breaks_the_judge(judging, lines):
    numbered = tuple(
        changes.Line(sign, text, None if sign == "-" else number) for number, (sign, text) in enumerate(lines, 1)
    )
    comment = judging.comment(changes.Section("app/x.py", numbered))

    assert comment is None or comment.line in {line.number for line in numbered}


def test_equal_lines_have_one_fingerprint_in_any_function(judging):
    moved = commented(judging, "# moved\n\n\n" + FUNCTION)

    assert moved.fingerprint == commented(judging, FUNCTION).fingerprint
    assert moved.line == commented(judging, FUNCTION).line + 3


def test_names_of_files_are_escaped(judging):
    pattern = {"name": "A, b: c%", "severity": "high", "cwe": ["CWE-1"]}
    comment = judge.Comment("X-1", "a\n::b,c.py", 3, (3,), 0.5, commented(judging, FUNCTION).advice, "f")

    assert github.annotation(comment, pattern).startswith(
        "::warning file=a%0A%3A%3Ab%2Cc.py,line=3,title=X-1 A%2C b%3A c%25::"
    )
    assert "\n" not in github.annotation(comment, pattern)


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("app/é x.py", {"uri": "app/%C3%A9%20x.py", "uriBaseId": "%SRCROOT%"}),
        ("/srv/x.py", {"uri": "file:///srv/x.py"}),
    ],
)
def test_sarif_names_a_file_by_its_address(judging, path, location):
    comment = judge.Comment("X-1", path, 3, (3, 5), 0.5, commented(judging, FUNCTION).advice, "f")
    log = sarif.log([comment], {"X-1": {"name": "X", "severity": "low", "cwe": ["CWE-1"]}})
    (result,) = log["runs"][0]["results"]

    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == location
    assert [each["physicalLocation"]["region"]["startLine"] for each in result["relatedLocations"]] == [5]

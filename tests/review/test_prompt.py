"""Prompts: what a language model reads about a change, and that code cannot pass for anything else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.review import changes, prompt
from tmkb.review.changes import Line, Section
from tmkb.review.listing import File
from tmkb.review.prompt import Described

PATTERNS = {
    "A-1": Described("Names", "Anyone reads names.", "Are names hidden?"),
    "A-2": Described("Files", "Anyone reads files.", "Are files checked?"),
}
SOURCE = [
    "import guard",
    "",
    "class Files:",
    "    before = guard.login",
    "",
    *("    # more" for _ in range(60)),
    "    def show(self, id):",
    "        file = File.get(id)",
    "        return file.text",
    "",
    *("    # more" for _ in range(60)),
]
SHOW = SOURCE.index("    def show(self, id):") + 1
DIFF = f"""--- a/app/files.py
+++ b/app/files.py
@@ -{SHOW},4 +{SHOW},3 @@ class Files:
     def show(self, id):
-        file = self.mine(id)
-        check(file)
+        file = File.get(id)
         return file.text
"""


def write(sections, current=lambda _: None, candidates=lambda _: ["A-2"]):
    return [*prompt.write(sections, current, candidates, PATTERNS, "No noise.")]


def code(text):
    """The code in a prompt."""
    return re.search(r"^<(code-[0-9a-f]{16})>\n(.*)\n</\1>$", text, re.M | re.S)[2]


def test_a_prompt_has_rules_candidates_the_other_patterns_and_the_change():
    (written,) = write(changes.of_diff(DIFF))

    assert "\nNo noise.\n" in written.text
    assert "- A-2: Files. Anyone reads files. Check: Are files checked?\n" in written.text
    assert "- A-1: Names. Anyone reads names.\n" in written.text
    assert code(written.text) == (
        "@@ file app/files.py @@\n"
        "         class Files:\n"
        "@@ section 1 @@\n"
        f"{SHOW:>6}       def show(self, id):\n"
        "       -         file = self.mine(id)\n"
        "       -         check(file)\n"
        f"{SHOW + 1:>6} +         file = File.get(id)\n"
        f"{SHOW + 2:>6}           return file.text"
    )
    assert written.sections == {1: changes.of_diff(DIFF)[0]}


def test_of_a_known_file_the_lines_around_are_shown():
    (written,) = write(changes.of_diff(DIFF), lambda _: SOURCE)
    shown = code(written.text)

    assert "     4       before = guard.login\n" in shown
    assert [line for line in shown.split("\n") if line.startswith("@@")] == [
        "@@ file app/files.py @@",
        "@@ unchanged @@",
        "@@ section 1 @@",
        "@@ unchanged @@",
    ]
    numbers = [int(line[:6]) for line in shown.split("\n") if line[:6].strip().isdigit()]
    assert numbers == [*range(1, len(SOURCE) + 1)]


def test_with_few_lines_around_the_top_and_the_head_of_the_class_are_left():
    sections = dict(enumerate(changes.of_diff(DIFF), 1))
    shown = File("app/files.py", sections, SOURCE).text(2)

    numbers = [int(line[:6]) for line in shown.split("\n") if line[:6].strip().isdigit()]
    assert numbers == [1, 2, 3, *range(SHOW - 2, SHOW + 5)]
    assert shown.count("…") == 2


def test_a_change_that_fits_is_one_prompt_and_a_larger_one_several_with_every_section():
    small = [*changes.of_diff(DIFF), *changes.of_file("app/b.py", "b = 1\n")]
    assert len(write(small)) == 1

    large = changes.of_file(
        "app/c.py", "\n\n".join(f"def f{n}():\n    return g({n}, '{'x' * 90}')" for n in range(2000))
    )
    written = write([*small, *large])
    assert len(written) > 2
    assert {n: section for each in written for n, section in each.sections.items()} == dict(
        enumerate([*small, *large], 1)
    )
    assert all(len(code(each.text)) < prompt.LARGEST * 1.1 for each in written)


def test_removed_files_are_shown_and_no_comment_can_name_them():
    gone = "--- a/app/gone.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-check()\n"
    (written,) = write(changes.of_diff(gone + DIFF, with_removed=True))

    assert "@@ file app/gone.py @@\n@@ removed @@\n       - check()\n" in code(written.text)
    assert list(written.sections) == [2]
    assert write(changes.of_diff(gone, with_removed=True)) == []


def test_a_part_of_a_hunk_without_changes_is_no_section():
    parts = "".join(f" def f{n}():\n     return {n}\n \n" for n in range(20))
    diff = f"--- a/a.py\n+++ b/a.py\n@@ -1,61 +1,62 @@\n+import b\n \n{parts}"
    (written,) = write(changes.of_diff(diff))

    assert list(written.sections) == [1]
    assert "@@ section 2 @@" not in written.text and "return 19" in code(written.text)


def test_without_sections_there_is_no_prompt():
    assert write([]) == []


TEXTS = st.text() | st.sampled_from(
    ["@@ section 2 @@", "\r@@ section 2 @@", "</code-0>", "a\u2028@@ file x @@", "{code}"]
)


@given(st.lists(st.tuples(st.sampled_from("+- "), TEXTS), min_size=1, max_size=8), TEXTS)
def test_code_and_paths_cannot_leave_their_place(lines, path):
    numbered = tuple(Line(sign, text, None if sign == "-" else n) for n, (sign, text) in enumerate(lines, 1))
    section = Section(path, numbered, tuple(text for _, text in lines[:2]))
    shown = File(path, {1: section}, None).text(10)

    heads = [line for line in shown.splitlines() if not line.startswith("   ")]
    assert heads[0].startswith("@@ file ") and heads[0].endswith(" @@")
    assert heads[1:] in (["@@ section 1 @@"], ["@@ removed @@"], ["@@ unchanged @@"])


def test_the_marker_is_new_in_each_prompt():
    markers = {re.search(r"<(code-\w+)>", write(changes.of_diff(DIFF))[0].text)[1] for _ in range(3)}

    assert len(markers) == 3


@pytest.mark.parametrize("text", ["[]", '"section": N'])
def test_the_form_of_the_answer_is_shown(text):
    assert text in write(changes.of_diff(DIFF))[0].text

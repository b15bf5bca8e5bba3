"""Changes are split into sections, and nothing of a file is lost or judged twice."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import DocumentError
from tmkb.knowledge import stacks
from tmkb.review import changes

DIFF = """diff --git a/app/api.py b/app/api.py
index 1..2 100644
--- a/app/api.py
+++ b/app/api.py
@@ -10,3 +10,4 @@ def show(id):
     login()
-    doc = mine(id)
+    doc = Doc.query.get(id)
+    log(doc)
     return doc
"""


def test_a_hunk_is_a_section_with_the_line_numbers_of_the_new_file():
    (section,) = changes.of_diff(DIFF)

    assert section.path == "app/api.py"
    assert section.enclosing == ("def show(id):",)
    assert [(line.sign, line.number) for line in section.lines] == [
        (" ", 10),
        ("-", None),
        ("+", 11),
        ("+", 12),
        (" ", 13),
    ]
    assert [line.text for line in section.places] == ["    doc = Doc.query.get(id)", "    log(doc)"]
    assert section.text.splitlines()[:3] == ["app/api.py", " def show(id):", "     login()"]


@pytest.mark.parametrize("text", ["hello", "--- a\n+++ b\n@@ -1,9 +1,9 @@\n x\n", "@@ -1 +1 @@\n-a\n+b\n"])
def test_what_is_not_a_diff_is_refused(text):
    with pytest.raises(DocumentError) as caught:
        changes.of_diff(text, "x.diff")

    assert caught.value.problems[0].rule == "not_a_diff"
    assert caught.value.problems[0].file == "x.diff"


def test_an_empty_diff_has_no_sections():
    assert changes.of_diff("") == []


@pytest.mark.process
def test_removed_renamed_and_binary_files(tmp_path):
    def git(*arguments):
        return subprocess.run(["git", "-C", tmp_path, *arguments], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("config", "user.email", "a@example.org")
    git("config", "user.name", "a")
    (tmp_path / "gone.py").write_text("x = 1\n")
    (tmp_path / "old name.py").write_text("".join(f"x{n} = {n}\n" for n in range(20)))
    (tmp_path / "image.png").write_bytes(bytes(range(256)))
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "image.png").write_bytes(bytes(reversed(range(256))))
    moved = (tmp_path / "old name.py").rename(tmp_path / "né\u00fc.py")
    moved.write_text(moved.read_text().replace("x5 = 5", "x5 = 6") + "no newline at the end")
    git("add", ".")

    found = changes.of_diff(git("-c", "core.quotePath=false", "diff", "--cached", "-M"))

    assert [section.path for section in found] == ["né\u00fc.py"] * 2
    assert [line.text for section in found for line in section.places] == ["x5 = 6", "no newline at the end"]


SOURCE = """import a

class OrdersController < ApplicationController
  before_action :require_login
  before_action :load_account

  def index
    @orders = @account.orders
{more}
  end

  def show
    @order = Order.find(params[:id])
  end
end
"""


def test_a_long_file_is_split_at_its_functions_which_keep_the_head_of_their_class():
    found = changes.of_file("orders.rb", SOURCE.format(more="\n".join(["    work"] * 40)))

    show = next(section for section in found if "Order.find" in section.text)
    assert show.enclosing == (
        "class OrdersController < ApplicationController",
        "  before_action :require_login",
        "  before_action :load_account",
    )
    assert show.lines[0].text == "  def show"


LINES = st.lists(
    st.builds(
        lambda depth, word: "    " * depth + word, st.integers(0, 4), st.sampled_from(["", "x", "def f():", "}"])
    ),
    max_size=200,
)


@given(LINES)
def test_every_line_of_a_file_is_in_exactly_one_section(lines):
    found = changes.of_file("x.py", "\n".join(lines))

    numbers = [line.number for section in found for line in section.lines]
    assert numbers == [*range(1, len("\n".join(lines).splitlines()) + 1)]


@pytest.mark.parametrize(
    ("path", "is_reviewed"),
    [
        ("app/api.py", True),
        ("./app/api.py", True),
        ("App/Controllers/OrdersController.cs", True),
        ("db/policies.sql", True),
        ("README.md", False),
        ("poetry.lock", False),
        ("tests/test_api.py", False),
        ("test_api.py", False),
        ("src/api.test.ts", False),
        ("spec/models/a_spec.rb", False),
        ("web/node_modules/a/index.js", False),
        ("app/contest.py", True),
    ],
)
def test_code_is_reviewed_and_tests_are_not(path, is_reviewed):
    assert stacks.packaged().is_reviewed(path) is is_reviewed


def test_unusual_characters_do_not_end_a_line():
    text = "a = 1\x0c\nb = 2\u2028\nc = '\x85'\r\nd = 4\n"
    (section,) = changes.of_file("x.py", text)

    assert [(line.number, line.text) for line in section.lines] == [
        (1, "a = 1\x0c"),
        (2, "b = 2\u2028"),
        (3, "c = '\x85'"),
        (4, "d = 4"),
    ]
    (section,) = changes.of_diff("--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+a = 1\x0c\n+b\u2028 = 2\n")
    assert [line.number for line in section.places] == [1, 2]


def test_a_quoted_name_is_read():
    (section,) = changes.of_diff('--- "a/n\\303\\251.py"\n+++ "b/n\\303\\251.py"\n@@ -0,0 +1 @@\n+x = 1\n')

    assert section.path == "né.py"


def test_a_combined_diff_is_refused():
    with pytest.raises(DocumentError) as caught:
        changes.of_diff("diff --cc a.py\nindex 1,2..3\n--- a/a.py\n+++ b/a.py\n@@@ -1,1 -1,1 +1,2 @@@\n++x\n  y\n")

    assert caught.value.problems[0].fields["reason"] == "it is the combined diff of a merge"


def test_long_files_are_split_in_time():
    functions = "\n\n".join(f"def f{number}():\n    return {number}" for number in range(8000))

    assert len(changes.of_file("x.py", functions)) == 8000


def test_many_levels_of_indentation_are_split():
    levels = "\n\n".join(" " * (1200 - number) + "x" for number in range(1200))

    assert sum(len(section.lines) for section in changes.of_file("x.py", levels)) == 2399

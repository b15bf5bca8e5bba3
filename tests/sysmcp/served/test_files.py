"""Searches, descriptions of single files, and files outside the roots."""

import base64
import datetime
import hashlib
import json
import os
import socket
import tempfile
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sysmcp.trees import found, pages, plant, refused, run, search, served, swapping
from tmkb.providers.operation import Progress
from tmkb.sysmcp.files import beneath

pytestmark = pytest.mark.skipif(not beneath.IS_SUPPORTED, reason="files are served on Linux only")

MANY = 100_000
NOTHING = {"permission": 0, "error": 0, "binary": 0, "tooLarge": 0}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    plant(folder, "a.txt", "docs/b.txt", "docs/deep/c.md", "docs/.hidden", ".git/config", "z/")
    return folder


@pytest.fixture
def files(root):
    return served(docs=root)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A folder with very many files."""
    folder = tmp_path_factory.mktemp("crowd")
    for number in range(MANY):
        os.mknod(folder / f"{number:06}")
    return folder


# --- Searches


def test_the_result_of_a_search(files, root):
    os.utime(root / "a.txt", (0, 1_700_000_000.25))

    assert search(files, "*.txt") == {
        "files": [
            {
                "root": "docs",
                "path": "a.txt",
                "name": "a.txt",
                "type": "file",
                "size": 7,
                "modified": "2023-11-14T22:13:20.250Z",
            },
            {
                "root": "docs",
                "path": "docs/b.txt",
                "name": "b.txt",
                "type": "file",
                "size": 7,
                "modified": iso((root / "docs" / "b.txt").stat().st_mtime),
            },
        ],
        "totalCount": 2,
        "complete": True,
        "page": 1,
        "pageSize": 100,
        "skipped": NOTHING,
    }


def iso(seconds):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ({}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"type": "dir"}, ["docs", "docs/deep", "z"]),
        ({"type": "any"}, ["a.txt", "docs", "docs/b.txt", "docs/deep", "docs/deep/c.md", "z"]),
        ({"includeHidden": True}, [".git/config", "a.txt", "docs/.hidden", "docs/b.txt", "docs/deep/c.md"]),
        ({"maxDepth": 0}, ["a.txt"]),
        ({"maxDepth": 1}, ["a.txt", "docs/b.txt"]),
        ({"path": "docs"}, ["docs/b.txt", "docs/deep/c.md"]),
        ({"path": "docs", "pattern": "deep/*"}, ["docs/deep/c.md"]),  # a path from where the search begins
        ({"path": "."}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"pattern": "docs/*"}, ["docs/b.txt"]),
        ({"pattern": "docs/**"}, ["docs/b.txt", "docs/deep/c.md"]),
        ({"pattern": "*.TXT"}, []),
        ({"pattern": "*.TXT", "caseSensitive": False}, ["a.txt", "docs/b.txt"]),
        ({"pattern": "B.T", "mode": "substring"}, ["docs/b.txt"]),
        ({"pattern": "B.T", "mode": "substring", "caseSensitive": True}, []),
        ({"pattern": "s/d", "mode": "substring"}, ["docs/deep/c.md"]),
        ({"minSize": 7, "maxSize": 7}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"minSize": 8}, []),
        ({"maxSize": 6}, []),
        ({"modifiedAfter": "2020-01-01"}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"modifiedBefore": "2020-01-01T00:00:00+02:00"}, []),
        ({"content": "inside"}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"content": "INSIDE"}, []),
        ({"content": "INSIDE", "caseSensitive": False}, ["a.txt", "docs/b.txt", "docs/deep/c.md"]),
        ({"content": "outside"}, []),
        ({"root": "docs", "pattern": "a*"}, ["a.txt"]),
    ],
)
def test_search_criteria(files, query, paths):
    assert found(files, **query) == paths


def test_bounds_of_times_are_those_of_a_range(files, root):
    os.utime(root / "a.txt", (0, 1_000_000_000))
    moment = "2001-09-09T01:46:40Z"

    assert found(files, "a.txt", modifiedAfter=moment, modifiedBefore="2001-09-09T01:46:41") == ["a.txt"]
    assert found(files, "a.txt", modifiedBefore=moment) == []


@pytest.mark.needs("re2")
def test_expressions_find_names(files):
    assert found(files, r"^[ab]\.", mode="regex") == ["a.txt", "docs/b.txt"]
    assert found(files, r"^docs/.*\.md$", mode="regex") == ["docs/deep/c.md"]


def test_matching_lines_are_returned(files, root):
    plant(root, "many", text="no\nneedle 1\nno\nneedle 2\nneedle 3\nneedle 4\n")
    (hit,) = search(files, "*", content="needle")["files"]

    assert hit["matches"] == [
        {"line": 2, "text": "needle 1"},
        {"line": 4, "text": "needle 2"},
        {"line": 5, "text": "needle 3"},
    ]


def test_contents_that_are_not_searched_are_counted(root):
    (root / "binary").write_bytes(b"\0inside")
    (root / "large").write_bytes(b"inside" * 100)
    (root / "link").symlink_to("a.txt")
    os.mkfifo(root / "pipe")
    answer = search(served(limits={"file_bytes": 100}, docs=root), "*", content="inside", type="any")

    assert [each["name"] for each in answer["files"]] == ["a.txt", "b.txt", "c.md"]
    assert answer["skipped"] == {**NOTHING, "binary": 1, "tooLarge": 1}


@pytest.mark.parametrize(
    ("content", "lines"), [("\n", [1, 2]), ("o\n", [2]), ("\nt", [1, 2]), ("\n\n", []), ("t", [2, 3])]
)
def test_a_line_is_reported_once_wherever_its_hit_ends(tmp_path, content, lines):
    (tmp_path / "f").write_text("one\ntwo\nthree")
    found = search(served(docs=tmp_path), "f", content=content)["files"]

    assert [match["line"] for each in found for match in each["matches"]] == lines


def test_all_roots_are_searched_in_their_order(tmp_path):
    plant(tmp_path, "one/a", "two/a", "three/a")
    files = served(two=tmp_path / "two", one=tmp_path / "one", three=tmp_path / "three")
    result, last = pages(files, pattern="a", limit=1)

    assert [each["root"] for each in result] == ["two", "one", "three"]
    assert (last["totalCount"], last["page"]) == (3, 3)
    assert [each["root"] for each in search(files, "a", root="one")["files"]] == ["one"]


def test_the_host_path_is_shown_only_if_permitted(root):
    shown = served(settings={"show_host_path": True}, docs=root)

    assert search(shown, "b.txt")["files"][0]["hostPath"] == str(root / "docs" / "b.txt")
    assert run(shown.stat(path="."))["hostPath"] == str(root)
    assert str(root) not in json.dumps(search(served(docs=root), "*", type="any"))


NAMES = st.sampled_from([b"a", b"a.b", b"b", b".c", "é".encode(), b"\xff", b"\\", b"\n"])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), max_size=10), st.integers(1, 4), st.data())
def test_pages_join_to_the_whole(tree, limit, data):
    with tempfile.TemporaryDirectory() as folder:
        for path in tree:
            try:
                plant(folder, path)
            except (IsADirectoryError, FileExistsError, NotADirectoryError):
                continue
        files = served(docs=folder)
        query = {
            "pattern": data.draw(st.sampled_from(["*", "a*", "**/b", "*/*"])),
            "type": data.draw(st.sampled_from(["file", "any"])),
            "includeHidden": True,
        }
        whole = search(files, **query)

        for by in ("cursor", "offset"):
            result, last = pages(files, by, **query, limit=limit)
            assert result == whole["files"]
            assert last["totalCount"] == whole["totalCount"] == len(result)
            assert last["page"] == max(0, len(result) - 1) // limit + 1
        for hit in result:
            assert run(files.stat(path=hit["path"]))["type"] == hit["type"]
        offset = data.draw(st.integers(0, 12))
        assert pages(files, **query, limit=limit, offset=offset)[0] == whole["files"][offset:]


def test_a_page_ends_at_its_maximum_size(root):
    plant(root, *[f"many/{number:03}" for number in range(50)])
    whole = search(served(docs=root), "*")["files"]
    files = served(limits={"answer_bytes": 1000}, docs=root)
    page = search(files, "*")

    assert len(json.dumps(page["files"])) < 1000 and len(page["files"]) > 3
    assert page["nextOffset"] == len(page["files"])
    assert pages(files, pattern="*")[0] == pages(files, "offset", pattern="*")[0] == whole
    assert pages(served(limits={"answer_bytes": 1}, docs=root), pattern="*")[0] == whole  # one by one


def test_only_deleted_files_are_missing_between_pages(root):
    plant(root, *[f"many/{number:03}" for number in range(50)])
    gone = iter(["many/004", "many/005", "many/020"])  # the cursor's, one that was result, and one that was not
    files = served(docs=root)
    result, _ = pages(
        files, pattern="*", path="many", limit=5, between=lambda: (root / next(gone, "a.txt")).unlink(True)
    )

    assert [each["name"] for each in result] == [f"{number:03}" for number in range(50) if number != 20]


def test_a_page_after_the_last(files):
    assert search(files, "*", offset=1000) == {
        **{"files": [], "totalCount": 3, "complete": True, "page": 11, "pageSize": 100, "skipped": NOTHING}
    }


def test_integral_floats_are_integers(files):
    assert search(files, "*", limit=1.0, offset=1.0, maxDepth=1.0) == search(files, "*", limit=1, offset=1, maxDepth=1)


# --- Refusals


def test_no_roots_permit_nothing():
    for running in (served().search(pattern="*"), served().stat(path="x"), served().search(pattern="*", path="..")):
        assert refused(running) == ("no_roots", {})


def test_unknown_and_ambiguous_roots(tmp_path):
    files = served(one=tmp_path, two=tmp_path)

    assert refused(files.stat(path=".", root="three")) == (
        "root_not_permitted",
        {"root": "three", "allowed": "one, two"},
    )
    assert refused(files.search(pattern="*", root="")) == ("root_not_permitted", {"root": "", "allowed": "one, two"})
    assert refused(files.stat(path=".")) == ("root_needed", {"allowed": "one, two"})
    assert refused(files.search(pattern="*", path=".")) == ("root_needed", {"allowed": "one, two"})


def test_a_missing_root(tmp_path):
    files = served(docs=tmp_path / "none")

    assert refused(files.stat(path="x")) == ("root_unavailable", {"root": "docs"})
    assert refused(files.search(pattern="*")) == ("root_unavailable", {"root": "docs"})


@pytest.mark.parametrize("policy", ["never", "beneath"])
def test_the_error_does_not_reveal_whether_an_outer_file_exists(root, policy):
    plant(root.parent, "outside/file", text="secret\n")
    (root / "out").symlink_to(root.parent / "outside")
    (root / "up").symlink_to("../outside")
    (root / "lost").symlink_to("../none")
    (root / "magic").symlink_to("/proc/self/root")
    (root / "loop").symlink_to("loop")
    files = served(settings={"symlinks": policy}, docs=root)
    ways = ["..", "../outside", "../none", "/", "/etc/passwd", "/none", str(root), "docs/../../outside", "docs/.."]
    ways += ["out/file", "out/none", "up/file", "up/none", "lost/file", "magic/etc/passwd", "magic/none", "loop/x"]

    refusals = [refused(files.stat(path=way)) for way in ways]
    refusals += [refused(files.search(pattern="*", path=way)) for way in [*ways, "out", "up", "lost", "magic", "loop"]]
    assert refusals == [("outside", {})] * len(refusals)
    assert not any("secret" in json.dumps(search(files, "*", content="secret", type=kind)) for kind in ("file", "any"))


@pytest.mark.parametrize("path", ["a//b", "a\\b", "a\0b", "./a.txt", "a.txt/", "\ud800", "x" * 300, "x/" * 3000 + "x"])
def test_invalid_paths_are_reported(files, path):
    assert refused(files.stat(path=path)) == ("bad_path", {"received": path})
    assert refused(files.search(pattern="*", path=path)) == ("bad_path", {"received": path})


@pytest.mark.parametrize("path", ["none", "a.txt/x", "A.TXT", "docs/B.txt"])
def test_missing_files(files, path):
    assert refused(files.stat(path=path)) == ("path_not_found", {"path": path})
    assert refused(files.search(pattern="*", path=path)) == ("path_not_found", {"path": path})


def test_a_search_path_must_be_a_folder(files):
    assert refused(files.search(pattern="*", path="a.txt")) == ("path_not_found", {"path": "a.txt"})


@pytest.mark.parametrize(
    ("query", "error", "fields"),
    [
        ({"minSize": 2, "maxSize": 1}, "empty_range", {"path": "arguments.maxSize", "other": "arguments.minSize"}),
        (
            {"modifiedAfter": "2024-01-02", "modifiedBefore": "2024-01-02"},
            "empty_range",
            {"path": "arguments.modifiedBefore", "other": "arguments.modifiedAfter"},
        ),
        ({"modifiedAfter": "noon"}, "bad_time", {"path": "arguments.modifiedAfter", "received": "noon"}),
        ({"modifiedBefore": "2024-13-01"}, "bad_time", {"path": "arguments.modifiedBefore", "received": "2024-13-01"}),
        ({"pattern": "/etc/*"}, "bad_pattern", {"mode": "glob", "received": "/etc/*"}),
    ],
)
def test_invalid_criteria(files, query, error, fields):
    assert refused(files.search(**{"pattern": "*", **query})) == (error, fields)


@pytest.mark.needs("re2")
def test_an_invalid_regular_expression(files):
    assert refused(files.search(pattern="(", mode="regex")) == ("bad_pattern", {"mode": "regex", "received": "("})


def test_expressions_without_their_library(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "re2", None)

    assert refused(files.search(pattern="a", mode="regex")) == ("mode_unavailable", {"mode": "regex"})


def test_a_cursor_is_for_the_query_that_gave_it(files):
    cursor = search(files, "*", limit=1)["nextCursor"]
    other = {"path": "arguments.cursor", "received": cursor}

    assert refused(files.search(pattern="a*", cursor=cursor)) == ("bad_cursor", other)
    assert refused(files.search(pattern="*", includeHidden=True, cursor=cursor)) == ("bad_cursor", other)
    assert found(files, "*", limit=50, cursor=cursor) == ["docs/b.txt", "docs/deep/c.md"]


def made_up(*parts):
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


def test_made_up_cursors_lead_nowhere(files):
    query, *_ = json.loads(base64.urlsafe_b64decode(search(files, "*", limit=1)["nextCursor"] + "=="))
    cursors = ["", "x", "=", "é", "\ud800", base64.b64encode(b"\xff").decode(), base64.b64encode(b"[" * 6000).decode()]
    cursors += [made_up(), made_up(query, "docs", "a.txt"), made_up("other", "docs", "a.txt", 1)]
    cursors += [made_up(query, root, "a.txt", 1) for root in ("none", None, ["docs"], {})]
    cursors += [made_up(query, "docs", path, 1) for path in ("../x", "/etc", "", "a//b", None, 5, ["a"])]
    cursors += [made_up(query, "docs", "a.txt", seen) for seen in (-1, 1.5, True, None, "1", 2**53)]

    for cursor in cursors:
        assert refused(files.search(pattern="*", cursor=cursor))[0] == "bad_cursor"


@given(st.text(alphabet="ABab01_-=+/ ", max_size=40))
def test_any_text_as_a_cursor_is_refused(text):
    with tempfile.TemporaryDirectory() as folder:
        assert refused(served(docs=folder).search(pattern="*", cursor=text))[0] == "bad_cursor"


# --- One file


def test_stat_of_a_file(files, root):
    os.utime(root / "a.txt", (1_000_000_000, 1_100_000_000))
    (root / "a.txt").chmod(0o4640)

    assert run(files.stat(path="a.txt", hash="sha256")) == {
        "root": "docs",
        "path": "a.txt",
        "type": "file",
        "size": 7,
        "mode": "4640",
        "modified": "2004-11-09T11:33:20.000Z",
        "accessed": "2001-09-09T01:46:40.000Z",
        "created": None,
        "hidden": False,
        "readable": True,
        "sha256": hashlib.sha256(b"inside\n").hexdigest(),
    }


def test_stat_of_other_kinds(files, root, monkeypatch):
    monkeypatch.chdir(root)
    os.mkfifo("pipe")
    os.symlink("a.txt", "link")
    os.symlink(b"/else/\xff", "far")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    result = {
        name: run(files.stat(path=name, hash="sha256")) for name in (".", "docs", "pipe", "link", "far", "socket")
    }

    assert {name: each["type"] for name, each in result.items()} == {
        **{".": "dir", "docs": "dir", "pipe": "fifo", "link": "symlink", "far": "symlink", "socket": "socket"}
    }
    assert {name: each.get("linkTarget") for name, each in result.items() if "link" in each["type"]} == {
        **{"link": "a.txt", "far": None}
    }
    assert [name for name, each in result.items() if each["readable"]] == [".", "docs"]
    assert not any("sha256" in each for each in result.values())
    assert run(served(dev="/dev").stat(path="null"))["type"] == "device"


def test_an_outer_link_target_is_shown_only_if_host_paths_are(root):
    targets = {
        "absolute": str(root / "a.txt"),
        "above": "../docs",
        "docs/above": "../../elsewhere",
        "docs/within": "../a.txt",
        "docs/around": "../docs/../a.txt",
    }
    for link, target in targets.items():
        os.symlink(target, root / link)
    hidden, shown = served(docs=root), served(settings={"show_host_path": True}, docs=root)

    assert {link: run(hidden.stat(path=link)).get("linkTarget") for link in targets} == {
        **{"absolute": None, "above": None, "docs/above": None},
        **{"docs/within": "../a.txt", "docs/around": "../docs/../a.txt"},
    }
    assert {link: run(shown.stat(path=link))["linkTarget"] for link in targets} == targets


def test_the_field_hidden(files):
    assert run(files.stat(path="docs/.hidden"))["hidden"]
    assert not run(files.stat(path=".git/config"))["hidden"]
    assert not run(files.stat(path="."))["hidden"]


def test_inner_links_are_followed_if_permitted(root):
    (root / "near").symlink_to("docs")
    files = served(settings={"symlinks": "beneath"}, docs=root)

    if refused_or_none(files, "near/b.txt"):
        pytest.skip("no openat2")
    assert run(files.stat(path="near/b.txt", hash="sha256"))["sha256"]
    assert run(files.stat(path="near"))["type"] == "symlink"
    assert found(files, "*.txt", path="near") == ["near/b.txt"]
    assert found(files, "*", type="symlink") == ["near"]
    assert refused(served(docs=root).stat(path="near/b.txt")) == ("outside", {})


def refused_or_none(files, path):
    try:
        run(files.stat(path=path))
    except Exception as error:
        return error
    return None


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="other file systems know no such times")
def test_times_outside_the_calendar_are_null():
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        os.utime(file.name, (1 << 40, 1 << 40))
        files, name = served(memory="/dev/shm"), os.path.basename(file.name)

        assert run(files.stat(path=name))["modified"] is None
        assert search(files, name)["files"][0]["modified"] is None


def test_large_files_are_not_hashed(root):
    files = served(limits={"hash_bytes": 6}, docs=root)

    assert refused(files.stat(path="a.txt", hash="sha256")) == ("too_large_to_hash", {"limit": 6})
    assert run(files.stat(path="a.txt"))["size"] == 7


def test_hashing_runs_in_steps_and_detects_changes(files, root):
    (root / "large").write_bytes(b"x" * 60_000_000)
    steps = files.stat(path="large", hash="sha256")

    assert isinstance(next(steps), Progress)
    os.utime(root / "large", (1, 1))
    assert refused(steps) == ("changed_meanwhile", {})
    slow = served(limits={"seconds": 1e-6}, docs=root)
    assert refused(slow.stat(path="large", hash="sha256")) == ("hash_timed_out", {"seconds": 1e-6})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_files_without_permission(files, root):
    (root / "a.txt").chmod(0o600)
    (root / "docs").chmod(0o711)
    (root / "z").chmod(0o700)
    plant(root, "z/file")
    for folder in [root, *root.parents][:-2]:  # all below /tmp
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        result = run(files.stat(path="a.txt", hash="sha256"))
        folder = run(files.stat(path="z"))
        search_answer = search(files, "*", content="inside")
        refusals = [refused(files.stat(path="z/file")), refused(files.search(pattern="*", path="z"))]
        passed = run(files.stat(path="docs/b.txt"))
    finally:
        os.seteuid(0)

    assert (result["readable"], result["size"], "sha256" in result) == (False, 7, False)
    assert not folder["readable"] and passed["readable"]
    assert search_answer["files"] == []
    assert search_answer["skipped"] == {**NOTHING, "permission": 3}  # a file and two folders
    assert refusals == [("path_not_readable", {"path": "z/file"}), ("path_not_readable", {"path": "z"})]


# --- Others, at the same time


@pytest.mark.process
def test_swapping_names_gives_no_access_outside(root):
    plant(root, "place/file")
    plant(root.parent, "outside/file", text="secret, and longer than what is inside\n")
    (root / "link").symlink_to("../outside")
    seen = dict.fromkeys(("inside", "nothing"), 0)
    digest = hashlib.sha256(b"inside\n").hexdigest()
    for policy in ("never", "beneath"):
        files = served(settings={"symlinks": policy}, docs=root)
        with swapping(root / "place", root / "link"):
            for _ in range(5000):
                result = stat_or_nothing(files, "place/file")
                seen["inside" if result else "nothing"] += 1
                assert not result or (result["size"], result.get("sha256", digest)) == (7, digest)
            for _ in range(5000):
                answer = search(files, "f*", content="in", type="any", maxDepth=1)["files"]
                assert all(line["text"] == "inside" for each in answer for line in each["matches"])

    assert all(seen.values())  # the names were exchanged meanwhile


def stat_or_nothing(files, path):
    from tmkb.errors import ToolError

    try:
        return run(files.stat(path=path, hash="sha256"))
    except ToolError as error:
        assert error.error in ("outside", "path_not_found")
        return None


@pytest.mark.full
def test_very_many_files_in_one_folder_are_searched_in_steps(crowd):
    files = served(docs=crowd)
    begun = time.process_time()
    listed = sorted(item.name for item in os.scandir(crowd) if item.is_file(follow_symlinks=False))
    floor = time.process_time() - begun
    steps = []
    searching = files.search(pattern="*", limit=1, offset=MANY - 1)
    while True:
        begun = time.process_time()
        try:
            next(searching)
        except StopIteration as end:
            answer = end.value
            break
        finally:
            steps.append(time.process_time() - begun)

    assert [each["name"] for each in answer["files"]] == [listed[-1]]
    assert answer["totalCount"] == MANY
    assert max(steps) < floor
    assert len(steps) > MANY / 10_000


@pytest.mark.full
def test_very_many_files_in_one_folder_take_little_more_memory_than_their_names(crowd):
    def peak(act):
        tracemalloc.start()
        try:
            act()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(lambda: search(served(docs=crowd), "*9")) < 2 * peak(lambda: list(os.scandir(crowd)))


def test_the_next_page_continues_after_the_time_limit(tmp_path):
    for number in range(8_000):
        os.mknod(tmp_path / f"{number:05}")
    hurried = served(limits={"seconds": 0.001}, docs=tmp_path)
    result, last = pages(hurried, pattern="*00", offset=7)

    assert [each["name"] for each in result] == [f"{number:05}" for number in range(700, 8_000, 100)]
    assert last["totalCount"] == 80
    first = search(hurried, "none")
    assert (first["files"], first["totalCount"], first["complete"]) == ([], None, False)
    assert "nextOffset" not in first


@pytest.mark.full
def test_a_cancelled_search_closes_its_folders(crowd):
    before = len(os.listdir("/proc/self/fd"))
    searching = served(docs=crowd).search(pattern="none")
    next(searching)
    assert len(os.listdir("/proc/self/fd")) > before
    searching.close()

    assert len(os.listdir("/proc/self/fd")) == before

"""Matches of patterns, and the time for hostile patterns and names."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp.files import matching

PARTS = st.text(alphabet="ab.", min_size=1, max_size=4)
STEPS = st.one_of(st.just("**"), st.text(alphabet="ab.*?", min_size=1, max_size=4))


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.log", "a.log", True),
        ("*.log", "a.log.1", False),
        ("*.LOG", "a.log", False),
        ("?.log", "é.log", True),
        ("[a-c][!a]", "ab", True),
        ("[a-c][!a]", "ba", False),
        ("[", "[", True),
        ("{a,b}", "a", False),
        ("{a,b}", "{a,b}", True),
        ("**", ".anything", True),
        ("a**z", "abcz", True),
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a", True),
        ("**/c", "c", True),
        ("**/c", "a/b/c", True),
        ("**/b/**/d", "a/b/c/d", True),
        ("**/b/**/d", "a/b/d", True),
        ("**/b/**/d", "a/d", False),
        ("a/**/b/*", "a/x/b/b", True),
        ("a[/]b", "a/b", False),
        ("a?b/c", "a/b/c", False),
    ],
)
def test_globs(pattern, path, fits):
    assert bool(matching.glob(pattern, True)(path)) is fits


@pytest.mark.parametrize("pattern", ["/a", "a/", "a//b", "/"])
def test_a_glob_that_cannot_match_is_invalid(pattern):
    with pytest.raises(ValueError):
        matching.glob(pattern, True)


def fits(steps, parts):
    """The same, by trying everything."""
    if not steps:
        return not parts
    if steps[0] == "**":
        return any(fits(steps[1:], parts[taken:]) for taken in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], steps[0]) and fits(steps[1:], parts[1:])


@given(st.lists(STEPS, min_size=1, max_size=6), st.lists(PARTS, min_size=1, max_size=7))
def test_a_glob_matches_like_an_exhaustive_search(steps, parts):
    path = "/".join(parts) if len(steps) > 1 else parts[0]  # a pattern without a slash is asked for names

    assert bool(matching.glob("/".join(steps), True)(path)) == fits(steps, path.split("/"))


@given(st.text(alphabet="aAéÉß", max_size=4), st.text(alphabet="aAéÉß", max_size=8))
def test_substrings(pattern, text):
    assert matching.substring(pattern, True)(text) == (pattern in text)
    assert matching.substring(pattern, False)(text) == (pattern.casefold() in text.casefold())


REGEX = pytest.param("regex", marks=pytest.mark.needs("re2"))


@pytest.mark.parametrize("mode", ["glob", "substring", REGEX])
def test_case_sensitivity(mode):
    match = matching.MODES[mode]

    assert match("MAIN.py", False)("main.PY")
    assert not match("MAIN.py", True)("main.PY")


@pytest.mark.needs("re2")
def test_expressions():
    assert matching.regex(r"^a+\.(py|c)$", True)("aa.py")
    assert not matching.regex("^a$", True)("ba")
    for broken in ("(", "a**", r"(a)\1", "(?=a)", "a{2000}"):
        with pytest.raises(ValueError):
            matching.regex(broken, True)


def took(match, text):
    """Return the fastest of several runs in nanoseconds, to exclude the load of other processes."""
    runs = []
    for _ in range(5):
        begun = time.process_time_ns()
        for _ in range(20):
            match(text)
        runs.append(time.process_time_ns() - begun)
    return max(min(runs), 1)


@pytest.mark.parametrize(
    ("mode", "pattern", "text"),
    [
        ("glob", "*a" * 100 + "b", "a"),
        ("glob", "*" * 200 + "b", "a"),
        ("glob", "*?" * 100 + "b", "a"),
        ("glob", "*[ab]" * 40 + "c", "ab"),
        ("glob", "**/a/" * 40 + "b", "a/"),
        ("glob", "**/*a*/" * 30 + "b", "aa/"),
        pytest.param("regex", "(a+)+$", "ab", marks=pytest.mark.needs("re2")),
        pytest.param("regex", "(a|aa)*(b|bb)*c", "ab", marks=pytest.mark.needs("re2")),
        pytest.param("regex", "(.*)*" * 20 + "c", "ab", marks=pytest.mark.needs("re2")),
        ("substring", "a" * 128 + "b", "a"),
    ],
)
def test_matching_takes_at_most_quadratic_time(mode, pattern, text):
    match = matching.MODES[mode](pattern, True)
    short, long = (text * times + "x" for times in (64, 256))

    assert took(match, long) < 16 * 8 * took(match, short)  # 16 for the square, 8 for the weather

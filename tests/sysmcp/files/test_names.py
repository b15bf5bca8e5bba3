"""Every name can be displayed and converted back."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp.files import names

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: name not in (b".", b"..") and not set(name) & {0, 47})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"a b", "a b"),
        ("é€😀".encode(), "é€😀"),
        (b"\xff", r"\xff"),
        (b"a\\xff", r"a\x5cxff"),
        (b"a\nb\x7f\x1b", r"a\x0ab\x7f\x1b"),
        (b"\xc3\xa9\xc3", r"é\xc3"),
        (b"\xed\xb3\xbf", r"\xed\xb3\xbf"),  # a surrogate is no UTF-8
    ],
)
def test_how_a_name_is_shown(name, shown):
    assert names.display(os.fsdecode(name)) == shown
    assert names.split(shown) == [os.fsdecode(name)]


@given(st.lists(NAMES, min_size=1))
def test_a_shown_path_leads_back(path):
    shown = "/".join(names.display(os.fsdecode(name)) for name in path)

    assert json.loads(json.dumps(shown, ensure_ascii=False).encode()) == shown
    assert [os.fsencode(name) for name in names.split(shown)] == path


@given(st.lists(NAMES))
def test_names_are_sorted_by_their_bytes(found):
    ordered = sorted((os.fsdecode(name) for name in found), key=names.sort_key)

    assert [os.fsencode(name) for name in ordered] == sorted(found)


@pytest.mark.parametrize("path", ["/", "/a", "//a", "..", "../a", "a/..", "a/../b", "a/../..", "../none"])
def test_paths_outside_the_root_have_their_own_error(path):
    with pytest.raises(names.OutsideRoot):
        names.split(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a/", "a//b", "./a", "a/.", "a\0b", "a\\b", "C:\\a", "a\nb", "\ud800", "\udcff"),
        *(r"\x2e\x2e", r"\x2e\x2e/a", r"a\x2fb", r"\x00", r"\x61", r"\xFF", r"\xc3\xa9", r"\x5"),
    ],
)
def test_other_spellings_are_invalid_paths(path):
    with pytest.raises(ValueError) as raised:
        names.split(path)
    assert not isinstance(raised.value, names.OutsideRoot)


@given(st.text(alphabet="ab./\\x0f2e5c\0\udcff", max_size=12))
def test_any_valid_path_stays_inside(path):
    try:
        parts = names.split(path)
    except ValueError:
        return

    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)

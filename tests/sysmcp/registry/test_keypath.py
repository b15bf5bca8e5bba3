"""Paths of registry keys: which are some, and which are the same."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.sysmcp.registry import keypath

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\/"), min_size=1, max_size=100)


@pytest.mark.parametrize("root", ["HKLM", "hklm", "HKEY_LOCAL_MACHINE", "hkey_Local_Machine"])
def test_a_root_has_two_names_and_any_case(root):
    assert keypath.parse(f"{root}\\System\\Select") == ("HKLM", "System", "Select")


@pytest.mark.parametrize(
    "path",
    [
        *("", "\\", "HKLM\\", "\\HKLM", "HKLM\\\\SYSTEM", "HKLM\\SYSTEM\\", "HKXX\\SYSTEM", "SYSTEM", "\\\\pc\\HKLM"),
        *("HKLM/SYSTEM", "HKLM\\SYSTEM/Select", "../HKLM", "HKLM\\a\0b", "HKLM\\a\nb", "HKLM\\\ud800"),
        f"HKLM\\{'a' * 256}",
        f"HKLM\\{'😀' * 128}",
    ],
)
def test_invalid_paths(path):
    with pytest.raises(ValueError):
        keypath.parse(path)


@pytest.mark.parametrize("name", ["..", ".", "C:", "a b", "~", "😀" * 127, "a" * 255, "%00", "*"])
def test_unusual_names_are_valid(name):
    assert keypath.parse(f"HKLM\\{name}") == ("HKLM", name)


@given(st.lists(names, max_size=5))
def test_a_joined_path_parses_to_its_names(parts):
    assert keypath.parse(keypath.joined(["HKLM", *parts])) == ("HKLM", *parts)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_is_refused(text):
    with contextlib.suppress(ValueError):
        assert keypath.joined(keypath.parse(text)).endswith(text.partition("\\")[2])


@given(names)
def test_folding_is_idempotent(name):
    folded = keypath.folded(name)

    assert keypath.folded(folded) == folded
    assert len(folded) == len(name)
    assert folded.isascii() == name.isascii()


@pytest.mark.parametrize("disguise", ["\u017fAM", "SAM ", "S\u0410M", "SAM\u200b", "\uff33AM"])
def test_similar_characters_do_not_match(disguise):
    assert not keypath.is_below(keypath.parse(f"HKLM\\{disguise}"), ("HKLM", "SAM"))


def test_is_below():
    assert keypath.is_below(("HKLM", "sam", "x"), ("HKLM", "SAM"))
    assert keypath.is_below(("HKLM", "SAM"), ("HKLM", "SAM"))
    assert not keypath.is_below(("HKLM", "SAMx"), ("HKLM", "SAM"))
    assert not keypath.is_below(("HKLM",), ("HKLM", "SAM"))
    assert not keypath.is_below(("HKCU", "SAM"), ("HKLM", "SAM"))

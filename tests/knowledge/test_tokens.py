"""Counts are those that the tokenizer's package gives by its documented way, which takes longer to load."""

import bpe_openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.knowledge import tokens


@pytest.fixture(scope="module")
def encoding():
    return bpe_openai.get_encoding("cl100k_base")


@given(
    text=st.text() | st.lists(st.sampled_from(["<|endoftext|>", "def f(x):", "\n\n  ", "naïve", "日本"])).map("".join)
)
def test_as_the_package_counts(encoding, text):
    assert tokens.count(text) == len(encoding.encode_ordinary(text))

"""Token counts equal those of the tokenizer's documented API, which takes longer to load."""

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
def test_counts_equal_the_documented_api(encoding, text):
    assert tokens.count(text) == len(encoding.encode_ordinary(text))

"""Counts equal those of a tokenizer package, which only the tests need."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.repository import ROOT, source
from tmkb.knowledge import tokens

WORDS = [
    "<|endoftext|>", "def f(x):", "\n\n  ", "\r\n", "naïve", "日本", "'LL", "'\u017f", "½", "Ⅷ", "一", "\x1c", "\x85", "\u3000", "_", "e\u0301",
    "👩‍👩‍👧", "🇨🇭", "3.14159265358979", "١٢٣٤", "{'a': [1, 2]}", "    return x\n", " ", "authorization",
]  # fmt: skip
# Which characters are letters is Python's to say; those that its Unicode version lacks are left out.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cn"])) | st.lists(st.sampled_from(WORDS)).map("".join)


@pytest.fixture(scope="module")
def encoding():
    bpe_openai = pytest.importorskip("bpe_openai")
    return bpe_openai.get_encoding("cl100k_base")


@pytest.mark.needs("bpe_openai")
@given(text=TEXTS)
def test_a_count_equals_the_tokenizers(encoding, text):
    assert tokens.count(text) == len(encoding.encode_ordinary(text))


@pytest.mark.needs("bpe_openai")
@pytest.mark.parametrize("name", ["docs/howto.md", "tmkb/knowledge/tokens.py", "patterns/tmkb_auth_001/pattern.yaml"])
def test_a_long_text_has_the_same_count(encoding, name):
    text = source(f"{ROOT}/{name}")

    assert tokens.count(text) == len(encoding.encode_ordinary(text))


@pytest.mark.needs("bpe_openai")
@pytest.mark.full
@pytest.mark.parametrize("plane", range(4))
def test_every_character_has_the_same_count(encoding, plane):
    """The first planes contain all letters; characters in a row show how they are split and merged."""
    known = (chr(n) for n in range(plane << 16, (plane + 1) << 16) if unicodedata.category(chr(n)) not in ("Cs", "Cn"))
    for text in re.findall(r"(?s).{1,97}", "".join(known)):
        assert tokens.count(text) == len(encoding.encode_ordinary(text)), ascii(text)


@pytest.mark.needs("bpe_openai")
def test_the_vocabulary_is_the_encodings(encoding):
    ranks = range(256, 100256)

    assert list(tokens.ranks()) == [encoding.decode_single_token_bytes(rank) for rank in ranks]


def test_known_counts():
    """Hold without the tokenizer package."""
    assert tokens.count("") == 0
    assert tokens.count(" authorization") == 1
    assert tokens.count("tiktoken is great!") == 6  # the example of its documentation


def test_a_long_run_takes_no_quadratic_time():
    assert tokens.count("a" * 200_000) == 25_000

"""Token counts of cl100k_base, exact: the measure of an answer's size."""

from __future__ import annotations

from functools import cache
from typing import Any


def count(text: str) -> int:
    """How many tokens ``text`` has; what looks like a special token is counted as the text it is."""
    return len(_encoding().encode_ordinary(text))


@cache
def _encoding() -> Any:
    import bpe_openai

    return bpe_openai.get_encoding("cl100k_base")

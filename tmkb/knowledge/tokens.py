"""Token counts of cl100k_base, exact: the measure of an answer's size."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


def count(text: str) -> int:
    """How many tokens ``text`` has; what looks like a special token is counted as the text it is."""
    counted: int = _tokenizer().count(text)
    return counted


@cache
def _tokenizer() -> Any:
    """The tokenizer's own module: its package takes 1.5 s to read the tables of three encodings in Python, unused."""
    package = find_spec("bpe_openai")
    assert package is not None  # a dependency
    spec = PathFinder.find_spec("bpe_openai._bindings", package.submodule_search_locations)
    assert spec is not None and spec.loader is not None
    bindings: Any = module_from_spec(spec)
    spec.loader.exec_module(bindings)
    return bindings.tokenizer_for_encoding("cl100k_base")

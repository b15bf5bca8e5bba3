"""Addresses and their templates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.engine.handlers import resources


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("test://a/{id}/data", "test://a/12/data", {"id": "12"}),
        ("test://a/{id}/data", "test://a/1%2F2%20%C3%A4/data", {"id": "1/2 ä"}),
        ("test://a/{id}/data", "test://a//data", None),
        ("test://a/{id}/data", "test://a/1/2/data", None),
        ("test://a/{id}/data", "test://a/1/data/more", None),
        ("test://a.b/{id}", "test://aXb/1", None),
        ("test://{kind}/{id}", "test://dogs/7", {"kind": "dogs", "id": "7"}),
        ("test://plain", "test://plain", {}),
    ],
)
def test_match(template, uri, variables):
    assert resources.match(template, uri) == variables


@given(st.text())
def test_any_text_is_matched_or_not(uri):
    assert resources.match("test://{id}", uri) in (None, {"id": uri[7:]}) or "%" in uri

"""Immutable values."""

from tmkb.schema.values import record


@record
class Open:
    name: str
    mode: str = "r"


@record
class Close:
    name: str
    mode: str = "r"


def test_values_of_one_type_and_content_are_equal():
    assert Open("a") == Open("a", "r")
    assert hash(Open("a")) == hash(Open("a", "r"))
    assert Open("a") != Open("b")


def test_values_of_different_types_differ():
    assert Open("a") != Close("a")
    assert not Open("a") == Close("a")  # noqa: SIM201 # tests __eq__
    assert Open("a") != ("a", "r")
    assert len({Open("a"), Close("a")}) == 2

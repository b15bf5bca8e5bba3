"""What a response of one revision becomes in another."""

import pytest

from tmkb.conformance import eras
from tmkb.server.server import protocol


@pytest.mark.parametrize(
    ("code", "status"), [(-32700, 400), (-32600, 400), (-32601, 404), (-32602, 400), (-32603, 200), (-32000, 200)]
)
def test_the_status_of_an_error_is_that_of_the_general_one_with_its_code(code, status):
    revisions = protocol()["revisions"]

    assert eras.status({"code": code}, revisions["2026-07-28"]) == status
    assert eras.status({"code": code}, revisions["2025-11-25"]) == 200


def test_a_result_has_the_status_200():
    assert eras.status(None, protocol()["revisions"]["2026-07-28"]) == 200

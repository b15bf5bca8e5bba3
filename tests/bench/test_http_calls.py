"""Calls over HTTP beside the Python SDK's server."""

import http_calls
import pytest

pytestmark = pytest.mark.full


def test_a_call_takes_no_longer_than_with_the_python_sdk():
    measured = http_calls.measure(http_calls.here(), [1, 10], rounds=3, calls=40)

    assert all(min(ratios) >= 1 for ratios in http_calls.worse(measured).values())
    assert [row[0] for row in http_calls.table(measured)[1:]] == [
        "tmkb, 1",
        "python-sdk, 1",
        "tmkb, 10",
        "python-sdk, 10",
    ]

"""Calls on a kept-alive connection beside the Python SDK's server."""

import statistics

import http_calls
import pytest

pytestmark = pytest.mark.full


def test_a_call_takes_no_longer_than_with_the_python_sdk():
    took = http_calls.measure(rounds=4, calls=20)

    assert statistics.median(took["tmkb"]) < statistics.median(took["python-sdk"])

"""How the values of a parametrized test are divided between the tiers."""

import pytest


def sample(values, every, rest=pytest.mark.full, chosen=()):
    """Return the parameters of a test: one of ``every`` so many carries the markers ``chosen``, the others ``rest``."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=rest if number % every else chosen)
        for number, value in enumerate(values)
    ]

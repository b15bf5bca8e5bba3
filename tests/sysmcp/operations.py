"""Run operations without a runtime."""

from types import GeneratorType


def run(running):
    """Run an operation to its end and return its result."""
    assert isinstance(running, GeneratorType)
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value

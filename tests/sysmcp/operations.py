"""Operations run to their end, as the runtime would, but at once."""

from types import GeneratorType


def run(running):
    """What an operation gives at its end."""
    assert isinstance(running, GeneratorType)
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value

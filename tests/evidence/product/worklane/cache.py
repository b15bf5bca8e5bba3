"""A cache in the memory of the process."""

import time

_values = {}


def get_or_make(key, seconds, make):
    expires, value = _values.get(key, (0, None))
    if expires < time.monotonic():
        value = make()
        _values[key] = (time.monotonic() + seconds, value)
    return value


def forget(prefix):
    for key in [key for key in _values if key.startswith(prefix)]:
        del _values[key]


def clear():
    _values.clear()

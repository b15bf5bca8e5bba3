"""Tasks that ended in another process."""

from types import SimpleNamespace

import pytest

from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget
from tmkb.protocol.tasks import Tasks

NOW = 1_000_000.0  # Unix time in seconds


@pytest.mark.parametrize(("age", "left"), [(40, 20), (0, 60), (-40, 60)])  # a negative age: the other clock is ahead
def test_the_time_of_a_task_begins_in_the_process_that_created_it(age, left):
    timer = [0.0]
    tasks = Tasks({"task_seconds": 60}, lambda: NOW, lambda: timer[0], str)
    alice = SimpleNamespace(principal="alice", permits=lambda *_: True)
    tasks.adopt("a", "alice", "slow_compute", Budget(10_000), NOW - age, {"result": {}})

    timer[0] = left
    assert tasks.get(alice, "a").created_at == NOW - age
    timer[0] = left + 1
    with pytest.raises(ProtocolError, match="unknown_task"):
        tasks.get(alice, "a")

"""What is measured on a server, and in which order: one after the other in each round, so that all have the same weather."""

import contextlib
import functools
import itertools
import random
import statistics
import subprocess
import time
from typing import NamedTuple

from client import Server, call, request, tick

LARGE = {"one": 1_000_000, "large": 9_900_000}  # bytes of one request; a line of 10 MB is the most that we read
KINDS = {  # what is sent in bursts: figure, request by its id
    "calls": call,
    "new_calls": lambda id: call(id, f"background job processing {id}"),
    "pings": functools.partial(request, "ping"),
}


class Effort(NamedTuple):
    """How much of everything; a burst of a slow server is cut to about ``seconds``."""

    rounds: int = 5
    starts: int = 4
    turns: int = 10
    sequential: int = 100
    bursts: int = 4
    burst: int = 20_000
    seconds: float = 1.0


def measure(commands, bare, environment, effort):
    """All samples: server (name in ``commands``, or "bare", a command that starts and ends) → figure → list, by rounds.

    Each server is started once before, so that what is written for the next start is there.
    """
    chance = random.Random(1)
    samples = {name: {} for name in [*commands, "bare"]}
    for command in commands.values():
        starting(command, environment)
    for number in range(effort.rounds):
        for _ in range(effort.starts):
            for name in shuffled(commands, chance):
                add(samples[name], starting(commands[name], environment))
            add(samples["bare"], only_starting(bare, environment))
        for name, figures in working(commands, environment, effort, chance).items():
            add(samples[name], figures)
        for name in shuffled(commands, chance):
            add(samples[name], {figure: large(commands[name], environment, LARGE[figure]) for figure in LARGE})
        print(f"round {number + 1} of {effort.rounds}", flush=True)
    return samples


def shuffled(names, chance):
    """The names in an order by chance."""
    return chance.sample([*names], len(names))


def add(samples, figures):
    """Put each figure to its samples."""
    for figure, value in figures.items():
        samples.setdefault(figure, []).append(value)


def starting(command, environment):
    """From the start to the first answers, and from the end of the input to the end."""
    with Server(command, environment) as server:
        start = server.open()
        server.ask(call(1))
        first_call = time.perf_counter() - server.started
        return {"start": start, "first_call": first_call, "exit": server.close()}


def only_starting(command, environment):
    """The same of a command that does nothing and ends."""
    begun = time.perf_counter()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return {"start": time.perf_counter() - begun}


def working(commands, environment, effort, chance):
    """Figures of every server under load: all are there at once, and have their turns.

    Of several bursts the fastest counts: some servers take several times as long for one as for the next.
    """
    ids = itertools.count(1)
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(Server(command, environment)) for name, command in commands.items()}
        latencies, bursts = {name: [] for name in servers}, {(name, kind): [] for name in servers for kind in KINDS}
        for server in servers.values():
            server.open()
        for name in [name for _ in range(effort.turns) for name in shuffled(servers, chance)]:
            latencies[name] += single_calls(servers[name], ids, effort.sequential)
        for kind in [kind for kind in KINDS for _ in range(effort.bursts)]:
            for name in shuffled(servers, chance):
                count = min(effort.burst, int(effort.seconds / statistics.median(latencies[name])))
                bursts[name, kind].append(burst(servers[name], KINDS[kind], ids, count))
        return {name: loaded(latencies[name], bursts, name, server) for name, server in servers.items()}


def loaded(latencies, bursts, name, server):
    """The figures of one server; memory as the load has left it."""
    times = {"p50": statistics.median(latencies), "p95": statistics.quantiles(latencies, n=20)[-1]}
    rates = {kind: max(rate for rate, _ in bursts[name, kind]) for kind in KINDS}
    cpu = statistics.mean(cpu for _, cpu in bursts[name, "calls"])
    return {**times, **rates, "cpu": cpu, "memory": server.peak_memory()}


def single_calls(server, ids, count):
    """The seconds of each of so many calls, one after the other, but for the first tenth.

    The server shares one processor with us: to wake another takes longer than to answer, and differs by chance.
    """
    with server.sharing_processor():
        return [server.ask(call(next(ids))) for _ in range(count)][count // 10 :]


def burst(server, make, ids, count):
    """Requests answered in a second, and processor seconds for each (no less than can be counted)."""
    requests = [make(next(ids)) for _ in range(count)]
    before = server.processor_seconds()
    seconds = server.ask(*requests)
    spent = max(server.processor_seconds() - before, tick())
    return count / seconds, spent / count


def large(command, environment, size):
    """The seconds of a call of so many bytes."""
    filling = "background job processing " * (size // 26 + 1)
    with Server(command, environment) as server:
        server.open()
        server.ask(call(1))
        return server.ask(call(2, filling[: size - len(call(2, ""))]))

"""How the cost of work grows with its size, with the exponent of each fit: 1 is linear, 2 is quadratic.

    python tests/bench/growth.py [--document]

Each case runs in this process; what counts is the least processor time of several runs. `--document` also writes the
plot and the table of docs/performance.md. The exit status is 1 if an exponent is above `MOST`.
"""

import argparse
import json
import math
import os
import sys
import time

import report

from tmkb.knowledge import library
from tmkb.knowledge.retrieval import index as indexes
from tmkb.server.log import Log
from tmkb.server.server import Server

MOST = 1.2
RUNS = 5
PLOT = os.path.join(report.ROOT, "docs", "images", "growth.svg")
REVISION = "2025-11-25"
QUERY = "background job processing"
WATCHED = "test://watched-resource"
WIDTH, HEIGHT, MARGIN, COLUMNS = 230, 150, 30, 4  # of one plot, in pixels; plots in a row


class Silent(Log):
    """A log that is not read."""

    def flush(self):
        self.pending.clear()


class Peer:
    """A client of a runtime in this process, after its handshake."""

    def __init__(self, runtime):
        self.runtime, self.connection = runtime, runtime.connect()
        client = {"name": "bench", "version": "1.0"}
        self.request("initialize", protocolVersion=REVISION, capabilities={}, clientInfo=client)
        runtime.handle(self.connection, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def request(self, method, **params):
        """Send a request; all messages that it causes."""
        sent = self.runtime.handle(self.connection, line(method, **params))
        while self.runtime.due() == 0:
            sent += self.runtime.work()
        return sent


def line(method, **params):
    """A request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def runtime(server="tmkb", **limits):
    """A runtime of a server with other limits."""
    loaded = Server.load(server)
    loaded.spec["server"]["limits"].update(limits)
    return loaded.runtime(Silent(loaded.spec["server"]["log"], "error"))


def arguments(make):
    """A case whose calls have the arguments that ``make`` returns for a size."""

    def case(size):
        peer = Peer(runtime())
        call = line("tools/call", name="tmkb_query", arguments=make(size))
        return lambda: peer.runtime.handle(peer.connection, call)

    return case


def nested(depth):
    """Arguments whose context is a list in so many lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return {"context": value}


def tools(count):
    """The list of so many tools, for the first time."""
    peer = Peer(runtime())
    offered = peer.runtime.spec["tools"]
    (tool,) = offered.values()
    offered.update({f"tool_{number}": {**tool, "name": f"tool_{number}"} for number in range(count)})

    def act():
        peer.runtime.snapshot.list_cache.clear()
        return peer.request("tools/list")

    return act


def patterns(count):
    """A search among so many patterns that the model does not know."""
    ours = library.load(None).patterns
    copies = [{**ours[number % len(ours)], "id": f"ACME-AUTH-{number:04}"} for number in range(count)]
    parts = indexes.build(copies, indexes.path([]), lambda ids: {})
    index = indexes.Index(parts.__getitem__)
    index.search(QUERY)
    return lambda: index.search(QUERY)


def sessions(count):
    """The handshakes of so many sessions of one server."""
    shared = runtime(sessions=count)

    def act():
        for peer in [Peer(shared) for _ in range(count)]:
            shared.abandon(peer.connection)

    return act


def subscriptions(count):
    """The notification of so many subscribed clients."""
    shared = runtime("everything", sessions=count)
    peers = [Peer(shared) for _ in range(count)]
    for peer in peers:
        peer.request("resources/subscribe", uri=WATCHED)
    return lambda: peers[0].request("tools/call", name="test_trigger_resource_change")


CASES = {  # name → the case and its sizes
    "message size, bytes": (arguments(lambda size: {"context": "x " * (size // 2)}), [1 << n for n in range(15, 23)]),
    "nesting, levels": (arguments(nested), [25, 50, 100, 200, 400, 800]),
    "violations": (
        arguments(lambda size: {"context": "x", **{f"key{n}": n for n in range(size)}}),
        [100, 200, 400, 800, 1600, 3200],
    ),
    "tools": (tools, [16, 32, 64, 128, 256, 512]),
    "patterns": (patterns, [20, 40, 80, 160, 320]),
    "sessions": (sessions, [25, 50, 100, 200, 400]),
    "subscribed clients": (subscriptions, [25, 50, 100, 200, 400, 800]),
}


def cost(act):
    """The least processor time of some runs, in seconds."""
    took = []
    for _ in range(RUNS):
        began = time.process_time()
        act()
        took.append(time.process_time() - began)
    return min(took)


def exponent(sizes, costs):
    """The slope of the line that fits best in a log-log plot, over the larger half, where constant costs count less."""
    half = len(sizes) // 2
    x, y = [math.log(size) for size in sizes[half:]], [math.log(cost) for cost in costs[half:]]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


def svg(measured, shown=None):
    """One log-log plot for each case, in a common scale of the cost; the line has the slope 1.

    ``shown``: the text for ten to a power; by default, of seconds.
    """
    shown = shown or duration
    every = [seconds for _, costs in measured.values() for seconds in costs]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    columns = min(COLUMNS, len(measured))
    rows = -(-len(measured) // columns)
    width, height = columns * WIDTH, rows * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (name, (sizes, costs)) in enumerate(measured.items()):
        left, top = number % columns * WIDTH + MARGIN + 10, number // columns * HEIGHT + MARGIN
        wide, tall = WIDTH - MARGIN - 30, HEIGHT - 2 * MARGIN

        def x(size, of=sizes, left=left, wide=wide):
            return left + wide * math.log(size / of[0]) / math.log(of[-1] / of[0])

        def y(seconds, top=top, tall=tall):
            return top + tall * (high - math.log10(seconds)) / (high - low)

        points = " ".join(f"{x(size):.1f},{y(seconds):.1f}" for size, seconds in zip(sizes, costs, strict=True))
        start = costs[-1] * sizes[0] / sizes[-1]
        parts += [
            f'<text x="{left}" y="{top - 10}" font-weight="bold">{name}: {exponent(sizes, costs):.2f}</text>',
            f'<path d="M{left},{top}v{tall}h{wide}" fill="none" stroke="#999"/>',
            *(
                f'<text x="{left - 4}" y="{y(10**power) + 4:.1f}" text-anchor="end" fill="#555">{shown(power)}</text>'
                for power in (low, high)
            ),
            f'<text x="{left}" y="{top + tall + 14}" fill="#555">{sizes[0]}</text>',
            f'<text x="{left + wide}" y="{top + tall + 14}" text-anchor="end" fill="#555">{sizes[-1]}</text>',
            f'<clipPath id="c{number}"><rect x="{left}" y="{top}" width="{wide}" height="{tall}"/></clipPath>',
            f'<path d="M{x(sizes[0]):.1f},{y(start):.1f}L{x(sizes[-1]):.1f},{y(costs[-1]):.1f}" stroke="#bbb"'
            f' stroke-dasharray="3" clip-path="url(#c{number})"/>',
            f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="2"/>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def duration(power):
    """Ten to this power, of seconds."""
    return {-6: "1 µs", -5: "10 µs", -4: "0.1 ms", -3: "1 ms", -2: "10 ms", -1: "0.1 s", 0: "1 s"}.get(
        power, f"1e{power}"
    )


def main():
    """Measure, print and judge; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--document", action="store_true", help="write the plot and the table of docs/performance.md")
    document = parser.parse_args().document
    measured = {name: (sizes, [cost(make(size)) for size in sizes]) for name, (make, sizes) in CASES.items()}
    rows = [["cost of", "from", "to", "cost at the end, ms", "exponent"]]
    for name, (sizes, costs) in measured.items():
        rows.append(
            [name, str(sizes[0]), str(sizes[-1]), report.number(costs[-1] * 1e3), f"{exponent(sizes, costs):.2f}"]
        )
    print(report.table(rows, True))
    if document:
        with open(PLOT, "w", encoding="utf-8") as file:
            file.write(svg(measured))
        report.document("growth", report.table(rows, True))
    return 0 if all(exponent(*each) <= MOST for each in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

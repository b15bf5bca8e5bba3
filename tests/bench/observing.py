"""What observing costs: calls over HTTP to our server without and with metrics, the log of queries, and telemetry.

    python tests/bench/observing.py [--rounds 5] [--calls 600] [--connections 1 10] [--document]

The servers take turns in the same run, as in http_calls.py. The collector of telemetry refuses connections, so that its
work is not measured. The calls have the same arguments, so their results are cached: other calls take longer, and
observing takes a smaller part of them.
"""

import argparse
import contextlib
import os
import shutil
import socket
import sys
import tempfile

import http_calls
import report


def commands(folder, closed):
    """The servers: ours, and with each way to observe; ``closed``: a port that refuses connections."""
    serve = http_calls.here()[http_calls.OURS]
    collector = f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{closed}"
    return {
        http_calls.OURS: serve,
        "metrics": lambda port: [*serve(port), "--metrics", "127.0.0.1:0"],
        "usage": lambda port: [*serve(port), "--usage", folder, "--usage-context", "text"],
        "otel": lambda port: [shutil.which("env"), collector, *serve(port)],
    }


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600, help="in each round, of all connections")
    parser.add_argument("--connections", type=int, nargs="+", default=(1, 10))
    parser.add_argument("--document", action="store_true", help="write the table of docs/performance.md")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        closed = stack.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))
        servers = commands(os.path.join(folder, "usage"), closed.getsockname()[1])
        measured = http_calls.measure(servers, arguments.connections, arguments.rounds, arguments.calls)
    print(report.table(http_calls.table(measured), True))
    if arguments.document:
        report.document("observing", report.table(http_calls.table(measured), True))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Where pipes cannot be polled: the same server with a thread that writes. Run here as it runs on Windows."""

import json
import os
import threading

from tmkb.transport import stdio
from tmkb.transport.threads import Writer

PINGS = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number for number in range(5000))


def test_the_threaded_loop_answers_the_same(runtime):
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    serving = threading.Thread(target=stdio.serve, args=(runtime, in_read, out_write, False))
    writing = threading.Thread(target=lambda: (os.write(in_write, PINGS), os.close(in_write)))
    serving.start()
    writing.start()
    with os.fdopen(out_read, "rb") as output:
        ids = [json.loads(output.readline())["id"] for _ in range(5000)]
    serving.join()
    writing.join()
    for fd in (in_read, out_write):
        os.close(fd)

    assert ids == list(range(5000))


def test_the_threaded_loop_ends_when_nobody_reads(runtime):
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    os.close(out_read)
    serving = threading.Thread(target=stdio.serve, args=(runtime, in_read, out_write, False))
    serving.start()
    while serving.is_alive():
        os.write(in_write, PINGS[:200])
        serving.join(0.05)
    for fd in (in_read, in_write, out_write):
        os.close(fd)


def test_a_writer_waits_when_too_much_waits_for_it():
    read, write = os.pipe()
    writer = Writer(write, most_waiting=10)
    done = threading.Event()

    def fill():
        for _ in range(3):
            writer.put(b"x" * 100_000)
        done.set()

    threading.Thread(target=fill).start()
    assert not done.wait(0.2)
    total = 0
    while total < 300_000:
        total += len(os.read(read, 65536))
    assert done.wait(10)
    writer.close()
    os.close(read)
    os.close(write)

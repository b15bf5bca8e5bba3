"""Send thousands of requests while the served files change hundreds of times, validly and invalidly.

    python -m tests.soak.run [--minutes 15] [--seed 0] [--over stdio,http] [--record]

A server with ``--watch`` runs over stdio, then over HTTP with several clients, each for half of the time, while
`trouble.py` disturbs it. Each request must get one complete answer, from one state of the files, and never from an older
state than an earlier answer. Clients must be notified of lists that changed, and of no others. An invalid file must be
reported once. Memory and descriptors must not grow. The exit status is 1 if any of this does not hold.
"""

import argparse
import collections
import contextlib
import datetime
import os
import random
import sys
import tempfile
import threading
import time

from tests.soak import clients, stamped, trouble
from tests.support import pages
from tests.support.process import SERVE, TIMEOUT, HttpServer, Server

NEW = "Schemas and patterns reloaded"
BAD = "Schemas and patterns not reloaded"
SESSIONS = 4
CALM = 3  # seconds until closed connections are gone
# A way to change something → how many bad states it goes through, which may be noticed and then are reported.
GAPS = {"swap": 1, "rebuild": 3, "write": 1, "write_in_pieces": 3, "rename_around": 1, "take_away": 1}


class Editor:
    """Changes the folder, and waits each time until the server has noticed: a client is served it, or the log says so."""

    def __init__(self, folder, history, rng):
        self.folder = folder
        self.history = history
        self.rng = rng
        self.number = 0
        self.state = {name: 0 for name in stamped.FILES if name != "extra"}
        self.done = collections.Counter()
        self.promised = collections.Counter()  # what has to be heard of lists
        self.gaps = 0  # bad states in between, that could have been noticed
        self.halves = 0  # good ones
        self.history.add(self.state)
        self.folder.build(self.state)

    def change(self, running):
        """A good change, or a bad one and then a good one in its place."""
        if self.rng.random() < 0.4:
            spoiled = self._spoil(running)
            self._repair(running, spoiled)
        else:
            self._repair(running, None)

    def _spoil(self, running):
        """Make something bad; the name of the file, None where it was the folder."""
        self.number += 1
        before, gaps = running.reports(BAD), self.gaps
        name = self.rng.choice([*self.state, None])
        how = self.rng.choice([*stamped.SPOILED])
        if name is None:
            how, way = "no folder", self.folder.take_away
            way()
        else:
            way = self.rng.choice([self.folder.replace, self.folder.write])
            way(name, stamped.SPOILED[how](stamped.text(name, self.number)))
        self.gaps += GAPS.get(way.__name__, 0)
        running.until(lambda: running.reports(BAD) > before, f"{how}: {name}, {way.__name__}")
        assert running.reports(BAD) - before <= 1 + self.gaps - gaps, "reported more than once"
        self.done[f"bad: {how}"] += 1
        return name

    def _repair(self, running, spoiled):
        """Make something good, and of what is bad first of all."""
        self.number += 1
        whole = spoiled is None and not os.path.isdir(self.folder.path)
        if whole or self.rng.random() < 0.2:
            way = self.rng.choice([self.folder.swap, self.folder.rebuild])
            self._expect(dict.fromkeys(self.state, self.number), way)
            way(self.state)
        elif spoiled is None and self.rng.random() < 0.2:
            way = self._toggle()
        else:
            way = self._edit(spoiled or self.rng.choice([*self.state]))
        wanted = len(self.history.states) - 1
        running.until(lambda: self.history.seen >= wanted, f"{way.__name__} seen, {self.state}")
        running.until(lambda: all(client.heard >= self.promised for client in running.listeners), "lists heard of")
        self.done[f"good: {way.__name__}"] += 1

    def _toggle(self):
        """A tool more, or one less."""
        if "extra" in self.state:
            self._expect({name: n for name, n in self.state.items() if name != "extra"}, self.folder.remove)
            self.folder.remove("extra")
            return self.folder.remove
        self._expect({**self.state, "extra": self.number}, self.folder.replace)
        self.folder.replace("extra", stamped.text("extra", self.number))
        return self.folder.replace

    def _edit(self, name):
        folder = self.folder
        way = self.rng.choice([folder.replace, folder.write, folder.write_in_pieces, folder.rename_around])
        if way == folder.rename_around:
            self.history.add({other: n for other, n in self.state.items() if other != name})
            self.halves += 1
        self._expect({**self.state, name: self.number}, way)
        way(name, stamped.text(name, self.number))
        return way

    def _expect(self, state, way):
        """``state`` is about to come, in that way; clients have to hear what it changes in lists."""
        for notification, names in stamped.LISTS.items():
            self.promised[notification] += any(state.get(name) != self.state.get(name) for name in names)
        self.gaps += GAPS.get(way.__name__, 0)
        self.state = state
        self.history.add(state)


class Running:
    """A server, its clients, each in a thread of its own, and what went wrong there."""

    def __init__(self, server, asking, listeners, troubles=None):
        self.server = server
        self.troubles = troubles
        self.asking = asking
        self.listeners = listeners
        self.failures = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(client,), daemon=True) for client in asking]

    def start(self):
        for thread in [*self.threads, *([self.troubles] if self.troubles else [])]:
            thread.start()

    @contextlib.contextmanager
    def calm(self):
        """Wait for the end of the current trouble; no other begins meanwhile."""
        with self.troubles.quiet if self.troubles else contextlib.nullcontext():
            time.sleep(CALM if self.troubles else 0)
            yield

    def stop(self):
        """Let each client finish what it has begun. Raises what went wrong in any of them."""
        self.over.set()
        for thread in self.threads:
            thread.join(TIMEOUT)
        self.check()

    def check(self):
        if self.failures:
            raise self.failures[0]
        if self.troubles is not None:
            self.troubles.check()

    def answered(self):
        return sum((client.answered for client in self.asking), collections.Counter())

    def reports(self, sentence):
        """How often the log says ``sentence``."""
        return sum(sentence in line for line in [*self.server.log])

    def until(self, holds, about):
        """Wait until ``holds``."""
        deadline = time.monotonic() + TIMEOUT
        while not holds():
            self.check()
            assert time.monotonic() < deadline, (about, self.server.log[-5:])
            time.sleep(0.01)

    def _ask(self, client):
        try:
            while not self.over.is_set():
                client.turn()
            client.finish()
        except BaseException as error:  # raised by the thread that waits
            self.failures.append(error)


class Vitals:
    """What a server and the process that watches for it hold: memory in MB, and descriptors."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            pids = [pid, *map(int, file.read().split())]
        self.memory = [_memory(each) for each in pids]
        self.descriptors = [len(os.listdir(f"/proc/{each}/fd")) for each in pids]

    def is_like(self, early):
        """Whether there is not more than earlier: of memory a third, of descriptors the clients' connections."""
        memory = zip(self.memory, early.memory, strict=True)
        descriptors = zip(self.descriptors, early.descriptors, strict=True)
        return all(now <= 1.3 * then for now, then in memory) and all(n <= then + SESSIONS for n, then in descriptors)

    def __str__(self):
        return f"{' + '.join(f'{held:.1f}' for held in self.memory)} MB, {self.descriptors} descriptors"


def soak(over, requests=0, changes=0, seed=0, minutes=0.0, troubled=False):
    """Do it all, at least for so many requests, changes and minutes; a report by heading.

    Raises AssertionError where something does not hold.
    """
    rng, history = random.Random(seed), stamped.History()
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        folder = stamped.Folder(root)
        editor = Editor(folder, history, rng)
        conditions = stack.enter_context(trouble.Conditions()) if troubled else None
        server = stack.enter_context(
            _server(over, ["--server", "soak", "--schemas", folder.path, "--watch"], conditions)
        )
        if over == "stdio":
            asking = listeners = [clients.Piped(server, history, random.Random(seed))]
        else:
            asking = [clients.Sessions(server.port, history, random.Random(seed + n)) for n in range(SESSIONS)]
            listeners = [clients.Listener(server.port, history, modern) for modern in (False, True)]
        troubles = trouble.Troubles(server, conditions, over, random.Random(seed)) if troubled else None
        running = Running(server, asking, listeners, troubles)
        began = time.monotonic()
        running.start()
        early = _edits(editor, running, changes, began + 60 * minutes)
        running.until(lambda: running.answered().total() >= requests, "requests")
        if troubles is not None:
            troubles.stop()
        late = _settled(server.process.pid, early) if early else None
        running.stop()
        status = server.end() if over == "http" else server.end()[1]
        for client in listeners:
            client.finish()
        _conclude(editor, running, status, early, late)
        assert conditions is None or conditions.left_behind() == []
    return {
        "changes": dict(sorted(editor.done.items())),
        "requests": dict(sorted(running.answered().items())),
        "heard of": [dict(client.heard) for client in listeners],
        "troubles": dict(sorted(troubles.done.items())) if troubles else {},
        "not tried": conditions.lacking if conditions else {},
        "connections closed while idle": sum(getattr(client, "reconnected", 0) for client in asking),
        "seconds": round(time.monotonic() - began, 1),
        "slowest answer, seconds": round(max(client.slowest for client in asking), 3),
        "early": str(early),
        "late": str(late),
    }


def _server(over, arguments, conditions):
    if over == "http":
        options = {} if conditions is None else {"env": conditions.env, "wrapper": conditions.wrapper}
        return HttpServer(*arguments, **options)
    if conditions is None:
        return Server(*arguments)
    return trouble.SlowlyRead(*arguments, argv=[*conditions.wrapper, *SERVE], env=conditions.env)


def _edits(editor, running, changes, end):
    """Make the changes; what the server held after a quarter of them."""
    early, began = None, time.monotonic()
    while (done := editor.done.total()) < changes or time.monotonic() < end:
        editor.change(running)
        is_late = done >= changes / 4 and time.monotonic() >= began + (end - began) / 4
        if early is None and is_late and os.path.isdir("/proc"):
            with running.calm():
                early = Vitals(running.server.process.pid)
    return early


def _settled(pid, early):
    """What the server holds after connections that were just closed are gone."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        late = Vitals(pid)
        if late.is_like(early) or time.monotonic() > deadline:
            return late
        time.sleep(0.1)


def _conclude(editor, running, status, early, late):
    """Hold what there is in the end against what was done."""
    good = sum(count for way, count in editor.done.items() if way.startswith("good"))
    bad = editor.done.total() - good
    assert status == 0
    assert good <= running.reports(NEW) <= good + editor.gaps + editor.halves
    assert bad <= running.reports(BAD) <= bad + editor.gaps
    assert not sum(map(running.reports, ("Traceback", "watcher has stopped", "stays on the previous")))
    for client in running.listeners:
        more = client.heard - editor.promised
        assert set(client.heard) <= set(stamped.LISTS)
        assert more.total() <= editor.halves, (client.heard, editor.promised)
    if early is not None:
        assert late.is_like(early), (str(early), str(late))


def _memory(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def table(reports, minutes):
    """The reports as a table, for a document."""
    columns = [dict(_rows(report)) for report in reports.values()]
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [
        f"{datetime.date.today().isoformat()}, {minutes:g} minutes in all, {pages.machine()}:",
        "",
        f"| | {' | '.join(reports)} |",
        "|---" * (len(reports) + 1) + "|",
        *(f"| {name} | {' | '.join(column.get(name, '') for column in columns)} |" for name in names),
    ]
    return "\n".join(lines) + "\n"


def _rows(report):
    bad = sum(count for way, count in report["changes"].items() if way.startswith("bad"))
    yield "requests, each answered once", f"{sum(report['requests'].values()):,}"
    yield "changes of files", f"{sum(report['changes'].values()):,}, {bad:,} of them invalid"
    yield from ((name, f"{count:,}") for name, count in report["troubles"].items())
    yield from ((name, f"not tried: {reason}") for name, reason in report["not tried"].items())
    yield "slowest answer", f"{report['slowest answer, seconds']} s"
    yield "server and watcher after a quarter of the time", report["early"]
    yield "server and watcher at the end", report["late"]


def main():
    """Soak as the command line says, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--over", default="stdio,http")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/reliability.md")
    args = parser.parse_args()
    transports, reports = args.over.split(","), {}
    for over in transports:
        print(f"over {over}")
        reports[over] = soak(over, seed=args.seed, minutes=args.minutes / len(transports), troubled=True)
        for heading, value in reports[over].items():
            print(f"  {heading}: {value}")
        sys.stdout.flush()
    if args.record:
        pages.replace("docs/reliability.md", "soak", table(reports, args.minutes))


if __name__ == "__main__":
    main()

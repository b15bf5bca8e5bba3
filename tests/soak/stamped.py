"""A folder of schemas each of whose files says everywhere which version of it that is, as ``errors=17``, and its past.

A person's edits of several files are not one step on disk, so an answer is held against the states that the folder has
been in: there has to be one that has all the numbers of the answer, and it may not be older than what was seen before.
"""

import os
import re
import shutil
import threading
import time

FILES = {
    "server": (
        "servers/soak/server",
        """\
kind: server
name: soak
version: "server=@"
description: "server=@"
instructions: "server=@"
revisions: ["2025-11-25", "2026-07-28"]
log: {refused: {level: debug}, prompted: {level: debug}, read: {level: debug}}
capabilities: {tools: {listChanged: true}, prompts: {listChanged: true}, resources: {}}
limits: {principal_rate: 1000000, principal_byte_rate: 1000000000} # one principal is the whole load
""",
    ),
    "errors": (
        "servers/soak/errors",
        """\
kind: errors
errors: {unknown_tool: {message: "errors=@ {tool} errors=@"}, argument_not_one_of: {message: "errors=@ {allowed}"}}
""",
    ),
    "stamp": (
        "servers/soak/tools/stamp",
        """\
kind: tool
log: {level: debug}
name: stamp
description: "stamp=@"
provider: script.answer
answer: "{pick} stamp=@"
input: {type: object, properties: {pick: {type: string, enum: [any, "stamp=@"], default: any}}}
""",
    ),
    "slow": (
        "servers/soak/tools/slow",
        """\
kind: tool
log: {level: debug}
name: slow
description: "slow=@"
provider: script.steps
input: {type: object}
steps: [{progress: {progress: 1, message: "slow=@"}}, {pause: 0.3}, {progress: {progress: 2, message: "slow=@"}}, {return: "slow=@"}]
""",
    ),
    "extra": (
        "servers/soak/tools/extra",
        """\
kind: tool
log: {level: debug}
name: extra
description: "extra=@"
provider: script.answer
input: {type: object}
answer: "extra=@"
""",
    ),
    "told": (
        "servers/soak/prompts/told",
        """\
kind: prompt
name: told
description: "told=@"
provider: script.answer
answer: "told=@"
""",
    ),
    "note": (
        "servers/soak/resources/note",
        """\
kind: resource
name: note
uri: "note://note"
description: "note=@"
provider: script.answer
answer: "note=@"
""",
    ),
}
LISTS = {
    "notifications/tools/list_changed": ("stamp", "slow", "extra"),
    "notifications/prompts/list_changed": ("told",),
}
_STAMP = re.compile(r"(\w+)=(\d+)")


def stamps(text):
    """Which version of which file speaks in ``text``. No file may speak in two."""
    found = dict(_STAMP.findall(text))
    assert len(set(_STAMP.findall(text))) == len(found), f"of two versions: {text}"
    return {name: int(number) for name, number in found.items()}


def unstamped(text):
    """``text`` without the versions."""
    return _STAMP.sub(r"\1=@", text)


class History:
    """The states that the folder has been in, or is about to be in, and the latest that somebody has been served."""

    def __init__(self):
        self.states = []
        self.seen = 0
        self.lock = threading.Lock()

    def add(self, state):
        """``state``: the version of each file that is there."""
        self.states.append(dict(state))

    def explain(self, found, expected, since):
        """Find the first state from ``since`` on in which ``found`` is what is ``expected`` of it; it has been seen."""
        for number in range(since, len(self.states)):
            if expected(self.states[number]) == found:
                with self.lock:
                    self.seen = max(self.seen, number)
                return
        raise AssertionError(f"{found} is of no state since {self.states[since]}, up to {self.states[-1]}")


class Folder:
    """The folder on disk, and every way in which people and programs change what is in it."""

    def __init__(self, root):
        self.path = os.path.join(root, "schemas")
        self.aside = os.path.join(root, "aside")
        os.makedirs(self.aside)

    def file(self, name):
        return os.path.join(self.path, FILES[name][0] + ".yaml")

    def build(self, state, path=None):
        """All files, the server's last: without it the others are nobody's."""
        for name in sorted(state, key="server".__eq__):
            file = os.path.join(path or self.path, FILES[name][0] + ".yaml")
            os.makedirs(os.path.dirname(file), exist_ok=True)
            _write(file, text(name, state[name]))

    def replace(self, name, content):
        """At once, as `tmkb schema set` does."""
        _write(beside := self.file(name) + ".tmp", content)
        os.replace(beside, self.file(name))

    def write(self, name, content):
        """Into the file that is there; who looks meanwhile finds an empty one."""
        _write(self.file(name), content)

    def write_in_pieces(self, name, content):
        """As over a slow network; none of the pieces is valid."""
        with open(self.file(name), "wb", buffering=0) as file:
            for piece in (content[:3], content[3:-2], content[-2:]):
                file.write(piece)
                time.sleep(0.1)

    def rename_around(self, name, content):
        """As vim does with a backup: a lock, the old one away, a new one, the backup away."""
        file = self.file(name)
        lock = os.path.join(os.path.dirname(file), f".{name}.yaml.swp")
        _write(lock, content)
        os.replace(file, file + "~")
        _write(file, content)
        os.unlink(file + "~")
        os.unlink(lock)

    def remove(self, name):
        os.unlink(self.file(name))

    def swap(self, state):
        """Another folder in its place, as a checkout or a deployment does."""
        new, old = os.path.join(self.aside, "new"), os.path.join(self.aside, "old")
        self.build(state, new)
        if os.path.isdir(self.path):
            os.rename(self.path, old)
        os.rename(new, self.path)
        shutil.rmtree(old, ignore_errors=True)

    def rebuild(self, state):
        """Everything away, and written anew, file by file."""
        if os.path.isdir(self.path):
            self.take_away()
        self.build(state)

    def take_away(self):
        """Everything, the server's file first."""
        self.remove("server")
        shutil.rmtree(self.path)


def text(name, number):
    """The content of the file ``name`` in that version."""
    return FILES[name][1].replace("@", str(number)).encode()


def _write(file, content):
    with open(file, "wb") as target:
        target.write(content)


# What makes a good file a bad one.
SPOILED = {
    "not closed": lambda good: good + b"more: {",
    "a key too many": lambda good: good + b"descripton: twice\n",
    "cut off": lambda good: good[: len(good) // 2].rpartition(b"\n")[0] + b"\ndescr",
    "empty": lambda _: b"",
    "not UTF-8": lambda good: good + b"# \xff\n",
    "a name that leads nowhere": lambda good: (
        good.replace(b"script.", b"scrap.").replace(b"unknown_", b"unknow_").replace(b"2026", b"2062")
    ),
    "a key twice": lambda good: good + good.splitlines()[-1] + b"\n",
    "an alias": lambda good: good + b"more: *this\n",
}

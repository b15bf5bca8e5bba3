"""Changes to JSON that keep it JSON, because changes to its bytes seldom get past the parser."""

import json
import random
import re

VALUES = [None, True, 0, -1, 2**53, 1.5, "", "x", [], {}, [[]], {"x": {}}, "é\ud800"]
LENGTH = re.compile(rb"(?i)(content-length: *)\d+")
END = b"\r\n\r\n"  # of the head of an HTTP request


def changed(data, seed):
    """Return ``data`` with a change to one line of JSON, or to the body of an HTTP request; None if it has neither."""
    chance = random.Random(seed)
    if b"HTTP/1." in data and END in data:
        head, _, body = data.partition(END)
        new = _changed_line(body, [body], chance)
        return new and LENGTH.sub(rb"\g<1>%d" % len(new), head) + END + new
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    new = _changed_line(lines[number], lines, chance)
    if new is None:
        return None
    lines[number : number + chance.choice([0, 1, 1, 1])] = [new]  # beside it, or in its place
    return b"\n".join(lines)


def _changed_line(line, lines, chance):
    value, other = _parsed(line), _parsed(chance.choice(lines))
    if not isinstance(value, dict | list):
        return None
    known = [*VALUES, *(inner for _, _, inner in _places(other))]
    places = [*_places(value)]
    if not places:
        return None
    for _ in range(chance.choice([1, 1, 2, 4])):
        holder, key, _ = chance.choice(places)
        way = chance.randrange(4)
        if way == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif way == 1 and isinstance(holder, dict):
            holder[str(chance.choice([key, chance.choice(places)[1]]))] = chance.choice(known)
        elif way == 2 and isinstance(holder, list):
            holder.insert(chance.randrange(len(holder) + 1), chance.choice(known))
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = chance.choice(known)
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):  # it contains itself
        return None


def _parsed(line):
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _places(value):
    """Yield each place in ``value``: the map or list, the key or index, and what is there."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key, inner
        yield from _places(inner)

"""The usual commands in a pseudo-terminal of 40, 80 and 200 columns: no id is cut, every colour can be read on light and
dark themes, Ctrl-C ends a command with one line, and the pictures of README are up to date.

    python -m tests.terminal.run [--update] [--pictures DIR]
"""

import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.support.repository import ROOT
from tests.terminal import drawing, screen

WIDTHS = (40, 80, 200)
SESSIONS = {  # name → command line, and its exit status
    "overview": ("", 2),
    "help": ("--help", 0),
    "query": ('query "GET /invoices/:id in Express"', 0),
    "query-human": ("query background job that deletes accounts --verbosity human --limit 1", 0),
    "no-match": ("query xyzzy", 0),
    "explain": ("query celery --explain --limit 1", 0),
    "list": ("list", 0),
    "get": ("get auth-24", 0),
    "get-unknown": ("get 999", 1),
    "option-unknown": ("list --framwork flask", 2),
    "schema-show": ("schema show tmkb_query", 0),
    "schema-check": ("schema check", 0),
    "tools": ("tools", 0),
    "tool": ("tools tmkb_query", 0),
    "call": ("call tmkb_query context=celery", 0),
    "check": ("check --revision 2025-11-25", 0),
}
INTERRUPTED = {"validate": "Checking", "prove 7 8": "Proving patterns: 0 of 2"}  # command line → when Ctrl-C is typed
PLAIN = {"NO_COLOR": {"NO_COLOR": "1"}, "TERM=dumb": {"TERM": "dumb"}}
IMAGES = os.path.join(ROOT, "docs", "images")
SHOWN = ("query", 80)  # the session and width of the pictures in README
CONTRAST = 2.0  # at least, between text and background; people choose the palette, so more is not ours to ensure
_ID = re.compile(r"(?:TMKB-)?AUTH-\d*")


def main():
    """Print each fault; 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the pictures of README")
    parser.add_argument("--pictures", metavar="DIR", help="write a picture of each session at each width and theme")
    arguments = parser.parse_args()
    jobs = [(name, width) for name in SESSIONS for width in WIDTHS]
    with ThreadPoolExecutor(2) as pool:
        screens = dict(zip(jobs, pool.map(_run, jobs), strict=True))
        plain = dict(zip(PLAIN, pool.map(_run_plain, PLAIN.values()), strict=True))
    faults = [f"{name} at {width}: {fault}" for (name, width), each in screens.items() for fault in check(name, each)]
    faults += [f"{name}: there are colours" for name, each in plain.items() if each.styles - {screen.PLAIN}]
    for line, text in INTERRUPTED.items():
        ended = screen.run(line, 80, interrupt_at=text)
        if (ended.status, ended.lines) != (130, ["tmkb: interrupted"]):
            faults.append(f"{line}, interrupted: exit status {ended.status} after {' / '.join(ended.lines)}")
    if arguments.pictures:
        os.makedirs(arguments.pictures, exist_ok=True)
        for (name, width), each in screens.items():
            for theme in drawing.THEMES:
                _write(os.path.join(arguments.pictures, f"{name}-{width}-{theme}.svg"), _picture(name, each, theme))
    faults += _compare(screens[SHOWN], arguments.update)
    print("\n".join(faults) or f"{len(screens)} screens, no faults.")
    return int(bool(faults))


def check(name, found):
    """Yield what is wrong with a screen."""
    if found.status != SESSIONS[name][1]:
        yield f"exit status {found.status}"
    if not found.lines:
        yield "nothing is shown"
    for line in found.lines:
        if any(len(match) < len("AUTH-000") for match in _ID.findall(line)):
            yield f"an id is cut: {line}"
        if "Traceback" in line:
            yield "a traceback"
    for theme, colors in drawing.THEMES.items():
        for style in sorted(found.styles):
            ratio = drawing.contrast(style, colors)
            if ratio < CONTRAST:
                yield f"{style} has a contrast of {ratio:.1f} in the theme {theme}"


def _run(job):
    name, width = job
    return screen.run(SESSIONS[name][0], width)


def _run_plain(environment):
    return screen.run(SESSIONS["query"][0], 80, **environment)


def _picture(name, found, theme):
    return drawing.svg(found, theme, f"$ tmkb {SESSIONS[name][0]}".rstrip())


def _compare(found, update):
    """Yield the pictures of README that differ from the screen ``found``; with ``update``, write them."""
    for theme in drawing.THEMES:
        path = os.path.join(IMAGES, "query.svg" if theme == "light" else f"query-{theme}.svg")
        picture = _picture(SHOWN[0], found, theme)
        if update:
            os.makedirs(IMAGES, exist_ok=True)
            _write(path, picture)
        elif not os.path.exists(path) or _read(path) != picture:
            yield f"{os.path.relpath(path, ROOT)} is not up to date: python -m tests.terminal.run --update"


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())

"""The code of a pattern, read as text: the regions that are shown. Nothing here imports or runs an example.

``# region NAME`` … ``# endregion`` marks what is shown; editors fold it. Above it stay the imports of the stage.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap

from tmkb.errors import Problem

_START = re.compile(r"^\s*# region (?P<name>[a-z_]+)\s*$")
_END = re.compile(r"^\s*# endregion\b")


class Source:
    """The text of one file beside a pattern; ``problems`` call the file ``shown``."""

    def __init__(self, text: str, shown: str) -> None:
        self.text = text
        self.shown = shown


def source(folder: str, name: str, shown: str) -> Source | None:
    """The file ``name`` right inside ``folder``; None for a path, a link that leads out, or no file."""
    path = os.path.join(folder, name)
    if os.path.basename(name) != name or os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return Source(file.read(), shown)
    except (OSError, UnicodeDecodeError):
        return None


def region(found: Source, name: str, problems: list[Problem]) -> str:
    """The lines of the region ``name``, dedented, without any marker line. It has to be there exactly once."""
    open_names: list[str] = []
    lines: list[str] = []
    count = 0
    for number, line in enumerate(found.text.splitlines(), 1):
        if start := _START.match(line):
            open_names.append(start["name"])
            count += start["name"] == name
        elif _END.match(line):
            if not open_names:
                problems.append(Problem("region_not_open", found.shown, number))
                return ""
            open_names.pop()
        elif name in open_names:
            lines.append(line)
    if open_names:
        problems.append(Problem("region_not_closed", found.shown, name=open_names[-1]))
    elif count != 1:
        problems.append(Problem("region_count", found.shown, name=name, count=count))
    # Formatters put two blank lines before a closing marker; without the markers there would be more.
    return re.sub(r"\n{4,}", "\n\n\n", textwrap.dedent("\n".join(lines))).strip("\n") + "\n"


def parsed(found: Source, problems: list[Problem]) -> ast.Module:
    """The syntax tree of a file, of which nothing is run; an empty one, and a problem, if it is not Python."""
    try:
        return ast.parse(found.text)
    except SyntaxError as error:
        problems.append(Problem("not_python", found.shown, error.lineno or 1, error.offset or 1, reason=error.msg))
        return ast.Module([], [])


def exploits(proof: ast.Module) -> dict[str, str]:
    """Name (without ``exploit_``) → docstring of the exploits of a proof: the steps of the attack, in their order."""
    functions = [node for node in proof.body if isinstance(node, ast.FunctionDef)]
    return {
        function.name.removeprefix("exploit_"): ast.get_docstring(function) or ""
        for function in functions
        if function.name.startswith("exploit_")
    }

"""The code of a pattern, read as text: the regions that are shown. Nothing here imports or runs an example.

``# region NAME`` … ``# endregion`` marks what is shown; editors fold it. Above it stay the imports of the stage.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Mapping

from tmkb.errors import Problem
from tmkb.schema import textfile

DEEPEST = 100  # levels of a syntax tree; our deepest own example has 15

_BITS = 14_000  # of an integer; 4300 decimal digits, the most that Python writes, have 14284
_START = re.compile(r"^\s*# region (?P<name>[a-z_]+)\s*$")
_END = re.compile(r"^\s*# endregion\b")


class Source:
    """The text of one file beside a pattern; ``problems`` call the file ``shown``."""

    def __init__(self, text: str, shown: str) -> None:
        self.text = text
        self.shown = shown


def source(folder: str, name: str, shown: str) -> Source | None:
    """Read the file ``name`` right inside ``folder``.

    Returns None for a path, a link that leads out, or a name that no file has.

    Raises:
        DocumentError: the file is unreadable, no regular file, too large, or not UTF-8.
    """
    path = os.path.join(folder, name)
    base = name.removeprefix("wrong/")
    if os.path.basename(base) != base or os.path.dirname(os.path.realpath(path)) != os.path.realpath(
        os.path.dirname(os.path.join(folder, name))
    ):
        return None
    if not os.path.lexists(path):
        return None
    text = textfile.read(path, shown)
    return Source(text.replace("\r\n", "\n").replace("\r", "\n"), shown)


def proof_file(code: Mapping[str, str]) -> str:
    """Return the name of the proof of a pattern with ``code``; an empty string if attacks.yaml is all it has."""
    return code.get("proof", "" if "attacks" in code else "proof.py")


def region(found: Source, name: str, problems: list[Problem]) -> str:
    """The lines of the region ``name``, dedented, without any marker line. It has to be there exactly once."""
    open_names: list[str] = []
    lines: list[str] = []
    count = inside = 0  # how many regions of this name there are, and how many are open
    for number, line in enumerate(found.text.splitlines(), 1):
        if start := _START.match(line):
            open_names.append(start["name"])
            count += start["name"] == name
            inside += start["name"] == name
        elif _END.match(line):
            if not open_names:
                problems.append(Problem("region_not_open", found.shown, number))
                return ""
            inside -= open_names.pop() == name
        elif inside:
            lines.append(line)
    if open_names:
        problems.append(Problem("region_not_closed", found.shown, name=open_names[-1]))
    elif count != 1:
        problems.append(Problem("region_count", found.shown, name=name, count=count))
    # Formatters put two blank lines before a closing marker; without the markers there would be more.
    return re.sub(r"\n{4,}", "\n\n\n", textwrap.dedent("\n".join(lines))).strip("\n") + "\n"


def parsed(found: Source, problems: list[Problem]) -> ast.Module:
    """Return the syntax tree of a file; an empty one, and a problem, where there is none. Nothing of the file is run.

    A tree has at most `DEEPEST` levels, so that what walks it by recursion never exhausts the stack.
    """
    try:
        tree = ast.parse(found.text)
    except SyntaxError as error:
        problems.append(Problem("not_python", found.shown, error.lineno or 1, error.offset or 1, reason=error.msg))
    except ValueError as error:  # NUL, in Python 3.11.3 and older
        problems.append(Problem("not_python", found.shown, reason=str(error)))
    except (RecursionError, MemoryError):  # the parser does not say where
        lines = found.text.split("\n")
        problems.append(Problem("too_deep", found.shown, lines.index(max(lines, key=len)) + 1, limit=DEEPEST))
    else:
        if (deep := _too_deep(tree)) is None:
            return tree if not _refuse_numbers(tree, found.shown, problems) else ast.Module([], [])
        problems.append(Problem("too_deep", found.shown, *deep, limit=DEEPEST))
    return ast.Module([], [])


def _refuse_numbers(tree: ast.Module, shown: str, problems: list[Problem]) -> bool:
    """Note an integer that Python does not write as a decimal: only as a hexadecimal can it be in the source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > _BITS:
            reason = "an integer with more digits than Python writes"
            problems.append(Problem("not_python", shown, node.lineno, node.col_offset + 1, reason=reason))
            return True
    return False


def _too_deep(tree: ast.Module) -> tuple[int, int] | None:
    """Return line and column of a node below level `DEEPEST`, or None. Uses no recursion."""
    level: list[tuple[ast.AST, tuple[int, int]]] = [(tree, (1, 1))]
    for _ in range(DEEPEST):
        below: list[tuple[ast.AST, tuple[int, int]]] = []
        for node, around in level:
            place = (node.lineno, node.col_offset + 1) if isinstance(node, ast.stmt | ast.expr) else around
            below += [(inner, place) for inner in ast.iter_child_nodes(node)]
        level = below
    return level[0][1] if level else None


def exploits(proof: ast.Module) -> dict[str, str]:
    """Name (without ``exploit_``) → docstring of the exploits of a proof: the steps of the attack, in their order."""
    return {
        function.name.removeprefix("exploit_"): ast.get_docstring(function) or ""
        for function in exploit_functions(proof)
    }


def exploit_functions(proof: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions ``exploit_…`` of a proof, in their order."""
    return [node for node in proof.body if isinstance(node, ast.FunctionDef) and node.name.startswith("exploit_")]

"""Read the example code of a pattern as text, and extract the regions that are shown. Nothing is imported or run.

``# region NAME`` … ``# endregion`` marks what is shown; editors fold it. The imports of the stage stay outside. In
JavaScript the marks begin with ``//``.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from tmkb.errors import Problem
from tmkb.schema import packed, textfile

MAX_DEPTH = 100  # levels of a syntax tree; the deepest packaged example has 15

WRONG = "wrong"  # the folder of wrong fixes
IDIOMS = "idioms"  # the folder of applications in other stacks
_MAX_BITS = 14_000  # of an integer; the 4300 decimal digits that Python writes at most have 14284
_START = re.compile(r"^\s*(?:#|//) region (?P<name>[a-z_]+)\s*$")
_END = re.compile(r"^\s*(?:#|//) endregion\b")


class Source(NamedTuple):
    """The text of a file, and its path as problems show it."""

    text: str
    file: str


def read(folder: str, name: str, file: str) -> Source | None:
    """Read the file ``name`` inside ``folder`` or its folder of wrong fixes or of idioms; problems call it ``file``.

    Returns None if ``name`` is a path, a link that leaves the folder, or no file.

    Raises:
        DocumentError: the file is unreadable, not regular, too large, or not UTF-8.
    """
    there = os.path.join(folder, name)
    inner, _, plain = name.rpartition("/") if name.startswith((f"{WRONG}/", f"{IDIOMS}/")) else ("", "", name)
    parent = os.path.join(folder, inner)
    if os.path.basename(plain) != plain or os.path.dirname(os.path.realpath(there)) != os.path.realpath(parent):
        return None
    if not packed.exists(there):
        return None
    text = textfile.read(there, file)
    return Source(text.replace("\r\n", "\n").replace("\r", "\n"), file)


def proof_file(code: Mapping[str, str]) -> str:
    """Return the name of the proof of a pattern with ``code``; an empty string if attacks.yaml is all it has."""
    return code.get("proof", "" if "attacks" in code else "proof.py")


def region(source: Source, name: str, problems: list[Problem]) -> str:
    """Return the lines of the region ``name``, dedented, without marker lines. It must occur exactly once."""
    open_names: list[str] = []
    lines: list[str] = []
    count = open_count = 0  # regions of this name
    for number, line in enumerate(source.text.splitlines(), 1):
        if start := _START.match(line):
            open_names.append(start["name"])
            count += start["name"] == name
            open_count += start["name"] == name
        elif _END.match(line):
            if not open_names:
                problems.append(Problem("region_not_open", source.file, number))
                return ""
            open_count -= open_names.pop() == name
        elif open_count:
            lines.append(line)
    if open_names:
        problems.append(Problem("region_not_closed", source.file, name=open_names[-1]))
    elif count != 1:
        problems.append(Problem("region_count", source.file, name=name, count=count))
    # Formatters put two blank lines before a closing marker; without the markers there would be more.
    return re.sub(r"\n{4,}", "\n\n\n", textwrap.dedent("\n".join(lines))).strip("\n") + "\n"


def parse(source: Source, problems: list[Problem]) -> ast.Module:
    """Return the syntax tree of a file, or an empty tree if there is a problem.

    A tree has at most `MAX_DEPTH` levels, so that recursive functions can walk it.
    """
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        problems.append(Problem("not_python", source.file, error.lineno or 1, error.offset or 1, reason=error.msg))
    except ValueError as error:  # NUL, in Python 3.11.3 and older
        problems.append(Problem("not_python", source.file, reason=str(error)))
    except (RecursionError, MemoryError):  # the parser reports no line
        lines = source.text.split("\n")
        problems.append(Problem("too_deep", source.file, lines.index(max(lines, key=len)) + 1, limit=MAX_DEPTH))
    else:
        if _is_ordinary(tree):
            return tree
        problems += filter(None, [_too_deep(tree, source.file) or _long_integer(tree, source.file)])
    return ast.Module([], [])


def _is_ordinary(tree: ast.Module) -> bool:
    """Return whether `_too_deep` and `_long_integer` find nothing. They say where, and take three times as long."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        below: list[ast.AST] = []
        for node in level:
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    below.append(value)
                elif isinstance(value, list):
                    below += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, int) and value.bit_length() > _MAX_BITS:
                    return False
        level = below
    return not level


def _long_integer(tree: ast.Module, file: str) -> Problem | None:
    """Report an integer that Python cannot write as a decimal, for example a long hexadecimal literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > _MAX_BITS:
            reason = "an integer with more digits than Python writes"
            return Problem("not_python", file, node.lineno, node.col_offset + 1, reason=reason)
    return None


def _too_deep(tree: ast.Module, file: str) -> Problem | None:
    """Report a node below level `MAX_DEPTH`. Uses no recursion."""
    level: list[tuple[ast.AST, tuple[int, int]]] = [(tree, (1, 1))]
    for _ in range(MAX_DEPTH):
        below: list[tuple[ast.AST, tuple[int, int]]] = []
        for node, parent_place in level:
            place = (node.lineno, node.col_offset + 1) if isinstance(node, ast.stmt | ast.expr) else parent_place
            below += [(inner, place) for inner in ast.iter_child_nodes(node)]
        level = below
    return Problem("too_deep", file, *level[0][1], limit=MAX_DEPTH) if level else None


def exploits(proof: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions ``exploit_…`` of a proof, in order, by name without that prefix."""
    functions = (node for node in proof.body if isinstance(node, ast.FunctionDef))
    return {f.name.removeprefix("exploit_"): f for f in functions if f.name.startswith("exploit_")}

"""Weaken a secure example in one place at a time. A proof that does not detect each of these mutants proves too little.

A mutant reverts one hunk of the difference to the vulnerable version, or drops one guard that only the secure one has.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, slots=True)
class Mutant:
    """A weakened copy: the kind of the change, its line, the text there, and the source."""

    kind: str
    line: int
    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line}: {self.text}"


def mutants(vulnerable: str, secure: str) -> list[Mutant]:
    """Return the distinct mutants of ``secure``, without invalid ones and those that do not change its meaning."""
    seen = {_meaning(secure)}
    found = []
    for mutant in (*_reverted(vulnerable, secure), *_dropped(vulnerable, secure)):
        try:
            meaning = _meaning(mutant.source)
        except SyntaxError:
            continue
        if meaning not in seen:
            seen.add(meaning)
            found.append(mutant)
    return found


def hollow(secure: str) -> str:
    """Return ``secure`` with functions that all raise PermissionError. Each legitimate use must fail on it."""
    tree = ast.parse(secure)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = ast.parse("raise PermissionError('hollow')").body
    return ast.unparse(tree)


def _meaning(source: str) -> str:
    """Return the syntax tree without docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def _reverted(vulnerable: str, secure: str) -> Iterator[Mutant]:
    old, new = vulnerable.splitlines(), secure.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            text = new[c].strip() if c < d else "+ " + old[a].strip()
            yield Mutant("reverted hunk", c + 1, text, "\n".join([*new[:c], *old[a:b], *new[d:]]) + "\n")


def _dropped(vulnerable: str, secure: str) -> Iterator[Mutant]:
    """Yield ``secure`` without its first guard, without its second, and so on."""
    known = {ast.dump(node) for node in ast.walk(ast.parse(vulnerable))}
    for number, (kind, same, _) in enumerate(_guards(ast.parse(secure))):
        if ast.dump(same) in known:
            continue
        tree = ast.parse(secure)
        _, guard, drop = list(_guards(tree))[number]
        line, text = getattr(guard, "lineno", 0), ast.unparse(guard).splitlines()[0]
        drop()
        yield Mutant(kind, line, text, ast.unparse(ast.fix_missing_locations(tree)))


def _guards(tree: ast.AST) -> Iterator[tuple[str, ast.AST, Callable[[], object]]]:
    """Yield (kind, node, function that drops it) for each part of ``tree`` that may refuse or filter."""
    for node in ast.walk(tree):
        for kind, items, least in _removable(node):
            if len(items) > least:
                yield from ((kind, item, partial(items.pop, index)) for index, item in enumerate(items))
        if isinstance(node, ast.If) and not node.orelse and all(isinstance(s, _REFUSALS) for s in node.body):
            yield "dropped guard", node, partial(setattr, node, "test", ast.Constant(False))


_REFUSALS = (ast.Raise, ast.Return, ast.Continue, ast.Expr)  # `abort(403)` is an expression


def _removable(node: ast.AST) -> Iterator[tuple[str, list[ast.AST], int]]:
    """Yield (kind, list of guards, number that must stay)."""
    if isinstance(node, ast.BoolOp):
        yield "dropped condition", node.values, 1  # type: ignore[misc]  # a list of expressions is a list of nodes
    elif isinstance(node, ast.FunctionDef):
        yield "dropped decorator", node.decorator_list, 0  # type: ignore[misc]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "filter_by":
            yield "dropped filter", node.keywords, 0  # type: ignore[misc]
        elif node.func.attr in ("where", "filter"):
            yield "dropped filter", node.args, 0  # type: ignore[misc]

"""Weakened copies of a secure example. A proof that does not notice one of them proves too little.

A hunk of the difference is put back, or a guard that the vulnerable version does not have is dropped.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One weakened copy: what was done to which line, and the copy."""

    kind: str
    line: int
    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line}: {self.text}"


def mutants(vulnerable: str, secure: str) -> list[Mutant]:
    """Every distinct weakened copy of ``secure``; those that mean the same as ``secure``, or nothing, are left out."""
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
    """``secure`` with every function refusing everybody. Each legitimate use has to miss something in it."""
    tree = ast.parse(secure)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = ast.parse("raise PermissionError('hollow')").body
    return ast.unparse(tree)


def _meaning(source: str) -> str:
    """The syntax tree without docstrings; comments are not in it anyway."""
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
    """``secure`` without one of its guards, tree by tree: the n-th guard is dropped in the n-th copy."""
    known = {ast.dump(node) for node in ast.walk(ast.parse(vulnerable))}
    for number in range(len(list(_guards(ast.parse(secure))))):
        tree = ast.parse(secure)
        kind, gone, drop = list(_guards(tree))[number]
        if ast.dump(gone) in known:
            continue
        line, text = getattr(gone, "lineno", 0), ast.unparse(gone).splitlines()[0]
        drop()
        yield Mutant(kind, line, text, ast.unparse(ast.fix_missing_locations(tree)))


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a list in the tree, which can be taken out."""

    items: list[ast.AST]
    index: int

    def __call__(self) -> None:
        del self.items[self.index]


@dataclass(frozen=True, slots=True)
class _Branch:
    """An ``if`` that can be made never to happen."""

    node: ast.If

    def __call__(self) -> None:
        self.node.test = ast.Constant(False)


def _guards(tree: ast.AST) -> Iterator[tuple[str, ast.AST, _Item | _Branch]]:
    """(what it is, the node, how to drop it) for everything in ``tree`` that may refuse or narrow."""
    for node in ast.walk(tree):
        for kind, items, least in _removable(node):
            if len(items) > least:
                yield from ((kind, item, _Item(items, index)) for index, item in enumerate(items))
        if isinstance(node, ast.If) and not node.orelse and all(isinstance(s, _REFUSALS) for s in node.body):
            yield "dropped guard", node, _Branch(node)


_REFUSALS = (ast.Raise, ast.Return, ast.Continue, ast.Expr)  # `abort(403)` is an expression


def _removable(node: ast.AST) -> Iterator[tuple[str, list[ast.AST], int]]:
    """(what it is, the list it stands in, how many have to stay)."""
    if isinstance(node, ast.BoolOp):
        yield "dropped condition", node.values, 1  # type: ignore[misc]  # a list of expressions is a list of nodes
    elif isinstance(node, ast.FunctionDef):
        yield "dropped decorator", node.decorator_list, 0  # type: ignore[misc]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "filter_by":
            yield "dropped filter", node.keywords, 0  # type: ignore[misc]
        elif node.func.attr in ("where", "filter"):
            yield "dropped filter", node.args, 0  # type: ignore[misc]

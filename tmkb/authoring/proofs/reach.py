"""Find out which functions of a version a case calls, so that its result is used again where they are the same.

Versions of a pattern differ in a few functions, and many cases call none of these. A case does the same on two versions
if all text that is executed is the same: the statements of the module, and the bodies of the functions that are called.
Then its result on one version is also that on the other. Bodies of other functions can differ. Imports, constants and
functions without decorators can even be missing if no name refers to them.
"""

from __future__ import annotations

import ast
import builtins
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Result = Mapping[str, Any]

_MARKS = "__reached__"  # one byte for each function; a built-in name, so that the module has no other names
_WORDS = re.compile(r"\w+")


class Version:
    """One version of the code, and its functions: those that are not inside other functions."""

    def __init__(self, source: str) -> None:
        """Parse ``source``.

        Raises:
            SyntaxError: it is no Python.
        """
        self.source = source
        self.tree = ast.parse(source)
        self.functions: dict[str, Function] = {}
        for name, node in _functions(self.tree.body):
            again = sum(known.partition("'")[0] == name for known in self.functions)  # a name can be defined again
            self.functions[name + "'" * again] = node

    def mark(self) -> ast.Module:
        """Return the tree with a statement in each function that marks it as called, and make room for the marks."""
        setattr(builtins, _MARKS, mmap.mmap(-1, len(self.functions) + 1))  # shared with processes that are forked
        for number, node in enumerate(self.functions.values()):
            at = int(_is_text(node.body[0]) and len(node.body) > 1)
            (mark,) = ast.parse(f"{_MARKS}[{number}] = 1").body
            for each in ast.walk(mark):
                ast.copy_location(each, node.body[at])
            node.body.insert(at, mark)
        return self.tree

    @cached_property
    def statements(self) -> list[_Statement]:
        """The statements of the module."""
        return [*_statements(self)]

    def reached(self) -> list[str]:
        """Return the functions that are marked as called."""
        return [name for name, mark in zip(self.functions, marks(), strict=False) if mark]


def marks() -> bytes:
    """Return the marks of the version that this process executes."""
    return bytes(getattr(builtins, _MARKS, b""))


def set_marks(value: bytes) -> None:
    """Return to the marks that `marks` has returned before."""
    getattr(builtins, _MARKS)[:] = value


def add_marks(value: bytes) -> None:
    """Add marks that `marks` has returned before."""
    if value:
        set_marks(bytes(old | new for old, new in zip(marks(), value, strict=True)))


class Results:
    """The results of cases on the versions of one pattern."""

    def __init__(self, names: Iterable[str]) -> None:
        """``names``: those that other code can look up in a version."""
        self._names = frozenset(names)
        self._found: dict[str, dict[frozenset[str], dict[str, Result]]] = {}  # case → functions → key → result
        self._texts: dict[tuple[str, frozenset[str]], _Text] = {}  # statement as written, functions → statement

    def add(self, case: str, version: Version, reached: Iterable[str], result: Result) -> None:
        """Add the ``result`` of ``case``, which has called the functions ``reached`` of ``version``."""
        functions = frozenset(reached)
        self._found.setdefault(case, {}).setdefault(functions, {})[self._key(version, functions)] = result

    def reader(self, version: Version) -> Callable[[str], Result | None]:
        """Return a function that returns the result of a case on ``version``; None if it is not known."""
        keys: dict[frozenset[str], str] = {}

        def result(case: str) -> Result | None:
            for functions, results in self._found.get(case, {}).items():
                if functions <= version.functions.keys():
                    if functions not in keys:
                        keys[functions] = self._key(version, functions)
                    if keys[functions] in results:
                        return results[keys[functions]]
            return None

        return result

    def _key(self, version: Version, functions: frozenset[str]) -> str:
        """Return a text that is equal for all versions on which a case that calls ``functions`` does the same."""
        texts: list[_Text] = []
        definitions: dict[str, list[_Text]] = {}
        for each in version.statements:
            text = self._text(each, functions)
            (definitions.setdefault(each.name, []) if each.name else texts).append(text)
        known: set[str] = set()
        todo = self._names.union(*(text.words for text in texts))
        while names := todo & definitions.keys() - known:  # what a name defines can refer to other names
            known |= names
            added = [text for name in sorted(names) for text in definitions[name]]
            texts += added
            todo = frozenset().union(*(text.words for text in added))
        return "\n".join(text.text for text in texts)

    def _text(self, statement: _Statement, functions: frozenset[str]) -> _Text:
        """Return the statement without comments, in which functions that are not among ``functions`` have no body."""
        shown = functions.intersection(statement.functions)
        if (text := self._texts.get((statement.written, shown))) is None:
            bodies = {name: node.body for name, node in statement.functions.items() if name not in shown}
            for name, body in bodies.items():
                statement.functions[name].body = [_HIDDEN[any(map(_yields, body))]]
            source = ast.unparse(statement.node)
            for name, body in bodies.items():
                statement.functions[name].body = body
            text = self._texts[statement.written, shown] = _Text(source, words([source]))
        return text


class _Text(NamedTuple):
    text: str
    words: frozenset[str]


# In place of a body: calling a generator does not execute it, so whether a function is one can make a difference.
_HIDDEN = {False: ast.Pass(), True: ast.Expr(ast.Yield())}


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


class _Statement(NamedTuple):
    """A statement of a module; ``name`` is empty unless it only defines this name."""

    name: str
    written: str
    node: ast.stmt
    functions: dict[str, Function]


def _statements(version: Version) -> Iterator[_Statement]:
    """Yield the statements of the module, and one import for each name."""
    lines = version.source.splitlines()
    functions = {id(node): name for name, node in version.functions.items()}
    for node in version.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                one: ast.stmt = ast.Import([alias])
                if isinstance(node, ast.ImportFrom):
                    one = ast.ImportFrom(node.module, [alias], node.level)
                yield _Statement(name.replace("*", ""), ast.unparse(one), one, {})
        elif not _is_text(node):
            first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
            inside = {functions[id(each)]: each for each in ast.walk(node) if id(each) in functions}
            written = "\n".join(lines[first - 1 : node.end_lineno])
            yield _Statement(_defined(node), written, node, inside)  # type: ignore[arg-type]  # by `functions`


def _defined(node: ast.stmt) -> str:
    """Return the name of a function or constant whose definition executes nothing else; an empty text for others."""
    if isinstance(node, Function):
        parts = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        return node.name if all(part is None or isinstance(part, ast.Constant) for part in parts) else ""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        try:
            ast.literal_eval(node.value)
        except (ValueError, TypeError):
            return ""
        return node.targets[0].id
    return ""


def _functions(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield each function that is not inside another one, after its name with those of the classes around it."""
    for each in body:
        if isinstance(each, Function):
            yield prefix + each.name, each
        elif isinstance(each, ast.ClassDef):
            yield from _functions(each.body, f"{prefix}{each.name}.")
        else:  # perhaps with blocks
            yield from _functions(
                (inner for inner in ast.iter_child_nodes(each) if isinstance(inner, ast.stmt)), prefix
            )


def words(texts: Iterable[str]) -> frozenset[str]:
    """Return all words of ``texts``, which can be names that code looks up."""
    return frozenset(word for text in texts for word in _WORDS.findall(text))


def _is_text(node: ast.stmt) -> bool:
    """Return whether ``node`` is a docstring or another constant, which does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

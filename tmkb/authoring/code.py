"""The code of a pattern as a linter sees it: what is never used, and what ruff says. Nothing of it is run.

All versions of the code are looked at together: what only the secure one uses may stand idle in the vulnerable one,
because the difference between the two is what the pattern shows.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import examples
from tmkb.schema import paths

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SKIPPED = "F401,F841,I001"  # of ruff's rules: what `review` finds, and what depends on the folder around a file
_STAGE = ("bp", "cache")  # what the stage of the proofs takes from an example


class Code:
    """The Python files of one folder, as syntax trees by the names that problems call them."""

    def __init__(self, folder: str) -> None:
        self.problems: list[Problem] = []
        self.trees: dict[str, ast.Module] = {}
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".py")):
            shown = paths.shown(os.path.join(folder, name))
            try:
                source = examples.source(folder, name, shown)
            except DocumentError as error:
                self.problems += error.problems
                continue
            if source is not None:
                self.trees[shown] = examples.parsed(source, self.problems)
        self.mentioned = {name for tree in self.trees.values() for name in _mentioned(tree)}
        self.looked_at: dict[str, set[str]] = {}  # function → the names that it reads in any version
        for tree in self.trees.values():
            for name, function, _ in _functions(tree):
                self.looked_at.setdefault(name, set()).update(_read(function))


def review(folder: str) -> Iterator[Problem]:
    """What is wrong with the code in ``folder``, file by file, each in the order of its lines."""
    code = Code(folder)
    yield from code.problems
    for file, tree in code.trees.items():
        found = {
            (node.lineno, node.col_offset + 1): (kind, name)
            for kind, name, node in (*_imports(tree), *_names(code, tree), *_arguments(code, tree), *_locals(tree))
            if not name.startswith("_")
        }
        for (line, column), (kind, name) in sorted(found.items()):
            yield Problem("unused", file, line, column, kind=kind, name=name)


def ruff() -> str | None:
    """Return the path of the program ruff, of this environment or of the system; None where there is none.

    Never one of the current folder, which may belong to somebody else: `shutil.which` looks there first on Windows, and
    PATH may name it as an empty entry or a relative one.
    """
    folders = [os.path.dirname(sys.executable), *os.environ.get("PATH", "").split(os.pathsep)]
    name = f"ruff{sysconfig.get_config_var('EXE') or ''}"
    files = (os.path.join(folder, name) for folder in folders if os.path.isabs(folder))
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), None)


def lint(program: str, folders: Sequence[str]) -> list[Problem]:
    """What ruff says of the code in ``folders``, by its own rules and not those of a configuration."""
    options = ["--isolated", "--no-cache", "--target-version", "py311", "--output-format", "json", "--ignore", _SKIPPED]
    done = subprocess.run([program, "check", *options, "--", *folders], capture_output=True, text=True, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return [Problem("not_linted", program, reason=" ".join(done.stderr.split()) or "it said nothing")]
    return [
        Problem(
            "lint",
            paths.shown(each["filename"]),
            each["location"]["row"],
            each["location"]["column"],
            code=each["code"],
            reason=each["message"].rstrip("."),
        )
        for each in said
    ]


def _imports(tree: ast.Module) -> Iterator[tuple[str, str, ast.alias]]:
    read = _read(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name not in read:
                    yield "import", name, alias


def _names(code: Code, tree: ast.Module) -> Iterator[tuple[str, str, ast.stmt | ast.expr]]:
    """Names of a module that no file mentions. What is decorated or derived from others is found by them."""
    for node in tree.body:
        named: list[tuple[str, ast.stmt | ast.expr]] = []
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            named = [] if node.name.startswith(("exploit_", "legitimate_")) else [(node.name, node)]
        elif isinstance(node, ast.ClassDef) and not (node.bases or node.decorator_list):
            named = [(node.name, node)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            named = [(target.id, target) for target in _targets(node) if target.id not in _STAGE]
        for name, place in named:
            if name not in code.mentioned:
                yield "name", name, place


def _arguments(code: Code, tree: ast.Module) -> Iterator[tuple[str, str, ast.arg]]:
    """Arguments that no version of their function looks at, unless somebody else says what it takes."""
    for name, function, is_prescribed in _functions(tree):
        if is_prescribed or _is_stub(function):
            continue
        given = function.args
        listed = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        for argument in listed:
            if argument is not None and argument.arg not in code.looked_at[name] | {"self", "cls"}:
                yield "argument", argument.arg, argument


def _locals(tree: ast.Module) -> Iterator[tuple[str, str, ast.Name | ast.ExceptHandler]]:
    """Names that a function gives to a value and never reads."""
    for _, function, _ in _functions(tree):
        inside = list(_own(function))
        shared = {name for node in inside if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        read = _read(function) | shared
        for node in inside:
            if isinstance(node, ast.ExceptHandler) and node.name is not None and node.name not in read:
                yield "name", node.name, node
            yield from (("name", target.id, target) for target in _targets(node) if target.id not in read)


def _targets(node: ast.AST) -> list[ast.Name]:
    """The names that a statement gives to whole values; what comes out of a tuple may be there for its neighbours."""
    targets: list[ast.expr | None] = []
    if isinstance(node, ast.Assign):
        targets = [*node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        targets = [node.target]
    elif isinstance(node, ast.withitem):
        targets = [node.optional_vars]
    return [target for target in targets if isinstance(target, ast.Name)]


def _functions(tree: ast.AST, inside: str = "", prescribed: bool = False) -> Iterator[tuple[str, _Function, bool]]:
    """(dotted name, function, whether a decorator or a base class says what it takes), also those within others."""
    for node in ast.iter_child_nodes(tree):
        name = f"{inside}{getattr(node, 'name', None) or 'lambda'}"
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{name}.", bool(node.bases))
        elif isinstance(node, _Function):
            yield name, node, prescribed or bool(getattr(node, "decorator_list", []))
            yield from _functions(node, f"{name}.")
        else:
            yield from _functions(node, inside, prescribed)


def _is_stub(function: _Function) -> bool:
    """Whether there is nothing in it but a docstring, ``pass``, ``...`` or ``raise``."""
    idle = (ast.Pass, ast.Raise)
    return isinstance(function.body, list) and all(
        isinstance(node, idle) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def _own(function: _Function) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes within it."""
    waiting: list[ast.AST] = [*function.body] if isinstance(function.body, list) else [function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _read(tree: ast.AST) -> set[str]:
    """The names that are looked at in ``tree``."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}


def _mentioned(tree: ast.Module) -> Iterator[str]:
    """Names, attributes and texts: all by which a file may mean something that stands in another."""
    yield from _read(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

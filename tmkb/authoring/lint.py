"""Lint the code of a pattern: report unused names, and the findings of ruff. Nothing is run.

All versions of the code are checked together. What only the secure version uses may be unused in the vulnerable one,
because the pattern shows the difference between the two.
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
from tmkb.schema import packed, paths

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Unused = Iterator[tuple[str, str, ast.stmt | ast.expr | ast.alias | ast.arg | ast.ExceptHandler]]  # kind, name, node
# Rules of ruff that `unused` checks, one that depends on the folder of a file, two that wrong fixes break on purpose.
_IGNORED_RULES = "F401,F841,I001,BLE001,RUF100"
_CALLED = ("event_", "exploit_", "legitimate_", "state_")  # functions that `prove` calls by their names
_STAGE = ("bp", "cache", "MIGRATION")  # names that the stage of a proof takes from an example


class _Code:
    """The syntax trees of the Python files in one folder."""

    def __init__(self, folder: str) -> None:
        self.problems: list[Problem] = []
        self.trees: dict[str, ast.Module] = {}
        for name in (name for name in packed.names(folder) if name.endswith(".py")):
            file = paths.shown(os.path.join(folder, name))
            try:
                source = examples.read(folder, name, file)
            except DocumentError as error:
                self.problems += error.problems
                continue
            if source is not None:
                self.trees[file] = examples.parse(source, self.problems)
        self.mentioned = {name for tree in self.trees.values() for name in _mentioned(tree)}
        self.read: dict[str, set[str]] = {}  # function → the names that it reads in any version
        for tree in self.trees.values():
            for name, function, _ in _functions(tree):
                self.read.setdefault(name, set()).update(_read(function))


def unused(folder: str) -> Iterator[Problem]:
    """Report unused imports, names and arguments of the code in ``folder``, and files that cannot be read."""
    code = _Code(folder)
    yield from code.problems
    for file, tree in code.trees.items():
        found = {
            (node.lineno, node.col_offset + 1): (kind, name)
            for kind, name, node in (*_imports(tree), *_names(code, tree), *_arguments(code, tree), *_locals(tree))
            if not name.startswith("_")
        }
        for (line, column), (kind, name) in sorted(found.items()):
            yield Problem("unused", file, line, column, kind=kind, name=name)


def find_ruff() -> str | None:
    """Return the path of ruff in this environment or on the system; None if it is not installed.

    The current folder is never searched, because it may belong to another user. `shutil.which` searches it first on
    Windows, and PATH may contain it as an empty or relative entry.
    """
    folders = [os.path.dirname(sys.executable), *os.environ.get("PATH", "").split(os.pathsep)]
    name = f"ruff{sysconfig.get_config_var('EXE') or ''}"
    files = (os.path.join(folder, name) for folder in folders if os.path.isabs(folder))
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), None)


def ruff_command() -> str:
    """Return the command that installs ruff."""
    from tmkb.schema import installation

    return installation.command_for("ruff")


def run_ruff(program: str, folders: Sequence[str]) -> list[Problem]:
    """Return the findings of ruff in ``folders`` with its default rules, regardless of any configuration."""
    options = ["--isolated", "--no-cache", "--target-version", "py311", "--output-format", "json"]
    command = [program, "check", *options, "--ignore", _IGNORED_RULES, "--", *folders]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    try:
        findings = json.loads(done.stdout)
    except ValueError:
        return [
            Problem("not_linted", program, reason=" ".join(done.stderr.split()) or "no output", command=ruff_command())
        ]
    return [
        Problem(
            "lint",
            paths.shown(each["filename"]),
            each["location"]["row"],
            each["location"]["column"],
            code=each["code"],
            reason=each["message"].rstrip("."),
        )
        for each in findings
    ]


def _imports(tree: ast.Module) -> _Unused:
    read = _read(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name not in read:
                    yield "import", name, alias


def _names(code: _Code, tree: ast.Module) -> _Unused:
    """Yield top-level names that no file mentions. Decorators and base classes can use a definition by themselves."""
    for node in tree.body:
        named: list[tuple[str, ast.stmt | ast.expr]] = []
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            named = [] if node.name.startswith(_CALLED) else [(node.name, node)]
        elif isinstance(node, ast.ClassDef) and not (node.bases or node.decorator_list):
            named = [(node.name, node)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            named = [(target.id, target) for target in _targets(node) if target.id not in _STAGE]
        yield from (("name", name, place) for name, place in named if name not in code.mentioned)


def _arguments(code: _Code, tree: ast.Module) -> _Unused:
    """Yield arguments that no version of a function reads, unless a decorator or base class may require them."""
    for name, function, is_prescribed in _functions(tree):
        if is_prescribed or _is_stub(function):
            continue
        args = function.args
        for argument in (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg):
            if argument is not None and argument.arg not in code.read[name] | {"self", "cls"}:
                yield "argument", argument.arg, argument


def _locals(tree: ast.Module) -> _Unused:
    """Yield names that a function assigns and never reads."""
    for _, function, _ in _functions(tree):
        nodes = list(_own(function))
        shared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        read = _read(function) | shared
        for node in nodes:
            if isinstance(node, ast.ExceptHandler) and node.name is not None and node.name not in read:
                yield "name", node.name, node
            yield from (("name", target.id, target) for target in _targets(node) if target.id not in read)


def _targets(node: ast.AST) -> list[ast.Name]:
    """Return the names that a statement assigns. An unpacked tuple does not count: one of its names may be needed."""
    targets: list[ast.expr | None] = []
    if isinstance(node, ast.Assign):
        targets = [*node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        targets = [node.target]
    elif isinstance(node, ast.withitem):
        targets = [node.optional_vars]
    return [target for target in targets if isinstance(target, ast.Name)]


def _functions(tree: ast.AST, prefix: str = "", prescribed: bool = False) -> Iterator[tuple[str, _Function, bool]]:
    """Yield (dotted name, function, whether a decorator or base class may prescribe its arguments), also if nested."""
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}{getattr(node, 'name', None) or 'lambda'}"
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{name}.", bool(node.bases))
        elif isinstance(node, _Function):
            yield name, node, prescribed or bool(getattr(node, "decorator_list", []))
            yield from _functions(node, f"{name}.")
        else:
            yield from _functions(node, prefix, prescribed)


def _is_stub(function: _Function) -> bool:
    """Return whether a function contains only a docstring, ``pass``, ``...`` or ``raise``."""
    return isinstance(function.body, list) and all(
        isinstance(node, ast.Pass | ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def _own(function: _Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of nested functions and classes."""
    waiting: list[ast.AST] = [*function.body] if isinstance(function.body, list) else [function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _read(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}


def _mentioned(tree: ast.Module) -> Iterator[str]:
    """Yield names, attributes and strings: everything by which a file can refer to another file's definitions."""
    yield from _read(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

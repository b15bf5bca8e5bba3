"""Find out which statements of a version a case executes, so that its result is used again where they are the same.

Versions of a pattern differ in a few statements, and many cases execute none of these. A case does the same on two
versions if all text that is executed is the same. This is shown step by step: both versions begin in the same state.
As long as all statements executed so far are the same and at the same places, the state is the same, so the next
statement is at the same place in both. In the version that was played it was executed, so it is among the statements
that are compared, and the same in the other one.

Compared are the statements of the module, the heads of all functions, and of the functions that are called the
statements that began. A statement begins before its expressions are evaluated; blocks inside it are compared
likewise. A run of statements that never began is a hole, and the other version may have any other statements there.
Two things in a hole have an effect without being executed: a name that is bound there is local in the whole function,
and a ``yield`` makes it a generator. So they are compared, too. Imports, constants and functions without decorators can
even be missing if no name refers to them.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Result = Mapping[str, Any]

_MARKS = "__reached__"  # one byte for each place; a built-in name, so that the module has no other names
_DEFINED = "__defined__"  # the decorator that notes functions, likewise
_ROOM = 4096  # places
_LOOKED_UP = frozenset({"bp", "cache", "MIGRATION"})  # names that the stage looks up in a version
# With these, code can look up a name that it does not contain. The module of a version is named ``example``.
_DYNAMIC = frozenset(
    {
        "__builtins__",
        "__dict__",
        "__globals__",
        "__import__",
        "attrgetter",
        "builtins",
        "dir",
        "eval",
        "example",
        "exec",
        "f_back",
        "gc",
        "getattr",
        "globals",
        "import_module",
        "importlib",
        "inspect",
        "locals",
        "methodcaller",
        "modules",
        "pickle",
        "pkgutil",
        "runpy",
        "sys",
        "vars",
    }
)
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
        self.functions = _named(self.tree)

    @cached_property
    def statements(self) -> list[_Statement]:
        """The statements of the module."""
        return [*_statements(self)]

    @cached_property
    def places(self) -> frozenset[str]:
        """All places in functions."""
        return frozenset[str]().union(*(each.places for each in self.statements))

    @cached_property
    def definitions(self) -> dict[str, _Statement]:
        """The statements that only define a name."""
        return {each.name: each for each in self.statements if each.name}

    @cached_property
    def looks_up(self) -> bool:
        """Whether its code can look up names that it does not contain."""
        return looks_up(self.source)

    @cached_property
    def defines_once(self) -> bool:
        """Whether no statement that only defines a name shares it with another statement."""
        bound = [each.name for each in self.statements if each.name]
        others = {name for each in self.statements if not each.name for name in _bound([each.node])}
        return len(bound) == len({*bound}) and not others.intersection(bound)


class Execution:
    """The module of a version that this process executes. It notes what is executed, and can become another version."""

    def __init__(self, version: Version, module: ModuleType, filename: str) -> None:
        self.version = version
        self._module = module
        self._filename = filename
        self._numbers: dict[str, int] = {}  # place → that of its mark
        self._functions: dict[str, list[FunctionType]] = {}  # name → those that were made
        self.exchanged: frozenset[str] = frozenset()  # the definitions that the last `become` has executed or removed
        setattr(builtins, _DEFINED, self._note)

    def execute(self) -> None:
        """Execute the module. Raises what it raises."""
        code = self._compiled(self.version)
        setattr(builtins, _MARKS, mmap.mmap(-1, max(_ROOM, len(self._numbers))))  # shared with forked processes
        exec(code, self._module.__dict__)

    @property
    def functions(self) -> list[FunctionType]:
        """The functions of the module that were made."""
        return [function for functions in self._functions.values() for function in functions]

    def reached(self) -> list[str]:
        """Return the places that are marked as reached: those of functions that are called, and of statements."""
        found = marks()
        return [place for place, number in self._numbers.items() if found[number]]

    def called(self) -> list[str]:
        """Return all places of the functions that are marked as called, for `become`.

        Such a function can have left a function that is inside it, or a generator, which keeps its code. So all of its
        statements have to be the same, and not only those that were executed.
        """
        reached = {*self.reached()}
        functions = self.version.functions.items()
        return [place for name, node in functions if name in reached for place in _all_places(node, name)]

    def become(self, version: Version) -> bool:
        """Turn the module into ``version``, whose execution would have done the same so far.

        The caller has checked that by `Results`, for the places that `called` returns.
        Return False if that is not possible. Functions stay the same objects, because others refer to them, and get
        other code. Other definitions that differ are executed: nothing that was executed so far refers to their names.
        Raises what these definitions raise; then the module is useless.
        """
        old = self.version
        if not (old.defines_once and version.defines_once) or "__future__" in version.source:
            return False
        code = self._compiled(version)
        if len(self._numbers) > len(marks()):
            return False
        codes = _codes(code)
        new = [each for name, each in version.definitions.items() if not _is_same_head(each, old.definitions.get(name))]
        kept = version.functions.keys() - {each.name for each in new}
        if any(
            len(function.__code__.co_freevars) != len(codes[name].co_freevars)
            for name in kept
            for function in self._functions.get(name, ())
        ):
            return False
        for name in kept:
            for function in self._functions.get(name, ()):
                function.__code__ = codes[name]
        for name in old.definitions.keys() - version.definitions.keys():
            self._module.__dict__.pop(name, None)
            self._functions.pop(name, None)
        for each in new:
            self._functions.pop(each.name, None)
            exec(self._compile(ast.Module([self._marked(each)], [])), self._module.__dict__)
        self._module.__doc__ = ast.get_docstring(version.tree, clean=False)
        removed = old.definitions.keys() - version.definitions.keys()
        self.exchanged = frozenset({"__doc__", *removed, *(each.name for each in new)})
        self.version = version
        return True

    def _compiled(self, version: Version) -> CodeType:
        """Return the code of ``version`` with a mark before each statement of a function."""
        tree = ast.parse(version.source)
        for name, node in _named(tree).items():
            self._mark_function(node, name)
        return self._compile(tree)

    def _compile(self, tree: ast.Module) -> CodeType:
        return compile(ast.fix_missing_locations(tree), self._filename, "exec")

    def _marked(self, statement: _Statement) -> ast.stmt:
        node = copy.deepcopy(statement.node)
        if isinstance(node, Function):
            self._mark_function(node, statement.name)
        return node

    def _mark_function(self, node: Function, name: str) -> None:
        node.body = self._body(node, name)
        note = ast.Call(ast.Name(_DEFINED, ast.Load()), [ast.Constant(name)], [])
        node.decorator_list.append(ast.copy_location(note, node))

    def _body(self, node: Function, place: str) -> list[ast.stmt]:
        """Return the body of a function at ``place``, and of those inside it, with marks."""
        text, rest = node.body[: _has_text(node)], node.body[_has_text(node) :]
        return [*text, self._mark(place, node.body[0]), *self._block(rest, place)]

    def _block(self, body: list[ast.stmt], place: str) -> Iterator[ast.stmt]:
        for here, each in _places(body, place):
            for inner, owner, field in _blocks(each, here):
                if isinstance(owner, Function):
                    owner.body = self._body(owner, inner)
                else:
                    setattr(owner, field, [*self._block(getattr(owner, field), inner)])
            if not isinstance(each, ast.Global | ast.Nonlocal):
                yield self._mark(here, each)
            yield each

    def _mark(self, place: str, node: ast.stmt) -> ast.stmt:
        number = self._numbers.setdefault(place, len(self._numbers))
        target = ast.Subscript(ast.Name(_MARKS, ast.Load()), ast.Constant(number), ast.Store())
        return ast.copy_location(ast.Assign([target], ast.Constant(1)), node)

    def _note(self, name: str) -> Callable[[FunctionType], FunctionType]:
        """Return a decorator that notes a function and does not change it."""

        def note(function: FunctionType) -> FunctionType:
            self._functions.setdefault(name, []).append(function)
            return function

        return note


def marks() -> bytes:
    """Return the marks of the version that this process executes."""
    return bytes(getattr(builtins, _MARKS, b""))


def set_marks(value: bytes) -> None:
    """Return to the marks that `marks` has returned before."""
    getattr(builtins, _MARKS)[:] = value


def add_marks(value: bytes) -> None:
    """Add marks that `marks` has returned before."""
    both = int.from_bytes(marks(), "big") | int.from_bytes(value, "big")
    set_marks(both.to_bytes(len(value), "big"))


class Results:
    """The results of cases on the versions of one pattern."""

    def __init__(self, texts: Iterable[str], values: Iterable[str] = ()) -> None:
        """``texts``: other code, which can look up names in a version. ``values``: texts by which the version can."""
        self._names = words(texts) | _LOOKED_UP
        self._values = words(values)
        self._found: dict[str, dict[frozenset[str], dict[str, Result]]] = {}  # case → places → key → result
        self._texts: dict[tuple[str, frozenset[str]], _Text] = {}  # statement as written, places → statement

    def add(self, case: str, version: Version, reached: Iterable[str], result: Result) -> None:
        """Add the ``result`` of ``case``, which has reached these places of ``version``."""
        places = frozenset(reached)
        self._found.setdefault(case, {}).setdefault(places, {})[self._key(version, places)] = result

    def reader(self, version: Version) -> Callable[[str], Result | None]:
        """Return a function that returns the result of a case on ``version``; None if it is not known."""
        keys: dict[frozenset[str], str] = {}

        def result(case: str) -> Result | None:
            for places, results in self._found.get(case, {}).items():
                if places <= version.places:
                    if places not in keys:
                        keys[places] = self._key(version, places)
                    if keys[places] in results:
                        return results[keys[places]]
            return None

        return result

    def _key(self, version: Version, places: frozenset[str]) -> str:
        """Return a text that is equal for all versions on which a case that reaches ``places`` does the same."""
        texts: list[_Text] = []
        definitions: dict[str, list[_Text]] = {}
        for each in version.statements:
            text = self._text(each, places)
            (definitions.setdefault(each.name, []) if each.name else texts).append(text)
        known: set[str] = set()
        looked_up = self._names | self._values if version.looks_up else self._names
        todo = looked_up.union(*(text.words for text in texts))
        while names := todo & definitions.keys() - known:  # what a name defines can refer to other names
            known |= names
            added = [text for name in sorted(names) for text in definitions[name]]
            texts += added
            todo = frozenset().union(*(text.words for text in added))
        return "\n".join(text.text for text in texts)

    def _text(self, statement: _Statement, places: frozenset[str]) -> _Text:
        """Return the statement without comments, and with holes for what is at none of ``places``."""
        shown = places & statement.places if statement.places else frozenset()
        if (text := self._texts.get((statement.written, shown))) is None:
            bodies = {name: node.body for name, node in statement.functions.items()}
            for name, node in statement.functions.items():
                node.body = _seen(node, name, shown)
            source = ast.unparse(statement.node)
            for name, body in bodies.items():
                statement.functions[name].body = body
            text = self._texts[statement.written, shown] = _Text(source, words([source]))
        return text


def results(app: str, proof: str, attacks: str) -> Results:
    """Return no results yet for a pattern with these texts."""
    others = [app, attacks]
    return Results([*others, proof]) if proof or looks_up(app) else Results([], others)


def looks_up(source: str) -> bool:
    """Return whether code can look up names that it does not contain. May raise SyntaxError if it is no Python."""
    if "\\" not in source and _DYNAMIC.isdisjoint(words([source])):  # no text contains a name in an escaped form
        return False
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and _is_text(node):
            node.value = ast.Constant(None)
    return not _DYNAMIC.isdisjoint(words([ast.unparse(tree)]))


class _Text(NamedTuple):
    text: str
    words: frozenset[str]


_HOLE = ast.Expr(ast.Set([ast.Constant("hole")]))  # not written by anybody


def _seen(node: Function, place: str, shown: frozenset[str]) -> list[ast.stmt]:
    """Return the body of a function at ``place`` as a case sees it that reaches the places ``shown``."""
    if place not in shown:
        return [_HOLE, *_facts(node.body, frozenset())]
    hidden: list[ast.stmt] = []
    text = node.body[: _has_text(node)]
    body = [*text, *_seen_block(node.body[len(text) :], place, shown, hidden)]
    names = words([ast.unparse(ast.Module(body, []))]) if hidden else frozenset[str]()
    return [*body, *_facts(hidden, names - _bound(body))]


def _seen_block(body: list[ast.stmt], place: str, shown: frozenset[str], hidden: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements at the places ``shown``, and a hole for each run of others, which ``hidden`` receives."""
    in_hole = False
    for here, each in _places(body, place):
        if here in shown:
            yield _seen_statement(each, here, shown, hidden)
        else:
            hidden.append(each)
            if not in_hole:
                yield _HOLE
        in_hole = here not in shown


def _seen_statement(node: ast.stmt, place: str, shown: frozenset[str], hidden: list[ast.stmt]) -> ast.stmt:
    blocks = [*_blocks(node, place)]
    if not blocks:
        return node
    seen = copy.copy(node)
    for field in ("handlers", "cases"):
        if hasattr(seen, field):
            setattr(seen, field, [copy.copy(each) for each in getattr(seen, field)])
    for inner, owner, field in _blocks(seen, place):
        new = (
            _seen(owner, inner, shown)
            if isinstance(owner, Function)
            else [*_seen_block(getattr(owner, field), inner, shown, hidden)]
        )
        setattr(owner, field, new)
    return seen


def _facts(hidden: list[ast.stmt], names: frozenset[str]) -> list[ast.stmt]:
    """Return what statements do to their function without being executed.

    ``names``: those in the other statements, which do not bind them themselves.
    """
    effects = [_effects(each) for each in hidden]
    facts = sorted(_bound(hidden) & names) + ["yield"] * any(each.yields for each in effects)
    facts += sorted(name for each in effects for name in each.declared)
    return [ast.Expr(ast.Set([ast.Constant(fact) for fact in facts]))] if facts else []


class _Effects(NamedTuple):
    """What a statement does to its function without being executed."""

    bound: frozenset[str]
    yields: bool
    declared: tuple[str, ...]  # as global or nonlocal


@lru_cache(maxsize=10_000)  # statements of a few patterns
def _effects(statement: ast.stmt) -> _Effects:
    nodes = [*_own(statement)]
    return _Effects(
        frozenset(name for each in nodes for name in _binds(each)),
        any(isinstance(each, ast.Yield | ast.YieldFrom) for each in nodes),
        tuple(
            f"{type(each).__name__} {name}"
            for each in nodes
            if isinstance(each, ast.Global | ast.Nonlocal)
            for name in each.names
        ),
    )


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and all nodes inside it that belong to the same function."""
    yield node
    if isinstance(node, Function | ast.ClassDef):
        inner: list[ast.AST] = [*node.decorator_list]
        inner += [node.args] if isinstance(node, Function) else [*node.bases, *node.keywords]
    elif isinstance(node, ast.Lambda):
        inner = [node.args]
    elif isinstance(node, ast.comprehension):  # whose target is local in it
        inner = [node.iter, *node.ifs]
    else:
        inner = [*ast.iter_child_nodes(node)]
    for each in inner:
        yield from _own(each)


def _bound(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names that ``statements`` bind."""
    return frozenset[str]().union(*(_effects(each).bound for each in statements))


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.alias(name, other):
            yield (other or name).partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _has_text(node: Function) -> bool:
    """Return whether the function has a docstring."""
    return _is_text(node.body[0]) and isinstance(node.body[0].value.value, str)  # type: ignore[attr-defined]


def _places(body: Iterable[ast.stmt], place: str) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each statement of a block at ``place`` after its own place, which has a number."""
    for number, each in enumerate(body):
        yield f"{place}.{number}", each


def _blocks(node: ast.stmt, place: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the place of each block in ``node``, the node whose attribute it is, and the attribute."""
    if isinstance(node, ast.ClassDef):  # compared as a whole
        return
    for field, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield f"{place}.{field}", node, field
        elif isinstance(value[0], ast.ExceptHandler | ast.match_case):
            for number, each in enumerate(value):
                yield f"{place}.{field}{number}", each, "body"


class _Statement(NamedTuple):
    """A statement of a module; ``name`` is empty unless it only defines this name."""

    name: str
    written: str
    node: ast.stmt
    functions: dict[str, Function]
    places: frozenset[str]  # in these functions


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
                    name = "" if node.module == "__future__" else name.replace("*", "")
                yield _Statement(name, ast.unparse(one), one, {}, frozenset())
        elif not _is_text(node):
            first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
            inside = {functions[id(each)]: each for each in ast.walk(node) if id(each) in functions}
            written = "\n".join(lines[first - 1 : node.end_lineno])
            places = frozenset(place for name, each in inside.items() for place in _all_places(each, name))  # type: ignore[arg-type]
            yield _Statement(_defined(node), written, node, inside, places)  # type: ignore[arg-type]  # by `functions`


def _all_places(node: Function, place: str) -> Iterator[str]:
    yield place
    for here, each in _places(node.body[_has_text(node) :], place):
        yield from _places_in(each, here)


def _places_in(node: ast.stmt, place: str) -> Iterator[str]:
    yield place
    for inner, owner, field in _blocks(node, place):
        if isinstance(owner, Function):
            yield from _all_places(owner, inner)
        else:
            for here, each in _places(getattr(owner, field), inner):
                yield from _places_in(each, here)


def _is_same_head(new: _Statement, old: _Statement | None) -> bool:
    """Return whether both define the same; of functions only the bodies may differ."""
    if old is None or type(new.node) is not type(old.node):
        return False
    return _head(new) == _head(old)


def _head(statement: _Statement) -> str:
    if not isinstance(statement.node, Function):
        return ast.unparse(statement.node)
    head = copy.copy(statement.node)
    head.body = [_HOLE]
    return ast.unparse(head)


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


def _named(tree: ast.Module) -> dict[str, Function]:
    """Return the functions that are not inside other functions. A name that is defined again has an apostrophe."""
    found: dict[str, Function] = {}
    for name, node in _functions(tree.body):
        found[_again(name, found)] = node
    return found


def _again(name: str, known: Iterable[str]) -> str:
    return name + "'" * sum(each.partition("'")[0] == name for each in known)


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


def _codes(code: CodeType) -> dict[str, CodeType]:
    """Return the code of each function that is not inside another one, by its name as in `_named`."""
    found: dict[str, CodeType] = {}
    for name, each in _inner_codes(code, ""):
        found[_again(name, found)] = each
    return found


def _inner_codes(code: CodeType, prefix: str) -> Iterator[tuple[str, CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType) and not each.co_name.startswith("<"):
            if each.co_flags & inspect.CO_OPTIMIZED:
                yield prefix + each.co_name, each
            else:
                yield from _inner_codes(each, f"{prefix}{each.co_name}.")


def words(texts: Iterable[str]) -> frozenset[str]:
    """Return all words of ``texts``, which can be names that code looks up."""
    return frozenset(word for text in texts for word in _WORDS.findall(text))


def _is_text(node: ast.stmt) -> bool:
    """Return whether ``node`` is a docstring or another constant, which does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

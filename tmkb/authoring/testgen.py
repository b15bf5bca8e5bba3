"""Generate pytest tests from the proof of a pattern. All of them fail until a developer has completed them.

The proof is read as text and never run. Its actions on the stage become comments, because a project has its own models
and routes. A test first fails in the methods of `Project`, then at the placeholder of the attempt. The last line of an
exploit's test asserts what the proof regards as a refusal.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from tmkb.knowledge import examples
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern

_WIDTH = 118
_EXPLOIT, _USE = "exploit_", "legitimate_"
_MAX_NODES = 5000  # of an inlined function
_MAX_DEPTH = 8  # calls that are inlined from an exploit to its outcome

_PROJECT = '''
import pytest


class Project:
    """Your application, as these tests need it. Each method fails until you have written it."""

    def tenants(self):
        """Two tenants, Acme and Globex."""
        pytest.fail("Write Project.tenants: create two tenants and return them")

    def users(self, acme, globex):
        """Two users: Bob, a member of Acme, and Mallory, an administrator of Globex.

        If a test mentions Alice, she is an administrator of Acme.
        """
        pytest.fail("Write Project.users: create a member of each tenant and return them")

    def client(self, user):
        """A test client whose requests are signed in as ``user``."""
        pytest.fail("Write Project.client: return a client that is signed in")


@pytest.fixture
def project():
    """The application under test. Set up and clean up here what each test needs."""
    return Project()
'''
_BEGIN = """\
    acme, globex = project.tenants()
    bob, mallory = project.users(acme, globex)
    as_bob, as_mallory = project.client(bob), project.client(mallory)"""


def tests(folder: str, pattern: Pattern) -> str | None:
    """Return a test module for the ``pattern`` in ``folder``; None if it has no code or no proof."""
    code = pattern.get("code")
    proof = examples.read(folder, code.get("proof", "proof.py"), "") if code else None
    if proof is None:
        return None
    tree = examples.parse(proof, [])
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    parts = [_head(pattern), _PROJECT.strip("\n") + "\n"]
    for name, function in functions.items():
        if name.startswith(_EXPLOIT):
            parts.append(_exploit_test(pattern["id"], function, functions))
        elif name.startswith(_USE):
            parts.append(_use_test(pattern["id"], function))
    parts.append(_appendix(pattern, tree, proof.text))
    return "\n\n".join(parts)


def _head(pattern: Pattern) -> str:
    lines = [
        f"Tests for {pattern['id']}: {unwrap(pattern['name'])}",
        f"Pattern version {pattern['version']}, reviewed {pattern['reviewed']}",
        *(f"{key.capitalize()}: {unwrap(pattern['agent_summary'][key])}" for key in ("threat", "check", "fix")),
        "",
        f"Generated from the proof by `tmkb get {pattern['id']} --test`. Each test fails until you complete it:",
        "1. Write the methods of Project.",
        "2. In each test, replace the line pytest.fail: make the attempt in its comment with your routes and models.",
        "   Adapt the assertion to its result.",
        "3. Check that test_exploit_… fails on vulnerable code. Fix the code, and check that it passes.",
        "   test_legitimate_… must pass before and after.",
        "The definitions that the proof uses are at the end.",
    ]
    return "\n".join(_comment(line) for line in lines) + "\n"


def _exploit_test(id_: str, function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> str:
    steps = _inline(_body(function), functions)
    gained, refused = _outcome(steps)
    if refused is not None:
        steps = steps[:-1]
    lines = [_definition(function), "    # The attempt in the proof:", *_comments(steps)]
    if gained is not None:
        lines += ["    # It succeeded if:", *_comments([ast.Expr(gained)])]
    lines += [_placeholder(id_, "make this attempt"), "    # It was refused if:"]
    lines.append(f"    assert {ast.unparse(refused) if refused is not None else 'refused'}")
    return "\n".join(lines) + "\n"


def _use_test(id_: str, function: ast.FunctionDef) -> str:
    steps = _comments(_without_stage(_body(function)))
    placeholder = _placeholder(id_, "make these requests and assert that they are served")
    return "\n".join([_definition(function), "    # The legitimate use in the proof:", *steps, placeholder]) + "\n"


def _placeholder(id_: str, task: str) -> str:
    return f'    pytest.fail("{id_}: replace this line: {task}, with your application")'


def _definition(function: ast.FunctionDef) -> str:
    text = ast.get_docstring(function) or function.name
    # A docstring that would end early or contain an escape is written as a string literal.
    needs_escape = '"""' in text or text.endswith('"') or "\\" in text or not text.replace("\n", "").isprintable()
    doc = repr(text) if needs_escape else f'"""{text}"""'
    return f"def test_{function.name}(project):\n{textwrap.indent(doc, '    ')}\n{_BEGIN}"


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def _without_stage(steps: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Replace each ``with stage(…):`` by its body."""
    result: list[ast.stmt] = []
    for step in steps:
        if isinstance(step, ast.With) and [_called(item.context_expr) for item in step.items] == ["stage"]:
            result += _without_stage(step.body)
        else:
            result.append(step)
    return result


def _inline(steps: Iterable[ast.stmt], functions: Mapping[str, ast.FunctionDef], depth: int = 0) -> list[ast.stmt]:
    """Replace a ``return`` of a function's result by the body of that function, with its arguments filled in."""
    result = _without_stage(steps)
    last = result[-1] if result else None
    call = last.value if isinstance(last, ast.Return) else None
    function = functions.get(_called(call))
    if not isinstance(call, ast.Call) or function is None or depth == _MAX_DEPTH:
        return result
    arguments = _arguments(function.args, call)
    if arguments is None or _size(_body(function), arguments) > _MAX_NODES:
        return result
    inner = [_Substitute(arguments).visit(step) for step in ast.parse(_unparse(_body(function))).body]
    return result[:-1] + _inline(inner, functions, depth + 1)


def _size(steps: Iterable[ast.stmt], arguments: Mapping[str, ast.expr]) -> int:
    """Return the nodes of ``steps`` after substitution. A call that repeats a parameter can double them each time."""
    sizes = {name: sum(1 for _ in ast.walk(value)) for name, value in arguments.items()}
    names = [node.id if isinstance(node, ast.Name) else "" for step in steps for node in ast.walk(step)]
    return sum(sizes.get(name, 1) for name in names)


def _arguments(parameters: ast.arguments, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the arguments of ``call`` by parameter; None if ``*`` or ``**`` hides them."""
    named = {each.arg: each.value for each in call.keywords if each.arg is not None}
    if any(isinstance(each, ast.Starred) for each in call.args) or len(named) < len(call.keywords):
        return None
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    keyword_only = [each.arg for each in parameters.kwonlyargs]
    values = dict(zip(positional[::-1], parameters.defaults[::-1], strict=False))
    values |= {n: d for n, d in zip(keyword_only, parameters.kw_defaults, strict=True) if d is not None}
    values |= dict(zip(positional, call.args, strict=False))
    others = {name: value for name, value in named.items() if name not in (*positional, *keyword_only)}
    values |= {name: value for name, value in named.items() if name not in others}
    if parameters.vararg:
        values[parameters.vararg.arg] = ast.Tuple(call.args[len(positional) :], ast.Load())
    if parameters.kwarg:
        values[parameters.kwarg.arg] = ast.Dict([ast.Constant(name) for name in others], list(others.values()))
    return values


class _Substitute(ast.NodeTransformer):
    """Replaces parameters by their arguments."""

    def __init__(self, arguments: Mapping[str, ast.expr]) -> None:
        self.arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:  # `NodeTransformer` prescribes the name
        """Return the argument of a parameter, and any other name as it is."""
        return self.arguments.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _outcome(steps: list[ast.stmt]) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the expressions of ``gained`` and ``refused`` if ``steps`` end with ``return outcome(…)``."""
    last = steps[-1] if steps else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Call) or _called(last.value) != "outcome":
        return None, None
    keywords = {each.arg: each.value for each in last.value.keywords}
    return keywords.get("gained"), keywords.get("refused")


def _called(node: ast.expr | None) -> str:
    """Return the name of the function that ``node`` calls, or an empty string."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _unparse(steps: Iterable[ast.stmt]) -> str:
    return ast.unparse(ast.Module(list(steps), []))


def _comments(steps: Iterable[ast.stmt]) -> list[str]:
    return [f"    #   {line}" for line in _unparse(steps).splitlines()]


def _appendix(pattern: Pattern, tree: ast.Module, text: str) -> str:
    """Return as comments the rest of the proof, the vulnerable and the secure code, and further tests to write."""
    secure = next((mitigation["secure"] for mitigation in pattern["mitigations"] if "secure" in mitigation), "")
    parts = [
        ("Definitions in the proof", "\n".join(_definitions(tree, text.split("\n")))),
        ("The vulnerable code", pattern.get("vulnerable", "")),
        ("The secure code", secure),
        ("More to test", "\n".join(f"- {unwrap(each)}" for each in pattern.get("testing", []))),
    ]
    blocks = [
        "\n".join([f"# {heading}:", "#", *(f"#   {line}".rstrip() for line in body.strip("\n").splitlines())])
        for heading, body in parts
        if body.strip()
    ]
    return "\n\n".join(blocks) + "\n"


def _definitions(tree: ast.Module, lines: list[str]) -> Iterator[str]:
    """Yield the lines of the proof without imports, exploits and legitimate uses; a blank line precedes functions."""
    for node in tree.body:
        first = node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name.startswith((_EXPLOIT, _USE)):
                continue
            first = min([first, *(each.lineno for each in node.decorator_list)])
            yield ""
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            yield from lines[first - 1 : node.end_lineno]


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in textwrap.wrap(text, _WIDTH, drop_whitespace=True) or [""])

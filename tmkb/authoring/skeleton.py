"""Tests to begin with, made of a pattern's proof: valid Python that pytest collects, and every test of it fails.

The proof is read as text; nothing of it is run. What it does on its stage stands in comments, because a project has its
own models and routes. A test fails first where the project is not filled in, then at a line that stands for the
attempt; the last line of an exploit's test asserts what the proof takes for a refusal.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from tmkb.knowledge import examples
from tmkb.knowledge.answer import unwrapped
from tmkb.knowledge.pattern import Pattern

_WIDTH = 118
_EXPLOIT, _USE = "exploit_", "legitimate_"
_NODES = 5000  # of a function that is put in the place of its call
_DEPTH = 8  # calls that are followed from an exploit to its outcome

_PROJECT = '''
import pytest


class Project:
    """Your application, as these tests need it. Each method fails until you have written it."""

    def tenants(self):
        """Two tenants, Acme and Globex."""
        pytest.fail("Project.tenants is yours to write: create two tenants and return them")

    def users(self, acme, globex):
        """Two users: Bob, a member of Acme, and Mallory, an administrator of Globex.

        Where a test speaks of Alice, she is an administrator of Acme.
        """
        pytest.fail("Project.users is yours to write: create a member of each tenant and return them")

    def client(self, user):
        """A test client whose requests are signed in as ``user``."""
        pytest.fail("Project.client is yours to write: return a client that is signed in")


@pytest.fixture
def project():
    """The application under test; set up and clean up here what each test needs afresh."""
    return Project()
'''
_BEGIN = """\
    acme, globex = project.tenants()
    bob, mallory = project.users(acme, globex)
    as_bob, as_mallory = project.client(bob), project.client(mallory)
"""


def tests(folder: str, pattern: Pattern) -> str | None:
    """A module of tests for the ``pattern`` in ``folder``; None where it has no code, or no proof."""
    code = pattern.get("code")
    proof = examples.source(folder, code.get("proof", "proof.py"), "") if code else None
    if proof is None:
        return None
    tree = examples.parsed(proof, [])
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    parts = [_head(pattern), _PROJECT.strip("\n") + "\n"]
    for name, function in functions.items():
        if name.startswith(_EXPLOIT):
            parts.append(_refused(pattern, function, functions))
        elif name.startswith(_USE):
            parts.append(_served(pattern, function))
    parts.append(_appendix(pattern, tree, proof.text))
    return "\n\n".join(parts)


def _head(pattern: Pattern) -> str:
    said = [
        f"Tests for {pattern['id']}: {unwrapped(pattern['name'])}",
        f"Pattern version {pattern['version']}, reviewed {pattern['reviewed']}",
        *(f"{key.capitalize()}: {unwrapped(pattern['agent_summary'][key])}" for key in ("threat", "check", "fix")),
        "",
        f"Made of the pattern's proof by `tmkb get {pattern['id']} --test`. Every test fails until it tries your code:",
        "1. Write the methods of Project.",
        "2. In each test make the attempt that its comment shows with your own routes and models, in place of the line",
        "   pytest.fail, and say in the assertion what it has to come to.",
        "3. See test_exploit_… fail on code that has the mistake, mend it, and see them pass.",
        "   test_legitimate_… have to pass before and after.",
        "What the proof's attempts refer to stands at the end.",
    ]
    return "\n".join(_comment(line) for line in said) + "\n"


def _refused(pattern: Pattern, function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> str:
    """The test of one exploit."""
    steps = _followed(_body(function), functions)
    gained, refused = _outcome(steps)
    if refused is not None:
        steps = steps[:-1]
    lines = [_definition(function), "    # The attempt, as the proof makes it:", *_shown(steps)]
    if gained is not None:
        lines += ["    # It has succeeded if:", *_shown([ast.Expr(gained)])]
    lines += [_placeholder(pattern, "make this attempt"), "    # It was refused if:"]
    lines.append(f"    assert {ast.unparse(refused) if refused is not None else 'refused'}")
    return "\n".join(lines) + "\n"


def _served(pattern: Pattern, function: ast.FunctionDef) -> str:
    """The test of one legitimate use."""
    shown = ["    # Legitimate use, as the proof makes it:", *_shown(_lifted(_body(function)))]
    last = _placeholder(pattern, "make these requests and assert that they are served")
    return "\n".join([_definition(function), *shown, last]) + "\n"


def _placeholder(pattern: Pattern, what: str) -> str:
    return f'    pytest.fail("{pattern["id"]}: {what}, with your application, in place of this line")'


def _definition(function: ast.FunctionDef) -> str:
    text = ast.get_docstring(function) or function.name
    # What would end the docstring, or be an escape in it, is written as a plain string.
    ends = '"""' in text or text.endswith('"') or "\\" in text
    plain = not ends and text.replace("\n", "").isprintable()
    doc = f'"""{text}"""' if plain else repr(text)
    return f"def test_{function.name}(project):\n{textwrap.indent(doc, '    ')}\n{_BEGIN}".rstrip("\n")


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def _lifted(steps: Iterable[ast.stmt]) -> list[ast.stmt]:
    """``steps`` without the stage around them."""
    found: list[ast.stmt] = []
    for step in steps:
        if isinstance(step, ast.With) and [_calls(item.context_expr) for item in step.items] == ["stage"]:
            found += _lifted(step.body)
        else:
            found.append(step)
    return found


def _followed(steps: Iterable[ast.stmt], functions: Mapping[str, ast.FunctionDef], depth: int = 0) -> list[ast.stmt]:
    """``steps`` with the body of the function whose result they return, its parameters being what it is given."""
    found = _lifted(steps)
    last = found[-1] if found else None
    call = last.value if isinstance(last, ast.Return) else None
    called = functions.get(_calls(call)) if call is not None else None
    if not isinstance(call, ast.Call) or called is None or depth == _DEPTH:
        return found
    given = _given(called.args, call)
    if given is None or _size(_body(called), given) > _NODES:
        return found
    inner = [_Given(given).visit(step) for step in ast.parse(ast.unparse(_module(_body(called)))).body]
    return found[:-1] + _followed(inner, functions, depth + 1)


def _size(steps: Iterable[ast.stmt], given: Mapping[str, ast.expr]) -> int:
    """Return the nodes of ``steps`` once parameters are replaced: a call that repeats one can double it each time."""
    sizes = {name: sum(1 for _ in ast.walk(value)) for name, value in given.items()}
    names = [node.id if isinstance(node, ast.Name) else "" for step in steps for node in ast.walk(step)]
    return sum(sizes.get(name, 1) for name in names)


def _given(parameters: ast.arguments, call: ast.Call) -> dict[str, ast.expr] | None:
    """Parameter → what ``call`` gives for it; None where that cannot be told from the text alone."""
    named = {each.arg: each.value for each in call.keywords if each.arg is not None}
    if any(isinstance(each, ast.Starred) for each in call.args) or len(named) < len(call.keywords):
        return None
    plain = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    rest = call.args[len(plain) :]
    given = dict(zip(plain[::-1], parameters.defaults[::-1], strict=False))
    given |= {
        each.arg: default
        for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is not None
    }
    given |= dict(zip(plain, call.args, strict=False))
    known = {*plain, *(each.arg for each in parameters.kwonlyargs)}
    given |= {name: value for name, value in named.items() if name in known}
    if parameters.vararg:
        given[parameters.vararg.arg] = ast.Tuple(list(rest), ast.Load())
    if parameters.kwarg:
        others = {name: value for name, value in named.items() if name not in known}
        given[parameters.kwarg.arg] = ast.Dict([ast.Constant(name) for name in others], list(others.values()))
    return given


class _Given(ast.NodeTransformer):
    """Puts what was given in the place of parameters."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name is that of the node
        """The name, or what was given for it."""
        return self.given.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _outcome(steps: list[ast.stmt]) -> tuple[ast.expr | None, ast.expr | None]:
    """What ``steps`` observe in the end as gained and as refused."""
    last = steps[-1] if steps else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Call) or _calls(last.value) != "outcome":
        return None, None
    observed = {each.arg: each.value for each in last.value.keywords}
    return observed.get("gained"), observed.get("refused")


def _calls(node: ast.expr | None) -> str:
    """The name of the function that is called; empty for all else."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _module(steps: Iterable[ast.stmt]) -> ast.Module:
    return ast.Module(list(steps), [])


def _shown(steps: Iterable[ast.stmt]) -> list[str]:
    """``steps`` as comments in a test."""
    return [f"    #   {line}" for line in ast.unparse(_module(steps)).splitlines()]


def _appendix(pattern: Pattern, tree: ast.Module, text: str) -> str:
    """What the attempts refer to, as comments: the rest of the proof, and the code that it attacks."""
    mended = next((mitigation["secure"] for mitigation in pattern["mitigations"] if "secure" in mitigation), "")
    parts = [
        ("What the proof uses", "\n".join(_rest(tree, text.split("\n")))),
        ("The code that it attacks", pattern.get("vulnerable", "")),
        ("The same, mended", mended),
        ("What to try besides", "\n".join(f"- {unwrapped(each)}" for each in pattern.get("testing", []))),
    ]
    shown = [f"# {heading}:\n#\n{_lines(body)}" for heading, body in parts if body.strip()]
    return "\n\n".join(shown) + "\n"


def _rest(tree: ast.Module, lines: list[str]) -> Iterator[str]:
    """The lines of the proof that are neither imports nor attempts; before a function an empty one."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            continue
        decorators: list[ast.expr] = []
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name.startswith((_EXPLOIT, _USE)):
                continue
            decorators = node.decorator_list
            yield ""
        first = min([node.lineno, *(each.lineno for each in decorators)])
        yield from lines[first - 1 : node.end_lineno]


def _lines(text: str) -> str:
    return "\n".join(f"#   {line}".rstrip() for line in text.strip("\n").splitlines())


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in textwrap.wrap(text, _WIDTH, drop_whitespace=True) or [""])

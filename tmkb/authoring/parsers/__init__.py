"""Give the code of idioms to the parser of its language. Nothing is run.

Each language has a function from sources to the first syntax error of each, None for none. All sources of a language
are parsed at once, because starting a compiler takes longer than parsing. An idiom is a fragment, so it is accepted if
it is correct in one of the surroundings of `_WRAPS`.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tmkb.authoring.stacks import express
from tmkb.knowledge import stacks
from tmkb.schema import installation

Errors = list[str | None]

_HERE = os.path.dirname(os.path.abspath(__file__))
_TIMEOUT = 120  # seconds for all sources of a language


class Fragment(NamedTuple):
    """The code of an idiom."""

    stack: str
    code: str

    @property
    def language(self) -> str:
        """The language of the code: that of the stack, unless the first line names TypeScript."""
        if self.code.startswith("// TypeScript"):
            return "typescript"
        return str(stacks.packaged().stacks[self.stack]["language"])


class Parsed(NamedTuple):
    """What the parser of its language says about a fragment."""

    error: str | None = None
    missing: str = ""  # what is needed and not installed; then nothing was parsed


def parse(fragments: Sequence[Fragment]) -> list[Parsed]:
    """Return what the parsers of their languages say about ``fragments``, in order."""
    by_language: dict[str, list[int]] = {}
    for index, each in enumerate(fragments):
        by_language.setdefault(_PARSED_AS.get(each.language, each.language), []).append(index)
    results: dict[int, Parsed] = {}
    for language, chosen in by_language.items():
        parsed = _parse(language, [fragments[index].code for index in chosen])
        results |= dict(zip(chosen, parsed, strict=True))
    return [results[index] for index in range(len(fragments))]


def _parse(language: str, codes: Sequence[str]) -> list[Parsed]:
    """Parse ``codes`` in each of the surroundings of their language, and keep the error that is furthest down."""
    if language not in _PARSERS:
        return [Parsed(missing=f"a parser for {language}") for _ in codes]
    if missing := _missing(language):
        return [Parsed(missing=missing) for _ in codes]
    wraps = _WRAPS.get(language, [("", "")])
    errors = _PARSERS[language]([f"{before}{code}\n{after}" for code in codes for before, after in wraps])
    found = [errors[at : at + len(wraps)] for at in range(0, len(errors), len(wraps))]
    return [Parsed(None if None in each else max(filter(None, each), key=_line)) for each in found]


def _line(error: str) -> int:
    number = error.removeprefix("line ").partition(":")[0]
    return int(number) if number.isdigit() else 0


def _missing(language: str) -> str:
    """Return what is not installed of what the parser of ``language`` needs."""
    if language == "typescript":
        return express.missing()
    if module := _MODULES.get(language):
        return "" if importlib.util.find_spec(module) else f"{module}: {installation.command('dev')}"
    program = _PROGRAMS.get(language, "")
    return "" if not program or shutil.which(program) else program


def _python(sources: Sequence[str]) -> Errors:
    def error(source: str) -> str | None:
        try:
            ast.parse(textwrap.dedent(source))
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        return None

    return [error(source) for source in sources]


def _csharp(sources: Sequence[str]) -> Errors:
    import tree_sitter_c_sharp

    return _tree(tree_sitter_c_sharp.language(), sources)


def _kotlin(sources: Sequence[str]) -> Errors:
    import tree_sitter_kotlin

    return _tree(tree_sitter_kotlin.language(), sources)


def _tree(grammar: object, sources: Sequence[str]) -> Errors:
    import tree_sitter

    parser = tree_sitter.Parser(tree_sitter.Language(grammar))

    def error(source: str) -> str | None:
        node = parser.parse(source.encode()).root_node
        if not node.has_error:
            return None
        while inner := [each for each in node.children if each.has_error or each.is_missing]:
            node = inner[0]
        return f"line {node.start_point.row + 1}: unexpected or missing code"

    return [error(source) for source in sources]


def _sql(sources: Sequence[str]) -> Errors:
    import pglast

    def error(source: str) -> str | None:
        try:
            pglast.parse_sql(source)
        except pglast.parser.ParseError as error:
            at = error.args[1] if len(error.args) > 1 and isinstance(error.args[1], int) else 0
            return f"line {source.count(chr(10), 0, at) + 1}: {error.args[0]}"
        return None

    return [error(source) for source in sources]


def _typescript(sources: Sequence[str]) -> Errors:
    command = ["node", os.path.join(_HERE, "typescript.mjs"), os.path.join(express.HERE, "package.json")]
    return _json(command, sources)


_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # options of Java for a process that soon ends
_RUBY = """
require "json"
puts JSON.generate(JSON.parse($stdin.read).map { |source|
  begin
    RubyVM::InstructionSequence.compile(source)
    nil
  rescue SyntaxError => error
    "line " + error.message.lines.first.to_s.strip.sub(/\\A[^:]*:/, "")
  end
})
"""
_PHP = """
$errors = [];
foreach (json_decode(stream_get_contents(STDIN)) as $source) {
    try { token_get_all($source, TOKEN_PARSE); $errors[] = null; }
    catch (ParseError $error) { $errors[] = "line {$error->getLine()}: {$error->getMessage()}"; }
}
echo json_encode($errors);
"""


def _ruby(sources: Sequence[str]) -> Errors:
    return _json(["ruby", "-W0", "-e", _RUBY], sources)


def _php(sources: Sequence[str]) -> Errors:
    return _json(["php", "-r", _PHP], sources)


def _go(sources: Sequence[str]) -> Errors:
    def error(source: str) -> str | None:  # gofmt accepts fragments only on standard input
        stderr = _run(["gofmt", "-e"], source.encode(), check=False).stderr.decode()
        return "line " + stderr.splitlines()[0].removeprefix("<standard input>:") if stderr else None

    return [error(source) for source in sources]


def _java(sources: Sequence[str]) -> Errors:
    encoded = [source.encode() for source in sources]
    data = struct.pack(">i", len(encoded)) + b"".join(struct.pack(">i", len(each)) + each for each in encoded)
    lines = _run(["java", *_SHORT, os.path.join(_HERE, "Parse.java")], data).stdout.decode().split("\n")
    return [line or None for line in lines[: len(sources)]]


def _json(command: Sequence[str], sources: Sequence[str]) -> Errors:
    """Return the JSON list that ``command`` writes for the JSON list of ``sources``."""
    errors: Errors = json.loads(_run(command, json.dumps(sources).encode()).stdout)
    return errors


def _run(command: Sequence[str], data: bytes, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=data, capture_output=True, timeout=_TIMEOUT, check=check)


_PARSED_AS = {"javascript": "typescript"}  # a language that another one contains
_PARSERS: Mapping[str, Callable[[Sequence[str]], Errors]] = {
    "csharp": _csharp,
    "go": _go,
    "java": _java,
    "kotlin": _kotlin,
    "php": _php,
    "python": _python,
    "ruby": _ruby,
    "sql": _sql,
    "typescript": _typescript,
}
_MODULES = {"csharp": "tree_sitter_c_sharp", "kotlin": "tree_sitter_kotlin", "sql": "pglast"}
_PROGRAMS = {"go": "gofmt", "java": "javac", "php": "php", "ruby": "ruby"}
# The surroundings in which a fragment can stand, on its own lines: before and after it.
_WRAPS = {
    "csharp": [("", ""), ("class _ {", "}")],
    "java": [("", ""), ("class Fragment {", "}"), ("class Fragment { void _f() {", "}}")],
    "kotlin": [("", ""), ("class Fragment {", "}")],
    "php": [("<?php ", ""), ("<?php class _ {", "}")],
    "typescript": [("", ""), ("class _ {", "}")],
}

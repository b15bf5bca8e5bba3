"""The parsers of all languages accept fragments and reject syntax errors."""

import pytest

from tmkb.authoring import parsers
from tmkb.authoring.idiom_checks import Checks
from tmkb.authoring.parsers import Fragment, Parsed
from tmkb.authoring.stacks import express, runner

pytestmark = [pytest.mark.full]

NODE, KOTLIN = pytest.mark.needs("node"), pytest.mark.needs("tree_sitter_kotlin")
CASES = [
    pytest.param("django", "@login_required\ndef show(request):\n    return 1\n", "def show(request:\n    return 1\n"),
    pytest.param("express", "app.get('/', (req, res) => res.send(1));", "app.get('/', (req => {", marks=NODE),
    pytest.param("nextjs", "export const A = () => <a href={x}>x</a>;", "const x: = 1;", marks=NODE),
    pytest.param("nextjs", "const x = <T,>(y: T) => y;\nawait x(1);", "const x = 1 +;", marks=NODE),
    pytest.param("nestjs", "@Get(':id')\nasync show(@Param('id') id: string) {}", "@Get() async show( {", marks=NODE),
    pytest.param("graphql", "const resolvers = { Query: {} };", "const resolvers = { Query: {} ;", marks=NODE),
    pytest.param("supabase", "create policy p on t for select using (true);", "create policy p onn t;", marks=pytest.mark.needs("pglast")),
    pytest.param("supabase", "// TypeScript\nconst x: number = 1;", "// TypeScript\nconst x: = 1;", marks=NODE),
    pytest.param("rails", "before_action :sign_in\n\ndef show\n  @a = 1\nend", "def show\n  x = (1\nend", marks=pytest.mark.needs("ruby")),
    pytest.param("spring", '@GetMapping("/{id}")\nA show(long id) { return a; }', "A show(long { }", marks=pytest.mark.needs("javac")),
    pytest.param("spring", "http.csrf(c -> c.disable());\nreturn http.build();", "return http.build(", marks=pytest.mark.needs("javac")),
    pytest.param("spring", "interface R extends JpaRepository<A, Long> {}", "interface R extends {}", marks=pytest.mark.needs("javac")),
    pytest.param("spring_kotlin", '@GetMapping("/{id}")\nfun show(id: Long): A? = null', "fun show(id: Long = 1", marks=KOTLIN),
    pytest.param("spring_kotlin", "private val a: A? = null\n\ninit { b() }", "val a: = null", marks=KOTLIN),
    pytest.param("spring_kotlin", "val a = b?.c ?: throw D()\na.e { it.f }", "val a = b ?: ", marks=KOTLIN),
    pytest.param("spring_kotlin", "interface R : JpaRepository<A, Long>", "public A show(long id) { return a; }", marks=KOTLIN),
    pytest.param("aspnet", "[HttpGet]\npublic IActionResult A(int id) => Ok(id);", "public int A( { return 1; }", marks=pytest.mark.needs("tree_sitter_c_sharp")),
    pytest.param("aspnet", 'app.MapGet("/", () => 1);', 'app.MapGet("/", () => );', marks=pytest.mark.needs("tree_sitter_c_sharp")),
    pytest.param("go", "func f() int {\n\treturn 1\n}", "func f( {", marks=pytest.mark.needs("gofmt")),
    pytest.param("laravel", "public function show(int $id): array\n{\n    return [];\n}", "public function show( {", marks=pytest.mark.needs("php")),
    pytest.param("laravel", "Route::get('/x', fn () => 1);", "Route::get('/x', fn () => );", marks=pytest.mark.needs("php")),
]  # fmt: skip


@pytest.mark.parametrize(("stack", "correct", "wrong"), CASES)
def test_a_fragment_is_accepted_and_a_syntax_error_is_not(stack, correct, wrong):
    accepted, rejected = parsers.parse([Fragment(stack, correct), Fragment(stack, wrong)])

    assert accepted == Parsed()
    assert rejected.error.startswith("line ") and not rejected.missing


@pytest.mark.needs("ruby")
def test_the_line_of_an_error_is_that_of_the_fragment():
    python, ruby = parsers.parse([Fragment("django", "x = 1\ny = = 2\n"), Fragment("rails", "x = 1\ny = = 2\n")])

    assert python.error == "line 2: invalid syntax"
    assert ruby.error.startswith("line 2: ")


def test_a_missing_compiler_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(parsers.shutil, "which", lambda name: None)
    monkeypatch.setattr(express, "HERE", str(tmp_path))

    assert parsers.parse([Fragment("rails", "x"), Fragment("express", "x")]) == [
        Parsed(missing="ruby"),
        Parsed(missing="Node 20 or newer"),
    ]


def test_what_was_not_checked_stays_recorded_while_it_is_unchanged():
    missing = Parsed(missing="ruby")
    checks = Checks(
        [runner.Result("express", "e1", missing="Node 20 or newer"), runner.Result("fastapi", "f1")],
        {"rails": missing, "go": missing, "django": Parsed()},
        {"rails": "r1", "go": "g1", "django": "d1"},
    )
    before = {"idioms": {"express": "e1", "fastapi": "f1"}, "compiled": {"rails": "r1", "go": "g0"}}

    assert checks.record(before) == {"idioms": {"express": "e1"}, "compiled": {"django": "d1", "rails": "r1"}}
    assert not checks.failed
    assert [*checks.details()] == ["not compiled: needs ruby"]


def test_a_syntax_error_fails_the_check():
    checks = Checks([], {"go": Parsed("line 1: expected ')'")}, {"go": "g1"})

    assert checks.failed
    assert [*checks.details()] == ["go does not compile: line 1: expected ')'"]
    assert checks.summary() == "idioms: 0 of 1 compiled"

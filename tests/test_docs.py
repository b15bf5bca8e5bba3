"""What the documents show is true: examples load, the answer is the answer."""

import os
import re

import pytest

from tests.support.repository import ROOT, source
from tmkb.access import policy
from tmkb.cli import layout, pages
from tmkb.knowledge import house, library, questions, vocabulary
from tmkb.knowledge.attacks import Attacks
from tmkb.schema import configuration, load, problems, reader
from tmkb.server import sources

DOCUMENTS = [
    "README.md",
    *(os.path.join("docs", name) for name in sorted(os.listdir(os.path.join(ROOT, "docs"))) if name.endswith(".md")),
]
EXAMPLES = [
    (name, number, text)
    for name in DOCUMENTS
    for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", source(os.path.join(ROOT, name)), re.M | re.S))
]
PLACES = {
    "revision": "protocol/{revision}",
    "lifecycle": "lifecycle/handshake",
    "errors": "errors",
    "limits": "limits",
    "log": "log",
    "prompt": "servers/tmkb/prompts/{name}",
    "resource": "servers/tmkb/resources/{name}",
    "server": "servers/{name}/server",
    "service": "servers/sysmcp/services/{id}",
    "tool": "servers/tmkb/tools/{name}",
}


def problems_of_schema(folder, name, value, text):
    """The problems of an example, in ``folder`` with the errors that its section defines."""
    place = PLACES[value["kind"]].format(**value)
    section = next(each for each in source(os.path.join(ROOT, name)).split("\n## ") if text in each)
    beside = re.findall(r"^```yaml\n# my-schemas/(servers/tmkb/errors)\.yaml\n(.*?)^```$", section, re.M | re.S)
    for at, content in {**dict(beside), place: text}.items():
        path = folder / f"{at}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    owner = place.split("/")[1] if place.startswith("servers/") else "tmkb"
    found = load.read([str(folder)], sources.names(), [owner]).problems
    by_commands = ("capability_not_declared", "no_text_file")  # what commands of the section create
    return [problems.line(p) for p in found if p.rule not in by_commands]


BESIDE_PATTERNS = {"house": (house.FILE, library.load), "vocabulary": (vocabulary.FILE, vocabulary.read)}


@pytest.mark.parametrize(("name", "number", "text"), EXAMPLES, ids=lambda part: str(part)[:30])
def test_every_example_loads(tmp_path, name, number, text):
    value = reader.parse(text, "example.yaml").mapping()
    if value["kind"] == "pattern":
        folder = tmp_path / value["id"].lower().replace("-", "_")
        folder.mkdir()
        (folder / "pattern.yaml").write_text(text)
        shown = re.findall(
            rf"^```(?:python|yaml)\n# \S*{folder.name}/((?:wrong/)?\w+\.py|attacks\.yaml)\n(.*?)^```$",
            source(os.path.join(ROOT, name)),
            re.M | re.S,
        )
        (folder / "wrong").mkdir()
        for file, code in shown:
            (folder / file).write_text(code)
        assert [problems.line(p) for p in library.load([str(tmp_path)]).problems] == []
    elif value["kind"] == "attacks":
        Attacks.parse(text)
    elif value["kind"] == "questions":
        (tmp_path / "questions.yaml").write_text(text)
        assert questions.read_file(str(tmp_path / "questions.yaml"), "ACME-AUTH-001").problems == []
    elif value["kind"] in BESIDE_PATTERNS:
        file, read = BESIDE_PATTERNS[value["kind"]]
        (tmp_path / file).write_text(text)
        assert [problems.line(p) for p in read([str(tmp_path)]).problems] == []
    elif value["kind"] == "config":
        (tmp_path / "config.yaml").write_text(text)
        given = configuration.read(str(tmp_path / "config.yaml"), "sysmcp")
        found = load.read([], sources.names(), ["sysmcp"], given).problems
        elsewhere = ("no_folder", "no_plain_file", "no_writable_folder", "no_log")  # what is on the reader's machine
        assert [problems.line(p) for p in found if p.rule not in elsewhere] == []
    elif value["kind"] == "access":
        (tmp_path / "access.yaml").write_text(text)
        assert policy.read(str(tmp_path / "access.yaml")).roles
    else:
        assert problems_of_schema(tmp_path, name, value, text) == []


def test_the_answer_in_the_readme_is_what_is_answered(full_server):
    command, shown = re.search(
        r'tmkb query "(.*?)"\n```\n\n```text\n(.*?)^```$', source(os.path.join(ROOT, "README.md")), re.M | re.S
    ).groups()
    answer = full_server.query(command)

    assert shown.rstrip("\n") == layout.rendered(pages.answer(answer)).rstrip("\n")


def test_the_figures_in_the_readme_are_those_of_the_documents():
    evidence = re.search(r"^## Evidence\n(.*?)^## ", source(os.path.join(ROOT, "README.md")), re.M | re.S)[1]
    items = re.findall(r"^- \[[^]]+\]\(([^)#]+)[^)]*\): (.*)$", evidence, re.M)

    assert len(items) == evidence.count("\n- ") > 3
    for page, text in items:
        shown = source(os.path.join(ROOT, page))
        assert [each for each in re.findall(r"\d[\d./]*\b", text) if each not in shown] == [], page


def test_the_readme_is_short():
    assert source(os.path.join(ROOT, "README.md")).count("\n") < 120


LINKED = [
    *DOCUMENTS,
    *(name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")),
    "conformance/README.md",
    "tests/mutation.md",
    *(os.path.join("docs", "decisions", name) for name in sorted(os.listdir(os.path.join(ROOT, "docs", "decisions")))),
]


def prose(name):
    """Return the text of a document without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", source(os.path.join(ROOT, name)), flags=re.M | re.S)


def anchors(path):
    """Return the anchors of the headings in a Markdown file, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(os.path.relpath(path, ROOT)), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", LINKED)
def test_links_lead_somewhere(name):
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", prose(name)):
        path = (
            os.path.normpath(os.path.join(ROOT, os.path.dirname(name), target)) if target else os.path.join(ROOT, name)
        )
        assert os.path.exists(path), (name, target)
        assert not anchor or anchor in anchors(path), (name, target, anchor)


@pytest.mark.parametrize("name", LINKED)
def test_pictures_are_there_and_described(name):
    text = prose(name)
    for path in re.findall(r'\bsrc(?:set)?="([^"]+)"', text):
        assert os.path.isfile(os.path.join(ROOT, os.path.dirname(name), path)), (name, path)
    assert len(re.findall(r"<img [^>]*\balt=\"[^\"]+\"", text)) == text.count("<img "), name


def test_the_index_lists_every_document():
    listed = re.findall(r"\]\(([^)#]+)\)", source(os.path.join(ROOT, "docs", "index.md")))
    documents = {os.path.basename(name) for name in DOCUMENTS if name.startswith("docs")} - {"index.md"}

    assert documents <= set(listed)


@pytest.mark.parametrize("name", LINKED)
def test_modules_that_documents_name_exist(name):
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", prose(name)):
        assert any(os.path.exists(os.path.join(ROOT, top, path)) for top in ("", "tmkb")), (name, path)


def test_the_tests_that_documents_name_exist():
    named = {
        match
        for name in DOCUMENTS
        for match in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", source(os.path.join(ROOT, name)))
    }
    defined = {file: set(re.findall(r"^def (test_\w+)\(", source(os.path.join(ROOT, file)), re.M)) for file, _ in named}

    assert len(named) > 50
    assert {(file, test) for file, test in named if test not in defined[file]} == set()

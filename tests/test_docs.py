"""What the documents show is true: examples load, the answer is the answer."""

import os
import re

import pytest

from tests.support.repository import ROOT, source
from tmkb.cli import layout, pages
from tmkb.knowledge import library, questions, vocabulary
from tmkb.knowledge.attacks import Attacks
from tmkb.schema import configuration, load, problems, reader
from tmkb.server import sources
from tmkb.server.server import Server

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
    elif value["kind"] == "vocabulary":
        (tmp_path / vocabulary.FILE).write_text(text)
        assert [problems.line(p) for p in vocabulary.read([str(tmp_path)]).problems] == []
    elif value["kind"] == "config":
        (tmp_path / "config.yaml").write_text(text)
        given = configuration.read(str(tmp_path / "config.yaml"), "sysmcp")
        found = load.read([], sources.names(), ["sysmcp"], given).problems
        elsewhere = ("no_folder", "no_plain_file", "no_writable_folder", "no_log")  # what is on the reader's machine
        assert [problems.line(p) for p in found if p.rule not in elsewhere] == []
    else:
        place = PLACES[value["kind"]].format(**value)
        path = tmp_path / f"{place}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        owner = place.split("/")[1] if place.startswith("servers/") else "tmkb"
        assert [problems.line(p) for p in load.read([str(tmp_path)], sources.names(), [owner]).problems] == []


def test_the_answer_in_the_readme_is_what_is_answered():
    command, shown = re.search(
        r'tmkb query "(.*?)"\n```\n\n```text\n(.*?)^```$', source(os.path.join(ROOT, "README.md")), re.M | re.S
    ).groups()
    answer = Server.load("tmkb-full").query(command)

    assert shown.rstrip("\n") == layout.rendered(pages.answer(answer)).rstrip("\n")


LINKED = [
    *DOCUMENTS,
    "CONTRIBUTING.md",
    "conformance/README.md",
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


def test_the_index_lists_every_document():
    listed = re.findall(r"\]\(([^)#]+)\)", source(os.path.join(ROOT, "docs", "index.md")))
    documents = {os.path.basename(name) for name in DOCUMENTS if name.startswith("docs")} - {"index.md"}

    assert documents <= set(listed)


@pytest.mark.parametrize("name", LINKED)
def test_modules_that_documents_name_exist(name):
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", prose(name)):
        assert any(os.path.exists(os.path.join(ROOT, top, path)) for top in ("", "tmkb")), (name, path)

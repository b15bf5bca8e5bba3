"""`tmkb export site`: pages that are valid, complete and small, and load nothing from elsewhere."""

import collections
import html.parser
import io
import itertools
import json
import posixpath
import re
import urllib.parse
import zipfile

import pytest

from tmkb.knowledge import attacks, idioms, library, mappings, vocabulary
from tmkb.publishing import site

pytestmark = pytest.mark.needs("jinja2")

VOID = {"input", "link", "meta"}
LOADING = {("link", "href"), ("script", "src"), ("img", "src")}
INLINE_ONLY = {"p", "h1", "h2", "h3", "dt", "pre", "figcaption", "summary"}  # they contain no blocks
BLOCKS = {"p", "h1", "h2", "h3", "div", "section", "ul", "li", "dl", "pre", "table", "nav", "details", "article"}
REFERRING = ("aria-labelledby", "aria-controls")


class Page(html.parser.HTMLParser):
    """The ids, links and texts of a page, and what is wrong with its markup."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.ids, self.links, self.loaded = [], [], [], [], []
        self.named, self.text, self.headings = [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self.open]
        self.faults += [f"id {id_} is repeated" for id_, count in collections.Counter(self.ids).items() if count > 1]
        self.faults += [f"nothing has the id {id_}" for id_ in self.named if id_ not in self.ids]
        levels = [1, *self.headings]
        self.faults += [
            f"h{level} follows h{before}" for before, level in itertools.pairwise(levels) if level > before + 1
        ]
        if self.headings.count(1) != 1:
            self.faults.append("not one h1")

    def handle_starttag(self, tag, pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            self.faults.append(f"{tag} repeats an attribute")
        self.faults += [f"{tag} has {key}" for key in found if key == "style" or key.startswith("on")]
        if tag in BLOCKS and (outside := INLINE_ONLY & set(self.open)):
            self.faults.append(f"{tag} inside {outside}")
        if tag in ("ul", "tr", "dl", "table") and self.open[-1:] == [tag]:
            self.faults.append(f"{tag} directly in {tag}")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.ids += [found["id"]] if "id" in found else []
        self.named += [id_ for key in REFERRING for id_ in found.get(key, "").split()]
        if tag == "a":
            self.links.append(found["href"])
        self.loaded += [value for key, value in pairs if (tag, key) in LOADING]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_startendtag(self, tag, pairs):
        self.handle_starttag(tag, pairs)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def patterns():
    folders = library.load(None).folders
    return {each.pattern["id"]: (each.path, each.pattern) for each in folders}


@pytest.fixture(scope="module")
def files(patterns):
    return site.files(patterns)


@pytest.fixture(scope="module")
def pages(files):
    return {path: Page(text) for path, text in files.items() if path.endswith(".html")}


def test_every_page_is_valid(pages):
    assert {path: page.faults for path, page in pages.items() if page.faults} == {}


def test_every_link_leads_somewhere(files, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            url = urllib.parse.urlsplit(link)
            if url.scheme in ("https", "http", "data"):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), url.path)) if url.path else path
            if target not in files or (url.fragment and url.fragment not in pages[target].ids):
                broken.append((path, link))

    assert broken == []


def test_nothing_is_loaded_from_elsewhere(files, pages):
    assert {url for page in pages.values() for url in page.loaded if ":" in url} == {"data:,"}
    assert not re.search(r"@import|url\(|@font-face", files["site.css"])
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\b.*from", files["site.js"])


def test_a_page_has_all_that_is_known_of_its_pattern(patterns, pages):
    for id_, (folder, pattern) in patterns.items():
        text = " ".join(" ".join(pages[f"pattern/{id_.lower()}.html"].text).split())
        found = attacks.read(folder)[0]
        expected = [pattern["name"], *pattern["agent_summary"].values(), *(each.why for each in found.wrong.values())]
        expected += [attack["story"] for attack in found.value["attacks"].values()]
        expected += [each["why"] for each in pattern["related_patterns"] if "why" in each]
        expected += [f"{each['id']}, {each['relationship']}" for each in pattern["related_patterns"]]
        expected += [each["caution"] for each in idioms.served(folder, pattern).values() if "caution" in each]
        plain = [" ".join(each.replace("`", "").split()) for each in expected]
        squeezed = text.replace(" ", "")
        assert [each for each in plain if each.replace(" ", "") not in squeezed] == [], id_
        assert found.cases and {case.name for case in found.cases} <= set(pages[f"pattern/{id_.lower()}.html"].ids)


def test_a_page_says_which_of_the_related_patterns_are_related(patterns, pages):
    chosen = {id_: [each["id"] for each in pattern["related_patterns"]] for id_, (_, pattern) in patterns.items()}
    for id_, related in chosen.items():
        pairs = {(one, other) for one, other in itertools.combinations(related, 2) if other in chosen[one]}
        pairs |= {(one, other) for one, other in itertools.combinations(related, 2) if one in chosen[other]}
        text = "".join(pages[f"pattern/{id_.lower()}.html"].text)
        listed = re.search(r"Also related to each other: (.*?)\.", text)
        assert set(re.findall(r"(\S+) and ([^\s;]+)", listed[1] if listed else "")) == pairs, id_


def test_code_is_shown_as_it_is(patterns, files):
    for id_ in ("TMKB-AUTH-007", "TMKB-AUTH-053"):
        folder, pattern = patterns[id_]
        text = "".join(Page(files[f"pattern/{id_.lower()}.html"]).text)
        code = [pattern["vulnerable"], pattern["mitigations"][0]["secure"]]
        code += [each.code for each in idioms.read(folder)[0].values()]
        assert [each for each in code if re.sub(r"\n{3,}", "\n\n", each).strip() not in text] == []


def test_the_catalogue_stacks_and_lists_have_every_pattern(patterns, pages):
    listed = {name: {id_ for id_ in patterns if id_ in " ".join(pages[name].text)} for name in pages}

    assert listed["index.html"] == listed["stack/flask.html"] == listed["mapping/cwe.html"] == set(patterns)
    assert len(listed["mapping/top10.html"]) == len(patterns)
    assert listed["mapping/llm.html"] >= {"TMKB-AUTH-047", "TMKB-AUTH-061"}


def test_a_list_contains_patterns_by_their_weaknesses(patterns):
    top10 = mappings.packaged()["top10"]
    _, pattern = patterns["TMKB-AUTH-047"]

    assert "A01:2025" not in pattern["references"]["owasp"]
    assert top10.entries(pattern) == {"A01:2025": ["CWE-862"]}


def test_weaknesses_and_entries_of_lists_have_titles():
    titles = vocabulary.read([]).titles
    lists = mappings.packaged().values()
    entries = [name for each in lists for entry, weaknesses in each.cwe.items() for name in (entry, *weaknesses)]

    assert [entry for entry in entries if entry not in titles] == []


def test_the_site_is_small(files):
    """A folder of text, compressed as it is downloaded or served: 1 MB for 80 patterns."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in files.items():
            packed.writestr(path, text)

    assert len(archive.getvalue()) < 12_500 * sum(path.startswith("pattern/") for path in files)
    assert max(each.compress_size for each in packed.infolist()) < 35_000


def test_the_order_of_patterns_changes_nothing(patterns):
    chosen = {id_: patterns[id_] for id_ in ("TMKB-AUTH-001", "TMKB-AUTH-007")}

    assert site.files(chosen) == site.files(dict(reversed(chosen.items())))


def test_a_pattern_without_code_has_a_page(tmp_path, patterns):
    _, pattern = patterns["TMKB-AUTH-007"]
    keys = ("id", "name", "version", "reviewed", "category", "severity", "triggers", "agent_summary", "description")
    bare = {key: pattern[key] for key in keys} | {"mitigations": [], "references": {"cwe": [], "owasp": []}}
    pages = site.files({"TMKB-AUTH-007": (str(tmp_path), bare)})

    assert Page(pages["pattern/tmkb-auth-007.html"]).faults == []
    assert "mapping/cwe.html" not in pages and "stack/flask.html" not in pages


def test_texts_cannot_become_markup(tmp_path, patterns):
    folder, pattern = patterns["TMKB-AUTH-007"]
    text = '</p><script>alert(1)</script>" onload="x'
    hostile = {**pattern, "name": text, "description": text, "vulnerable": f"x = '{text}'\n"}
    hostile["agent_summary"] = dict.fromkeys(pattern["agent_summary"], f"`{text}`")
    hostile["references"] = {**pattern["references"], "sources": ["javascript:alert(1)", text]}
    made = site.files({"TMKB-AUTH-007": (folder, hostile)})

    for path, content in made.items():
        if path.endswith(".html"):
            assert "<script>" not in content and Page(content).faults == [], path
    assert not [link for link in Page(made["pattern/tmkb-auth-007.html"]).links if link.startswith("javascript")]
    assert json.loads(made["search.js"].removeprefix("searchIndex(").rstrip().removesuffix(")"))[0][2] == text


def test_the_lists_of_the_programs_are_pages(files):
    """`tests/site/run.py` opens one page of each kind in a browser."""
    from tests.site import run

    assert set(run.PAGES) <= set(files)

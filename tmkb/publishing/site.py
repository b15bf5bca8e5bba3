"""A static website of the patterns: pages by family, stack and public list, with search.

All pages can be read from files and without JavaScript, and load nothing from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from tmkb import __version__
from tmkb.knowledge import mappings, stacks, vocabulary
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.mappings import PublicList
from tmkb.knowledge.pattern import Pattern
from tmkb.publishing import entry as entries
from tmkb.publishing import relations
from tmkb.publishing.entry import Entry, by_family, family_title
from tmkb.schema import template

TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_ASSETS = ("site.css", "site.js")
_BACKTICKS = re.compile(r"`([^`]+)`")
_BLOCKS = (
    "article|body|dd|details|div|dl|dt|figcaption|figure|footer|h1|h2|h3|head|header|html|li|link|main|meta|nav|p|pre"
    "|script|section|summary|table|tbody|td|th|thead|title|tr|ul"
)
_AROUND = re.compile(rf"\n*(</?(?:{_BLOCKS})\b[^<>]*>)\n*")  # line feeds that a browser does not show
_SUFFIX = re.compile(r" \(OWASP [^)]*\)$")  # of titles in the vocabulary; the pages of lists need none

_SECTIONS = {  # template → the entry of the menu
    "catalogue": "index",
    "pattern": "index",
    "stacks": "stacks",
    "stack": "stacks",
    "mappings": "mappings",
    "mapping": "mappings",
}


def files(patterns: Mapping[str, tuple[str, Pattern]]) -> Mapping[str, str]:
    """Return the files of the site.

    Args:
        patterns: id → folder and pattern.

    Returns:
        Path → content. Equal patterns make equal files.

    Raises:
        SpecError: a packaged file beside the patterns is invalid.
    """
    site = _Site(patterns)
    pages = {"index.html": site.render("catalogue", "", families=site.families)}
    for entry in site.entries.values():
        pages[entry.page] = site.pattern(entry)
    pages |= dict(site.stack_pages())
    pages |= dict(site.list_pages())
    pages["search.js"] = site.search_index()
    for name in _ASSETS:
        with open(os.path.join(TEMPLATES, name), encoding="utf-8") as file:
            pages[name] = file.read()
    return pages


class _Site:
    """What all pages share: the patterns, the names of stacks and lists, and the templates."""

    def __init__(self, patterns: Mapping[str, tuple[str, Pattern]]) -> None:
        self.entries = {id_: Entry(folder, pattern) for id_, (folder, pattern) in sorted(patterns.items())}
        self.titles = vocabulary.read(os.path.dirname(folder) for folder, _ in patterns.values()).titles
        self.stacks = stacks.packaged().stacks
        self.lists = mappings.packaged()
        self.families = by_family(self.entries.values())
        self.environment = _environment()
        self.environment.globals |= {"version": __version__, "site": self}

    def render(self, template: str, root: str, **values: Any) -> str:
        """Return a page. ``root`` leads from its folder to that of the site."""
        section = _SECTIONS[template]
        page = self.environment.get_template(f"{template}.html").render(root=root, section=section, **values)
        return _AROUND.sub(r"\1", page)

    def pattern(self, entry: Entry) -> str:
        """Return the page of a pattern."""
        members = self.families[entry.family]
        index = members.index(entry)
        neighbours = members[index - 1] if index else None, members[index + 1] if index + 1 < len(members) else None
        related = relations.related(entry.pattern)
        pairs = relations.pairs(related, {id_: each.pattern for id_, each in self.entries.items()})
        listed = [
            (name, each, entries) for name, each in self.lists.items() if (entries := each.entries(entry.pattern))
        ]
        values = {"neighbours": neighbours, "related": related, "pairs": pairs, "listed": listed}
        return self.render("pattern", "../", entry=entry, **values)

    def stack_pages(self) -> Iterator[tuple[str, str]]:
        """Yield the pages of the stacks that a pattern has, each with its variants, and the page that lists them."""
        groups: dict[str, list[str]] = {}  # stack → its name and those of its variants
        for name, each in sorted(self.stacks.items(), key=lambda item: ("of" in item[1], item[1]["name"].lower())):
            if any(name in entry.idioms for entry in self.entries.values()):
                groups.setdefault(each.get("of", name), []).append(name)
        counts = {
            stack: Counter(
                idiom["status"]
                for entry in self.entries.values()
                for name, idiom in entry.idioms.items()
                if name in names
            )
            for stack, names in groups.items()
        }
        yield "stacks.html", self.render("stacks", "", groups=groups, counts=counts)
        for stack, names in groups.items():
            members = [entry for entry in self.entries.values() if any(name in entry.idioms for name in names)]
            values = {"stack": self.stacks[stack], "names": names, "counts": counts[stack]}
            yield f"stack/{stack}.html", self.render("stack", "../", families=by_family(members), **values)

    def list_pages(self) -> Iterator[tuple[str, str]]:
        """Yield the pages of the public lists that a pattern refers to, and the page that lists them."""
        listed = {name: self.listed(each) for name, each in self.lists.items()}
        listed = {name: members for name, members in listed.items() if members}
        yield "mappings.html", self.render("mappings", "", listed=listed)
        for name, members in listed.items():
            yield f"mapping/{name}.html", self.render("mapping", "../", list=self.lists[name], members=members)

    def listed(self, public: PublicList) -> dict[str, list[tuple[Entry, list[str]]]]:
        """Return the patterns of each entry of a list, each with the weaknesses because of which it belongs there."""
        found: dict[str, list[tuple[Entry, list[str]]]] = {}
        for entry in self.entries.values():
            for name, weaknesses in public.entries(entry.pattern).items():
                found.setdefault(name, []).append((entry, weaknesses))
        return {name: found[name] for name in sorted(found, key=mappings.order)}

    def title(self, entry: str) -> str:
        """Return the title of an entry of a public list; an empty text if the vocabulary has none."""
        return _SUFFIX.sub("", self.titles.get(entry, ""))

    def search_index(self) -> str:
        """Return a script with the page, id, name and threat of each pattern, and other words by which it is found."""
        rows = []
        for entry in self.entries.values():
            pattern = entry.pattern
            triggers = pattern["triggers"]
            references = [each for key in ("cwe", "owasp") for each in pattern["references"].get(key, [])]
            words = [
                *triggers.get("keywords", []),
                *triggers.get("actions", []),
                family_title(entry.family),
                *references,
            ]
            rows.append([entry.page, entry.id, entry.name, unwrap(entry.summary["threat"]), " ".join(words)])
        return f"searchIndex({json.dumps(rows, ensure_ascii=False, separators=(',', ':'))})\n"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"code": _code, "prose": _prose, "family": family_title, "plural": template.plural}
    environment.filters |= {
        each.__name__: each for each in (entries.condensed, entries.request, entries.outcome, entries.falls_to)
    }
    environment.tests["web"] = lambda url: str(url).startswith(("https://", "http://"))
    return environment


def _code(text: str) -> Markup:
    """Return ``text`` for the content of an element. Quotes and > stay, because code has many of them."""
    return Markup(text.replace("&", "&amp;").replace("<", "&lt;"))


def _prose(text: str) -> Markup:
    """Return ``text`` on one line for the content of an element, with words in backticks as code."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(_code(unwrap(text)))))

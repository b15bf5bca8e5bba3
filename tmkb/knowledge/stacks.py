"""Stacks: the frameworks and platforms for which patterns have idioms, and which of them a question is about."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

FILE = "_stacks.yaml"  # beside the packaged patterns
ANY = "any"
_VERSION = re.compile(r" v?\d[\d.x]*$")
_SEPARATORS = re.compile(r"[\s_-]+")
_MOST = 20_000  # characters of a question that are searched for signs
_ALL = ("signs", "words")  # of a variant, whose words count only where its stack is known
_HINTS = ("hints",)


@dataclass(frozen=True)
class Stacks:
    """The languages and stacks of `_stacks.yaml`, as that file has them."""

    languages: Mapping[str, Mapping[str, Any]]
    stacks: Mapping[str, Mapping[str, Any]]
    review: Mapping[str, Any] = field(default_factory=dict)

    def is_reviewed(self, path: str) -> bool:
        """Return whether a review reads the file ``path``: code, but no tests, no copies and no generated files."""
        from fnmatch import fnmatchcase

        name = f"/{path.replace(os.sep, '/').lower().removeprefix('./')}"
        endings = (*self.review["files"], *(end for each in self.languages.values() for end in each.get("files", ())))
        return name.endswith(endings) and not any(fnmatchcase(name, glob) for glob in self.review["except"])

    def choose(self, context: str, language: str | None = None, framework: str | None = None) -> list[str]:
        """Return the stacks whose idioms can answer a question, nearest first; none if there is none or it is unknown.

        A known framework decides. Otherwise the signs in ``context`` choose among the stacks of the language, or among
        all if no language is named; without a sign it is the usual stack of the language. A framework that is unknown
        leaves only the language. Words of the language, the framework and the question decide between the variants of
        the stack and what is built on it in its language, such as DRF on Django; without such a word it is the stack.
        A language without idioms, such as Dart, gets those in the language of the stack.
        A variant that is `last` needs that no other of the stack has a word there, and `hints` that none has.
        Behind the nearest come those that it is like, then other variants in its language with a word, then the stack,
        then variants in other languages, and those of other stacks that are `also` used with it, with a sign there.

        Args:
            context: the question.
            language: a language by any of its names in any case; "any" or an empty text is none.
            framework: a framework by any of its names in any case, a library such as Knex, or both.
        """
        language, framework = _normal(language), _normal(framework)
        text = f"\n{context[:_MOST].lower()}"  # a sign can begin where a line does
        stack = self._stack(text, language, framework)
        named = self._language_names.get(language) or self._language_names.get(framework, "")
        if stack and language and language not in self._language_names and language not in self._stack_names:
            named = self.stacks[stack]["language"]
        if stack and named != self.stacks[stack]["language"] and self._has_variant(self.stacks[stack].get("of"), named):
            stack = self.stacks[stack]["of"]  # of Quarkus in Kotlin, Spring
        words, narrower = f"{named}\n{framework}\n{text}", self._narrower(stack, named)
        by_signs = _by_signs(words, narrower, _ALL) or _by_signs(words, narrower, _HINTS)
        shown = sorted(by_signs, key=lambda name: "last" in narrower[name])
        nearest = self.fallbacks(next(iter(shown), stack))
        like = [*itertools.takewhile(lambda name: name != stack, nearest)]
        own = self.stacks[nearest[0]]["language"] if nearest else ""
        others = [name for name in shown if self.stacks[name]["language"] != own]
        others += _by_signs(words, self._others(stack, narrower))
        return list(dict.fromkeys([*like, *self._beside(like, shown), *nearest, *others]))

    def _has_variant(self, stack: str | None, language: str) -> bool:
        """Return whether a variant of ``stack`` is in ``language``."""
        return any(each["of"] == stack and each["language"] == language for each in self._variants.values())

    def _beside(self, like: Sequence[str], shown: Sequence[str]) -> Iterator[str]:
        """Yield those ``shown`` in the language of the first of ``like`` that are not variants of any of ``like``."""
        for name in shown:
            same_language = self.stacks[name]["language"] == self.stacks[like[0]]["language"]
            if same_language and not {*like}.intersection(self.fallbacks(name)):
                yield name

    def _stack(self, text: str, language: str, framework: str) -> str | None:
        """Return the stack of a question; a variant only if ``framework`` is one of its names."""
        known = self._language_names.get(language) if language else None
        if framework and (stack := self._stack_names.get(framework) or self._with_library(text, language, framework)):
            return stack
        if language and known is None:
            return self._stack_names.get(language)  # some write the framework as the language
        if framework in self._language_names:  # and some the language as the framework
            return self._shown(text, known or self._language_names[framework])
        if framework:
            return self._usual(known)
        return self._shown(text, known)

    def _narrower(self, stack: str | None, named: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the variants of ``stack``, and what is built on it in its language, such as DRF on Django.

        A question that names Java gets no variant of Spring in Kotlin, and one that names Kotlin gets none in Java. But
        one that names TypeScript can be about policies of Supabase, which are written in SQL. Those in its language are
        the first.
        """
        if not stack:
            return {}
        own = self.stacks[stack]["language"]
        others = {name for name in self.languages if name != own == named}
        if named != own and own not in self.beside and self._has_variant(stack, named):
            others = {own}
        found = {
            name: each
            for name, each in self.stacks.items()
            if (each.get("of") == stack and each["language"] not in others)
            or (each.get("like") == stack and "of" not in each and each["language"] == own)
        }
        return dict(sorted(found.items(), key=lambda item: item[1]["language"] != named))

    def _others(self, stack: str | None, narrower: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the variants of ``stack`` that are not in ``narrower``, and those that are `also` used with it.

        A library has other signs under other stacks, as what reads like Mongoose in Express can be TypeORM in NestJS.
        """
        own = {name: each for name, each in self._variants.items() if each["of"] == stack and name not in narrower}
        also = {name: each["also"] for name, each in self._variants.items() if "also" in each}
        return own | {name: each for name, each in also.items() if stack in each["stacks"]}

    def known(self, name: str) -> bool:
        """Return whether ``name`` is "any", empty, or names a language, a stack or a library in any case."""
        normal = _normal(name)
        names = self._stack_names.keys() | self._language_names
        return not normal or normal in names or self._with_library("", "", normal) is not None

    @property
    def frameworks(self) -> list[str]:
        """The stacks that are no variants."""
        return [*self._main]

    def selected(self, language: str | None = None, framework: str | None = None) -> set[str]:
        """Return the stacks of a language, of a framework, or of both; none if a name is unknown.

        Those of a framework are its own, its variants, and those that can stand for it.

        Args:
            language: a language by any of its names in any case; None for all.
            framework: a framework or library, as `choose` takes it; None for all.
        """
        found = {*self.stacks}
        if language is not None:
            named = self._language_names.get(_normal(language))
            found &= {stack for stack, each in self.stacks.items() if each["language"] == named}
        if framework is not None:
            nearest = self.choose("", None, framework)
            found &= {*nearest, *(stack for stack, each in self.stacks.items() if each.get("of") in nearest[:1])}
        return found

    def nearest(self, framework: str, available: Collection[str]) -> tuple[str | None, str]:
        """Return the stack that stands for a framework, and how the framework differs from it in one sentence.

        Without any, both are empty: None and "".

        Args:
            framework: a framework or library, as `choose` takes it, or one of ``available``.
            available: the stacks that have code.
        """
        chosen = [framework, *self.choose("", None, framework)]
        stack = next((each for each in chosen if each in available), None)
        if stack is None:
            return None, ""
        other = next((name for name in chosen[1:] if self._differs(name, stack, framework)), None)
        return stack, (self.stacks[other].get("lookup") or self.stacks[other].get("note", "")) if other else ""

    def _differs(self, name: str, stack: str, framework: str) -> bool:
        """Return whether ``framework`` names the variant ``name``, of which code for ``stack`` shows nothing."""
        named = self._stack_names.get(_normal(framework)) == name or self.is_named(name, framework)
        return named and "of" in self.stacks[name] and name not in self.fallbacks(stack)

    def is_named(self, stack: str, text: str) -> bool:
        """Return whether ``text`` has a sign or word of ``stack`` in any case."""
        return _count(f"\n{text[:_MOST].lower()}", self.stacks[stack], _ALL) > 0

    def fallbacks(self, stack: str | None) -> list[str]:
        """Return ``stack`` and the stacks whose idiom can stand for one of it, in order."""
        found: list[str] = []
        while stack and stack not in found:
            found.append(stack)
            stack = self.stacks[stack].get("like") or self.stacks[stack].get("of")
        return found

    def _with_library(self, text: str, language: str, framework: str) -> str | None:
        """Return the stack that a ``framework`` such as "express knex" names, or that of a library such as Prisma."""
        known = self._language_names.get(language)
        names = [name for name, stack in self._stack_names.items() if stack in self._main and _has(framework, name)]
        keys = _ALL if names else ("signs",)
        found = [each["of"] for each in self._of(known, self._variants).values() if _count(framework, each, keys)]
        if with_variant := [name for name in names if self._stack_names[name] in found]:
            return self._stack_names[max(with_variant, key=len)]
        own = self._of(known, self._main) if known or not language else {}
        if stack := _most_signs(framework, own):
            return stack
        if leading := self._leading(framework, known):
            return _most_signs(text, self._of(known, self._main)) or self._likeliest(leading, known)
        return self._first(framework, own)

    def _leading(self, framework: str, language: str | None) -> list[str]:
        """Return the stacks of the variants with the first sign in ``framework``, as of Nuxt in "Nuxt with Drizzle"."""
        places = [
            (place, each["of"])
            for each in self._of(language, self._variants).values()
            for sign in each.get("signs", ())
            if (place := _place(framework, sign)) >= 0
        ]
        return list(dict.fromkeys(stack for place, stack in places if place == min(places)[0]))

    def _first(self, framework: str, own: Collection[str]) -> str | None:
        """Return the stack whose name is the first in ``framework``: one of ``own``, or of a language used `beside`."""
        places = {
            (name not in own, place): name
            for name in self._main
            if (name in own or self.stacks[name]["language"] in self.beside) and (place := _place(framework, name)) >= 0
        }
        return places[min(places)] if places else None

    def _usual(self, language: str | None) -> str | None:
        return self.languages[language]["stack"] if language else None

    def _shown(self, text: str, language: str | None) -> str | None:
        """Return the stack with the most signs in ``text``, of equal ones the first in the file.

        Without a sign it is the stack of a variant, or the usual one of the language, that ``text`` shows.
        """
        if best := _most_signs(text, self._of(language, self._main)):
            return best
        language = language or _most_signs(text, self.languages)
        counts = {each["of"]: 0 for each in self._variants.values()}
        for each in self._of(language, self._variants).values():
            counts[each["of"]] = max(counts[each["of"]], _count(text, each))
        most = max(counts.values(), default=0)
        return self._likeliest([name for name, count in counts.items() if most and count == most], language)

    def _likeliest(self, found: Sequence[str], language: str | None) -> str | None:
        """Return the one of the stacks ``found`` that is usual in a language, of several the first.

        If none of several is, it is the usual stack of ``language``, and the first if the language is unknown.
        """
        usual = {each["stack"] for each in self.languages.values()}
        first = found[0] if len(found) == 1 else next((name for name in found if name in usual), None)
        return first or self._usual(language) or next(iter(found), None)

    def _of(self, language: str | None, stacks: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Return those of ``stacks`` that ``language`` can mean: in it, or in a language with its usual stack."""
        own = {language, *(name for name in self.languages if self._usual(name) == self._usual(language))}
        return {name: each for name, each in stacks.items() if language is None or each["language"] in own}

    @cached_property
    def beside(self) -> frozenset[str]:
        """The languages in which work in other languages also has code."""
        return frozenset(name for name, each in self.languages.items() if each.get("beside"))

    @cached_property
    def _main(self) -> dict[str, Mapping[str, Any]]:
        return {name: each for name, each in self.stacks.items() if "of" not in each}

    @cached_property
    def _variants(self) -> dict[str, Mapping[str, Any]]:
        return {name: each for name, each in self.stacks.items() if "of" in each}

    @cached_property
    def _stack_names(self) -> dict[str, str]:
        return _names(self.stacks) | {_normal(each["name"]): name for name, each in self.stacks.items()}

    @cached_property
    def _language_names(self) -> dict[str, str]:
        return _names(self.languages)


def read(file: str) -> Stacks:
    """Return the stacks of a `_stacks.yaml`, which is read again only if it has changed.

    Raises:
        SpecError: the file is missing or invalid.
    """
    from tmkb.schema import textfile

    return _read(file, *textfile.version(file))


@lru_cache(maxsize=4)
def _read(file: str, _mtime: int, _size: int) -> Stacks:
    from tmkb.schema import metaschema, paths

    value: Any = metaschema.read(file, os.path.join(paths.SCHEMAS, "meta", "stacks.yaml")).value
    return Stacks(value["languages"], value["stacks"], value["review"])


def path() -> str:
    """Return the file of the packaged stacks."""
    from tmkb.schema import paths

    return os.path.join(paths.PATTERNS, FILE)


def packaged() -> Stacks:
    """Return the packaged stacks. Raises SpecError."""
    return read(path())


def _normal(name: str | None) -> str:
    """Return ``name`` in lower case, one space between its words, without a version; "" for "any" or None."""
    text = _VERSION.sub("", _SEPARATORS.sub(" ", (name or "").lower()).strip())
    return "" if text == ANY else text


def _names(described: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {_normal(alias): name for name, each in described.items() for alias in (name, *each.get("aliases", ()))}


def _most_signs(text: str, described: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the name with the most signs in ``text``, of equal ones the first; None if none has any."""
    return next(iter(_by_signs(text, described)), None)


def _by_signs(text: str, described: Mapping[str, Mapping[str, Any]], keys: Sequence[str] = ("signs",)) -> list[str]:
    """Return the names with signs in ``text``, those with the most first."""
    counts = {name: _count(text, each, keys) for name, each in described.items()}
    return sorted(filter(counts.__getitem__, counts), key=lambda name: -counts[name])


def _count(text: str, described: Mapping[str, Any], keys: Sequence[str] = ("signs",)) -> int:
    """Return how many signs of a language or stack, which its ``keys`` list, are in ``text``."""
    return sum(_has(text, sign) for key in keys for sign in described.get(key, ()))


def _has(text: str, sign: str) -> bool:
    """Return whether ``sign`` is in ``text``."""
    return _place(text, sign) >= 0


def _place(text: str, sign: str) -> int:
    """Return where ``sign`` begins in ``text``, or -1. A letter or digit at an end of it is the end of a word."""
    if sign not in text:
        return -1
    before = r"(?<![a-z0-9_])" if sign[0].isalnum() else ""
    after = r"(?![a-z0-9_])" if sign[-1].isalnum() else ""
    found = re.search(before + re.escape(sign) + after, text)
    return found.start() if found else -1

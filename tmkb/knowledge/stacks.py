"""Stacks: the frameworks and platforms for which patterns have idioms, and which of them a question is about."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "_stacks.yaml"  # beside the packaged patterns
ANY = "any"
_MOST = 20_000  # characters of a question that are searched for signs


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

    def choose(self, context: str, language: str | None = None, framework: str | None = None) -> str | None:
        """Return the stack of a question; None if there is none or it is unknown.

        A known framework decides. Otherwise the signs in ``context`` choose among the stacks of the language, or among
        all if no language is named; without a sign it is the usual stack of the language. A framework that is unknown
        leaves only the language.

        Args:
            context: the question.
            language: a language by any of its names in any case; "any" or an empty text is none.
            framework: a framework likewise.
        """
        framework, language = _normal(framework), _normal(language)
        if framework and (stack := self._stack_names.get(framework)):
            return stack
        known = self._language_names.get(language) if language else None
        if language and known is None:
            return self._stack_names.get(language)  # some write the framework as the language
        if framework:
            return self._usual(known)
        return self._shown(context, known) or self._usual(known)

    def fallbacks(self, stack: str | None) -> list[str]:
        """Return ``stack`` and the stacks whose idiom can stand for one of it, in order."""
        found: list[str] = []
        while stack and stack not in found:
            found.append(stack)
            stack = self.stacks[stack].get("like")
        return found

    def _usual(self, language: str | None) -> str | None:
        return self.languages[language]["stack"] if language else None

    def _shown(self, context: str, language: str | None) -> str | None:
        """Return the stack with the most signs in ``context``, of equal ones the first in the file."""
        text = context[:_MOST].lower()
        stacks = {name: each for name, each in self.stacks.items() if self._is_of(each["language"], language)}
        if best := _most_signs(text, stacks):
            return best
        return self._usual(_most_signs(text, self.languages)) if language is None else None

    def _is_of(self, stack_language: str, language: str | None) -> bool:
        """Return whether a stack can be meant by ``language``: its own, or one with the same usual stack."""
        return language in (None, stack_language) or self._usual(language) == self._usual(stack_language)

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
    """Return ``name`` in lower case with single spaces; an empty text for "any" or None."""
    text = " ".join((name or "").lower().split())
    return "" if text == ANY else text


def _names(described: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {alias: name for name, each in described.items() for alias in (name, *each.get("aliases", ()))}


def _most_signs(text: str, described: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the name with the most signs in ``text``, of equal ones the first; None if none has any."""
    counts = {name: sum(_has(text, sign) for sign in each.get("signs", ())) for name, each in described.items()}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best and counts[best] else None


def _has(text: str, sign: str) -> bool:
    """Return whether ``sign`` is in ``text``; one that begins or ends with a letter or digit, as a whole word."""
    if sign not in text:
        return False
    before = r"(?<![a-z0-9_])" if sign[0].isalnum() else ""
    after = r"(?![a-z0-9_])" if sign[-1].isalnum() else ""
    return re.search(before + re.escape(sign) + after, text) is not None

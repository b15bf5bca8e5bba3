"""Take secrets and the home folder out of what is shown, so that it can be pasted into a bug report."""

from __future__ import annotations

import dataclasses
import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tmkb.conformance.redaction import Redactor, is_secret
from tmkb.doctor.finding import Finding, Place
from tmkb.schema.values import JsonObject, JsonValue
from tmkb.server import log

MASK = "***"
_MIN_VALUE = 4  # characters of a value that is searched in every text
_PLAIN = re.compile(r"-{1,2}[A-Za-z][\w-]*|[a-z]{1,12}(?:-[a-z]{1,12}){0,3}|[\d.:]+|tmkb[\w.=\[\],@-]*")
"""Arguments that are no secrets: options, words, numbers with a host, and the name of the package."""
_OPEN = re.compile(r"TMKB_(?:PATTERNS|SCHEMAS|TRACEBACK)|LOG_LEVEL|PYTHON[A-Z]*")  # variables without secrets
_EMAIL = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}")


class Mask:
    """Replaces secrets: those of entries, those of the environment, and what has the shape of one."""

    def __init__(self, home: str, environment: Mapping[str, str], entries: Iterable[JsonObject]) -> None:
        """Learn the secrets of ``environment`` and of the ``entries`` of all configuration files.

        ``home``: the home folder.
        """
        entries = [*entries]
        self._values = sorted({value for entry in entries for value in _values(entry) if _is_searched(value)}, key=len)
        self._homes = _forms(home)
        self._redactor: Redactor | None = None
        named = {f"entry {number}": value for number, value in enumerate(self._values)}
        try:
            self._redactor = Redactor({**environment, **named}, named)
            for entry in entries:  # also learns the secrets in arguments and URLs
                self.entry(entry)
        except Exception:  # a damaged installation, which the checks report
            self._redactor = None

    @property
    def is_complete(self) -> bool:
        """Whether the packaged rules for secrets can be read; else only the secrets of entries are replaced."""
        return self._redactor is not None

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        if self._redactor is not None:
            return _EMAIL.sub(MASK, self._redactor.text(text))
        for value in reversed(self._values):
            text = text.replace(value, MASK)
        return text

    def finding(self, finding: Finding) -> Finding:
        """Return a finding without secrets."""
        masked = self._changed(finding, self.text)
        return masked if self.is_complete else dataclasses.replace(masked, details=())

    def without_home(self, text: str) -> str:
        """Return a text with `~` in place of the home folder."""
        for form in self._homes:
            text = form.sub("~", text)
        return text

    def finding_without_home(self, finding: Finding) -> Finding:
        """Return a finding with `~` in place of the home folder."""
        return self._changed(finding, self.without_home)

    def entry(self, entry: JsonObject) -> JsonObject:
        """Return the entry of a server without secrets: variables and headers have no values.

        Raises ValueError if the rules for secrets cannot be read.
        """
        return {key: self._value(key, value) for key, value in entry.items()}

    def _value(self, key: str, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            is_secret = _holds_secrets(key)
            return {
                name: MASK if is_secret and not _OPEN.fullmatch(name) else self._value(name, each)
                for name, each in value.items()
            }
        if key in ("args", "command") and isinstance(value, list):
            return [*self._words([str(each) for each in value])]
        if isinstance(value, list):
            return [self._value(key, each) for each in value]
        if isinstance(value, str):
            return self._url(value) if "://" in value else self._rules().command([f"--{key}", value])[1]
        return value

    def _words(self, words: list[str]) -> Iterable[str]:
        for before, after in zip(words, self._rules().command(words), strict=True):
            if before != after or _is_plain(before):
                yield self._url(after) if "://" in after else after
            else:
                yield MASK

    def _url(self, text: str) -> str:
        try:
            return self.text(self._rules().url(text))
        except ValueError:
            return MASK

    def _rules(self) -> Redactor:
        if self._redactor is None:
            raise ValueError("the rules for secrets cannot be read")
        return self._redactor

    def _changed(self, finding: Finding, change: Any) -> Finding:
        file, line, column = finding.place
        return dataclasses.replace(
            finding,
            cause=change(finding.cause),
            remedy=change(finding.remedy),
            place=Place(change(file), line, column),
            details=tuple(map(change, finding.details)),
        )


def _holds_secrets(key: str) -> bool:
    return any(part in key.lower() for part in ("env", "header", "inputs"))


def _values(entry: JsonObject) -> Iterator[str]:
    """Yield the secrets of an entry: in its variables, headers, arguments and addresses."""
    for key, value in entry.items():
        if isinstance(value, dict) and _holds_secrets(key):
            for each in (str(each) for name, each in value.items() if not _OPEN.fullmatch(name)):
                yield each
                yield each.rpartition(" ")[2]  # such as: Bearer TOKEN
        elif isinstance(value, list):
            yield from _in_words([str(each) for each in value])
        elif isinstance(value, str) and "://" in value:
            yield from _in_url(value)


def _in_words(words: list[str]) -> Iterator[str]:
    for before, word in zip(["", *words], words, strict=False):
        name, equals, value = word.partition("=")
        if equals and _is_secret(name):
            yield value
        elif (_is_secret(before.lstrip("-")) and before.startswith("-")) or not _is_plain(word):
            yield word
        if "://" in word:
            yield from _in_url(word)


def _is_secret(name: str) -> bool:
    try:
        return is_secret(name)
    except Exception:  # as in `Mask`
        return True


def _in_url(text: str) -> Iterator[str]:
    try:
        parts = urllib.parse.urlsplit(text)
        yield parts.password or ""
    except ValueError:
        return
    yield from (value for _, value in urllib.parse.parse_qsl(parts.query))
    yield from (each for each in parts.query.split("&") if "=" not in each)


def _is_plain(word: str) -> bool:
    """Return whether an argument may be shown: an option, a usual word, a path, or a line for a shell."""
    return bool(_PLAIN.fullmatch(word)) or any(mark in word for mark in "/\\ ")


def _is_searched(value: str) -> bool:
    return len(value) >= _MIN_VALUE and value.lower() not in log.LEVELS and not os.path.exists(value)


def _forms(home: str) -> list[re.Pattern[str]]:
    """Return the ways in which texts write the home folder, the longest first."""
    homes = {home.rstrip("/\\"), os.path.realpath(home)} - {"", "/"}
    forms = {
        form
        for each in homes
        for form in (each, each.replace("\\", "/"), each.replace("\\", "\\\\"), urllib.parse.quote(each))
    }
    forms |= {form.lstrip("/") for form in forms if form.count("/") > 1}  # relative to the root folder
    paths = [re.compile(rf"{re.escape(form)}(?![\w.-])") for form in sorted(forms, key=len, reverse=True)]
    # Clients name folders after paths, with hyphens in place of slashes or of all other characters.
    names = {re.sub(form, "-", each) for each in homes for form in (r"[/\\:]", r"[^A-Za-z0-9]")}
    return [
        *paths,
        *(
            re.compile(rf"{re.escape(name)}(?![A-Za-z0-9])")
            for name in sorted(names, key=len, reverse=True)
            if len(name) > 5
        ),
    ]

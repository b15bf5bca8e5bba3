"""One configuration file of a client: its servers, and its bytes with or without one of them."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tmkb.clients import jsontext, ownfile, tomltext, yamltext
from tmkb.clients.client import Client
from tmkb.clients.faults import ConfigurationError, TextError
from tmkb.clients.machine import Machine
from tmkb.errors import DocumentError, Problem
from tmkb.schema import reader, textfile
from tmkb.schema.values import JsonObject, JsonValue

LARGEST = 64 << 20  # bytes; the file of Claude Code grows with each project
_BOM = "\N{BYTE ORDER MARK}"
_WORDS = {
    "byte_order_mark": "a byte order mark",
    "comments": "comments",
    "trailing_commas": "trailing commas",
}  # for the keys of `refuses`
_SYNTAX: dict[str, Any] = {"json": jsontext, "own": ownfile, "toml": tomltext, "yaml": yamltext}


@dataclass(frozen=True)
class Configuration:
    """A configuration file, as it was read.

    Args:
        path: of the file.
        client: whose file it is.
        key: the path of the map that has the servers.
        text: the content without a byte order mark; None if the file is missing.
        mark: the byte order mark, or nothing.
        shown: the file name in problems; if empty, the path.
    """

    path: str
    client: Client
    key: tuple[str, ...]
    text: str | None
    mark: str = ""
    shown: str = ""

    @classmethod
    def read(cls, path: str, client: Client, scope: str, machine: Machine) -> Configuration:
        """Read a file; one that is missing has no servers.

        Raises:
            ConfigurationError: it cannot be read, or is not UTF-8.
        """
        return cls.at(path, client, client.key(scope, machine), machine.shown(path))

    @classmethod
    def at(cls, path: str, client: Client, key: tuple[str, ...], shown: str = "") -> Configuration:
        """Read a file whose servers are at the path ``key``. Raises ConfigurationError as `read` does."""
        try:
            data = textfile.read_bytes(path, shown or path, LARGEST)
        except DocumentError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return cls(path, client, key, None, "", shown)
            found = error.problems[0]
            rule = "client_unreadable" if found.rule == "unreadable" else found.rule
            raise ConfigurationError(Problem(rule, found.file, 0, 0, **found.fields)) from error
        return cls(path, client, key, None, "", shown).with_data(data)

    def with_data(self, data: bytes | None) -> Configuration:
        """Return the file with another content; None if it is missing. Raises ConfigurationError if it is not UTF-8."""
        if data is None:
            return dataclasses.replace(self, text=None, mark="")
        if b"\0" in data[:2]:  # UTF-16 without a byte order mark
            raise ConfigurationError(Problem("client_not_utf8", self.shown or self.path, 1, 1))
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8", "replace")
            problem = Problem("client_not_utf8", self.shown or self.path, *reader.place(before, len(before)))
            raise ConfigurationError(problem) from error
        mark = _BOM if text.startswith(_BOM) else ""
        return dataclasses.replace(self, text=text[len(mark) :], mark=mark)

    @property
    def data(self) -> bytes | None:
        """The content of the file; None if it is missing."""
        return None if self.text is None else (self.mark + self.text).encode()

    @property
    def is_empty(self) -> bool:
        """Whether the file is missing, or has only white space."""
        return not (self.text or "").strip()

    @property
    def raw(self) -> dict[str, JsonValue]:
        """The entries as the file has them. Raises ConfigurationError."""
        return {name: value for name, (value, _) in self._entries.items()}

    @property
    def servers(self) -> dict[str, JsonObject]:
        """The entries as `Client.normalised` returns them; only those that are maps. Raises ConfigurationError."""
        return {name: self.client.normalised(value) for name, value in self.raw.items() if isinstance(value, dict)}

    def place(self, name: str) -> tuple[int, int]:
        """Return line and column of an entry; 1 and 1 if it is missing. Raises ConfigurationError."""
        _, offset = self._entries.get(name, (None, 0))
        return reader.place(self.text or "", offset)

    def refused(self) -> list[tuple[str, str, int, int]]:
        """Return what the client cannot read: words for it, `warn` or `refuse`, line and column.

        Raises ConfigurationError.
        """
        refuses = self.client.data.get("refuses", {})
        if self.client.syntax != "json" or not refuses or self.text is None:
            return []
        parsed = self._edit(jsontext.parse, self.text)
        first = {
            "byte_order_mark": [0] if self.mark else [],
            "comments": [start for start, _ in parsed.comments[:1]],
            "trailing_commas": parsed.trailing[:1],
        }
        return [
            (_WORDS[kind], how, *reader.place(self.text, at)) for kind, how in refuses.items() for at in first[kind]
        ]

    def with_server(self, name: str, entry: JsonObject) -> bytes:
        """Return the content of the file with an entry, added or replaced; everything else is equal.

        Raises:
            ConfigurationError: the file cannot be parsed, or the entry cannot be spliced in.
        """
        syntax = _SYNTAX[self.client.syntax]
        newline = "\r\n" if "\r\n" in (self.text or "") else "\n"
        if syntax is ownfile:
            text: str = ownfile.fresh(self.key, entry, self.client.whole(name), newline)
            return (self.mark + text).encode() if self.is_empty else self._checked(text, name, entry, "client_own_file")
        if self.is_empty:
            text = syntax.fresh(self.key, name, entry, newline)
            return (self.mark + text).encode()
        return self._checked(self._edit(syntax.with_entry, self.text, self.key, name, entry), name, entry)

    def with_word(self, name: str, old: str, new: str, entry: JsonObject) -> bytes | None:
        """Return the content of the file with one word in it replaced; None unless just that changes an entry.

        Args:
            name: of the entry.
            old: the word, which is replaced where it first occurs in the entry.
            new: what replaces it.
            entry: the entry as it must be then.
        """
        text = self.text or ""
        old, new = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (old, new))  # escaped as in a string
        _, offset = self._entries[name]
        try:
            return self._checked(text[:offset] + text[offset:].replace(old, new, 1), name, entry)
        except ConfigurationError:
            return None

    def without_server(self, name: str) -> bytes | None:
        """Return the content of the file without an entry; everything else is equal, and the map stays.

        None: the file is to be deleted, because it has nothing but the entry.

        Raises:
            ConfigurationError: the file cannot be parsed, or the entry cannot be cut out.
        """
        if self.is_empty or name not in self.raw:
            return self.data
        if self.client.syntax == "own":
            alone = ownfile.fresh(self.key, {"name": name}, self.client.whole(name), "\n")
            if ownfile.rest(alone, self.key, name) != ownfile.rest(self.text or "", self.key, name):
                raise ConfigurationError(
                    Problem("client_own_file", self.shown or self.path, *self.place(name), name=name)
                )
            return None
        return self._checked(
            self._edit(_SYNTAX[self.client.syntax].without_entry, self.text, self.key, name), name, None
        )

    @cached_property
    def _entries(self) -> dict[str, tuple[JsonValue, int]]:
        if self.is_empty:
            return {}
        found: dict[str, tuple[JsonValue, int]] = self._edit(_SYNTAX[self.client.syntax].entries, self.text, self.key)
        return found

    def _checked(self, text: str, name: str, entry: JsonObject | None, rule: str = "client_not_spliced") -> bytes:
        """Return the edited ``text`` as bytes; a problem with ``rule`` unless everything but the entry is equal."""
        syntax = _SYNTAX[self.client.syntax]
        try:
            found = syntax.entries(text, self.key).get(name, (None, 0))[0]
            is_right = found == entry and syntax.rest(text, self.key, name) == syntax.rest(self.text, self.key, name)
        except TextError:
            is_right = False
        if not is_right:
            place = self.place(name) if name in self.raw else (0, 0)
            raise ConfigurationError(Problem(rule, self.shown or self.path, *place, name=name))
        return (self.mark + text).encode()

    def _edit(self, function: Any, *arguments: Any) -> Any:
        """Call a function of a syntax; its errors get the path and the position."""
        try:
            return function(*arguments)
        except TextError as error:
            place = reader.place(self.text or "", error.offset)
            raise ConfigurationError(Problem(error.rule, self.shown or self.path, *place, **error.fields)) from error

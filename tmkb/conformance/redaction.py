"""Replace secrets in messages by placeholders, before a recording writes them.

The names and shapes of secrets are data: ``conformance/redaction.yaml``. A placeholder stands for one value: each
occurrence of a secret becomes the same placeholder, so that a replay still recognizes it.
"""

from __future__ import annotations

import base64
import binascii
import collections
import functools
import json
import os
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tmkb.conformance import transcript
from tmkb.schema import keywords, paths
from tmkb.schema.values import JsonValue

_PLACEHOLDER = "REDACTED-"
_ONLY_PLACEHOLDERS = re.compile(rf"(?:\W*(?:apikey|basic|bearer|digest|token)\s)?(?:\W*{_PLACEHOLDER}\d+)+\W*", re.I)
_EACH_PLACEHOLDER = re.compile(rf"{_PLACEHOLDER}\d+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.S)  # of JSON; the last may be cut off
_MEMBER = re.compile(r'("(?:[^"\\]|\\.){1,400}")(\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?\Z)|-?[0-9][0-9.eE+-]*)', re.S)
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z_-][\w.-]{1,80})(?P<between>\s?=\s?)(?P<value>"[^"\n]+"|'[^'\n]+'|[^\s"'&;,<>\\]+)"""
)
_LINE = re.compile(
    r"""^(?P<between>[ \t>*-]*(?P<name>[A-Za-z_-][\w.-]{1,80})["']?[ \t]*:[ \t]*)(?P<value>\S+)[ \t\r]*$""", re.M
)
_COOKIE = re.compile(
    r"^(?P<between>[ \t]*(?P<name>(?:set-)?cookie|(?:proxy-)?authorization)[ \t]*:[ \t]*)(?P<value>\S.*?)\r?$",
    re.M | re.I,
)
_OPTION = re.compile(
    r"""(?<![\w-])--?(?P<name>[A-Za-z][\w-]{1,80})(?P<between>[ \t]+)(?P<value>"[^"\n]+"|'[^'\n]+'|[^\s"'-][^\s"']*)"""
)
_COLON = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z_-][\w.-]{1,80})["']?(?P<between>\s?:\s?)"""
    r"""(?P<value>"[^"\n]+"|'[^'\n]+'|(?=[^\s0-9]{0,80}[0-9])[^\s"'&;,<>\\{}\[\]()]{6,})"""
)
_ELEMENT = re.compile(r"<(?P<name>[A-Za-z][\w.:-]{1,80})(?:\s[^<>]{0,200})?>(?P<value>[^<>\n]{1,400})(?=</)")
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w.~-]{16,}")  # letters and digits, as in a part of a URL
_MIN_LITERAL = 6  # characters of a value that is searched in other texts
_MIN_WORD = 12  # characters from which a value without digits is searched in other texts
_MAX_DEPTH = 6  # JSON in a string of JSON
_MAX_JSON = 1 << 20  # characters of a string that is read as JSON
_LABELS, _LABELLED = (
    ("name", "key", "header"),
    ("value", "values", "content"),
)  # of entries in lists of names and values
_MIN_NUMBER = 4  # of a number under the name of a secret


class Redactor:
    """Replaces secrets, and counts them.

    Attributes:
        counts: kind → how many different values were replaced.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        named: Iterable[str] = (),
        patterns: Iterable[str] = (),
        numbered: int = 0,
    ) -> None:
        """Create a redactor.

        Args:
            environment: variables whose values are replaced if their names are those of secrets (default: those of
                this process).
            named: names of further variables.
            patterns: regular expressions of RE2; what they match is replaced.
            numbered: the last number of a placeholder that exists.

        Raises:
            ValueError: with the reason why RE2 refuses a pattern.
            ModuleNotFoundError: a pattern needs the extra ``regex``.
        """
        rules = _rules()
        self.counts: collections.Counter[str] = collections.Counter()
        self._placeholders: dict[str, str] = {}
        self._numbered = numbered
        self._secrets: dict[str, str] = {}  # placeholder → secret
        self._literals: dict[str, str] = {}  # what is searched in every text → its kind
        self._search: re.Pattern[str] | None = None
        self._patterns = [keywords.compiled(pattern) for pattern in patterns]
        self._untouched = {tuple(path.split(".")) for path in rules["untouched"]}
        self._schemas, self._schema_values = {*rules["schemas"]}, {*rules["schema_values"]}
        variables = os.environ if environment is None else environment
        named = set(named)
        for name, value in variables.items():
            if value and (name in named or (is_secret(name) and _is_distinctive(value) and not os.path.exists(value))):
                self._add_literal(value, "environment")

    def add_header(self, name: str, value: str) -> None:
        """Also replace the value of a header of HTTP in every text, if the name of the header is that of a secret."""
        if not is_secret(name):
            return
        if name.lower().endswith("cookie"):
            cookies = value.split(";")[: 1 if name.lower() == "set-cookie" else None]  # there, attributes follow
            secrets = [each.partition("=")[2].strip() for each in cookies]
        else:
            secrets = [value.strip(), value.rstrip().rpartition(" ")[2]]  # such as: Bearer TOKEN
        for secret in secrets:
            if _is_distinctive(secret) and secret not in self._literals:
                self._add_literal(secret, "header")

    def message(self, value: JsonValue) -> JsonValue:
        """Return a message, or a batch of them, without secrets."""
        if isinstance(value, list):
            return [self.message(each) for each in value]
        redacted: JsonValue = self._value(value, "", ())
        return redacted

    def text(self, text: str, depth: int = 0) -> str:
        """Return any text without secrets, also in JSON in it."""
        text = self._plain(text)
        if depth < _MAX_DEPTH and '"' in text and len(text) <= _MAX_JSON:
            text = self._json(text, depth)
        if any(mark in text for mark in "=:-<"):
            for form in (_COOKIE, _LINE, _COLON, _ASSIGNED, _OPTION, _ELEMENT):
                text = form.sub(self._assigned, text)
        return text

    def line(self, line: bytes) -> bytes:
        """Return a line that is no JSON message without secrets; bytes that are no text are kept.

        A JSON string without its end is replaced, because it may be the beginning of a secret.
        """
        text = line.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        strings = [*_STRING.finditer(redacted)]
        if strings and strings[-1].end() == len(redacted) and not _is_complete(strings[-1][0]):
            cut = strings[-1]
            if len(cut[0]) > _MIN_LITERAL and not _is_replaced(cut[0]):
                redacted = f'{redacted[: cut.start()]}"{self._placeholder(cut[0], "cut_off")}'
        return redacted.encode("utf-8", "surrogateescape")

    def command(self, words: Sequence[str]) -> list[str]:
        """Return a command line without secrets."""
        redacted, name = [], ""
        for word in words:
            if name and is_secret(name) and not word.startswith("-"):
                redacted.append(self._named(word))
            else:
                redacted.append(self.text(word))
            name = word.lstrip("-") if word.startswith("-") and "=" not in word else ""
        return redacted

    def url(self, url: str) -> str:
        """Return a URL without secrets: passwords, and parts of the path and the query that look random."""
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc
        if "@" in host:
            user, _, host = host.rpartition("@")
            host = f"{self._placeholder(user, 'url')}@{host}"
        path = "/".join(self._random(self.text(part)) for part in parts.path.split("/"))
        query = "&".join(self._parameter(each) for each in parts.query.split("&"))
        return urllib.parse.urlunsplit((parts.scheme, host, path, query, ""))

    def _parameter(self, text: str) -> str:
        name, equals, value = text.partition("=")
        return f"{name}={self._named(value) if is_secret(name) else self._random(self.text(value))}" if equals else text

    def _random(self, text: str) -> str:
        return self._placeholder(text, "url") if _RANDOM.fullmatch(text) and not _is_replaced(text) else text

    def _value(self, value: Any, name: str, path: tuple[str, ...]) -> Any:
        """Return ``value`` without secrets. ``name``: its key, or that of a member around it that is a secret."""
        if path in self._untouched:
            return value
        if isinstance(value, dict):
            return self._object(value, name, path)
        if isinstance(value, list):
            if path[-1:] == ("",) and len(value) == 2 and isinstance(value[0], str) and is_secret(value[0]):
                return [value[0], self._value(value[1], value[0], (*path, ""))]  # a name and its value, in a list
            return [self._value(each, name, (*path, "")) for each in value]
        if isinstance(value, str):
            return self._named(value) if is_secret(name) else self.text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and len(str(value)) >= _MIN_NUMBER
        return self._placeholder(str(value), "name") if is_number and is_secret(name) else value

    def _object(self, value: dict[str, Any], name: str, path: tuple[str, ...]) -> Any:
        if path and path[-1] in self._schemas:
            return self._schema(value, "")
        if path[-1:] == ("properties",):
            return {self._key(key): self._schema(each, key) for key, each in value.items()}
        label = next((value[key] for key in _LABELS if isinstance(value.get(key), str)), "")
        if is_secret(label):  # as in a list of headers or variables
            return {
                self._key(key): self._value(each, label if key in _LABELLED else key, (*path, key))
                for key, each in value.items()
            }
        return {
            self._key(key): self._value(each, name if is_secret(name) and not is_secret(key) else key, (*path, key))
            for key, each in value.items()
        }

    def _schema(self, value: Any, name: str) -> Any:
        """Return a JSON Schema, that of a property if there is a ``name``, without default values that are secrets."""
        if isinstance(value, dict):
            return {
                self._key(key): self._value(each, name, (key,))
                if key in self._schema_values
                else {self._key(each_name): self._schema(inner, each_name) for each_name, inner in each.items()}
                if key == "properties" and isinstance(each, dict)
                else self._schema(each, name)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._schema(each, name) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def _key(self, key: str) -> str:
        return self.text(key) if len(key) >= _MIN_LITERAL else key

    def _named(self, text: str) -> str:
        """Return the text under the name of a secret without it; a scheme such as Bearer stays."""
        if not text.strip() or _is_replaced(redacted := self._plain(text)):
            return redacted if text.strip() else text
        return self._placeholder(text, "name")

    def _plain(self, text: str) -> str:
        """Replace known secrets, and what has the shape of one."""
        if self._search is not None:
            text = self._search.sub(lambda match: self._placeholder(match[0], self._literals[match[0]]), text)
        for pattern in self._patterns:
            text = pattern.sub(lambda match: self._placeholder(match[0], "pattern") if match[0] else "", text)
        folded = text.lower()
        for kind, (hint, pattern, check) in _shapes().items():
            if hint in folded:
                text = pattern.sub(functools.partial(self._shaped, kind, check), text)
        return text

    def _shaped(self, kind: str, check: Callable[[str], bool], match: re.Match[str]) -> str:
        group = "secret" if "secret" in match.re.groupindex else 0
        if _is_replaced(match[group]) or not check(match[group]):
            return match[0]
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return f"{match[0][:start]}{self._placeholder(match[group], kind)}{match[0][end:]}"

    def _json(self, text: str, depth: int) -> str:
        """Replace secrets in the JSON that ``text`` is or contains, without changing the rest of the text."""
        changed: dict[str, str] = {}
        if text.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(text)
                _changes(value, self._value(value, "", ("",)), changed)
            except (ValueError, RecursionError):
                pass
        text = _MEMBER.sub(self._member, text)

        def replaced(match: re.Match[str]) -> str:
            decoded = _decoded(match[0])
            if decoded is None:
                return match[0]
            new = changed.get(decoded) or (self.text(decoded, depth + 1) if "\\" in match[0] else decoded)
            return match[0] if new == decoded else json.dumps(new, ensure_ascii="\\u" in match[0])

        return _STRING.sub(replaced, text) if changed or "\\" in text else text

    def _member(self, match: re.Match[str]) -> str:
        name, between, value = match.groups()
        if not is_secret(_decoded(name) or "") or _is_replaced(value):
            return match[0]
        if value[0] != '"':
            return f'{name}{between}"{self._placeholder(value, "name")}"' if len(value) >= _MIN_NUMBER else match[0]
        decoded = _decoded(value)
        return f"{name}{between}{json.dumps(self._named(value[1:] if decoded is None else decoded))}"

    def _assigned(self, match: re.Match[str]) -> str:
        value = match["value"]
        if not is_secret(match["name"]) or _is_replaced(value) or len(value) < _MIN_NUMBER:
            return match[0]
        quote = value[0] if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1 else ""
        new = self._named(value[1:-1] if quote else value)
        start = match.start("value") - match.start()
        return f"{match[0][:start]}{quote}{new}{quote}{match[0][match.end('value') - match.start() :]}"

    def _placeholder(self, secret: str, kind: str) -> str:
        # A part of the secret may have been replaced before. Other texts contain the whole of it.
        secret = _EACH_PLACEHOLDER.sub(lambda match: self._secrets.get(match[0], match[0]), secret)
        if secret not in self._placeholders:
            number = self._numbered + len(self._placeholders) + 1
            placeholder = self._placeholders[secret] = f"{_PLACEHOLDER}{number}"
            self._secrets[placeholder] = secret
            self.counts[kind] += 1
            if secret not in self._literals and _is_distinctive(secret):
                self._add_literal(secret, kind)
        return self._placeholders[secret]

    def _add_literal(self, secret: str, kind: str) -> None:
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            urllib.parse.quote(secret, safe="", errors="surrogatepass"),
            _base64(secret),
        ):
            self._literals.setdefault(form, kind)
        self._search = re.compile("|".join(map(re.escape, sorted(self._literals, key=len, reverse=True))))


@functools.lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Return whether a value under ``name`` is a secret, as with ``apiKey``, ``X-Api-Key`` and ``API_KEY``."""
    words = [word.lower() for word in _WORDS.findall(name[-200:])]
    joined, rules = "".join(words), _rules()
    if not words or joined.endswith(tuple(rules["not_secret"])):
        return False
    return joined.endswith(tuple(rules["names"])) or words[-1] in rules["words"]


def _is_replaced(text: str) -> bool:
    """Return whether ``text`` is only placeholders, punctuation, and a scheme such as Bearer."""
    return _ONLY_PLACEHOLDERS.fullmatch(text) is not None


def _is_distinctive(secret: str) -> bool:
    """Return whether another text with this value most likely means the secret, and not an ordinary word."""
    has_digit, has_letter = any(map(str.isdigit, secret)), any(map(str.isalpha, secret))
    return (len(secret) >= _MIN_LITERAL and has_digit and has_letter) or (
        len(secret) >= _MIN_WORD and not re.fullmatch(r"[a-z_/-]+|[0-9.:-]+", secret)
    )


def _is_complete(string: str) -> bool:
    return len(string) > 1 and string.endswith('"') and _decoded(string) is not None


def _decoded(string: str) -> str | None:
    """Return the value of a JSON string, also of one with line breaks; None if it is none."""
    try:
        value = json.loads(string, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _changes(before: Any, after: Any, changed: dict[str, str]) -> None:
    """Add each string in ``before`` that is another in ``after``."""
    if isinstance(before, str) and before != after:
        changed[before] = str(after)
    elif isinstance(before, dict):
        for old, new in zip(before.items(), after.items(), strict=True):
            _changes([*old], [*new], changed)
    elif isinstance(before, list):
        for old, new in zip(before, after, strict=True):
            _changes(old, new, changed)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def _is_basic(text: str) -> bool:
    """Return whether ``text`` encodes a name and a password (RFC 7617)."""
    try:
        return b":" in base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return False


def _is_luhn(text: str) -> bool:
    """Return whether the digits of ``text`` end in the check digit of a card number (ISO/IEC 7812-1)."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_CHECKS: dict[str, Callable[[str], bool]] = {"basic": _is_basic, "luhn": _is_luhn, "": bool}


@functools.cache
def _rules() -> dict[str, Any]:
    rules = transcript.checked(os.path.join(paths.CONFORMANCE, "redaction.yaml"), "redaction")
    return {**rules, "words": frozenset(rules["words"])}


@functools.cache
def _shapes() -> dict[str, tuple[str, re.Pattern[str], Callable[[str], bool]]]:
    return {
        kind: (shape.get("hint", "").lower(), re.compile(shape["pattern"]), _CHECKS[shape.get("check", "")])
        for kind, shape in _rules()["shapes"].items()
    }

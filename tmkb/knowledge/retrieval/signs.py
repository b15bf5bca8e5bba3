"""Signs: what a change does, beyond its words.

The variables of each function are followed statement by statement, without a parser. One that comes from the caller,
or from a record of the caller, is trusted. A record that is read without a trusted variable is bare until a check names
it. `patterns/_signs.yaml` contains the regular expressions. A model of reviews has a copy of them, and the weight of
each sign.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tmkb.knowledge.retrieval.words import MAX_CHARACTERS

FILE = "_signs.yaml"  # beside the packaged patterns
_COUNTED = ("caller", "scope", "check")  # words whose number before and after the change is compared
_LONGEST = 25  # lines of a statement
_WIDEST = 400  # characters of a line that count; bounds the time of a search
_HEADER = 3  # lines that can name the file
_NEAR = 2  # lines around a change whose words count
_STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_COMMENT = re.compile(r"\s*(#(?!\[)|//|\*(\s|/|$)|/\*|--\s)")
_LATE_COMMENT = re.compile(r"\s(#|//)\s.*")
_BLOCK = re.compile(
    r"(\)\s*(:[^{]*)?\{|=>\s*\{|\b(else|try)\s*\{|^\s*\{|\bclass\b.*\{|:|\bdo(\s*\|[^|]*\|)?|\bthen|\bbegin)\s*$"
)
_OBJECT = re.compile(r"[(\[,:=]\s*\{\s*$")
_CONTINUES = re.compile(
    r"\s*(\.|\?\.|->|&&|\|\||\?|:(?!:)|\band\b|\bor\b|\)|\]|\}\s*\)|(where|from|join|group by|order by)\b)",
    re.IGNORECASE,
)
_OPEN = re.compile(r"(=|,|\(|\[|&&|\|\||\+|\band|\bor|\?|\\|return|await)\s*$")
_ASSIGNED = re.compile(
    r"\s*(?:if\s+|if\s*\(|while\s+)?(?:export\s+)?(?:(?:const|let|var|val|final|auto|my|local|def)\s+)?"
    r"(?:[A-Z][\w<>\[\],?.]*\s+)?(?P<names>[@$]?[\w$.]+(?:\s*,\s*[\w$]+)*|\{[^}=]*\}|\[[^\]=]*\])"
    r"(?:\s*:[\w<>\[\]|. ?]++)?\s*+(?:\|\|=|:=|=|<-)(?![=>~])\s*(?P<value>.+)",
    re.DOTALL,
)
_LOOP = re.compile(r"\bfor\s*\(?(?:const|let|var|final|\w+)?\s*(\w+)\s*(?:in|of|:)\s+(.*)")
_NAME = re.compile(r"[@$]?[\w$]+")
_USED = re.compile(r"(?<![\w$@.])[@$]?[\w$]+")
_SOURCE = re.compile(r"\s*(?:await\s+)?([@$]?[\w$]+)")
_NO_VARIABLES = {"err", "_", "error", "ok", "self", "this", "const", "let", "res"}
_ONE_LINE_BODY = re.compile(r"=>\s*[^{\s]|=\s*$")
_LITERAL = re.compile(r"\s*(r|text\()?('[^']*'|\"[^\"]*\"|`[^`]*`|\"\"\".*\"\"\")\)?[;,]?\s*$", re.DOTALL)


class _Statement(NamedTuple):
    is_added: bool
    text: str

    @property
    def depth(self) -> int:
        """Its indentation."""
        return len(self.text) - len(self.text.lstrip())


class _Facts(NamedTuple):
    """What a statement says: the variables that it sets, their value, and the bare variables in it."""

    is_added: bool
    depth: int
    text: str
    names: list[str]
    value: str
    named: list[str]
    is_own: bool
    is_scoped: bool
    is_check: bool


class Signs:
    """Finds signs.

    Args:
        rules: `words` and `forms` of `_signs.yaml`, and in a model `weights`: sign → weight.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.words = {name: _any(each) for name, each in rules["words"].items()}
        self.forms = {name: (_any(form["has"]), form.get("lacks")) for name, form in rules["forms"].items()}
        self.weights: Mapping[str, float] = rules.get("weights", {})

    def weight(self, text: str) -> float:
        """Return the weight of the signs of ``text`` together."""
        return sum(self.weights.get(sign, 0.0) for sign in self.of(text))

    def of(self, text: str) -> set[str]:
        """Return the signs of a change: its path, then lines with ``+``, ``-`` or a space before them."""
        lines = _lines(text[:MAX_CHARACTERS])
        statements = [*_statements(line for line in lines if line[0] != "-")]
        return {*self._changed(lines), *self._forms(statements), *self._reads(statements)}

    def _changed(self, lines: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield which words the change adds, removes, or does not have."""
        for word in _COUNTED:
            found = self.words[word]
            added, removed = (sum(len(found.findall(text)) for sign, text in lines if sign == one) for one in "+-")
            if added != removed:
                yield f"{'more' if added > removed else 'fewer'}_{word}"
            elif not added:
                yield f"no_{word}"
        if not any(self.words["caller"].search(text) for _, text in lines):
            yield "no_caller_near"

    def _forms(self, statements: Sequence[_Statement]) -> Iterator[str]:
        for name, (has, lacks) in self.forms.items():
            for statement in statements:
                is_complete = lacks is None or not self.words[lacks].search(statement.text)
                if is_complete and statement.is_added and has.search(statement.text):
                    yield name

    def _reads(self, statements: Sequence[_Statement]) -> set[str]:
        reads = _Reads(self.words)
        for statement in statements:
            reads.follow(statement)
        reads.end()
        return reads.signs


class _Reads:
    """Follows the variables of a function.

    Attributes:
        signs: of the functions so far.
    """

    def __init__(self, words: Mapping[str, re.Pattern[str]]) -> None:
        self.words = words
        self.trusted: dict[str, int] = {}  # variable → indentation of its statement
        self.bare: dict[str, tuple[int, str | None]] = {}  # the same with the sign, if the change adds the read
        self.signs: set[str] = set()

    def end(self, depth: int = -1) -> None:
        """End functions whose content is indented more than ``depth``: what was read and not checked remains so."""
        self.signs.update(sign for deep, sign in self.bare.values() if deep > depth and sign)
        self.bare = {name: facts for name, facts in self.bare.items() if facts[0] <= depth}
        self.trusted = {name: deep for name, deep in self.trusted.items() if deep <= depth}

    def follow(self, statement: _Statement) -> None:
        """Follow the next statement."""
        words, text = self.words, statement.text
        if words["ignored"].search(text):
            return
        if words["function"].search(text):
            self.end(statement.depth)
            for found in words["caller_parameter"].finditer(text):
                self.trusted[next(filter(None, found.groups()))] = statement.depth + 1
            if not _ONE_LINE_BODY.search(text):
                return
        facts = self._facts(statement)
        if not self._is_checked(facts):
            self._assign(facts)

    def _facts(self, statement: _Statement) -> _Facts:
        words = self.words
        text = words["credit"].sub("", statement.text)
        assigned = _ASSIGNED.match(text)
        names, value = (_variables(assigned["names"]), assigned["value"]) if assigned else ([], text)
        if assigned and _LITERAL.match(value) and "${" not in value:
            names, value, text = [], "", ""
        relevant = value if assigned else text
        used = _used(relevant)
        is_own = bool(words["caller"].search(relevant)) or not used.isdisjoint(self.trusted)
        is_scoped = is_own or bool(words["scope"].search(relevant))
        named = [name for name in self.bare if name in used]
        is_check = bool(words["check"].search(relevant))
        return _Facts(statement.is_added, statement.depth, text, names, value, named, is_own, is_scoped, is_check)

    def _is_checked(self, facts: _Facts) -> bool:
        """Return whether a statement checks what was read before, which is then no longer bare."""
        words, text, named = self.words, facts.text, facts.named
        if facts.is_check and any(self._is_first(name, text) for name in named):
            self.bare |= {name: (facts.depth, self.bare[name][1] and "checked_first") for name in named}
            return True
        decides = facts.is_scoped and (not facts.is_own or words["decision"].search(text))
        if not named or not (facts.is_check or decides):
            return False
        for name in named:
            del self.bare[name]
        if facts.is_scoped:
            self._trust(facts, [*named, *facts.names])
        return True

    def _is_first(self, name: str, text: str) -> bool:
        return bool(re.search(rf"(?<![\w$@.]){re.escape(name)}(?:{self.words['first'].pattern})", text))

    def _trust(self, facts: _Facts, names: Iterable[str]) -> None:
        for name in names:
            self.trusted.setdefault(name, facts.depth)

    def _assign(self, facts: _Facts) -> None:
        """Follow a statement into its variables."""
        names, named = facts.names, facts.named
        if (loop := _LOOP.search(facts.text)) and not _used(loop[2]).isdisjoint(self.trusted):
            self.trusted[loop[1]] = facts.depth
        is_read = self._is_read(facts.value)
        if facts.is_scoped:
            self._trust(facts, names)
            self._add(facts, "read_own" if is_read else None)
        elif named and (source := self._source(facts, is_read)):
            self.bare |= dict.fromkeys(names[:1], self.bare[source])
        elif is_read and not named and not facts.is_check:
            self._read(facts)
        for name in [] if facts.is_scoped else names:
            self.trusted.pop(name, None)

    def _source(self, facts: _Facts, is_read: bool) -> str | None:
        """Return the bare variable from which a statement takes the one that it sets."""
        leading = _SOURCE.match(facts.value)
        if leading and leading[1] in facts.named:
            return leading[1]
        return facts.named[0] if is_read else None

    def _is_read(self, value: str) -> bool:
        words = self.words
        if not words["read"].search(value):
            return False
        return not words["other_read"].search(value) or bool(words["record"].search(value))

    def _read(self, facts: _Facts) -> None:
        """Follow a read that names no trusted variable."""
        words, value = self.words, facts.value
        if len(words["condition"].findall(value)) > 1:
            return self._add(facts, "read_two_keys")
        if words["through"].search(value):
            return None
        sign = "read_by_key" if words["key"].search(value) else "read_list"
        if facts.names:
            self.bare[facts.names[0]] = (facts.depth, sign if facts.is_added else None)
            return None
        return self._add(facts, sign)

    def _add(self, facts: _Facts, sign: str | None) -> None:
        if facts.is_added and sign:
            self.signs.add(sign)


def nearby(text: str) -> str:
    """Return a change without its unchanged lines that are far from others: their words describe other code."""
    lines = text.split("\n")
    changed = [at for at, line in enumerate(lines) if line[:1] in ("+", "-") and not _is_header(at, line)]
    near = {around for at in changed for around in range(at - _NEAR, at + _NEAR + 1)}
    return "\n".join(
        line for at, line in enumerate(lines) if at in near or not changed or (at < _HEADER and line[:1] != " ")
    )


def packaged() -> dict[str, Any]:
    """Return the packaged rules. Raises SpecError."""
    from tmkb.schema import metaschema, paths

    value: Any = metaschema.read(
        os.path.join(paths.PATTERNS, FILE), os.path.join(paths.SCHEMAS, "meta", "signs.yaml")
    ).value
    return {"words": value["words"], "forms": value["forms"]}


def _any(expressions: Iterable[str]) -> re.Pattern[str]:
    """Return what matches any of ``expressions``, each of which may begin with (?i)."""
    scoped = (f"(?i:{each[4:]})" if each.startswith("(?i)") else f"(?:{each})" for each in expressions)
    return re.compile("|".join(scoped))


def _lines(text: str) -> list[tuple[str, str]]:
    """Return the signs and texts of the lines, without the path and the heads of hunks."""
    found: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n")):
        is_path = _is_header(number, line) or (number < _HEADER and not found and line[:1] not in "+- \t")
        if not is_path and not line.startswith("@@"):
            sign = line[:1] if line[:1] in ("+", "-", " ") else ""
            found.append((sign or " ", _without_comment(line[len(sign) : _WIDEST])))
    return found


def _is_header(number: int, line: str) -> bool:
    return number < _HEADER and line.startswith(("+++", "---"))


def _statements(lines: Iterable[tuple[str, str]]) -> Iterator[_Statement]:
    """Yield statements: lines that are joined until brackets are closed and nothing continues them."""
    joined: list[str] = []
    is_added, depth = False, 0
    for sign, text in lines:
        is_blank = not text.strip()
        if _COMMENT.match(text) or (is_blank and depth > 0):
            continue
        if joined and (is_blank or len(joined) == _LONGEST or (depth <= 0 and not _is_continued(joined[-1], text))):
            yield _Statement(is_added, "\n".join(joined))
            joined, is_added, depth = [], False, 0
        if is_blank:
            continue
        joined.append(text)
        is_added |= sign == "+"
        depth += _depth(text)
        if _BLOCK.search(text) and not _OBJECT.search(text):
            yield _Statement(is_added, "\n".join(joined))
            joined, is_added, depth = [], False, 0
    if joined:
        yield _Statement(is_added, "\n".join(joined))


def _is_continued(line: str, following: str) -> bool:
    return bool(_CONTINUES.match(following) or _OPEN.search(line))


def _depth(text: str) -> int:
    bare = _STRING.sub("", text)
    return sum(bare.count(one) for one in "([{") - sum(bare.count(one) for one in ")]}")


def _variables(names: str) -> list[str]:
    """Return the variables on the left of an assignment; of ``order.total``, none."""
    if "." in names.removeprefix("self.").removeprefix("this."):
        return []
    return [name for name in _NAME.findall(names) if name not in _NO_VARIABLES]


def _used(text: str) -> set[str]:
    """Return the variables in ``text``, among other words."""
    return {*_USED.findall(text)}


def _without_comment(text: str) -> str:
    """Return a line without the comment at its end."""
    comment = _LATE_COMMENT.search(_STRING.sub(lambda string: "'" * len(string[0]), text))
    return text[: comment.start()] if comment else text

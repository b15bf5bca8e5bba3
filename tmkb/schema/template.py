"""Sentences with holes: ``Unknown tool: {tool}``. A hole is a bare name; ``{{`` and ``}}`` are braces. Nothing else.

No attributes, indices or conversions, so that a sentence in a YAML file cannot reach into objects.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tmkb.schema.values import JsonValue

SHOWN_CODE_POINTS = 80  # contract §5: every value of the peer is cut after this many


def cut(value: str) -> str:
    """``value`` as it may stand in a sentence: at most 80 code points, the rest told by an ellipsis."""
    return value if len(value) <= SHOWN_CODE_POINTS else value[:SHOWN_CODE_POINTS] + "…"


def pieces(template: str) -> Iterator[tuple[str, str | None]]:
    """Literal text and the name that follows it, in order; the name is None where no hole follows.

    Raises ValueError for a brace that is neither doubled nor part of a pair around a name.
    """
    literal, rest = "", template
    while True:
        at = min((i for i in (rest.find("{"), rest.find("}")) if i >= 0), default=-1)
        if at < 0:
            yield literal + rest, None
            return
        literal += rest[:at]
        if rest[at : at + 2] in ("{{", "}}"):
            literal, rest = literal + rest[at], rest[at + 2 :]
            continue
        end = rest.find("}", at)
        name = rest[at + 1 : end]
        if rest[at] == "}" or end < 0 or not name.isidentifier():
            raise ValueError(rest[at : end + 1] if end >= at else rest[at:])
        yield literal, name
        literal, rest = "", rest[end + 1 :]


def fill(template: str, fields: Mapping[str, object]) -> str:
    """``template`` with every hole filled from ``fields``. Holes and fields were held together when it was loaded."""
    parts = _KNOWN.get(template)
    if parts is None:
        parts = _KNOWN[template] = list(pieces(template))
    return "".join([text if name is None else f"{text}{fields[name]}" for text, name in parts])


def build(tree: JsonValue, fields: Mapping[str, JsonValue]) -> JsonValue:
    """``tree`` with its texts filled, and ``{$value: NAME}`` replaced by that field itself."""
    if isinstance(tree, dict):
        if list(tree) == ["$value"]:
            return fields[str(tree["$value"])]
        return {key: build(inner, fields) for key, inner in tree.items()}
    if isinstance(tree, list):
        return [build(inner, fields) for inner in tree]
    return fill(tree, shortened(fields)) if isinstance(tree, str) else tree


def shortened(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """``fields`` as they may stand in sentences."""
    return {name: cut(value) if isinstance(value, str) else value for name, value in fields.items()}


def named(tree: JsonValue) -> list[str]:
    """The fields that `build` takes from ``tree``, in order. Raises ValueError as `pieces` does."""
    if isinstance(tree, dict):
        if list(tree) == ["$value"]:
            return [str(tree["$value"])]
        return [name for inner in tree.values() for name in named(inner)]
    if isinstance(tree, list):
        return [name for inner in tree for name in named(inner)]
    return holes(tree) if isinstance(tree, str) else []


def holes(template: str) -> list[str]:
    """The names that ``template`` asks for, in order. Raises ValueError as `pieces` does."""
    return [name for _, name in pieces(template) if name is not None]


_KNOWN: dict[str, list[tuple[str, str | None]]] = {}  # templates are few: they stand in files

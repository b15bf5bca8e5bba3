"""Fill ``{name}`` placeholders in texts; ``{{`` and ``}}`` are literal braces. The only parser of placeholders.

Attributes, indices and conversions are refused, so a text in a YAML file cannot reach into Python objects. Answers of
scripts are the exception: `parse_paths` also accepts dotted paths, and their values are JSON.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tmkb.schema.values import JsonObject, JsonValue

SHOWN_CODE_POINTS = 80  # longer values of the peer are cut
_parsed: dict[str, list[tuple[str, str | None]]] = {}  # bounded: templates come from files


def cut(value: str, most: int = SHOWN_CODE_POINTS) -> str:
    """Return ``value`` cut after ``most`` code points, with an ellipsis."""
    return value if len(value) <= most else value[:most] + "…"


def plural(count: int, noun: str) -> str:
    """Return ``count`` with ``noun`` in the singular or the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('x') else 's'}"


def cut_values(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return ``fields`` with every string cut."""
    return {name: cut(value) if isinstance(value, str) else value for name, value in fields.items()}


def parse(template: str) -> Iterator[tuple[str, str | None]]:
    """Yield pairs of literal text and the placeholder name after it; the last name is None.

    Raises:
        ValueError: with the text of a brace that is neither doubled nor part of a placeholder.
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
    """Return ``template`` with every placeholder replaced. Loading has checked that ``fields`` has all names."""
    parts = _parsed.get(template)
    if parts is None:
        parts = _parsed[template] = list(parse(template))
    return "".join([text if name is None else f"{text}{fields[name]}" for text, name in parts])


def fill_tree(tree: JsonValue, fields: Mapping[str, JsonValue]) -> JsonValue:
    """Return ``tree`` with its texts filled, and each ``{$value: NAME}`` replaced by the value of that field."""
    if isinstance(tree, dict):
        if (path := value_path(tree)) is not None:
            return fields[path]
        return {key: fill_tree(inner, fields) for key, inner in tree.items()}
    if isinstance(tree, list):
        return [fill_tree(inner, fields) for inner in tree]
    return fill(tree, cut_values(fields)) if isinstance(tree, str) else tree


def names(template: str) -> list[str]:
    """Return the placeholder names of ``template``, in order. Raises ValueError as `parse` does."""
    return [name for _, name in parse(template) if name is not None]


def tree_names(tree: JsonValue) -> list[str]:
    """Return the field names that `fill_tree` uses, in order. Raises ValueError as `parse` does."""
    if isinstance(tree, dict):
        path = value_path(tree)
        return [name for inner in tree.values() for name in tree_names(inner)] if path is None else [path]
    if isinstance(tree, list):
        return [name for inner in tree for name in tree_names(inner)]
    return names(tree) if isinstance(tree, str) else []


def value_path(tree: JsonValue) -> str | None:
    """Return the NAME of ``{$value: NAME}``; None for any other value."""
    return str(tree["$value"]) if isinstance(tree, dict) and list(tree) == ["$value"] else None


def choice(tree: JsonValue) -> tuple[str, JsonObject, JsonValue] | None:
    """Return NAME, the answers by value, and the default of ``{$by: NAME, values: {…}, otherwise: …}``.

    None for any other value.
    """
    if not isinstance(tree, dict) or "$by" not in tree or tree.keys() - {"$by", "values", "otherwise"}:
        return None
    values = tree.get("values")
    return (str(tree["$by"]), values, tree.get("otherwise")) if isinstance(values, dict) else None


def parse_paths(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield pairs of literal text and the text in the single braces after it; the last of these is None.

    The caller decides which of the texts in braces are names or dotted paths. All other braces are literal.
    """
    literal, *parts = text.split("{")
    for part in parts:
        path, brace, after = part.partition("}")
        if brace:
            yield literal, path
            literal = after
        else:
            literal += "{" + part
    yield literal, None


def find_names(text: str) -> list[str]:
    """Return the names and dotted paths in single braces, in order."""
    paths = [path for _, path in parse_paths(text) if path]
    return [path for path in paths if path[0] != "." and path.replace(".", "_").isidentifier()]

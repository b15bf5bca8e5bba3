"""What is to be had of the library besides answers to questions: patterns one by one, lists, pages, prompts, checks.

Imported when a server first uses one of these operations.
"""

from __future__ import annotations

from tmkb.errors import ToolError
from tmkb.knowledge import catalog
from tmkb.providers.operation import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.providers.operation import Operation, Result, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue

_ANY = "any"  # the language or framework of a pattern that holds for all
_SHOWN = 50  # problems of one text that are told; who has more has seen enough


class Catalog:
    """The library, pattern by pattern; ``query`` gives the answer to a question."""

    def __init__(self, part: Callable[[str], JsonObject], query: Callable[..., Result]) -> None:
        rows: Any = part("catalog")["patterns"]
        self.rows: list[dict[str, str]] = rows
        self.wholes: Any = None
        self.part = part
        self.query = query

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """The operation called ``name`` as ``definition`` uses it."""
        if name in _MAKERS:
            return _MAKERS[name](self, definition)
        found: dict[str, Operation] = {
            "categories": self.categories,
            "find": self.find,
            "frameworks": self.frameworks,
            "get": self.get,
            "ids": self.ids,
            "index": self.index,
            "page": self.page,
            "schema": self.schema,
            "section": self.section,
        }
        return found[name]

    def get(self, id: str) -> JsonObject:
        """One pattern in full."""
        found: JsonObject | None = self._whole(id)
        if found is None:
            raise _unknown("pattern", id, self._all("id"))
        return found

    def find(
        self,
        category: str | None = None,
        severity: str | None = None,
        language: str | None = None,
        framework: str | None = None,
    ) -> JsonObject:
        """The rows that pass; what holds for any language or framework passes every filter on it."""
        wanted = {"category": category, "severity": severity, "language": language, "framework": framework}
        asked = {field: value for field, value in wanted.items() if value is not None}
        for field, value in asked.items():
            if field != "severity" and value not in (*self._all(field), _ANY):  # severities are few and fixed
                raise _unknown(field, value, self._all(field))
        rows = [row for row in self.rows if all(_passes(row[field], value) for field, value in asked.items())]
        return {"count": len(rows), "patterns": [{c: row[c] for c in catalog.COLUMNS} for row in rows]}

    def schema(self, kind: str) -> JsonObject:
        """The JSON Schema of a kind of file."""
        from tmkb.schema import paths, reader

        files = paths.meta_schemas()
        if kind not in files:
            raise _unknown("kind", kind, files)
        return {"kind": kind, "schema": reader.read(files[kind]).mapping()}

    def page(self, id: str) -> str | None:
        """One pattern for reading; None where there is none."""
        found = self._whole(id)
        return None if found is None else catalog.page(found)

    def index(self) -> str:
        """All of them in a list for reading."""
        return catalog.index(self.rows)

    def section(self, category: str) -> str | None:
        """One category for reading; None where there is none."""
        rows = [row for row in self.rows if row["category"] == category]
        return catalog.section(category, rows) if rows else None

    def ids(self, **_: JsonValue) -> JsonValue:
        """The ids, for completion."""
        return [*self._all("id")]

    def categories(self, **_: JsonValue) -> JsonValue:
        """The categories, for completion."""
        return [*self._all("category")]

    def frameworks(self, **_: JsonValue) -> JsonValue:
        """The frameworks, for completion."""
        return [*self._all("framework")]

    def entries(self, definition: Mapping[str, Any]) -> Operation:
        """What a list of resources shows of those that the template in ``definition`` stands for."""
        typed: JsonObject = {"mimeType": definition["mimeType"]} if "mimeType" in definition else {}

        def entry(row: Mapping[str, str]) -> JsonObject:
            address = definition["uriTemplate"].replace("{id}", row["id"])
            return {"uri": address, "name": row["id"], "title": row["name"], "description": row["threat"], **typed}

        return lambda: [entry(row) for row in self.rows]

    def prompt(self, definition: Mapping[str, Any]) -> Operation:
        """The text in ``definition``, with the answer to its arguments as {patterns}.

        A framework that no pattern is written for leaves none out: what it teaches has to be carried over.
        """
        from tmkb.providers.script import substitute

        def operation(**arguments: str) -> JsonValue:
            framework = arguments.get("framework") or _ANY
            context = "\n".join(text for name, text in arguments.items() if name != "framework")
            known = framework.lower() in self._all("framework")
            answer = self.query(context, framework=framework.lower() if known else None)
            given = {**dict.fromkeys(definition.get("arguments", {})), **arguments, "framework": framework}
            return substitute(definition["answer"], {**given, "patterns": answer.content[0]["text"]})

        return operation

    def validate(self, definition: Mapping[str, Any]) -> Operation:
        """What is wrong with the text of a pattern, as far as it tells without the files beside it."""

        def operation(text: str) -> StepGenerator:
            from tmkb.knowledge import quality
            from tmkb.schema import problems

            found = quality.check_text(text, "pattern.yaml", self._all("id"))
            told: list[Any] = [
                {"line": problem.line, "column": problem.column, "sentence": problems.sentence(problem)}
                for problem in found[:_SHOWN]
            ]
            result: JsonObject = {"valid": not found, "problem_count": len(found), "problems": told}
            said: JsonObject = {key: result[key] for key in ("valid", "problem_count")}
            yield Log("warning" if found else "info", said, definition["name"])
            return result

        return operation

    def _whole(self, id: str) -> Any:
        if self.wholes is None:
            self.wholes = self.part("wholes")
        return self.wholes.get(id.upper())

    def _all(self, column: str) -> list[str]:
        """What stands in a column, in its order."""
        return sorted({row[column] for row in self.rows})


# Operations that differ with the definition that uses them.
_MAKERS: dict[str, Callable[[Catalog, Mapping[str, Any]], Operation]] = {
    "entries": Catalog.entries,
    "prompt": Catalog.prompt,
    "validate": Catalog.validate,
}


def _unknown(field: str, value: str, known: Iterable[str]) -> ToolError:
    from tmkb.schema import metaschema

    if near := metaschema.nearest(value, [*known]):
        return ToolError("unknown_name_near", field=field, value=value, nearest=near)
    return ToolError("unknown_name", field=field, value=value)


def _passes(has: str, wanted: str) -> bool:
    return wanted in (has, _ANY) or has == _ANY

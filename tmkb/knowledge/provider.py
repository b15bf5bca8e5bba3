"""Answer questions from the pattern library; with the setting `catalog`, also serve single patterns."""

from __future__ import annotations

from tmkb.providers.base import Provider
from tmkb.providers.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

    from tmkb.knowledge.catalog import Catalog
    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import Operation
    from tmkb.schema.values import JsonObject

_CATALOG = (
    *("get", "find", "validate", "schema"),  # for tools
    *("page", "index", "section", "entries"),  # for resources
    *("ids", "categories", "frameworks"),  # for completion
    "prompt",
)


class Knowledge(Provider):
    """A pattern library with its search index."""

    operations: ClassVar = {"query": ("pattern_count", "patterns_included"), **dict.fromkeys(_CATALOG, ())}
    facts = ("patterns",)
    takes_folders = True

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        from tmkb.knowledge import answer
        from tmkb.knowledge.retrieval import index

        super().__init__(settings, part)
        self.catalog: Catalog | None = None
        self.index = index.Index(part)
        self.renderer = answer.Renderer(part)

    @classmethod
    def sources(cls, settings: Mapping[str, Any]) -> list[str]:
        """Return the folders of patterns and the model."""
        from tmkb.knowledge import library
        from tmkb.knowledge.retrieval import index

        folders = library.resolve(settings.get("folders"))
        return list(dict.fromkeys([*folders, index.path(folders)]))

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Load, index and render the patterns of the folders in ``settings``, by default the packaged ones."""
        from tmkb.knowledge import answer, library, questions, tokens
        from tmkb.knowledge.retrieval import index
        from tmkb.schema import problems

        loaded = library.load(settings.get("folders"))
        patterns = loaded.patterns
        warnings: list[list[Any]] = [["problem", {"problem": problems.line(problem)}] for problem in loaded.problems]
        warnings += [["no_folder", {"folder": folder}] for folder in loaded.missing]
        warnings += [["empty_folder", {"folder": folder}] for folder in loaded.empty]
        warnings += [] if patterns else [["no_patterns", {}]]
        asked = questions.Questions()

        def contexts(ids: list[str]) -> dict[str, list[str]]:
            asked.extend(folder.path for folder in loaded.folders if folder.pattern and folder.pattern["id"] in ids)
            return asked.contexts()

        built = index.build(patterns, index.path(library.resolve(settings.get("folders"))), contexts)
        warnings += [["problem", {"problem": problems.line(problem)}] for problem in asked.problems]
        parts = {**built, **answer.fragments(patterns, tokens.count)}
        if settings.get("catalog"):
            from tmkb.knowledge import catalog

            parts |= catalog.parts(patterns)
        return {"facts": {"patterns": len(patterns)}, "warnings": warnings, "parts": parts}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name`` for the tool, prompt or resource ``definition``."""
        if name == "query":
            return self.query
        if not self.settings.get("catalog"):
            raise LookupError(f"knowledge.{name} needs the setting catalog of the provider knowledge")
        if self.catalog is None:
            from tmkb.knowledge import catalog

            self.catalog = catalog.Catalog(self.part, self.query)
        return self.catalog.operation(name, definition)

    def explain(self, context: str, language: str | None, framework: str | None, limit: int) -> JsonObject:
        """Explain the answer of `query` to ``context``."""
        return self.index.explain(context, self.index.search(context, language, framework)[:limit])

    def query(
        self,
        context: str,
        language: str | None = None,
        framework: str | None = None,
        verbosity: str = "agent",
        limit: int | None = None,
    ) -> Result:
        """Answer ``context`` within the number of patterns and tokens of the settings.

        ``limit`` overrides the number of patterns, for callers that are not clients.
        """
        most = self.settings[verbosity]["patterns"] if limit is None else limit
        numbers = self.index.search(context, language, framework)[:most]
        if verbosity == "human":
            answer = self.renderer.for_human(numbers)
        else:
            answer = self.renderer.for_agent(numbers, self.settings["agent"]["tokens"])
        facts: JsonObject = {key: getattr(answer, key) for key in self.operations["query"]}
        return Result([{"type": "text", "text": answer.text}], facts=facts)

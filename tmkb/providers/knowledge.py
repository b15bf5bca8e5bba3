"""The operations of the server tmkb: questions to the library of patterns."""

from __future__ import annotations

from tmkb import problems
from tmkb.knowledge import answer, library
from tmkb.knowledge.index import Index
from tmkb.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.operation import Operation

OPERATIONS = {"query": ("pattern_count", "patterns_included")}
FACTS = ("patterns",)


class Knowledge:
    """A library that has been opened."""

    def __init__(self, found: library.Library, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.index = Index(found.patterns)
        self.facts = {"patterns": len(found.patterns)}
        self.warnings: list[tuple[str, Mapping[str, object]]] = []
        self.warnings += [("problem", {"problem": problems.line(problem)}) for problem in found.problems]
        self.warnings += [("no_folder", {"folder": folder}) for folder in found.missing]
        self.warnings += [("empty_folder", {"folder": folder}) for folder in found.empty]
        if not found.patterns:
            self.warnings.append(("no_patterns", {}))

    def operation(self, name: str, tool: Mapping[str, Any]) -> Operation:
        """The operation called ``name``; every tool uses it alike."""
        return {"query": self.query}[name]

    def query(
        self,
        context: str,
        language: str | None = None,
        framework: str | None = None,
        verbosity: str = "agent",
        limit: int | None = None,
    ) -> Result:
        """The answer to a question: as many patterns, and for an agent tokens, as the settings allow.

        ``limit`` is another number of patterns, for callers that are not clients.
        """
        most = self.settings[verbosity]["patterns"] if limit is None else limit
        patterns = self.index.search(context, language, framework)[:most]
        if verbosity == "human":
            answered = answer.for_human(patterns)
        else:
            answered = answer.for_agent(patterns, self.settings["agent"]["tokens"])
        facts = {name: answered.value[name] for name in OPERATIONS["query"]}
        return Result([{"type": "text", "text": answered.text}], facts=facts)


def open(settings: Mapping[str, Any]) -> Knowledge:
    """Read the patterns of the folders in the settings, or the packaged ones."""
    return Knowledge(library.load(settings.get("folders") or [library.PACKAGED]), settings)

"""Answer questions from the pattern library; with the setting `catalog`, also for any stack, and serve patterns."""

from __future__ import annotations

import sys

from tmkb.providers.base import Provider
from tmkb.providers.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, ClassVar

    from tmkb.errors import Problem
    from tmkb.knowledge.advice import Adviser
    from tmkb.knowledge.answer import Answer
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
_CLOSE = 0.4  # share of the first pattern's probability, from which on another's code can be shown
_SURE = 3  # patterns that are shown if they match
_POSSIBLE = 0.05  # probability that a pattern is relevant, from which on it is shown beside these
_FACTS = ("pattern_count", "patterns_included", "token_count")


class Knowledge(Provider):
    """A pattern library with its search index."""

    operations: ClassVar = {"query": _FACTS, "advise": _FACTS, **dict.fromkeys(_CATALOG, ())}
    facts = ("patterns",)
    takes_folders = True

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        from tmkb.knowledge import answer
        from tmkb.knowledge.retrieval import index

        super().__init__(settings, part)
        self.catalog: Catalog | None = None
        self.adviser: Adviser | None = None
        self.index = index.Index(part)
        self.renderer = answer.Renderer(part)
        self.known = {each[key] for each in self.index.patterns for key in ("framework", "language")}

    @classmethod
    def sources(cls, settings: Mapping[str, Any]) -> list[str]:
        """Return the folders of patterns, the records of their proofs, the model, the stacks and the reminders."""
        from tmkb.knowledge import library, provenance, reminders, stacks
        from tmkb.knowledge.retrieval import index

        folders = library.resolve(settings.get("folders"))
        records = map(provenance.record_path, folders)  # inside of a folder of patterns, beside that of one pattern
        return list(dict.fromkeys([*folders, *records, index.path(folders), stacks.path(), reminders.path()]))

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Load, index and render the patterns of the folders in ``settings``, by default the packaged ones."""
        from tmkb.knowledge import answer, library, questions, tokens
        from tmkb.knowledge.retrieval import index
        from tmkb.schema import problems

        loaded = library.load(settings.get("folders"))
        patterns = loaded.patterns

        def reported(found: Iterable[Problem]) -> list[list[Any]]:
            return [["problem", {"problem": problems.line(problem)}] for problem in found]

        warnings = reported(loaded.problems)
        warnings += [["no_folder", {"folder": folder}] for folder in loaded.missing]
        warnings += [["empty_folder", {"folder": folder}] for folder in loaded.empty]
        warnings += [] if patterns else [["no_patterns", {}]]
        asked = questions.Questions()

        def contexts(ids: list[str]) -> dict[str, list[str]]:
            asked.extend(folder.path for folder in loaded.folders if folder.pattern and folder.pattern["id"] in ids)
            return asked.contexts()

        built = index.build(patterns, index.path(library.resolve(settings.get("folders"))), contexts)
        warnings += reported(asked.problems)
        parts = {**built, **answer.fragments(patterns, tokens.count)}
        if settings.get("catalog"):
            from tmkb.knowledge import advice, catalog, idioms, reminders, stacks

            written = {}
            for folder in loaded.folders:
                if folder.pattern:
                    own, found = idioms.read(folder.path)
                    written[folder.pattern["id"]] = idioms.served(folder.path, folder.pattern, own)
                    warnings += reported(found)
            last = settings.get("reminder")
            notes = settings.get("no_match", ""), (reminders.packaged(), last) if last else None
            parts |= catalog.parts(patterns)
            parts |= advice.fragments(patterns, written, stacks.packaged(), *notes, tokens.count)
        files = index.uncompressed(str(built["index"]["model"]))
        return {"facts": {"patterns": len(patterns)}, "warnings": warnings, "parts": parts, "files": files}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name`` for the tool, prompt or resource ``definition``."""
        if name == "query":
            return self.query
        if not self.settings.get("catalog"):
            raise LookupError(f"knowledge.{name} needs the setting catalog of the provider knowledge")
        if name == "advise":
            return self.advise
        if self.catalog is None:
            from tmkb.knowledge import catalog

            self.catalog = catalog.Catalog(self.part, self.advise, self._adviser, self.settings.get("review_rules", ""))
        return self.catalog.operation(name, definition)

    def explain(self, context: str, limit: int | None = None) -> JsonObject:
        """Explain the answer of `advise` to ``context``."""
        return self.index.explain(context, self._likely(self.index.matches(context), "agent", limit))

    def query(
        self,
        context: str,
        language: str | None = None,
        framework: str | None = None,
        verbosity: str = "agent",
        limit: int | None = None,
    ) -> Result:
        """Answer ``context`` within the number of patterns and tokens of the settings.

        ``language`` and ``framework`` leave out patterns for others. ``limit`` overrides the number of patterns, for
        callers that are not clients.
        """
        numbers = self.index.search(context, language, framework)[: self._most(verbosity, limit)]
        stack = next((each for each in (framework, language) if each in self.known), None)
        if verbosity == "human":
            return self._result(self.renderer.for_human(numbers), numbers, stack)
        return self._result(self.renderer.for_agent(numbers, self.settings["agent"]["tokens"]), numbers, stack)

    def advise(
        self,
        context: str,
        language: str | None = None,
        framework: str | None = None,
        verbosity: str = "agent",
        limit: int | None = None,
    ) -> Result:
        """Answer ``context`` with the idiom of its stack, which `Stacks.choose` chooses; nothing is left out for it."""
        from tmkb.knowledge.stacks import ANY

        adviser = self._adviser()
        matches = self.index.matches(context)
        numbers = self._likely(matches, verbosity, limit)
        nearest = adviser.stacks.choose(context, language, framework)
        stack = next(iter(nearest), None)
        if verbosity == "human":
            return self._result(adviser.for_human(numbers, nearest), numbers, stack)
        likely = [self.index.probability(matches[number]) for number in numbers[:_SURE]]
        close = [each / likely[0] for each in likely if each >= _CLOSE * likely[0]]
        question = context if (framework or ANY).lower() == ANY else f"{framework}\n{context}"
        answer = adviser.for_agent(numbers, nearest, self.settings["agent"]["tokens"], question, close)
        return self._result(answer, numbers, stack)

    def advise_on(self, number: int, context: str) -> str:
        """Return the answer of `advise` to ``context`` if it were only the pattern ``number``, uncut, as JSON."""
        adviser = self._adviser()
        text: str = adviser.for_agent([number], adviser.stacks.choose(context), sys.maxsize, context).text
        return text

    def _likely(self, matches: Mapping[int, float], verbosity: str, limit: int | None) -> list[int]:
        """Return the numbers of the patterns that are shown: with a ``limit``, all that match, up to it."""
        ranked = enumerate(matches.items())
        likely = [n for rank, (n, score) in ranked if rank < _SURE or self.index.probability(score) >= _POSSIBLE]
        return (likely if limit is None else [*matches])[: self._most(verbosity, limit)]

    def _adviser(self) -> Adviser:
        if self.adviser is None:
            from tmkb.knowledge import advice

            self.adviser = advice.Adviser(self.renderer, self.part, self.index.rarity)
        return self.adviser

    def _most(self, verbosity: str, limit: int | None) -> int:
        most: int = self.settings[verbosity]["patterns"]
        return most if limit is None else limit

    def _result(self, answer: Answer, numbers: Sequence[int], stack: str | None) -> Result:
        """Return ``answer`` with the facts for the log and for observers.

        Its patterns are the first of ``numbers``. ``stack``: a name that the files of the library contain, or None.
        """
        facts: JsonObject = {key: getattr(answer, key) for key in _FACTS}
        facts["pattern_ids"] = [self.index.patterns[n]["id"] for n in numbers[: answer.patterns_included]]
        facts["stack"] = stack
        return Result([{"type": "text", "text": answer.text}], facts=facts)

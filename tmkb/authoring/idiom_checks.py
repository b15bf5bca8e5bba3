"""Check the idioms of patterns: play the attacks on their applications, and parse their code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tmkb.authoring import parsers
from tmkb.authoring.parsers import Fragment, Parsed
from tmkb.authoring.stacks.runner import Result, Workers, play_idioms
from tmkb.knowledge import idioms
from tmkb.knowledge.provenance import Checked


@dataclass(slots=True)
class Checks:
    """What the idioms of one pattern came to."""

    played: list[Result] = field(default_factory=list)
    parsed: dict[str, Parsed] = field(default_factory=dict)  # by stack
    digests: dict[str, str] = field(default_factory=dict)  # of the parsed code

    @property
    def failed(self) -> bool:
        """Whether a case was played and neither refused nor served as expected, or code has a syntax error."""
        return any(cell.failed for each in self.played for cell in each.cells) or any(self._errors())

    def summary(self) -> str:
        """Return one line; an empty text without idioms."""
        parts = [*map(str, self.played)]
        if self.parsed:
            parts.append(f"{sum(each == Parsed() for each in self.parsed.values())} of {len(self.parsed)} compiled")
        return f"idioms: {', '.join(parts)}" if parts else ""

    def details(self, verbose: bool = False) -> Iterator[str]:
        """Yield a line for each failure and each idiom that was not checked; with ``verbose``, for each case."""
        for result in self.played:
            yield from (str(cell) for cell in result.cells if verbose or cell.failed)
        yield from self._errors()
        missing = sorted({each.missing for each in self.parsed.values() if each.missing})
        yield from (f"not compiled: needs {each}" for each in missing)

    def _errors(self) -> Iterator[str]:
        for stack, each in self.parsed.items():
            if each.error:
                yield f"{stack} does not compile: {each.error}"

    def record(self, before: Mapping[str, Any]) -> Checked:
        """Return what is recorded: also what was recorded ``before`` and could not be checked, if it is unchanged."""
        proven = {each.stack: each.digest for each in self.played if each.proven}
        unchecked = {each.stack: each.digest for each in self.played if each.missing}
        compiled = {stack: self.digests[stack] for stack, each in self.parsed.items() if each == Parsed()}
        unparsed = {stack: self.digests[stack] for stack, each in self.parsed.items() if each.missing}
        return {
            "idioms": proven | _same(unchecked, before.get("idioms", {})),
            "compiled": compiled | _same(unparsed, before.get("compiled", {})),
        }


def check_all(folders: Mapping[str, str], jobs: int, timeout: float) -> Iterator[tuple[str, Checks]]:
    """Yield the checks of the patterns in ``folders`` (id → folder), in order, each as soon as it is finished.

    ``jobs``: applications that are played in parallel. ``timeout``: seconds for one case.
    """
    read = {id_: idioms.read(folder)[0] for id_, folder in folders.items()}
    keys = [(id_, stack) for id_, each in read.items() for stack in each]
    with Workers() as workers, ThreadPoolExecutor(max(1, jobs)) as pool:
        parsing = pool.submit(parsers.parse, [Fragment(stack, read[id_][stack].code) for id_, stack in keys])
        results = pool.map(lambda each: play_idioms(each, timeout, workers), folders.values())
        try:
            parsed = dict(zip(keys, parsing.result(), strict=True))
            for id_, played in zip(folders, results, strict=True):
                own = {stack: parsed[id_, stack] for stack in read[id_]}
                digests = {stack: idioms.compiled_digest(stack, idiom) for stack, idiom in read[id_].items()}
                yield id_, Checks(played, own, digests)
        except BaseException:  # the pool would wait until its threads are done
            workers.terminate()
            raise


def _same(digests: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    return {stack: digest for stack, digest in digests.items() if before.get(stack) == digest}

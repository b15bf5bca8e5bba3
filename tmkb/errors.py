"""The four exceptions, by blame: the author of a file, the peer, the arguments. All carry fields, never sentences.

The words stand in ``schemas/errors.yaml`` (what a peer is told) and ``schemas/problems.yaml`` (what an author is told).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tmkb.schema.values import JsonValue


class Problem:
    """One fault in a file or an argument: a rule of ``schemas/problems.yaml``, its fields, and where (counted from 1).

    The line of an argument is 0: it is in no file.
    """

    __slots__ = ("column", "fields", "file", "line", "rule")

    def __init__(self, rule: str, file: str, line: int = 1, column: int = 1, /, **fields: object) -> None:
        self.rule = rule
        self.file = file
        self.line = line
        self.column = column
        self.fields = fields

    @classmethod
    def of_argument(cls, rule: str, argument: str, /, **fields: object) -> Problem:
        """Return a problem with ``argument``, an option or a variable of the environment, which has no line."""
        return cls(rule, argument, 0, 0, **fields)

    def __repr__(self) -> str:
        return f"Problem({self.rule!r}, {self.file}:{self.line}:{self.column}, {self.fields})"


class _Faulty(Exception):
    """Carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(self.problems)


class DocumentError(_Faulty):
    """A file that cannot be read as a document at all. Blame: its author."""


class SpecError(_Faulty):
    """Schemas that cannot be served. Blame: their author."""


class InvalidArguments(ValueError):
    """Arguments of a call in Python that the tool's schema does not allow. ``sentences``: what is wrong with each."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = list(sentences)
        super().__init__("\n".join(self.sentences))


class ProtocolError(Exception):
    """A message that is answered with a JSON-RPC error. Blame: the peer. ``error`` is an id of ``errors.yaml``."""

    def __init__(self, error: str, **fields: JsonValue) -> None:
        super().__init__(error, fields)
        self.error = error
        self.fields = fields


class ToolError(Exception):
    """A call that is answered with a result marked ``isError``. Blame: the arguments, or the world."""

    def __init__(self, error: str, **fields: JsonValue) -> None:
        super().__init__(error, fields)
        self.error = error
        self.fields = fields

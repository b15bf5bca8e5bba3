"""Exceptions by who has to act: the author of a file, the peer, or the caller of a tool.

They carry ids and fields. The sentences are in ``schemas/errors.yaml`` (for peers) and ``schemas/problems.yaml`` (for
authors of files).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tmkb.schema.values import JsonValue


class Problem:
    """A mistake in a file or an argument: a rule of ``schemas/problems.yaml``, its fields, and the position.

    Line and column count from 1; both are 0 for an argument.
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
        """Return a problem with ``argument``: an option or an environment variable."""
        return cls(rule, argument, 0, 0, **fields)

    def __repr__(self) -> str:
        return f"Problem({self.rule!r}, {self.file}:{self.line}:{self.column}, {self.fields})"


class _Problems(Exception):
    """Carries every problem, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(self.problems)


class DocumentError(_Problems):
    """A file cannot be read as a document. Its author has to act."""


class SpecError(_Problems):
    """Schemas or options are not valid. Their author has to act."""


class InvalidArguments(ValueError):
    """Arguments of a call in Python that the tool's schema does not allow. ``sentences``: what is wrong with each."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = list(sentences)
        super().__init__("\n".join(self.sentences))


class ProtocolError(Exception):
    """A message gets a JSON-RPC error. The peer has to act. ``error``: an id of ``errors.yaml``."""

    def __init__(self, error: str, **fields: JsonValue) -> None:
        super().__init__(error, fields)
        self.error = error
        self.fields = fields


class ToolError(Exception):
    """A call gets a result with ``isError``. The caller of the tool has to act. ``error``: an id of ``errors.yaml``."""

    def __init__(self, error: str, **fields: JsonValue) -> None:
        super().__init__(error, fields)
        self.error = error
        self.fields = fields

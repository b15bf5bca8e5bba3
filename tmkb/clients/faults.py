"""What keeps a configuration file from being edited."""

from __future__ import annotations

from tmkb.errors import DocumentError, Problem
from tmkb.schema import problems


class TextError(Exception):
    """A text cannot be read or edited.

    Args:
        rule: a rule of `schemas/problems.yaml`.
        offset: the index of the character.
        fields: those of the rule.
    """

    def __init__(self, rule: str, offset: int, **fields: object) -> None:
        super().__init__(rule, offset, fields)
        self.rule = rule
        self.offset = offset
        self.fields = fields


class ConfigurationError(DocumentError):
    """A configuration file cannot be read or edited. Line and column count from 1."""

    def __init__(self, problem: Problem) -> None:
        super().__init__([problem])
        self.line = problem.line
        self.column = problem.column

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return problems.sentence(self.problems[0])
